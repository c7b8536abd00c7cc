"""Protected blocks are not interrupted: signals take effect after them."""

from __future__ import annotations

import signal
import sys
import threading
import weakref

import numpy as np
import pytest
from interruption import interrupted_at

from weft.host.interrupt import SIGNALS, AgainBehindFinalizers, Uninterrupted
from weft.runtime.memory import recycled


class Late(Exception):
    """What the handler of a time limit raises."""


def _late(*_: object) -> None:
    raise Late


@pytest.fixture(autouse=True)
def handlers():
    before = [
        (signal.SIGINT, signal.signal(signal.SIGINT, signal.default_int_handler)),
        (signal.SIGALRM, signal.signal(signal.SIGALRM, _late)),
    ]
    now = {number: signal.getsignal(number) for number in SIGNALS}
    yield
    assert now == {number: signal.getsignal(number) for number in SIGNALS}
    for number, handler in before:
        signal.signal(number, handler)


@pytest.mark.parametrize(
    ("number", "error"), [(signal.SIGINT, KeyboardInterrupt), (signal.SIGALRM, Late)]
)
def test_a_signal_waits(number, error):
    done = list[int]()
    with pytest.raises(error), Uninterrupted():
        signal.raise_signal(number)
        signal.raise_signal(number)
        done.append(1)
    assert done


def test_no_signal_is_lost():
    with pytest.raises(Late) as late, Uninterrupted():
        signal.raise_signal(signal.SIGINT)
        signal.raise_signal(signal.SIGALRM)
    assert isinstance(late.value.__context__, KeyboardInterrupt)


def test_the_outermost_block_counts():
    done = list[int]()
    with pytest.raises(KeyboardInterrupt), Uninterrupted():
        with Uninterrupted():
            signal.raise_signal(signal.SIGINT)
        done.append(1)
    assert done


def test_an_exception_passes():
    with pytest.raises(ZeroDivisionError), Uninterrupted():
        raise ZeroDivisionError


def test_what_a_process_ignores_stays_ignored():
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    with Uninterrupted():
        signal.raise_signal(signal.SIGINT)
    signal.signal(signal.SIGINT, before)


def test_other_threads_have_no_handlers_to_keep():
    failed = list[BaseException]()

    def run() -> None:
        try:
            with Uninterrupted():
                pass
        except BaseException as error:
            failed.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    assert not failed


class Finalized:
    """What it is given is done in its finalizer."""

    def __init__(self, deed):
        self.deed = deed

    def __del__(self):
        self.deed()


@pytest.fixture
def told(monkeypatch):
    """What others of the finalizers' exceptions come to."""
    found = list[type[BaseException]]()
    hook = AgainBehindFinalizers(lambda lost: found.append(lost.exc_type))
    monkeypatch.setattr(sys, "unraisablehook", hook)
    return found


@pytest.mark.parametrize(
    ("number", "error"), [(signal.SIGINT, KeyboardInterrupt), (signal.SIGALRM, Late)]
)
@pytest.mark.parametrize("kind", ["del", "callback", "finalize", "nested"])
def test_a_signal_in_a_finalizer_comes_behind_it(told, kind, number, error):
    def send(*_):
        signal.raise_signal(number)

    one = Finalized(send if kind == "del" else int)
    kept = weakref.ref(one, send) if kind == "callback" else None
    if kind == "finalize":
        weakref.finalize(one, send)
    if kind == "nested":
        one.inner = Finalized(send)
    reached = False
    with pytest.raises(error):
        one = None
        abs(1)  # Python checks for signals after calls
        reached = True
    assert not reached and not told and one is None
    del kept


def test_a_signal_at_any_point_of_a_finalizer_of_ours_is_not_lost(told):
    shape, kind = (recycled.SMALLEST,), np.dtype(np.uint8)
    blocks = [recycled.empty(shape, kind) for _ in range(40)]
    passed, places = False, list[str]()

    def free():
        nonlocal passed
        blocks.pop()
        abs(1)
        passed = True

    while where := interrupted_at(len(places), free):
        assert not passed, where
        places.append(where)
    assert passed and not told
    assert len([place for place in places if place.startswith(("Block", "Pool"))]) > 2


def test_other_exceptions_of_finalizers_are_reported_as_before(told):
    def fail():
        raise ZeroDivisionError

    one = Finalized(fail)
    del one

    def stop():
        raise KeyboardInterrupt

    signal.signal(signal.SIGINT, lambda *_: None)  # so that this one is no signal's
    one = Finalized(stop)
    del one
    assert told == [ZeroDivisionError, KeyboardInterrupt]
    signal.signal(signal.SIGINT, signal.default_int_handler)
