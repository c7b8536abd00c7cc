"""All-reduce of arrays of given shapes in shared memory, prepared once.

The concatenated arrays of a call go through the slots in rounds.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from weft.transport.base import Array
from weft.transport.channel import SLOT_BYTES, Channel
from weft.transport.group import Group
from weft.transport.native import SHOWN
from weft.transport.reduction import REDUCTIONS, Tree, is_plain, zeros_for
from weft.transport.shared_call import SharedCall

ROUND_BYTES: Final = 1 << 19
"""The size of a round, for data that does not fit a slot: with two ranks 131 MB take 17 ms, and 19
with 1 MiB, because the input, the other's slot and the result share a cache of 1 MiB."""
RUNS: Final = 3
"""The number of runs after which a native function, which may need compiling, pays off."""


class _Segment(NamedTuple):
    """A segment of an array and its place in a slot."""

    array: int
    begin: int
    end: int
    place: int


class _Round(NamedTuple):
    """One round through the slots.

    Attributes:
        size: the number of elements.
        rows: each member's memory, for each slot.
        parts: the same memory, divided into segments.
    """

    segments: list[_Segment]
    size: int
    rows: list[list[Array]]
    parts: list[list[list[Array]]]


class Reduction:
    """All-reduce in which every member reduces everything.

    Args:
        xs: arrays of the types and shapes to be reduced.
        what: the call's name in messages.
    """

    def __init__(
        self, group: Group, channel: Channel, xs: Sequence[Array], name: str, what: str
    ) -> None:
        group.check_member(what)
        self._group, self._channel, self._what = group, channel, what
        self._index, self._tag, self._name = group.index, group.tag_of(what), name
        dtype = xs[0].dtype
        self._rounds = [
            self._round(segments, size, dtype)
            for segments, size in _rounds([x.size for x in xs], dtype.itemsize)
        ]
        whole = np.empty(sum([x.size for x in xs]), dtype)
        self._sent = whole.nbytes * (group.size - 1)
        self._neutral = zeros_for(name, dtype, whole.size)
        plain = group.size == 2 and is_plain(dtype)
        self._function: Any = REDUCTIONS[name] if plain else None
        self._mean = name == "mean"
        self._single = len(self._rounds) == 1 and not isinstance(self, ReductionInParts)

        self._dtype, self._size, self._runs = dtype, whole.size, 0

        # One array in one round takes microseconds, so it avoids Python loops.
        alone = self._single and self._function is not None and len(xs) == 1 and xs[0].size
        self._alone = [
            [row.reshape(xs[0].shape) for row in self._rounds[0].rows[turn]] for turn in (0, 1)
        ] if alone else None  # fmt: skip

    def _round(self, segments: list[_Segment], size: int, dtype: Any) -> _Round:
        rows = [self._channel.slots(turn, dtype, size) for turn in (0, 1)]
        parts = [
            [[row[s.place : s.place + s.end - s.begin] for row in slot] for s in segments]
            for slot in rows
        ]
        return _Round(segments, size, rows, parts)

    def run(self, xs: Sequence[Array], outs: Sequence[Array]) -> None:
        """Reduce `xs` over the members into each member's `outs`, which may be `xs`."""
        group, transport = self._group, self._group.transport
        if self._alone is not None:
            self._run_alone(self._alone, xs[0], outs[0])
            return
        xs, outs = [x.reshape(-1) for x in xs], [out.reshape(-1) for out in outs]
        if not self._single:
            with group.call(self._what, self._neutral):
                self._channel.call(self._tag)
                for each in self._rounds:
                    turn = self._show(each, xs)
                    group.meet(self._channel)
                    self._reduce(each, turn, xs, outs)
            transport.tally.sent += self._sent
            return
        if transport.worker.busy:
            transport.worker.drain()
        with transport.lock:
            (each,) = self._rounds
            turn = self._show(each, xs)
            group.repeat(self._what, self._channel.call(self._tag), self._neutral)
            transport.tally.sent += self._sent
            self._reduce(each, turn, xs, outs)

    def _run_alone(self, slots: Sequence[Sequence[Array]], x: Array, out: Array) -> None:
        transport = self._group.transport
        if self._runs < RUNS:
            self._load(x.shape)
        if transport.worker.busy:
            transport.worker.drain()
        with transport.lock:
            a, b = pair = slots[self._channel.next_turn()]
            np.copyto(pair[self._index], x)
            self._group.repeat(self._what, self._channel.call(self._tag), self._neutral)
            transport.tally.sent += self._sent
            self._combine(a, b, out)

    def _load(self, shape: tuple[int, ...]) -> None:
        """Let native code make the call from now on, because it is repeated."""
        self._runs += 1
        group, channel, dtype = self._group, self._channel, self._dtype
        if self._runs == RUNS:
            function = channel.native.reduction(self._name, dtype, group.size)
            if function is not None:
                sizes, what = [self._size], self._what
                call = SharedCall(group, channel, self._name, what, dtype, sizes, self._neutral)
                made = self._made_by(function(call.place), call)
                channel.made[what, self._name, dtype, shape] = made

    def _made_by(
        self, native: Callable[[Array, Array], None], call: SharedCall
    ) -> Callable[[Array, Array], bool]:
        """A function that runs the native call; returns whether it ran, else nothing changed."""
        table, channel, slots = call.table, self._channel, self._alone
        assert slots is not None

        def made(x: Array, out: Array) -> bool:
            if not (x.flags.c_contiguous and out.flags.c_contiguous):
                return False
            native(x, out)
            stage = table.stage
            if stage == SHOWN:
                call.wait()
                a, b = slots[channel.turn]
                self._combine(a, b, out)
            return stage != 0

        return made

    def _combine(self, a: Array, b: Array, out: Array) -> None:
        """Reduce one array of two members."""
        self._function(a, b, out=out)
        if self._mean:
            np.multiply(out, 0.5, out)  # bitwise a division by 2, but faster

    def _show(self, each: _Round, xs: Sequence[Array]) -> int:
        """Write this member's elements of a round to its slot."""
        turn, own = self._channel.next_turn(), self._index
        for segment, part in zip(each.segments, each.parts[turn], strict=True):
            self._channel.write(part[own], xs[segment.array][segment.begin : segment.end])
        return turn

    def _reduce(
        self, each: _Round, turn: int, xs: Sequence[Array], outs: Sequence[Array]
    ) -> None:  # fmt: skip
        """Reduce what all members have written in a round."""
        if self._function is None:
            rows = [row.copy() for row in each.rows[turn]]  # other members read them, too
            Tree(rows, self._name).into(rows[0])
            for array, begin, end, place in each.segments:
                np.copyto(outs[array][begin:end], rows[0][place : place + end - begin])
            return
        for (array, begin, end, _), rows in zip(each.segments, each.parts[turn], strict=True):
            own = xs[array][begin:end]  # in this core's cache, unlike perhaps the slot
            a, b = (own, rows[1]) if self._index == 0 else (rows[0], own)
            self._combine(a, b, outs[array][begin:end])


class ReductionInParts(Reduction):
    """All-reduce in which each member reduces a shard in the slots, then all read the shards."""

    def _reduce(
        self, each: _Round, turn: int, xs: Sequence[Array], outs: Sequence[Array]
    ) -> None:  # fmt: skip
        size, rows = self._group.size, each.rows[turn]
        ends = [each.size * i // size for i in range(size + 1)]
        own = [row[ends[self._index] : ends[self._index + 1]] for row in rows]
        Tree(own, self._name).into(own[self._index])
        self._group.meet(self._channel)
        for array, begin, end, place in each.segments:
            for row, low, high in zip(rows, ends[:-1], ends[1:], strict=True):
                a, b = max(low, place), min(high, place + end - begin)
                if a < b:
                    shift = begin - place
                    np.copyto(outs[array][a + shift : b + shift], row[a:b])


def _rounds(sizes: Sequence[int], itemsize: int) -> list[tuple[list[_Segment], int]]:
    """The segments of arrays of these sizes in each round, as of one long array."""
    room = (SLOT_BYTES if sum(sizes) * itemsize <= SLOT_BYTES else ROUND_BYTES) // itemsize
    rounds: list[tuple[list[_Segment], int]] = [([], 0)]
    for array, size in enumerate(sizes):
        begin = 0
        while begin < size:
            if rounds[-1][1] == room:
                rounds.append(([], 0))
            segments, place = rounds[-1]
            end = min(size, begin + room - place)
            segments.append(_Segment(array, begin, end, place))
            rounds[-1] = segments, place + end - begin
            begin = end
    return rounds
