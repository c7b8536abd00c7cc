"""Collectives in shared memory: each member writes a piece at a time and reads the others'.

Sums use the fixed tree of `weft.transport.reduction`, so they are bitwise those of messages.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

import numpy as np

from weft.transport.base import Array
from weft.transport.channel import SLOT_BYTES, Channel
from weft.transport.group import Group, bytes_of
from weft.transport.reduction import Tree, is_plain, zeros_for
from weft.transport.shared_call import SharedCall
from weft.transport.shared_reduction import Reduction, ReductionInParts

WHOLE_BYTES: Final = 1 << 15
"""Up to this size, with more than two members, each reads all others' data in one round."""
MOST_KEPT: Final = 64
"""The number of prepared reductions of a group; beyond it all are dropped."""


def all_reduce(
    group: Group, channel: Channel, xs: Sequence[Array], outs: Sequence[Array], name: str,
    what: str,
) -> None:  # fmt: skip
    """Reduce arrays of one type over the members into each member's `outs`, which may be `xs`."""
    x = xs[0]
    key = what, name, x.dtype, x.shape if len(xs) == 1 else tuple([x.shape for x in xs])
    prepared = group.prepared.get(key)
    if prepared is None:
        if len(group.prepared) >= MOST_KEPT:
            group.prepared.clear()
            channel.made.clear()
        reduction_class = Reduction if _is_read_whole(group, xs) else ReductionInParts
        prepared = group.prepared[key] = reduction_class(group, channel, xs, name, what)
    prepared.run(xs, outs)


def native_call(
    group: Group, sizes: Sequence[int], dtype: Any, name: str, what: str
) -> SharedCall | None:
    """The native all-reduce of arrays of these sizes; `None` if native code does not have it.

    It has the tag, the rounds and the bits of `all_reduce`.
    """
    channel, total = group.channel, sum(sizes)
    size = total * dtype.itemsize
    room = SLOT_BYTES if group.size == 2 and is_plain(dtype) else WHOLE_BYTES
    if channel is None or not 0 < size <= room:
        return None
    neutral = zeros_for(name, dtype, total)
    return SharedCall(group, channel, name, what, dtype, sizes, neutral)


def _is_read_whole(group: Group, xs: Sequence[Array]) -> bool:
    """Whether each member reduces everything instead of a shard."""
    size = sum([x.nbytes for x in xs])
    return size <= WHOLE_BYTES or (group.size == 2 and is_plain(xs[0].dtype))


def all_gather(
    group: Group, channel: Channel, xs: Sequence[Array], outs: Sequence[Sequence[Array]], what: str
) -> None:  # fmt: skip
    """Fill each of `outs` with the members' shards of that array, whose lengths may differ.

    A member's arrays may be longer than its shards; the rest is not sent.
    """
    with group.call(what) as tag:
        channel.call(tag)
        for x, out in zip(xs, outs, strict=True):
            _gather(group, channel, x.reshape(-1), [row.reshape(-1) for row in out])


def _gather(group: Group, channel: Channel, x: Array, rows: Sequence[Array]) -> None:
    own = rows[group.index]
    own[...] = x[: own.size]
    for piece in _pieces(max([row.size for row in rows]), x.itemsize):
        parts = [row[piece] for row in rows]
        slots = channel.next_slots(x.dtype, max([part.size for part in parts]))
        channel.write(slots[group.index][: parts[group.index].size], parts[group.index])
        group.meet(channel)
        for i, (part, slot) in enumerate(zip(parts, slots, strict=True)):
            if i != group.index:
                part[...] = slot[: part.size]
    group.transport.tally.sent += own.nbytes * (group.size - 1)


def gather_lists(group: Group, channel: Channel, arrays: Sequence[Sequence[Array]]) -> None:
    """Fill each other member's arrays, which fit a slot together; within a call."""
    slots = channel.next_slots(np.uint8, SLOT_BYTES)
    rows = [list(_with_memory(*row)) for row in zip(arrays, slots, strict=True)]
    for data, memory in rows[group.index]:
        channel.write(memory, data)
        group.transport.tally.sent += data.nbytes * (group.size - 1)
    group.meet(channel)
    for i, row in enumerate(rows):
        for data, memory in row if i != group.index else ():
            data[...] = memory


def _with_memory(arrays: Sequence[Array], slot: Array) -> Iterator[tuple[Array, Array]]:
    """The bytes of arrays, each with its part of a slot."""
    begin = 0
    for data in map(bytes_of, arrays):
        yield data, slot[begin : begin + data.size]
        begin += data.size


def reduce_scatter(
    group: Group, channel: Channel, xs: Sequence[Array], out: Array, name: str, what: str
) -> None:
    """Reduce the i-th of all members' `xs` into `out` of member i."""
    flats, result = [x.reshape(-1) for x in xs], out.reshape(-1)
    own = flats[group.index]
    with group.call(what) as tag:
        channel.call(tag)
        for piece in _pieces(max([x.size for x in flats]), own.itemsize * group.size):
            parts = [x[piece] for x in flats]
            most = max([part.size for part in parts])
            slots = channel.next_slots(own.dtype, most * group.size)
            for i, part in enumerate(parts):
                channel.write(slots[group.index][i * most :][: part.size], part)
            group.meet(channel)
            rows = [slot[group.index * most :][: parts[group.index].size] for slot in slots]
            Tree(rows, name).into(result[piece])
        group.transport.tally.sent += own.nbytes * (group.size - 1)


def _pieces(size: int, itemsize: int) -> Iterator[slice]:
    """The pieces of a vector that fit a slot."""
    count = SLOT_BYTES // itemsize
    for begin in range(0, size, count):
        yield slice(begin, begin + count)
