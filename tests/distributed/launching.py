"""Starts jobs of several ranks, with bounded time, and looks whether anything is left of them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

HERE = Path(__file__).resolve().parent
SECONDS = 300.0


class Ended(NamedTuple):
    code: int
    out: str
    err: str


class Running:
    """`weft launch -n ranks SCRIPT`, begun; several may run at the same time."""

    def __init__(
        self, ranks: int, script: str, *arguments: str, options: tuple[str, ...] = ()
    ) -> None:
        command = [sys.executable, "-m", "weft", "launch", "-n", str(ranks), *options]
        env = {**os.environ, "PYTHONPATH": str(HERE.parent.parent)}
        self.process = subprocess.Popen(
            [*command, str(HERE / script), *arguments], env=env, cwd=HERE,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip

    def end(self) -> Ended:
        out, err = self.process.communicate(timeout=SECONDS)
        return Ended(self.process.returncode, out, err)


def launch(ranks: int, script: str, *arguments: str, options: tuple[str, ...] = ()) -> Ended:
    return Running(ranks, script, *arguments, options=options).end()
