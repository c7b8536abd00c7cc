"""Gives recorded values their computed arrays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final
from weakref import ref

import numpy as np

from weft.eager.record.call.plan import function_plan
from weft.eager.record.memory.array_value import leaf
from weft.eager.record.pending.lazy import Lazy, entry
from weft.eager.record.recognition.structure import Structure
from weft.ir.node import Value
from weft.ir.shape import known
from weft.ops.indexing.row_sparse import RowSparse
from weft.runtime.flight import land

Array = np.ndarray[Any, Any]


def assign_arrays(
    structure: Structure,
    found: Sequence[Array],
    rows: frozenset[int],
    copies: Mapping[int, Array] | None,
) -> None:
    """Give the outputs of a structure their arrays.

    Args:
        rows: positions of the row-sparse ones, which are two arrays each, as in `Expanded`.
        copies: the old values of leaves whose memory was overwritten, where they are still needed;
            `None` if nothing else is pending, in any thread.
    """
    arrays = iter(found)
    for i, (lazy, place) in enumerate(zip(structure.outputs, structure.homes, strict=True)):
        if i in rows:
            _assign_rows(lazy, next(arrays), next(arrays))
        else:
            array = next(arrays)
            if place >= 0:
                copy = None if copies is None else copies.get(place)
                array = _moved(structure.leaves[place], array, lazy, copy)
            lazy.home, lazy.array = None, array
            record = lazy.record
            if copies is None or record is None or record.freed is None:
                _forget(lazy)
            else:
                _late.append(ref(lazy))
    if _late:
        _late[:] = [reference for reference in tuple(_late) if _is_history(reference())]


_late: Final[list[ref[Lazy]]] = []
"""Values whose graph is freed, but was perhaps still needed when they were computed."""


def _is_history(lazy: Lazy | None) -> bool:
    """Whether a value whose graph is freed is history of a pending gradient; else forget that."""
    if lazy is None or lazy.record is None:
        return False
    for results in lazy.record.freed or ():
        for result in results:
            gradient = result()
            if gradient is not None and gradient.array is None:
                return True
    _forget(lazy)
    return False


def _moved(home: Lazy, array: Array, lazy: Lazy, copy: Array | None) -> Array:
    """The memory of `home`, which holds this array now; `home` gets the copy instead.

    Without one it has no array any more; it is recomputed if a gradient needs it.
    """
    memory = home.array
    assert memory is not None
    if memory is not array:  # it was interpreted, or the memory is not contiguous
        land()
        memory[...] = array
    home.array, lazy.loan = copy, home.loan
    if copy is None:
        _forget(home, home.leaf is not None)
    else:
        home.loan = None
    return memory


def _forget(lazy: Lazy, ends: bool = False) -> None:
    """Drop the record of a value if no gradient needs it, or if the graph `ends` there."""
    if lazy.record is not None and (ends or not lazy.tracked or lazy.record.freed is not None):
        lazy.record = None


def _assign_rows(lazy: Lazy, indices: Array, rows: Array) -> None:
    """Give a row-sparse value a record that makes it dense, for plans that do not take rows."""
    inputs = (leaf(indices), leaf(rows))
    static = {"shape": known(lazy.type.shape)}
    plan = function_plan(rows_of, [x.type for x in inputs], static, differentiable=False)
    assert lazy.record is not None
    record = entry(plan, inputs, lazy.record.serial)  # ordered before all that reads the value
    record.outputs = (lazy,)
    lazy.record, lazy.index = record, 0


def rows_of(indices: Value, rows: Value, *, shape: tuple[int, ...]) -> RowSparse:
    """A row-sparse array from its parts."""
    return RowSparse(indices, rows, shape)
