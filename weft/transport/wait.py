"""Waiting for other ranks: with a timeout, and with an error that names them."""

from __future__ import annotations

import os
import time
from typing import Final

from weft.errors import DistributedError, DistributedTimeoutError
from weft.host.interrupt import have_effect
from weft.transport.base import ATTENTIVE_SECONDS, Pending, Transport, described

SPIN_SECONDS: Final = 200e-6
"""Messages within a host take 2 to 100 us; a sleep takes 60 us at least."""
LEAST_SLEEP: Final = 20e-6
MOST_SLEEP: Final = 100e-6
LONG_SLEEP: Final = 500e-6
"""The sleep between polls after `GRACE_SECONDS`."""
BURST: Final = 16
"""Polls before each sleep. MPI transfers a little at each poll of 1 us; a burst raises the
throughput over a link of 1 Gbit/s from 70 to 105 MB/s."""
ATTENTION_SECONDS: Final = 2e-3
"""After this time, and after 4, 16, ... times as long, the monitor reads notes at once."""
GRACE_SECONDS: Final = 1.0
"""How long messages may still arrive that a rank sent before it ended."""


def wait(transport: Transport, pending: Pending, timeout: float) -> None:
    """Wait until messages have arrived.

    Raises:
        DistributedTimeoutError: ranks have not answered for `timeout` seconds.
        DistributedError: a rank has failed, or a missing one has ended.
    """
    if pending.done():
        return
    try:
        _wait(transport, pending, timeout)
    except BaseException as error:
        pending.give_up()
        if not isinstance(error, DistributedError):  # the other ranks do not know of it
            transport.fail(f"rank {transport.rank} left {transport.waiting}: {described(error)}")
        raise


def _wait(transport: Transport, pending: Pending, timeout: float) -> None:
    begin = last = time.monotonic()
    waiting, tally = transport.waiting, transport.tally
    if waiting is not None:
        waiting.pending = pending
    look, late = ATTENTION_SECONDS, pending.missing()
    while not pending.done():
        transport.check()
        passed = time.monotonic() - begin
        if passed < SPIN_SECONDS:
            if transport.crowded:
                os.sched_yield()
            continue
        if passed > look:
            transport.attention.set()
            look *= 4
        if any(pending.done() for _ in range(BURST)):
            break
        most = MOST_SLEEP if passed < GRACE_SECONDS else LONG_SLEEP
        time.sleep(min(max(LEAST_SLEEP, passed / 50), most))
        now = time.monotonic()
        tally.wait_for(late, now - last)
        last, late = now, pending.missing()
        if passed > ATTENTIVE_SECONDS:
            have_effect()  # Ctrl-C takes effect, even within a step
        if passed > GRACE_SECONDS:
            _look(transport, pending, passed, timeout)
    tally.wait_for(late, time.monotonic() - last)
    if waiting is not None:
        waiting.pending = None


def _look(transport: Transport, pending: Pending, passed: float, timeout: float) -> None:
    """Whether the missing messages may still arrive."""
    if transport.left:
        gone = sorted(transport.left.intersection(pending.missing()))
        if gone and not pending.done():
            text = f"{transport.waiting}: {named(gone)} ended before it"
            raise DistributedError(transport.fail(text).text)
    late = pending.missing() if passed > timeout else []
    if late:  # else all arrived while this process was stopped
        text = f"{transport.waiting}: no answer from {named(late)} for {timeout:g} s"
        raise DistributedTimeoutError(transport.fail(text).text)


def named(ranks: list[int]) -> str:
    """Ranks as text, for error messages."""
    return f"rank{'s' * (len(ranks) != 1)} {', '.join(map(str, ranks))}"
