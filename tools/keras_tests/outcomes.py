"""A plugin of pytest: writes each test's outcome, and limits its processor time."""

from __future__ import annotations

import json
import os
import re
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

SECONDS = float(os.environ.get("OUTCOMES_SECONDS", "20"))


def _write(**row: Any) -> None:
    with open(os.environ["OUTCOMES_FILE"], "a", encoding="utf-8") as file:
        file.write(json.dumps(row) + "\n")


def _late(*_: object) -> None:
    pytest.fail(f"more than {SECONDS:g} s of processor time", pytrace=False)


def pytest_configure() -> None:
    """Let the timer end a test."""
    signal.signal(signal.SIGPROF, _late)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Leave out what a process that ended has run."""
    rows = Path(os.environ["OUTCOMES_FILE"]).read_text(encoding="utf-8").splitlines()
    done = {json.loads(row)["test"] for row in rows}
    items[:] = [item for item in items if item.nodeid not in done]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """Write that a test begins, so that it counts as failed if the process ends."""
    _write(test=item.nodeid, outcome="failed", why="the process ended")
    signal.setitimer(signal.ITIMER_PROF, SECONDS)
    try:
        return (yield)
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Write a test's outcome; a failure before or after its body counts, too."""
    if report.when == "call" or report.outcome != "passed":
        crash = getattr(report.longrepr, "reprcrash", None)
        text = str(getattr(crash, "message", report.longrepr or "")).strip().split("\n")
        where = "" if crash is None else f"{crash.path}:{crash.lineno}"
        why = re.sub(r"\s+", " ", " ".join(text[:6]))[:300]
        _write(test=report.nodeid, outcome=report.outcome, why=why, where=where)
