"""Gives recorded values their computed arrays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from weft.eager.record.array_value import leaf
from weft.eager.record.lazy import Lazy, entry
from weft.eager.record.plan import function_plan
from weft.eager.record.structure import Structure
from weft.ir.node import Value
from weft.ir.shape import known
from weft.ops.indexing.row_sparse import RowSparse
from weft.runtime.flight import land

Array = np.ndarray[Any, Any]


def settle(structure: Structure, found: Sequence[Array], rows: frozenset[int]) -> None:
    """Give the outputs of a structure their arrays.

    Args:
        rows: positions of the row-sparse ones, which are two arrays each, as in `Expanded`.
    """
    arrays = iter(found)
    for i, (lazy, home) in enumerate(zip(structure.outputs, structure.homes, strict=True)):
        if home < 0:
            lazy.home = None  # even if another thread has just set one
        if i in rows:
            _settle_rows(lazy, next(arrays), next(arrays))
        else:
            _settle(lazy, next(arrays))


def _settle(lazy: Lazy, array: Array) -> None:
    """Give a value its array; the value whose memory it overwrites loses its own.

    It is recomputed if a gradient needs it.
    """
    home = lazy.home
    if home is not None:
        assert home.array is not None
        if home.array is not array:  # it was interpreted, or the memory is not contiguous
            land()
            home.array[...] = array
            array = home.array
        home.array = None
        lazy.loan = home.loan
        _forget(home, home.leaf is not None)
        lazy.home = None
    lazy.array = array
    _forget(lazy)


def _forget(lazy: Lazy, ends: bool = False) -> None:
    """Drop the record of a value if no gradient needs it, or if the graph `ends` there."""
    if lazy.record is not None and (ends or not lazy.tracked or lazy.record.freed):
        lazy.record = None


def _settle_rows(lazy: Lazy, indices: Array, rows: Array) -> None:
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
