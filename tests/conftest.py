"""Property tests draw the same cases in every run, so that a failure comes from the code alone.

`make soak` draws others, and more. Cases contain no constants of the source files: Hypothesis would
read all of them, half of the time of collecting, and draw other cases after each edit.
A shell that starts the suite in the background has Ctrl-C ignored;
here it is heard, as the tests of it need. Pytest's hook for what finalizers raise is not the last.
A child that a test has forked, and that does not end there, is ended before it runs other tests.
Collecting the tests does without garbage collection. What that has made, and what is alive after
the tests of a file, is left out of it from then on: its passes would take a seventh of the time.
Where Python is told to keep no compiled source, it is kept in `build` nevertheless, beside no
source: else each of some hundred processes would compile all of Weft, half of its time.
What a test computes three times counts as large, so that its fourth run is a compiled program's;
tests that are not about programs may take the fixture `as_lists` to compile none.
NumPy multiplies matrices on one thread: several of them wait for each other without end where two
processes run tests on two cores, for up to ten times the processor time.
What an earlier test has left pending, held by a cycle of objects, is computed before the next one:
else it would be a part of that one's first structure.
"""

import contextlib
import gc
import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

os.environ.setdefault("WEFT_WARM", "0")  # tests leave no processes behind
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
if sys.dont_write_bytecode:
    folder = str(Path(__file__).resolve().parent.parent / "build" / "bytecode")
    sys.dont_write_bytecode, sys.pycache_prefix = False, folder
    os.environ["PYTHONPYCACHEPREFIX"] = folder
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

import pytest
from hypothesis import settings
from hypothesis.internal.conjecture import providers

from weft.eager.record.pending import state
from weft.eager.record.run import stitched_tier
from weft.errors import WeftError
from weft.host.interrupt import AgainBehindFinalizers
from weft.library import payoff

settings.register_profile("same", derandomize=True, deadline=None, max_examples=40)
settings.register_profile("fresh", deadline=None, print_blob=True)
settings.load_profile("same")
providers._get_local_constants = lambda: providers._local_constants
signal.signal(signal.SIGINT, signal.default_int_handler)
payoff.COMPILE_SECONDS = 0.0  # type: ignore[misc]


OWNER = os.getpid()


@pytest.fixture
def as_lists(monkeypatch: pytest.MonkeyPatch) -> None:
    """What could be compiled stays a list of library kernels, however often it runs."""
    for name in ("STITCHED_RUNS", "STITCHED_RUNS_OF_MANY"):
        monkeypatch.setattr(stitched_tier, name, sys.maxsize)


def pytest_sessionstart() -> None:
    sys.unraisablehook = AgainBehindFinalizers(sys.unraisablehook)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[object]:
    gc.disable()
    try:
        return (yield)
    finally:
        gc.collect()
        gc.freeze()
        gc.enable()


@pytest.hookimpl(wrapper=True, trylast=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> Iterator[None]:
    try:
        return (yield)
    finally:
        if nextitem is None or nextitem.path != item.path:
            gc.collect()
            gc.freeze()


def pytest_runtest_setup() -> None:
    with contextlib.suppress(WeftError):
        state.flush()


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    try:
        return (yield)
    finally:
        if os.getpid() != OWNER:
            os.write(2, f"{item.nodeid}: a forked child left its test\n".encode())
            os._exit(70)
