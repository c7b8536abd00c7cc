"""Stitches recorded calls to one list of launches of library kernels: no graph, no compiler."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from weft import config
from weft.codegen.target import portable
from weft.eager.record import memory_pool
from weft.eager.record.expansion import expand
from weft.eager.record.lazy import Array, Record
from weft.eager.record.listing import Listing, listing_of
from weft.eager.record.structure import Structure
from weft.eager.record.tier import Results
from weft.errors import CompileError, OutOfRangeError, WeftError
from weft.host.memory import LINE
from weft.ir.node import Node, TensorType
from weft.ir.shape import known, size
from weft.library.host_part import HostPart, at_line
from weft.library.launch_list import LaunchList
from weft.library.routine import NoRoutineError, Part, Placed, aligned, link_all, routine
from weft.library.variant import Bound
from weft.ops.declaration import fault_of
from weft.runtime.execution.program import Fault
from weft.runtime.flight import land
from weft.runtime.memory.address import address_of, array_at
from weft.transform.interpreter import located


def stitched(structure: Structure, leaves: Sequence[Array], as_rows: bool) -> Stitched:
    """Lists what computes a structure.

    Raises:
        NoRoutineError: a call has no routine.
        CompileError: a kernel cannot be compiled.
    """
    try:
        listing, placed = _listing(structure)
    except NoRoutineError:
        return _whole(structure, leaves, as_rows)
    records = structure.records
    stitching = Stitching(len(leaves), listing.count, leaves)
    for value, kind, number in listing.fills:
        stitching.fill(value, kind.type(records), number)
    owned = frozenset(listing.outputs)
    for step, found in zip(listing.steps, placed, strict=True):
        types = [kind.type(records) for _, kind in step.outputs]
        stitching.allocate([y for y, _ in step.outputs], types, found, owned, step.dead)
    stitching.settle(placed, listing.shared)
    for step, found in zip(listing.steps, placed, strict=True):
        record = records[step.record]
        stitching.start(found, step.inputs, [y for y, _ in step.outputs], record)
    types = [y.type for y in structure.outputs]
    return Stitched(stitching, listing.outputs, types)


class Stitched(NamedTuple):
    """A list that computes a structure once, on fresh arrays."""

    list: Stitching
    values: Sequence[int]
    types: Sequence[TensorType]
    rows: frozenset[int] = frozenset()

    def run(self) -> Results:
        """Runs it."""
        self.list.run()
        return Results(self.list.results(self.values, self.types), self.rows)


def _listing(structure: Structure) -> tuple[Listing, list[Placed]]:
    """The listing of a structure, and its routines at these sizes."""
    memo = structure.memo
    if memo is not None and memo.listing is not None:
        placed = memo.listing.placed(structure.records)
        if placed is not None:
            return memo.listing, placed
    listing = listing_of(structure)
    if memo is not None:
        memo.listing = listing
    placed = listing.placed(structure.records)
    assert placed is not None
    return listing, placed


def _whole(structure: Structure, leaves: Sequence[Array], as_rows: bool) -> Stitched:
    """The same as one call, for what has no gradient of its own."""
    expanded = expand(structure, as_rows)
    try:
        made = routine(expanded.graph, expanded.outputs, expanded.feeds, portable()).at()
    except CompileError:
        raise NoRoutineError from None
    types = [y.type for y in expanded.outputs]
    count = len(leaves)
    outputs = range(count, count + len(types))
    stitching = Stitching(count, count + len(types), leaves)
    stitching.allocate(outputs, types, made, frozenset(outputs), ())
    roots = [min(pair) for pair in zip(outputs, made.routine.results, strict=True)]
    shared = [(y, n) for y, n in zip(outputs, roots, strict=True) if n < y]
    stitching.settle([made], shared)
    stitching.start(made, range(count), outputs, None)
    return Stitched(stitching, roots, types, expanded.rows)


class _Launches(NamedTuple):
    """Launches between two calls of Python, and which record each is of."""

    list: LaunchList
    started: list[tuple[Part, Bound, Record | None]]

    def run(self) -> None:
        fault = self.list.run() if self.started else None
        if fault is not None:
            raise _failure(fault, *self.started[fault.tag])


class Stitching:
    """Places numbered values in memory, and lists the launches and calls that compute them.

    Args:
        given: how many values are there from the start.
        count: how many there are.

    Attributes:
        exchanges: the nodes that call other ranks, in order.
    """

    def __init__(self, given: int, count: int, leaves: Sequence[Array]) -> None:
        self._arrays: list[Array | None] = [*leaves, *[None] * (count - given)]
        self._places = [*map(address_of, leaves), *[0] * (count - given)]
        self._foreign = set(range(given))  # memory that no result may have
        self._offsets: dict[int, tuple[int, int]] = {}  # of temporaries: place, bytes
        self._free: dict[int, list[int]] = {}  # offsets by size
        self._top = 0
        self._threads = int(config.get("threads"))
        self._lists = [_Launches(LaunchList(self._threads), [])]
        self._calls: list[Callable[[], None]] = []  # one between each two lists
        self.exchanges: list[Node] = []
        self._held: list[Array] = []

    def fill(self, value: int, kind: TensorType, number: int) -> None:
        """Gives a value one number throughout."""
        self._take(value, np.full(known(kind.shape), number, kind.dtype.numpy))
        self._foreign.add(value)

    def _take(self, value: int, array: Array) -> None:
        self._arrays[value] = array
        self._places[value] = address_of(array)

    def allocate(
        self, values: Sequence[int], types: Sequence[TensorType], found: Placed,
        owned: frozenset[int], dead: Sequence[int],
    ) -> None:  # fmt: skip
        """Places the results of a routine, and frees what is not needed any more.

        Args:
            owned: values that get an array of their own.
        """
        made = found.routine
        constants = made.inputs + len(values)
        for i, (value, kind, number) in enumerate(zip(values, types, made.results, strict=True)):
            if number >= constants:
                self._take(value, made.constants[number - constants])
                self._foreign.add(value)
            elif number < made.inputs + i:
                continue  # it has the memory of another one
            elif value in owned:
                self._take(value, memory_pool.empty(known(kind.shape), kind.dtype.numpy))
            else:
                self._offsets[value] = self._offset(
                    aligned(size(known(kind.shape)) * kind.dtype.size)
                )
        for value in dead:
            offset = self._offsets.get(value)
            if offset is not None:
                self._free.setdefault(offset[1], []).append(offset[0])

    def _offset(self, bytes_: int) -> tuple[int, int]:
        free = self._free.get(bytes_)
        if free:
            return free.pop(), bytes_
        self._top += bytes_
        return self._top - bytes_, bytes_

    def settle(self, placed: Sequence[Placed], shared: Sequence[tuple[int, int]]) -> None:
        """Allocates memory for temporaries, and links kernels.

        Args:
            shared: values with the memory of another one.
        """
        link_all(placed)
        threads = self._threads
        scratch = max([found.scratch(threads) for found in placed], default=0)
        block = memory_pool.empty((self._top + scratch + LINE,), np.dtype(np.uint8))
        self._held.append(block)
        base = aligned(address_of(block))
        self._scratch = base + self._top
        places = self._places
        for value, (offset, _) in self._offsets.items():
            places[value] = base + offset
        for value, other in shared:
            places[value] = places[other]

    def start(
        self, found: Placed, inputs: Sequence[int], outputs: Sequence[int], record: Record | None
    ) -> None:
        """Lists the launches of a routine."""
        all_places, threads, scratch = self._places, self._threads, self._scratch
        places = [all_places[x] if x >= 0 else 0 for x in inputs]
        places += [all_places[y] for y in outputs]
        places += map(address_of, found.routine.constants)
        for bytes_ in found.temporaries:
            places.append(scratch)
            scratch += aligned(bytes_)
        for part, bound in zip(found.routine.parts, found.bounds, strict=True):
            if isinstance(part, HostPart):
                self._call(part, places, record)
                continue
            own = [places[n] if n >= 0 else 0 for n in part.buffers]
            for bytes_, each in bound.scratch:
                own.append(scratch)
                scratch += aligned(bytes_ * (threads if each else 1))
            for start in bound.starts:
                launches, started = self._lists[-1]
                if launches.add(start, own):
                    started.append((part, bound, record))

    def _call(self, part: HostPart, places: Sequence[int], record: Record | None) -> None:
        """Lists a call of Python; later launches begin another list."""
        kinds = (*part.given, *part.types)
        memory = [places[n] if n >= 0 else 0 for n in part.buffers]
        arrays = [
            array_at(place, known(kind.shape), kind.dtype.numpy) if place
            else np.empty(known(kind.shape), kind.dtype.numpy)  # nobody reads it
            for place, kind in zip(memory, kinds, strict=True)
        ]  # fmt: skip
        count, source = len(part.given), None if record is None else record.source

        def act() -> None:
            land()
            try:
                part.call(source, arrays[:count], arrays[count:])
            except WeftError as error:
                error.serial = None if record is None else record.serial
                raise

        self._calls.append(act)
        self._lists.append(_Launches(LaunchList(self._threads), []))
        if part.node is not None:
            self.exchanges.append(at_line(part.node, source))

    def run(self) -> None:
        """Runs the launches and the calls.

        Raises:
            OutOfRangeError: an index is out of bounds.
        """
        if int(config.get("debug")):
            self._show()
        self._lists[0].run()
        for call, launches in zip(self._calls, self._lists[1:], strict=True):
            call()
            launches.run()

    def _show(self) -> None:
        records = [record for _, started in self._lists for _, _, record in started]
        calls = len(dict.fromkeys(records)) + len(self._calls)
        what = f"{calls} calls, {len(records)} launches, {len(self._calls)} by Python"
        us = sum([launches.ns for launches, _ in self._lists]) / 1e3
        print(f"# stitched: {what}, {self._top:,} B for values between them, about {us:,.0f} us",
              file=sys.stderr)  # fmt: skip

    def results(self, values: Sequence[int], types: Sequence[TensorType]) -> list[Array]:
        """The arrays of some values; each has memory of its own."""
        found: list[Array] = []
        for value, kind in zip(values, types, strict=True):
            array = self._arrays[value]
            assert array is not None
            shape = known(kind.shape)
            if value in self._foreign:
                array = np.array(array).reshape(shape)
            elif array.shape != shape:
                array = np.ndarray(shape, array.dtype, array)
            self._foreign.add(value)
            found.append(array)
        return found


def _failure(fault: Fault, part: Part, bound: Bound, record: Record | None) -> WeftError:
    nodes = part.group_at(bound).nodes
    node, say = next((n, f) for n in nodes if (f := fault_of(n)) is not None)
    source = node.source if record is None else record.source
    where = Node(node.op, node.inputs, node.attrs, node.types, node.name, source=source)
    error = located(OutOfRangeError(say(node, fault.position, fault.value)), where)
    error.serial = None if record is None else record.serial
    return error
