"""Runs blocks of cases in separate processes, and continues after one dies or hangs."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from tools.attack.plan import Attack
from tools.attack.verdict import DEATH, HANG, OTHER, PASSED, PLAIN, Row
from tools.attack.worker import MARK, Order

ROOT = Path(__file__).resolve().parents[2]
LOOK_SECONDS = 0.05
BEGIN_SECONDS = 120.0  # to import everything, on a busy machine
TOLD = 1500  # characters of what a process said before it died


class Stopped(Exception):
    """The run was stopped."""


@dataclass(frozen=True)
class Ended:
    """How a worker ended: exit status, last case, output."""

    status: int
    rows: list[dict[str, Any]]
    hung: bool
    said: str

    @property
    def running(self) -> int | None:
        """The case that was running, if any."""
        return self.rows[-1].get("start") if self.rows else None


class Runner:
    """Runs cases of attacks.

    Args:
        seed: of the whole run.
        plant: see `Order`.
        seconds: what a case may take, where it is not the attack's own limit.
    """

    def __init__(self, seed: int, plant: str = "", seconds: float | None = None) -> None:
        self.seed = seed
        self.plant = plant
        self.seconds = seconds
        self.stop = threading.Event()

    def block(self, attack: Attack, cases: tuple[int, ...]) -> Iterator[Row]:
        """The rows of these cases, run by one process as long as it lives.

        Raises:
            Stopped: `stop` was set.
        """
        left = cases
        while left:
            began = left[0]
            ended = self._process(attack, left)
            done = [row for row in ended.rows if "case" in row]
            for row in done:
                yield self._traced(attack, Row(attack.name, first=row["case"], **row), began)
            left = left[len(done) :]
            if not left:
                if ended.status:
                    yield Row(attack.name, done[-1]["case"], began, *_ending(ended))
                return
            if ended.running is None:  # it did not reach a case
                text = f"the process ended with {ended.status}: {ended.said}"
                yield Row(attack.name, left[0], left[0], OTHER, "the attack failed", text)
                return
            lost = Row(attack.name, left[0], left[0], *_ending(ended))
            yield self._traced(attack, lost, began)
            left = left[1:]

    def _traced(self, attack: Attack, row: Row, began: int) -> Row:
        """The row with the first of the cases that reproduce it; itself, if it does so alone."""
        if row.kind in (PASSED, PLAIN) or row.case == began:
            return row  # plain errors are many, and rarely depend on earlier cases
        again = self._process(attack, (row.case,))
        found = [other["kind"] for other in again.rows if "kind" in other]
        alone = found != [PASSED]
        return row if alone else replace(row, first=began)

    def _process(self, attack: Attack, cases: tuple[int, ...]) -> Ended:
        with tempfile.TemporaryDirectory(prefix="weft-attack-") as folder:
            out, said, scratch = Path(folder, "rows"), Path(folder, "said"), Path(folder, "scratch")
            out.touch()
            scratch.mkdir()
            order = Order(attack.name, self.seed, cases, str(out), attack.memory, self.plant)
            with said.open("wb") as words:
                process = subprocess.Popen(
                    [sys.executable, "-m", "tools.attack.worker", json.dumps(asdict(order))],
                    cwd=scratch, env=environment(folder), stdin=subprocess.DEVNULL, stdout=words,
                    stderr=words, start_new_session=True,
                )  # fmt: skip
                try:
                    hung = self._watch(process, out, self.seconds or attack.seconds)
                finally:
                    _end(process)
            text = said.read_text(errors="replace")
            last = text.rpartition(MARK)[2].partition("\n")[2] if MARK in text else text
            return Ended(process.returncode, _rows(out), hung, last[:TOLD])

    def _watch(self, process: subprocess.Popen[bytes], out: Path, seconds: float) -> bool:
        """Waits for the process to end; returns whether a case took too long."""
        size, since, limit = 0, time.monotonic(), BEGIN_SECONDS
        while process.poll() is None:
            if self.stop.is_set():
                raise Stopped
            now = out.stat().st_size
            if now != size:
                size, since, limit = now, time.monotonic(), seconds
            elif time.monotonic() - since > limit:
                return True
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(LOOK_SECONDS)
        return False


def environment(folder: str) -> dict[str, str]:
    """The worker's environment: this Weft, its own code cache, no knobs."""
    kept = {name: text for name, text in os.environ.items() if not name.startswith("WEFT_")}
    path = os.pathsep.join([str(ROOT), kept.get("PYTHONPATH", "")]).rstrip(os.pathsep)
    return {**kept, "PYTHONPATH": path, "WEFT_CACHE": os.path.join(folder, "cache")}


def _end(process: subprocess.Popen[bytes]) -> None:
    """Kills the worker and what it has forked."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _rows(out: Path) -> list[dict[str, Any]]:
    """What a worker wrote; the last line may be incomplete."""
    rows: list[dict[str, Any]] = []
    for line in out.read_text(encoding="utf-8").splitlines():
        with contextlib.suppress(ValueError):
            rows.append(json.loads(line))
    return rows


def _ending(ended: Ended) -> tuple[str, str, str]:
    """Kind, description and details of a process that died in a case."""
    if ended.hung:
        return HANG, "took too long", ended.said
    if ended.status == -signal.SIGKILL:
        return DEATH, "killed, as for memory", ended.said
    name = signal.Signals(-ended.status).name if ended.status < 0 else f"status {ended.status}"
    where = next((x.strip() for x in ended.said.splitlines() if "  File " in x), "")
    return DEATH, f"{name} {where}".strip(), ended.said
