"""Loops as launches: where carried values lie, and slices of mapped and stacked arrays."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from weft.ir.function import Function
from weft.ir.node import Node, Value
from weft.ir.shape import is_stack
from weft.ops.control.scan import STACKED, scan
from weft.ops.declaration import op_of
from weft.passes.control.body import Body, Planner, owner, plan_body
from weft.passes.control.record import Control, Kind, Loop, Tape
from weft.passes.control.serial import bytes_of, nothing_done, serial_loop
from weft.passes.launch import (
    ERROR,
    Argument,
    Buffer,
    Flat,
    Kernel,
    Launch,
    Pair,
    Scratch,
    Slice,
    Swapped,
    moves,
)


def flat_loop(node: Node, planner: Planner) -> Flat:
    """The launches of a `scan` or a `while_loop`."""
    attrs = node.attrs
    tape = Tape(node) if any([is_stack(t.shape) for t in node.types]) else None
    if op_of(node) is not scan:
        found = _Loop(node, planner, Loop(attrs["maximum"], None, tape))
        found.slices(0, False)
        return found.finish(attrs["condition"])
    length: int = attrs["length"]
    loop = Loop(length)
    if length == STACKED:
        loop = Loop(None, node.inputs[attrs["carried"]], tape)
    found = _Loop(node, planner, loop)
    found.slices(length, attrs["reverse"])
    return found.finish()


class _Loop:
    """A loop under construction."""

    def __init__(self, node: Node, planner: Planner, loop: Loop) -> None:
        self.node = node
        self.planner = planner
        self.loop = loop
        self.carried: int = node.attrs["carried"]
        self.mapped: int = node.attrs.get("mapped", 0)
        changing = self.carried + self.mapped
        self.body: Body = plan_body(node.attrs["body"], planner, self.carried, changing)
        self.flat = Flat()
        self.flat.include(self.body.flat)
        self.claimed: set[Value] = set()  # outputs of the body that have their place
        self.before: list[Launch] = []  # of the body's launches, in every iteration
        self.after: list[Launch] = []
        self.leaving: list[tuple[Value, Scratch, Value]] = []  # double-buffered, and the results
        self.laid: list[Buffer] = []  # what is written once before the loop
        self.homes: list[Buffer] = []  # memory of carried values before the first iteration
        self.swapped: list[tuple[Scratch, Scratch]] = []  # both buffers of double-buffered values
        for i in range(self.carried):
            self._carry(i)
        self._capture(self.body)

    # -- where values lie

    def _capture(self, body: Body) -> None:
        """Leaves what the loop only reads where it is."""
        first = self.carried + self.mapped
        self.flat.aliases.update(zip(body.inputs[first:], self.node.inputs[first:], strict=True))

    def _carry(self, i: int) -> None:
        """Places carried values in the memory of the result, or in two alternating buffers."""
        old, new, result = self.body.inputs[i], self.body.outputs[i], self.node.outputs[i]
        if new is old or (i in self.body.in_place and new not in self.claimed):
            self.claimed.add(new)
            self.flat.aliases[old] = result
            if new is not old:
                self.flat.aliases[new] = result
            self.homes.append(result)
            return
        even, odd = Scratch(bytes_of(old)), Scratch(bytes_of(old))
        self.flat.views[old] = Swapped(even, odd, self.loop)
        home = self._claim(new)
        self.flat.views[home] = Swapped(odd, even, self.loop)
        self.homes.append(even)
        self.swapped.append((even, odd))
        self.leaving.append((old, even, result))

    def _claim(self, value: Value) -> Buffer:
        """The value itself if it may be computed in memory we choose; else its copy."""
        made = value in self.body.written
        if made and value not in self.claimed:
            self.claimed.add(value)
            return value
        home = Scratch(bytes_of(value))
        # Of an input, before something is written in its place.
        (self.after if made else self.before).append(self._copied(value, home, home.size))
        return home

    def slices(self, length: int, reverse: bool) -> None:
        """Mapped inputs and stacked outputs: one row per iteration."""
        rows = self.body.inputs[self.carried : self.carried + self.mapped]
        wholes = self.node.inputs[self.carried : self.carried + self.mapped]
        views = self.flat.views
        for row, whole in zip(rows, wholes, strict=True):
            views[row] = self._slice(whole, bytes_of(row), length, reverse)
        results = self.node.outputs[self.carried :]
        for row, whole in zip(self.body.outputs[self.carried :], results, strict=True):
            if self.loop.tape is not None:
                self.flat.stacks[whole] = self.loop.tape, bytes_of(row)
            views[self._claim(row)] = self._slice(whole, bytes_of(row), length, reverse)

    def _slice(self, whole: Value, row: int, length: int, reverse: bool) -> Slice:
        if reverse and length == STACKED:
            return Slice(whole, self.loop, -row, -row, row)
        if reverse:
            return Slice(whole, self.loop, (length - 1) * row, -row)
        return Slice(whole, self.loop, 0, row)

    # -- in order

    def finish(self, condition: Function | None = None) -> Flat:
        """All launches."""
        test, holds = self._test(condition)
        for init, home in zip(self.node.inputs, self.homes, strict=False):
            copy = self._copied(init, home, bytes_of(init))
            self.flat.add(replace(copy, inplace=((1, 0),)))
        constant, turning = self._constant()
        for pair in constant:
            self.flat.add(*pair)
        before, after = ([(x, None) for x in some] for some in (self.before, self.after))
        body: list[Pair] = [*before, *turning, *after]
        serial = self._serial(test, holds, body)
        end = serial or self._launched(test, holds, body)
        for old, even, result in self.leaving:
            self.flat.add(self._copied(even if serial else old, result, bytes_of(old)))
        self.flat.add(end)
        return self.flat

    def _launched(self, test: list[Pair], holds: Value | None, body: list[Pair]) -> Launch:
        """Adds the launches of an iteration; returns the record of the loop's end."""
        begin = Control(Kind.BEGIN, self.loop)
        latch = Control(Kind.LATCH, self.loop, (begin,))
        kept = [*self.homes, *[odd for _, odd in self.swapped], *self.node.outputs]
        self.flat.add(record(begin, kept, range(len(kept))))
        self.flat.launches.extend(test)
        kind = Kind.TEST if holds is None else Kind.HOLDS
        read = () if holds is None else (holds,)
        self.flat.add(record(Control(kind, self.loop, (latch,)), read))
        self.flat.launches.extend(body)
        self.flat.add(record(latch))
        return self._end(self.loop, kept)

    def _serial(self, test: list[Pair], holds: Value | None, body: list[Pair]) -> Launch | None:
        """Adds one kernel for all iterations, if it can be; it is called until none are left."""
        if self.planner.serial is None:
            return None
        tests, bodies = ([launch for launch, _ in side] for side in (test, body))
        loop = serial_loop(self.loop, self.flat, tests, holds, bodies, self.homes, self.swapped)
        launch = None if loop is None else self.planner.serial(self.node.op, loop)
        if loop is None or launch is None:
            return None
        start, around = nothing_done(), Loop(None)
        begin = Control(Kind.BEGIN, around)
        latch = Control(Kind.LATCH, around, (begin,))
        self.flat.constants[start] = None
        self.flat.add(self.planner.copy(start.outputs[0], loop.done, loop.done.size))
        kept = [*self.homes, *self.node.outputs, loop.done, loop.going]
        self.flat.add(record(begin, kept, range(len(kept))))
        checked = [group for x, group in [*test, *body] if x.check]
        self.flat.add(launch, checked[0] if checked else None)
        self.flat.add(record(Control(Kind.HOLDS, around, (latch,)), [loop.going]))
        self.flat.add(record(latch))
        return self._end(around, kept)

    def _end(self, loop: Loop, kept: Sequence[Buffer]) -> Launch:
        # Nothing before this overwrites it: the next iteration reads it again.
        return record(Control(Kind.END, loop), [*kept, *self._read(), *self.laid])

    def _constant(self) -> tuple[list[Pair], list[Pair]]:
        """Splits off loop-invariant launches, such as packing weights."""
        pairs = self.body.flat.launches
        written = Counter([owner(b, self.flat) for x, _ in pairs for b in _touched(x, True)])
        once: list[Pair] = []
        rest: list[Pair] = []
        depth = 0
        for launch, group in pairs:
            kind = None if launch.control is None else launch.control.kind
            depth += (kind in OPENING) - (kind in CLOSING and _is_last(launch.control))
            reads, writes = _touched(launch, False), _touched(launch, True)
            fixed = all([self._stays(b) and owner(b, self.flat) not in written for b in reads])
            plain = bool(launch.kernel.ir) and not launch.check and depth == 0
            if plain and fixed and all([self._is_its_own(b, written) for b in writes]):
                once.append((launch, group))
                self.laid.extend(writes)
                for buffer in writes:
                    del written[buffer]
            else:
                rest.append((launch, group))
        return once, rest

    @staticmethod
    def _is_its_own(buffer: Buffer, written: Mapping[Buffer, int]) -> bool:
        """Whether it is scratch memory that only one launch writes."""
        return isinstance(buffer, Scratch) and written[buffer] == 1

    def _stays(self, buffer: Buffer) -> bool:
        return buffer is not ERROR and not moves(buffer, self.flat)

    def _test(self, condition: Function | None) -> tuple[list[Pair], Value | None]:
        """The launches of the condition, and what they write."""
        if condition is None:
            return [], None
        found = plan_body(condition, self.planner, 0, self.carried)
        self.flat.include(found.flat)
        carried = self.carried
        self.flat.aliases.update(
            zip(found.inputs[:carried], self.body.inputs[:carried], strict=True)
        )
        self._capture(found)
        return found.flat.launches, found.outputs[0]

    def _read(self) -> list[Buffer]:
        return [owner(v, self.flat) for v in self.node.inputs[self.carried :]]

    def _copied(self, source: Buffer, target: Buffer, size: int) -> Launch:
        return self.planner.copy(source, target, size)


OPENING: Final = (Kind.BEGIN, Kind.CHOOSE)
CLOSING: Final = (Kind.END, Kind.JUMP)


def _is_last(control: Control | None) -> bool:
    """Whether no launch of the loop or the branch follows."""
    return control is not None and not control.behind


def _touched(launch: Launch, written: bool) -> list[Buffer]:
    """The buffers that a launch writes or reads, except per-thread scratch."""
    return [
        a
        for slot, a in enumerate(launch.args)
        if not isinstance(a, int) and (slot in launch.writes) is written
        if not (isinstance(a, Scratch) and a.per_thread)
    ]


def record(control: Control, args: Sequence[Argument] = (), writes: Sequence[int] = ()) -> Launch:
    """Wraps a record as a launch, so that it is ordered among the others."""
    return Launch(
        Kernel(control.kind.name.lower(), ""), tuple(args), tuple(writes), control=control
    )
