"""Collectives of members that share memory: each shows a piece at a time, and reads the others'.

Sums are the fixed tree of `weft.transport.reduction`, so the bits are those that messages give.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import Any, Final

import numpy as np

from weft.ir.dtype import as_dtype
from weft.transport.base import Array
from weft.transport.channel import SLOT_BYTES, Channel
from weft.transport.group import Group
from weft.transport.reduction import REDUCTIONS, Tree, zeros_for
from weft.transport.wait import wait

WHOLE_BYTES: Final = 1 << 15
"""Up to that, each of more than two members reads what all others have, and meets them once."""
MOST_KEPT: Final = 64
"""Reductions of a group that are prepared: then all are forgotten."""


def all_reduce(group: Group, channel: Channel, x: Array, out: Array, name: str, what: str) -> None:
    """Reduce `x` over the members into each one's `out`, which may be `x` itself."""
    key = what, name, x.dtype, x.shape
    small = group.prepared.get(key)
    if small is not None:
        small.run(x, out)
        return
    pair = group.size == 2 and _is_plain(x)
    if x.nbytes <= (SLOT_BYTES if pair else WHOLE_BYTES):
        if len(group.prepared) >= MOST_KEPT:
            group.prepared.clear()
        group.prepared[key] = small = _Small(group, channel, x, name, what)
        small.run(x, out)
        return
    flat, result = x.reshape(-1), out.reshape(-1)
    reduce_piece = _reduce_of_two if pair else _reduce_in_parts
    with group.call(what, zeros_for(name, flat)) as tag:
        channel.call(tag)
        for piece in _pieces(flat.size, flat.itemsize):
            reduce_piece(group, channel, flat[piece], result[piece], name)
        group.transport.tally.sent += flat.nbytes * (group.size - 1)


def all_gather(group: Group, channel: Channel, x: Array, out: Sequence[Array], what: str) -> None:
    """Fill `out` with what each member has in `x`, which may be of other lengths."""
    rows = [row.reshape(-1) for row in out]
    own = rows[group.index]
    with group.call(what) as tag:
        channel.call(tag)
        own[...] = x.reshape(-1)
        for piece in _pieces(max([row.size for row in rows]), x.itemsize):
            parts = [row[piece] for row in rows]
            slots = channel.next_slots(x.dtype, max([part.size for part in parts]))
            slots[group.index][: parts[group.index].size] = parts[group.index]
            _meet(group, channel)
            for i, (part, slot) in enumerate(zip(parts, slots, strict=True)):
                if i != group.index:
                    part[...] = slot[: part.size]
        group.transport.tally.sent += own.nbytes * (group.size - 1)


def reduce_scatter(
    group: Group, channel: Channel, xs: Sequence[Array], out: Array, name: str, what: str
) -> None:
    """Reduce over the members, each of which has one of `xs` for every member."""
    flats, result = [x.reshape(-1) for x in xs], out.reshape(-1)
    own = flats[group.index]
    with group.call(what) as tag:
        channel.call(tag)
        for piece in _pieces(max([x.size for x in flats]), own.itemsize * group.size):
            parts = [x[piece] for x in flats]
            most = max([part.size for part in parts])
            slots = channel.next_slots(own.dtype, most * group.size)
            for i, part in enumerate(parts):
                slots[group.index][i * most :][: part.size] = part
            _meet(group, channel)
            rows = [slot[group.index * most :][: parts[group.index].size] for slot in slots]
            Tree(rows, name).into(result[piece])
        group.transport.tally.sent += own.nbytes * (group.size - 1)


def _pieces(size: int, itemsize: int) -> Iterator[slice]:
    """Parts of a vector whose elements take so much of a slot."""
    count = SLOT_BYTES // itemsize
    for begin in range(0, size, count):
        yield slice(begin, begin + count)


def _is_plain(x: Array) -> bool:
    """Whether two arrays are reduced by one operation; halves are added up in float32."""
    kind = as_dtype(x.dtype)
    return not (kind.is_inexact and kind.size == 2)


def _meet(group: Group, channel: Channel) -> None:
    """Wait until all members have shown their piece."""
    if not channel.run():
        wait(group.transport, channel, group.timeout)


def _reduce_of_two(group: Group, channel: Channel, x: Array, out: Array, name: str) -> None:
    slots = channel.next_slots(x.dtype, x.size)
    slots[group.index][...] = x
    _meet(group, channel)
    slots[group.index] = x
    REDUCTIONS[name](*slots, out=out)
    if name == "mean":
        np.divide(out, 2, out)


def _reduce_in_parts(group: Group, channel: Channel, x: Array, out: Array, name: str) -> None:
    """Each member reduces its part in the slots; then all read the parts."""
    slots = channel.next_slots(x.dtype, x.size)
    slots[group.index][...] = x
    _meet(group, channel)
    ends = [x.size * i // group.size for i in range(group.size + 1)]
    parts = [slice(a, b) for a, b in itertools.pairwise(ends)]
    rows = [slot[parts[group.index]] for slot in slots]
    Tree(rows, name).into(rows[group.index])
    _meet(group, channel)
    for part, slot in zip(parts, slots, strict=True):
        out[part] = slot[part]


class _Small:
    """An all-reduce of arrays of one type and shape, whose members meet once."""

    def __init__(self, group: Group, channel: Channel, like: Array, name: str, what: str) -> None:
        group.check_member(what)
        self._group, self._channel, self._what = group, channel, what
        self._index, self._tag = group.index, group.tag_of(what)
        self._slots = [
            [row.reshape(like.shape) for row in channel.slots(turn, like.dtype, like.size)]
            for turn in (0, 1)
        ]
        self._sent = like.nbytes * (group.size - 1)
        self._neutral = zeros_for(name, like)
        self._function: Any = REDUCTIONS[name] if group.size == 2 and _is_plain(like) else None
        self._mean = name == "mean"
        if self._function is None:  # nobody may overwrite what others read
            self._rows = [np.empty(like.shape, like.dtype) for _ in group.ranks]
            self._tree = Tree(self._rows, name)

    def run(self, x: Array, out: Array) -> None:
        """Reduce `x` over the members into each one's `out`, which may be `x` itself."""
        transport = self._group.transport
        if transport.worker.busy:
            transport.worker.drain()
        with transport.lock:
            turn = self._channel.next_turn()
            slots = self._slots[turn]
            np.copyto(slots[self._index], x)
            self._group.repeat(self._what, self._channel.call(self._tag), self._neutral)
            transport.tally.sent += self._sent
            if self._function is None:
                for row, slot in zip(self._rows, slots, strict=True):
                    np.copyto(row, slot)
                self._tree.into(out)
                return
            self._function(slots[0], slots[1], out=out)
            if self._mean:
                np.divide(out, 2, out)
