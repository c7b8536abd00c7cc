"""Stitches recorded calls to one list of launches of library kernels: no graph, no compiler."""

from __future__ import annotations

import ctypes
import sys
from array import array
from collections.abc import Callable, Sequence
from typing import Final

import numpy as np

from weft import config
from weft.codegen.target import current
from weft.eager.record import memory_pool
from weft.eager.record.expansion import expand
from weft.eager.record.lazy import Array, Record
from weft.eager.record.listing import Listing, listing_of
from weft.eager.record.structure import Structure
from weft.errors import CompileError, OutOfRangeError, WeftError
from weft.ir.node import Node, TensorType
from weft.ir.shape import known
from weft.library.case import Case, Made
from weft.library.formula import Choice, Formula
from weft.library.kernel_list import KernelList, Output, Row
from weft.library.routine import NoRoutineError, routine
from weft.library.workspace import WORKSPACE
from weft.ops.declaration import fault_of
from weft.runtime.execution.program import Fault
from weft.runtime.memory.address import address_of
from weft.transform.interpreter import located

MOST_LISTINGS: Final = 4  # of structures that differ in sizes alone


def stitched(
    structure: Structure, leaves: Sequence[Array], as_rows: bool
) -> tuple[list[Array], frozenset[int]]:
    """Computes a structure.

    Returns:
        Fresh arrays for its outputs, and which outputs are two: see `Expanded`.

    Raises:
        NoRoutineError: a call has no routine; nothing was computed.
        CompileError: a kernel cannot be compiled; nothing was computed.
        WeftError: a value does not fit, such as an index.
    """
    if sys.is_finalizing():  # a compiler needs more than is left of the interpreter
        raise NoRoutineError
    memo = structure.memo
    listings = [] if memo is None else memo.listings
    for i, listing in enumerate(listings):
        found = _computed(listing, structure, leaves)
        if found is not None:
            if i:
                listings[:] = [listing, *listings[:i], *listings[i + 1 :]]
            return found, frozenset()
    try:
        listing = listing_of(structure)
    except NoRoutineError:
        return _whole(structure, leaves, as_rows)
    listings[:] = [listing, *listings][:MOST_LISTINGS]
    found = _computed(listing, structure, leaves)
    assert found is not None
    return found, frozenset()


def _computed(
    listing: Listing, structure: Structure, leaves: Sequence[Array]
) -> list[Array] | None:
    """The outputs of a structure; `None` if the listing does not fit its sizes."""
    records = structure.records
    sizes = listing.sizes(records)
    if sizes is None:
        return None
    arrays = dict(enumerate(leaves))
    for value, kind, number in listing.fills:
        dtype, shape = kind.type(records)
        arrays[value] = np.full(known(shape), number, dtype.numpy)
    foreign = set(arrays)
    for value, kind in listing.owned:
        dtype, shape = kind.type(records)
        arrays[value] = memory_pool.empty(known(shape), dtype.numpy)
    stitching = _Stitching(listing.kernels, sizes, arrays, foreign)
    if not stitching.write(lambda step: listing.steps[step].add(records)):
        return None
    stitching.run(lambda step: records[listing.steps[step].record])
    return stitching.results(listing.outputs, [y.type for y in structure.outputs])


def _whole(
    structure: Structure, leaves: Sequence[Array], as_rows: bool
) -> tuple[list[Array], frozenset[int]]:
    """Computes a structure as one call, for what has no gradient of its own."""
    expanded = expand(structure, as_rows)
    try:
        made = routine(expanded.graph, expanded.outputs, expanded.feeds, current())
        case = Case(Made(made), Formula())
        found = computed(case, b"", leaves, [y.type for y in expanded.outputs])
    except CompileError:
        raise NoRoutineError from None
    return found, expanded.rows


def computed(
    case: Case, sizes: bytes, inputs: Sequence[Array], types: Sequence[TensorType]
) -> list[Array]:
    """The results of one routine.

    Args:
        sizes: for which it holds.
        types: of the results.
    """
    count = len(inputs)
    arrays, outputs = dict(enumerate(inputs)), list[Output]()
    foreign = set(arrays)
    roots: list[int] = []
    for i, (kind, number) in enumerate(zip(types, case.routine.results, strict=True), count):
        constant = number - count - len(types)
        roots.append(min(i, number))
        outputs.append(Output(i, number if number < i else -1, max(constant, -1), 0, 0, 0, 0))
        if number >= i and constant < 0:
            outputs[-1] = outputs[-1]._replace(given=1)
            arrays[i] = memory_pool.empty(known(kind.shape), kind.dtype.numpy)
    cases = Choice()
    cases.fill([case.table], len(sizes) // 8, case.value_count)
    row = Row(cases, 0, case.layout, range(count), outputs, ())
    kernels = KernelList([row], count + len(types), list(arrays))
    stitching = _Stitching(kernels, sizes, arrays, foreign)
    stitching.write(_no_case)
    stitching.run(lambda _: None)
    return stitching.results(roots, types)


def _no_case(step: int) -> None:
    raise AssertionError(step)


class _Stitching:
    """One run of a list of kernels.

    Args:
        arrays: those of given values, in order.
        foreign: values whose memory no result may have.
    """

    def __init__(
        self, kernels: KernelList, sizes: bytes, arrays: dict[int, Array], foreign: set[int]
    ) -> None:
        self._kernels = kernels
        self._sizes = sizes
        self._arrays = arrays
        self._foreign = foreign

    def write(self, add: Callable[[int], None]) -> bool:
        """Writes the launches; whether the list fits the sizes."""
        addresses = array("q", map(address_of, self._arrays.values())).tobytes()
        return self._kernels.stitch(self._sizes, addresses, int(config.get("threads")), add)

    def run(self, record: Callable[[int], Record | None]) -> None:
        """Runs the launches.

        Args:
            record: gives that of a step.

        Raises:
            OutOfRangeError: an index is out of bounds.
        """
        if int(config.get("debug")):
            table = WORKSPACE.table
            what = f"{table.launch_count} launches, {table.needed:,} B for values between them"
            print(f"# stitched: {what}, about {WORKSPACE.ns / 1e3:,.0f} us", file=sys.stderr)
        fault = WORKSPACE.run()
        if fault is not None:
            raise self._failure(fault, record)

    def results(self, values: Sequence[int], types: Sequence[TensorType]) -> list[Array]:
        """The arrays of some values; each has memory of its own."""
        found: list[Array] = []
        for value, (dtype, dims) in zip(values, types, strict=True):
            shape = known(dims)
            result = self._arrays.get(value)
            if result is None:  # a constant of a routine
                result = np.empty(shape, dtype.numpy)
                ctypes.memmove(address_of(result), self._kernels.place(value), result.nbytes)
            elif value in self._foreign:
                result = np.array(result).reshape(shape)
            elif result.shape != shape:
                result = np.ndarray(shape, result.dtype, result)
            self._foreign.add(value)
            found.append(result)
        WORKSPACE.release()
        return found

    def _failure(self, fault: Fault, record: Callable[[int], Record | None]) -> WeftError:
        origin = self._kernels.origin(fault.tag, self._sizes)
        nodes, call = origin.part.group_at(origin.sizes).nodes, record(origin.step)
        node, say = next((n, f) for n in nodes if (f := fault_of(n)) is not None)
        source = node.source if call is None else call.source
        where = Node(node.op, node.inputs, node.attrs, node.types, node.name, source=source)
        error = located(OutOfRangeError(say(node, fault.position, fault.value)), where)
        error.serial = None if call is None else call.serial
        return error
