"""What must be whole is: signals have their effect behind it."""

from __future__ import annotations

import signal
import threading

import pytest

from weft.interrupt import SIGNALS, Uninterrupted


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
