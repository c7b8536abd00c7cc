"""Ranks that have no more data contribute zeros to the others' sums until all have joined.

This costs nothing before the first rank joins. A rank that waits for a joined rank sends it a note
with the call (`weft.transport.monitor`), and the joined rank makes the same call.
"""

from __future__ import annotations

import time
from typing import Any, Final

import numpy as np

from weft.errors import DistributedError
from weft.ir.dtype import NAMED
from weft.transport import collective, session
from weft.transport.base import Zeros
from weft.transport.group import Group

POLL_SECONDS: Final = 100e-6


def join_all(name: str) -> int:
    """Contribute to the other ranks' calls until all have joined; returns the last to join.

    Raises:
        DistributedError: another rank calls a collective other than a sum or a mean over all ranks.
    """
    world, joined = session.world(), session.current()
    if joined is None or joined.monitor is None:
        return 0
    transport, monitor = world.transport, joined.monitor
    transport.worker.drain()
    transport.joined[transport.rank] = world.turn
    monitor.announce("joined", turn=world.turn)
    while True:
        ranks = dict(transport.joined)  # a copy: the monitor's thread adds to it
        if len(ranks) == world.size and world.turn >= max(ranks.values()):
            break
        transport.check()
        told = monitor.report_of(world.number, world.turn + 1)
        if told is not None:
            _contribute(world, told, name)
            continue
        transport.attention.set()
        time.sleep(POLL_SECONDS)
    last = max(ranks, key=lambda rank: (ranks[rank], rank))
    transport.joined.clear()  # before any rank can join again, after the barrier
    monitor.begin_again()
    collective.barrier(world, name)
    return last


def _contribute(world: Group, told: dict[str, Any], name: str) -> None:
    """Contribute zeros to a call in which another rank waits."""
    if told["neutral"] is None:
        raise DistributedError.here(
            f"{name}: rank {told['rank']} is in {told['what']}{told['line']}; ranks that have "
            f"joined take part only in sums and means over all ranks"
        )
    zeros = Zeros(*told["neutral"])
    x = np.zeros(zeros.size, NAMED[zeros.dtype].numpy)
    collective.all_reduce(world, x, x, zeros.reduction, told["what"])
