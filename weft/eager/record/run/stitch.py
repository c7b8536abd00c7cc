"""Stitches recorded calls to one list of launches of library kernels: no graph, no compiler."""

from __future__ import annotations

import sys
from array import array
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

import numpy as np

from weft import config
from weft.codegen.target import portable
from weft.eager.record.listing.expansion import expand
from weft.eager.record.listing.kept_routine import shelf_of
from weft.eager.record.listing.listing import Listing, listing_of
from weft.eager.record.memory import memory_pool
from weft.eager.record.pending.lazy import Array, Record
from weft.eager.record.recognition.structure import Memo, Structure
from weft.eager.record.run.tier import Results
from weft.errors import CompileError, OutOfRangeError, WeftError
from weft.ir.graph import Graph
from weft.ir.node import Node, TensorType, Value
from weft.ir.shape import known
from weft.library import workspace
from weft.library.case import Case, Made
from weft.library.formula import Choice, Formula
from weft.library.host_part import at_line
from weft.library.kernel_list import Host, KernelList, Row
from weft.library.payoff import Price
from weft.library.routine import NoRoutineError, routine
from weft.ops.declaration import fault_of
from weft.runtime.execution.program import Fault
from weft.runtime.flight import land
from weft.runtime.memory.address import address_of, array_at
from weft.transform.interpreter import located

MOST_LISTINGS: Final = 4  # of structures that differ in sizes alone


def stitched(
    structure: Structure, leaves: Sequence[Array], as_rows: bool, memo: Memo | None
) -> Stitched:
    """Lists what computes a structure.

    Args:
        memo: what is known of it.

    Raises:
        NoRoutineError: a call has no routine.
        CompileError: a kernel cannot be compiled.
    """
    with shelf_of(structure.records):
        return _stitched(structure, leaves, as_rows, [] if memo is None else memo.listings)


def _stitched(
    structure: Structure, leaves: Sequence[Array], as_rows: bool, listings: list[Listing]
) -> Stitched:
    for i, listing in enumerate(listings):
        found = _fitted(listing, structure, leaves)
        if found is not None:
            if i:
                listings[:] = [listing, *listings[:i], *listings[i + 1 :]]
            return found
    try:
        listing = listing_of(structure)
    except NoRoutineError:
        return _whole(structure, leaves, as_rows)
    listings[:] = [listing, *listings][:MOST_LISTINGS]
    found = _fitted(listing, structure, leaves)
    assert found is not None
    return found


class Stitched(NamedTuple):
    """A list that computes a structure once, on fresh arrays."""

    list: Stitching
    values: Sequence[int]
    types: Sequence[TensorType]
    rows: frozenset[int] = frozenset()
    overwrites: bool = False

    def run(self) -> Results:
        """Runs it."""
        self.list.run()
        return Results(self.list.results(self.values, self.types), self.rows)


def _fitted(listing: Listing, structure: Structure, leaves: Sequence[Array]) -> Stitched | None:
    """What computes a structure; `None` if the listing does not fit its sizes."""
    records, steps = structure.records, listing.steps
    sizes = listing.sizes(records)
    if sizes is None:
        return None
    arrays = dict(enumerate(leaves))
    for value, kind, number in listing.fills:
        dtype, shape = kind.type(records)
        arrays[value] = np.full(known(shape), number, dtype.numpy)
    foreign, overwrites = set(arrays), False
    for value, kind in listing.owned:
        home = listing.updates.get(value, -1)
        if home >= 0 and leaves[home] is structure.leaves[home].array:  # no contiguous copy
            arrays[value], overwrites = leaves[home], True
            continue
        dtype, shape = kind.type(records)
        arrays[value] = memory_pool.empty(known(shape), dtype.numpy)
    stitching = Stitching(
        listing.kernels, sizes, arrays, foreign, lambda step: records[steps[step].record],
        listing.guard if overwrites else 0,
    )  # fmt: skip
    if not stitching.write(lambda step: steps[step].add(records)):
        return None
    types = [y.type for y in structure.outputs]
    return Stitched(stitching, listing.outputs, types, overwrites=overwrites)


def _whole(structure: Structure, leaves: Sequence[Array], as_rows: bool) -> Stitched:
    """The same as one call, for what has no gradient of its own."""
    expanded = expand(structure, as_rows)
    try:
        made = routine(expanded.graph, expanded.outputs, expanded.feeds, portable())
        case = Case(Made(made), Formula())
        case.expect(b"")
        types = [y.type for y in expanded.outputs]
        return computing(case, b"", leaves, types)._replace(rows=expanded.rows)
    except CompileError:
        raise NoRoutineError from None


def computing(
    case: Case, sizes: bytes, inputs: Sequence[Array], types: Sequence[TensorType]
) -> Stitched:
    """Lists what computes one routine.

    Args:
        sizes: for which it holds.
        types: of the results.
    """
    count = len(inputs)
    arrays, outputs, roots = dict(enumerate(inputs)), list[int](), list[int]()
    foreign = set(arrays)
    for i, (kind, number) in enumerate(zip(types, case.routine.results, strict=True), count):
        constant = max(number - count - len(types), -1)
        own = number == i
        roots.append(min(i, number))
        outputs += (i, number if number < i else -1, constant, own, 0, 0, 0)
        if own:
            arrays[i] = memory_pool.empty(known(kind.shape), kind.dtype.numpy)
    cases = Choice()
    cases.fill([case.table], len(sizes) // 8, case.value_count)
    row = Row(cases, 0, case.layout, range(count), outputs, ())
    kernels = KernelList([row], count + len(types), list(arrays))
    stitching = Stitching(kernels, sizes, arrays, foreign, lambda _: None)
    stitching.keep(case)
    stitching.write(_no_case)
    return Stitched(stitching, roots, types)


def counted(graph: Graph, outputs: Sequence[Value], feeds: Sequence[Value]) -> tuple[int, int]:
    """How many launches a graph is, and how many calls of Python.

    Raises:
        NoRoutineError: the library has no kernels for something.
        CompileError: a kernel cannot be compiled.
    """
    case = Case(Made(routine(graph, outputs, feeds, portable())), Formula())
    arrays = [np.empty(known(x.type.shape), x.type.dtype.numpy) for x in feeds]
    found = computing(case, b"", arrays, [y.type for y in outputs]).list
    return found.counts


def _no_case(step: int) -> None:
    raise AssertionError(step)


class Stitching:
    """One run of a list of kernels.

    Args:
        arrays: those of given values, in order.
        foreign: values whose memory no result may have.
        record: gives that of a step.
        guard: the step that is run only if none before it has failed; 0: all run at once.
    """

    def __init__(
        self, kernels: KernelList, sizes: bytes, arrays: dict[int, Array], foreign: set[int],
        record: Callable[[int], Record | None], guard: int = 0,
    ) -> None:  # fmt: skip
        self._kernels = kernels
        self._sizes = sizes
        self._arrays = arrays
        self._foreign = foreign
        self._record = record
        self._guard = guard
        self._hosts: Sequence[Host] = ()
        self._workspace = workspace.take(int(config.get("threads")))

    def keep(self, others: object) -> None:
        """Keeps what the list refers to."""
        self._kept = others

    def write(self, add: Callable[[int], None]) -> bool:
        """Writes the launches; whether the list fits the sizes.

        Args:
            add: makes the case of a step for these sizes.
        """
        addresses = array("q", map(address_of, self._arrays.values())).tobytes()
        if not self._kernels.stitch(self._workspace, self._sizes, addresses, add):
            workspace.give(self._workspace)
            return False
        if self._workspace.table.host_count:  # which may compute others, and forget cases
            self.keep(self._kernels.cases(self._workspace))
            self._hosts = self._kernels.hosts(self._workspace)
        return True

    @property
    def counts(self) -> tuple[int, int]:
        """How many launches there are, and how many calls of Python."""
        return self._workspace.table.launch_count, len(self._hosts)

    @property
    def price(self) -> Price:
        """What it takes."""
        launches = self._workspace.table.launch_count
        return Price(launches, self._workspace.ns(0, launches) / 1e9)

    @property
    def exchanges(self) -> list[Node]:
        """The nodes that call other ranks, in order."""
        pairs = [(host.part.node, self._record(host.step)) for host in self._hosts]
        return [
            at_line(node, None if record is None else record.source)
            for node, record in pairs
            if node is not None
        ]  # fmt: skip

    def run(self) -> None:
        """Runs the launches and the calls of Python.

        Raises:
            OutOfRangeError: an index is out of bounds.
        """
        if int(config.get("debug")):
            self._show()
        first = 0
        for host in self._hosts:
            self._launch(first, host.launch)
            self._call(host)
            first = host.launch
        if self._guard:
            before, first = first, max(first, self._workspace.first_of(self._guard))
            self._launch(before, first)
        self._launch(first, self._workspace.table.launch_count)

    def _launch(self, first: int, last: int) -> None:
        fault = self._workspace.run(first, last)
        if fault is not None:
            raise self._failure(fault)

    def _call(self, host: Host) -> None:
        part, record = host.part, self._record(host.step)
        arrays = [
            array_at(place, known(kind.shape), kind.dtype.numpy) if place
            else np.empty(known(kind.shape), kind.dtype.numpy)  # nobody reads it
            for place, kind in zip(host.places, (*part.given, *part.types), strict=True)
        ]  # fmt: skip
        count = len(part.given)
        land()
        try:
            part.call(None if record is None else record.source, arrays[:count], arrays[count:])
        except WeftError as error:
            error.serial = None if record is None else record.serial
            raise

    def _show(self) -> None:
        needed, us = self._workspace.table.needed, self.price.seconds * 1e6
        what = "{} launches, {} calls of Python".format(*self.counts)
        print(f"# stitched: {what}, {needed:,} B for values between them, about {us:,.0f} us",
              file=sys.stderr)  # fmt: skip

    def results(self, values: Sequence[int], types: Sequence[TensorType]) -> list[Array]:
        """The arrays of some values; each has memory of its own."""
        found: list[Array] = []
        for value, (dtype, dims) in zip(values, types, strict=True):
            shape = known(dims)
            result = self._arrays.get(value)
            if result is None:  # a constant of a routine
                result = np.array(array_at(self._kernels.place(value), shape, dtype.numpy))
            elif value in self._foreign:
                result = np.array(result).reshape(shape)
            elif result.shape != shape:
                result = np.ndarray(shape, result.dtype, result)
            self._foreign.add(value)
            found.append(result)
        workspace.give(self._workspace)
        return found

    def _failure(self, fault: Fault) -> WeftError:
        origin = self._kernels.origin(self._workspace, fault.tag, self._sizes)
        nodes, record = origin.part.group_at(origin.sizes).nodes, self._record(origin.step)
        node, say = next((n, f) for n in nodes if (f := fault_of(n)) is not None)
        source = node.source if record is None else record.source
        where = Node(node.op, node.inputs, node.attrs, node.types, node.name, source=source)
        error = located(OutOfRangeError(say(node, fault.position, fault.value)), where)
        error.serial = None if record is None else record.serial
        return error
