"""The all-reduce of small arrays, prepared once: every member sends to every other."""

from __future__ import annotations

from typing import Final

import numpy as np

from weft.transport.base import Array
from weft.transport.group import Group
from weft.transport.reduction import Tree, zeros_for

MOST_BYTES: Final = 1 << 20
"""The most memory of one reduction, for all members' elements."""
MOST_KEPT: Final = 64
"""The number of prepared reductions of a group; beyond it all are dropped."""


class SmallReduction:
    """An all-reduce of arrays of one type and shape."""

    def __init__(self, group: Group, like: Array, name: str, what: str) -> None:
        group.check_member(what)
        self._group, self._what = group, what
        rows = [np.empty(like.shape, like.dtype) for _ in group.ranks]
        self._own = rows[group.index]
        others = [i for i in range(group.size) if i != group.index]
        sends = dict.fromkeys(others, self._own)
        self.exchange = group.prepare(what, sends, {i: rows[i] for i in others})
        self._sent = self._own.nbytes * len(others)
        self._reduce = Tree(rows, name).into
        self._neutral = zeros_for(name, like.dtype, like.size)

    def run(self, x: Array, out: Array) -> None:
        """Reduce `x` over the members into each one's `out`, which may be `x` itself."""
        transport = self._group.transport
        if transport.worker.busy:
            transport.worker.drain()
        with transport.lock:
            np.copyto(self._own, x)
            try:
                self._group.repeat(self._what, self.exchange, self._neutral)
            except BaseException:  # nobody waits any more for messages in flight
                self._group.prepared.clear()
                raise
            transport.tally.sent += self._sent
            self._reduce(out)


def small_reduction(group: Group, x: Array, name: str, what: str) -> SmallReduction:
    """The group's all-reduce for arrays of the type and shape of `x`, made once."""
    key = what, name, x.dtype, x.shape
    prepared = group.prepared.get(key)
    if prepared is None:
        if len(group.prepared) >= MOST_KEPT:
            for old in group.prepared.values():
                old.exchange.close()
            group.prepared.clear()
        prepared = group.prepared[key] = SmallReduction(group, x, name, what)
    return prepared


def is_small(group: Group, size: int, most: int) -> bool:
    """Whether arrays of `size` bytes use it."""
    return size <= most and size * group.size <= MOST_BYTES
