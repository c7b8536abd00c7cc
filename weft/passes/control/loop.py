"""Loops as launches: where carried values lie, and slices of mapped and stacked arrays."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from weft.ir.function import Function
from weft.ir.node import Node, Value
from weft.ir.shape import is_stack, known, size
from weft.ops.control.scan import STACKED, scan
from weft.ops.declaration import op_of
from weft.passes.control.body import Body, Planner, owner, plan_body
from weft.passes.control.record import Control, Kind, Loop, Tape
from weft.passes.control.scalar import nothing_done, scalar_loop
from weft.passes.launch import (
    ERROR,
    Argument,
    Buffer,
    Flat,
    Kernel,
    Launch,
    Pair,
    ScalarLoop,
    Scratch,
    Slice,
    Swapped,
    moves,
)


def flat_loop(node: Node, planner: Planner) -> Flat:
    """The launches of a `scan` or a `while_loop`."""
    attrs = node.attrs
    numbers = None if planner.numbers is None else scalar_loop(node)
    if numbers is not None and planner.numbers is not None:
        return _of_numbers(numbers, planner.numbers(numbers), planner)
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


def _of_numbers(loop: ScalarLoop, launch: Launch, planner: Planner) -> Flat:
    """One kernel for all iterations; it is called again if it returns before the last."""
    node, flat, around = loop.node, Flat(), Loop(None)
    begin = Control(Kind.BEGIN, around)
    latch = Control(Kind.LATCH, around, (begin,))
    start = nothing_done()
    flat.constants[start] = None
    flat.add(planner.copy(start.outputs[0], loop.done, loop.done.size))
    for init, home in zip(node.inputs[: loop.carried], node.outputs, strict=False):
        flat.add(replace(planner.copy(init, home, _bytes(init)), inplace=((1, 0),)))
    kept = [*node.outputs, loop.done, loop.going]
    flat.add(record(begin, kept, range(len(kept))))
    flat.add(launch)
    flat.add(record(Control(Kind.HOLDS, around, (latch,)), [loop.going]))
    flat.add(record(latch))
    flat.add(record(Control(Kind.END, around), [*kept, *loop.arrays]))
    return flat


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
        self.leaving: list[Launch] = []
        self.laid: list[Buffer] = []  # what is written once before the loop
        self.homes: list[Buffer] = []  # memory of carried values before the first iteration
        self.spare: list[Buffer] = []  # the second buffer of double-buffered values
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
        even, odd = Scratch(_bytes(old)), Scratch(_bytes(old))
        self.flat.views[old] = Swapped(even, odd, self.loop)
        home = self._claim(new)
        self.flat.views[home] = Swapped(odd, even, self.loop)
        self.homes.append(even)
        self.spare.append(odd)
        self.leaving.append(self._copied(old, result, _bytes(old)))

    def _claim(self, value: Value) -> Buffer:
        """The value itself if it may be computed in memory we choose; else its copy."""
        made = value in self.body.written
        if made and value not in self.claimed:
            self.claimed.add(value)
            return value
        home = Scratch(_bytes(value))
        # Of an input, before something is written in its place.
        (self.after if made else self.before).append(self._copied(value, home, home.size))
        return home

    def slices(self, length: int, reverse: bool) -> None:
        """Mapped inputs and stacked outputs: one row per iteration."""
        rows = self.body.inputs[self.carried : self.carried + self.mapped]
        wholes = self.node.inputs[self.carried : self.carried + self.mapped]
        views = self.flat.views
        for row, whole in zip(rows, wholes, strict=True):
            views[row] = self._slice(whole, _bytes(row), length, reverse)
        results = self.node.outputs[self.carried :]
        for row, whole in zip(self.body.outputs[self.carried :], results, strict=True):
            if self.loop.tape is not None:
                self.flat.stacks[whole] = self.loop.tape, _bytes(row)
            views[self._claim(row)] = self._slice(whole, _bytes(row), length, reverse)

    def _slice(self, whole: Value, row: int, length: int, reverse: bool) -> Slice:
        if reverse and length == STACKED:
            return Slice(whole, self.loop, -row, -row, row)
        if reverse:
            return Slice(whole, self.loop, (length - 1) * row, -row)
        return Slice(whole, self.loop, 0, row)

    # -- in order

    def finish(self, condition: Function | None = None) -> Flat:
        """All launches."""
        begin = Control(Kind.BEGIN, self.loop)
        latch = Control(Kind.LATCH, self.loop, (begin,))
        kept = [*self.homes, *self.spare, *self.node.outputs]
        for init, home in zip(self.node.inputs, self.homes, strict=False):
            copy = self._copied(init, home, _bytes(init))
            self.flat.add(replace(copy, inplace=((1, 0),)))
        constant, turning = self._constant()
        for pair in constant:
            self.flat.add(*pair)
        self.flat.add(record(begin, kept, range(len(kept))))
        self._test(condition, latch)
        for launch in self.before:
            self.flat.add(launch)
        self.flat.launches.extend(turning)
        for launch in self.after:
            self.flat.add(launch)
        self.flat.add(record(latch))
        for launch in self.leaving:
            self.flat.add(launch)
        # Nothing before this overwrites it: the next iteration reads it again.
        self.flat.add(record(Control(Kind.END, self.loop), [*kept, *self._read(), *self.laid]))
        return self.flat

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

    def _test(self, condition: Function | None, latch: Control) -> None:
        if condition is None:
            self.flat.add(record(Control(Kind.TEST, self.loop, (latch,))))
            return
        found = plan_body(condition, self.planner, 0, self.carried)
        self.flat.include(found.flat)
        carried = self.carried
        self.flat.aliases.update(
            zip(found.inputs[:carried], self.body.inputs[:carried], strict=True)
        )
        self._capture(found)
        self.flat.launches.extend(found.flat.launches)
        self.flat.add(record(Control(Kind.HOLDS, self.loop, (latch,)), found.outputs))

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


def _bytes(value: Value) -> int:
    return int(size(known(value.shape))) * value.dtype.size
