"""Runs one test file in this process and writes each outcome when it is known.

Started by `runner`, with one argument: a JSON object of the fields of `Order`.
"""

from __future__ import annotations

import faulthandler
import json
import os
import resource
import signal
import sys
import traceback
import unittest
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO

import pytest

from tools.suites import hips, pytorch
from tools.suites.absent import Phase
from tools.suites.mirror import install

LIBRARIES = {"pytorch": pytorch.library, "autograd": hips.library}
GIBIBYTE = 1 << 30
MOST_WAITING = 10  # of clock time to the limit of processor time, on a busy machine
IMPORT = "(import)"  # stands for all tests of a file that cannot be imported
NOT_THE_PLACE = (Path(__file__).parent, Path(unittest.__file__).parent)  # where an error is told


@dataclass(frozen=True)
class Order:
    """What a worker is to run.

    Attributes:
        suite: a key of LIBRARIES.
        folder: the checkout.
        file: the test file.
        out: outcomes are appended here, an object a line.
        skip: ids of tests that have an outcome already.
        keyword: pytest's `-k`.
        first_only: stop at the first failure.
        timeout: seconds of processor time that a test may take.
        memory: bytes that the process may map.
    """

    suite: str
    folder: str
    file: str
    out: str
    skip: tuple[str, ...]
    keyword: str
    first_only: bool
    timeout: float
    memory: int


class OutOfTime(BaseException):
    """Raised inside a test that runs too long; no `except Exception` catches it."""


class Recorder:
    """A pytest plugin: limits each test's time, and writes its outcome."""

    def __init__(self, order: Order, out: TextIO, before: Callable[[], None]) -> None:
        self.order = order
        self.before = before
        self.out = out
        self.reports: list[pytest.TestReport] = []
        signal.signal(signal.SIGPROF, self._alarm)

    def _alarm(self, number: int, frame: object) -> None:
        raise OutOfTime(f"took longer than {self.order.timeout:g} s")

    def write(self, **fields: Any) -> None:
        """Writes one line at once: the process may not live to write another."""
        self.out.write(json.dumps(fields) + "\n")
        self.out.flush()

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Skips tests that an earlier process has run."""
        done = set(self.order.skip)
        items[:] = [item for item in items if test_id(item.nodeid) not in done]

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """A file that cannot be imported counts as one failed test."""
        if report.failed:
            self.write(test=IMPORT, outcome="failed", error=str(report.longrepr)[-2000:])

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        """Marks that tests are running, until the end of this one."""
        Phase.running = True
        self.reports = []
        self.write(start=test_id(item.nodeid))
        result = yield
        Phase.running = False
        self.write(test=test_id(item.nodeid), **verdict(self.reports))
        return result

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Iterator[None]:
        """The test itself, without pytest's handling of its outcome."""
        self.before()
        with time_limit(self.order.timeout):
            return (yield)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Keeps the reports of a test's phases and subtests."""
        self.reports.append(report)

    def pytest_exception_interact(self, call: pytest.CallInfo[Any], report: Any) -> None:
        """Keeps the error's last lines beside its type, which the scope's patterns match."""
        problem = call.excinfo.value
        text = described(problem)
        frames = traceback.extract_tb(problem.__traceback__)
        told = [frame for frame in frames if Path(frame.filename).parent not in NOT_THE_PLACE]
        place = (told or frames)[-1]
        report.summary = f"{text}\n  at {place.filename}:{place.lineno}"


def described(problem: BaseException) -> str:
    """An error's type and the beginning of its message, and those of its causes."""
    chain = [problem]
    while (cause := chain[-1].__cause__) is not None and cause not in chain:
        chain.append(cause)
    texts = ["".join(traceback.format_exception_only(e)).strip()[:600] for e in chain]
    return "\nbecause of ".join(texts)


def test_id(nodeid: str) -> str:
    """`TestShapeOps::test_flip_cpu_float32` of pytest's id, which begins with the path."""
    return nodeid.partition("::")[2]


def verdict(reports: list[pytest.TestReport]) -> dict[str, str]:
    """A test passes if all of its phases and subtests pass."""
    for report in reports:
        if str(report.longrepr).endswith("Unexpected success"):  # PyTorch's own would have failed
            return {"outcome": "passed", "error": ""}
        if report.failed:
            error = getattr(report, "summary", None) or str(report.longrepr)[-1500:]
            return {"outcome": "failed", "error": error}
    for report in reports:
        if report.skipped:
            return {"outcome": "skipped", "error": str(report.longrepr)[-300:]}
    return {"outcome": "passed", "error": ""}


@contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    """Raises OutOfTime in the block after these seconds of processor time, until it has an effect.

    Ends the process after a multiple of that, if native code holds on or the test waits.
    """
    signal.setitimer(signal.ITIMER_PROF, seconds, seconds / 2 + 1)
    faulthandler.dump_traceback_later(MOST_WAITING * (seconds + 10), exit=True)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        faulthandler.cancel_dump_traceback_later()


def main(order: Order) -> int:
    """Runs the file; the exit status is pytest's."""
    resource.setrlimit(resource.RLIMIT_AS, (order.memory, order.memory))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    library = LIBRARIES[order.suite](Path(order.folder))
    Phase.harness = library.own
    install(library)
    sys.argv = [order.file]  # the harness reads the command line
    file = Path(order.file)
    sys.path.insert(0, str(file.parent))
    arguments = [order.file, "--noconftest", "-c", os.devnull, f"--rootdir={file.parent}", "-q"]
    arguments += ["-p", "no:cacheprovider", "--assert=plain", "-W", "default", "--tb=native"]
    arguments += ["--disable-warnings"]  # not their summary; tests count them
    arguments += ["-k", order.keyword] if order.keyword else []
    arguments += ["-x"] if order.first_only else []
    with open(order.out, "a", encoding="utf-8") as out:
        return int(pytest.main(arguments, plugins=[Recorder(order, out, library.before)]))


if __name__ == "__main__":
    fields = json.loads(sys.argv[1])
    sys.exit(main(Order(**{**fields, "skip": tuple(fields["skip"])})))
