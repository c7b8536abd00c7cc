"""Runs test files in separate processes, and continues after a crash."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from tools.suites.scope import reason_out_of_scope
from tools.suites.worker import GIBIBYTE, IMPORT, Order

ROOT = Path(__file__).resolve().parents[2]
MOST_CRASHES = 25
FINISHED = (0, 1, 5)  # pytest's exit codes: all passed, some failed, none found


@dataclass(frozen=True)
class Outcome:
    """The outcome of one test.

    Attributes:
        file: the test file's name.
        test: the test's id inside it.
        outcome: passed, failed, skipped (by the suite itself) or excluded.
        error: type, text and place; the reason for what is skipped or excluded.
    """

    file: str
    test: str
    outcome: str
    error: str


@dataclass(frozen=True)
class Options:
    """How to run a file; see `Order`."""

    keyword: str = ""
    first_only: bool = False
    timeout: float = 60.0
    memory: int = 8 * GIBIBYTE


class Stopped(Exception):
    """The command was stopped; `outcomes` are those of the tests that ran."""

    def __init__(self, outcomes: list[Outcome]) -> None:
        super().__init__(f"stopped after {len(outcomes)} tests")
        self.outcomes = outcomes


def run_file(suite: str, folder: Path, file: Path, options: Options) -> list[Outcome]:
    """Every test's outcome, in order.

    Raises:
        Stopped: by SIGTERM or Ctrl-C.
    """
    with tempfile.TemporaryDirectory() as scratch:
        out = Path(scratch) / "outcomes.jsonl"
        out.touch()
        order = Order(suite, str(folder), str(file), str(out), (), **asdict(options))
        stopped = False
        for _ in range(MOST_CRASHES):
            try:
                status = _process(order, scratch)
            except (SystemExit, KeyboardInterrupt):
                stopped = True
                break
            if not _note_crash(out, status) or options.first_only:
                break
            order = replace(order, skip=tuple(row["test"] for row in _rows(out) if "test" in row))
        rows = list(_rows(out))
    outcomes = [_judged(file.stem, row) for row in rows if "test" in row]
    if stopped:
        raise Stopped(outcomes)
    return outcomes


def _process(order: Order, scratch: str) -> int:
    path = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")]).rstrip(os.pathsep)
    command = [sys.executable, "-m", "tools.suites.worker", json.dumps(asdict(order))]
    environment = {**os.environ, "PYTHONPATH": path}
    done = subprocess.run(command, cwd=scratch, env=environment, capture_output=True, text=True)
    if done.returncode not in FINISHED:
        print((done.stdout + done.stderr)[-2000:], file=sys.stderr)
    return done.returncode


def _rows(out: Path) -> Iterator[dict[str, str]]:
    for line in out.read_text(encoding="utf-8").splitlines():
        yield json.loads(line)


def _note_crash(out: Path, status: int) -> bool:
    """Writes that the running test failed; returns whether there was one."""
    rows = list(_rows(out))
    if not rows or "start" not in rows[-1]:
        return False
    row = {"test": rows[-1]["start"], "outcome": "failed", "error": f"process ended with {status}"}
    with open(out, "a", encoding="utf-8") as lines:
        lines.write(json.dumps(row) + "\n")
    return True


def _judged(file: str, row: dict[str, str]) -> Outcome:
    outcome, error = row["outcome"], row["error"]
    judged = outcome != "skipped" and row["test"] != IMPORT
    reason = reason_out_of_scope(f"{file}::{row['test']}", error) if judged else None
    if reason:
        outcome, error = "excluded", reason
    return Outcome(file, row["test"], outcome, error)
