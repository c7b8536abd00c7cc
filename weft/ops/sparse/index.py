"""CSR index arrays: `indptr[r]` to `indptr[r + 1]` are the entries of row `r`.

`csr_order` makes them from ids in any order, by counting sort; `csr_indptr` from sorted ids;
`csr_rows` returns the sorted ids. All are int32, as sizes in one memory fit.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import numpy as np

from weft.errors import OutOfRangeError, ShapeError
from weft.ir.dtype import DType, int32
from weft.ir.node import Node
from weft.ir.shape import Dim, Shape, known, show
from weft.ops.declaration import NO_GRADIENT, Array, Case, Opaque, defop
from weft.ops.declaration.attribute import REQUIRED
from weft.ops.declaration.fact import AS_GIVEN
from weft.ops.declaration.rule import index_dtype
from weft.ops.indexing.gather import check_indices, outside


def vector(shape: Shape, name: str) -> Dim:
    """The size of an input that must be a vector."""
    assert shape is not None
    if len(shape) != 1:
        raise ShapeError(f"{name}: expected rank 1, got shape {show(shape)}")
    return shape[0]


def _size(size: Any) -> int:
    if not isinstance(size, int) or size < 0:
        raise ShapeError(f"size: expected a number that is not negative, got {size!r}")
    return size


def _ids_fault(node: Node, position: int, value: int) -> str:
    return outside(known(node.inputs[0].shape), position, value, node.attrs["size"], "ids")


# csr_order: ids in any order


def _order_shape(ids: Shape, *, size: Any, spare: bool) -> tuple[Shape, Shape]:
    return (_size(size) + spare + 1,), (vector(ids, "ids"),)


def _order_dtype(ids: DType, **_: Any) -> tuple[DType, DType]:
    index_dtype(ids, "ids")
    return int32, int32


def _order_reference(ids: Array, *, size: int, spare: bool) -> tuple[Array, Array]:
    left_out = ids < 0 if spare else np.zeros(ids.shape, np.bool_)
    kept = np.flatnonzero(~left_out)
    found = np.full(ids.shape, size, np.int64)
    found[kept] = check_indices(ids[kept], size, "ids")
    order = np.argsort(found, kind="stable")
    indptr = np.searchsorted(found[order], np.arange(size + spare + 1))
    return indptr.astype(np.int32), order.astype(np.int32)


_IDS: Final = (3, 0, 3, 5, 0, 3, 1)


def _order_cases() -> Iterator[Case]:
    for kind in (np.int32, np.int64, np.uint8):
        yield Case((np.array(_IDS, kind),), {"size": 7})
        yield Case((np.array(_IDS, kind),), {"size": 6, "spare": True})
    yield Case((np.array((-1, 2, -7, 0, 2), np.int32),), {"size": 3, "spare": True})
    yield Case((np.array((-1, -2), np.int64),), {"size": 0, "spare": True})
    yield Case((np.zeros((0,), np.int32),), {"size": 3})
    yield Case((np.zeros((0,), np.int32),), {"size": 0})
    yield Case(((np.arange(3000) * 7919 % 1000).astype(np.int32),), {"size": 1000})


csr_order = defop(
    "csr_order",
    inputs="ids:int32",
    attrs={"size": REQUIRED, "spare": False},
    dtype=_order_dtype,
    shape=_order_shape,
    reference=_order_reference,
    vjp=NO_GRADIENT,
    lower=Opaque("csr_order", fault=_ids_fault),
    cases=_order_cases,
    outputs=2,
    facts=AS_GIVEN,
)
"""`indptr` of ids below `size`, and the indices that sort them, stably.

With `spare`, there is an additional last row for negative ids.
"""

# csr_indptr: sorted ids


def _indptr_shape(ids: Shape, *, size: Any) -> Shape:
    vector(ids, "ids")
    return (_size(size) + 1,)


def _indptr_dtype(ids: DType, **_: Any) -> DType:
    index_dtype(ids, "ids")
    return int32


def _unsorted(position: int, value: int) -> str:
    return f"ids[{position}]: expected sorted ids, got {value} after a larger one"


def _indptr_fault(node: Node, position: int, value: int) -> str:
    if 0 <= value < node.attrs["size"]:
        return _unsorted(position, value)
    return _ids_fault(node, position, value)


def _indptr_reference(ids: Array, *, size: int) -> Array:
    found = check_indices(ids, size, "ids")
    falls = np.flatnonzero(found[1:] < found[:-1])
    if falls.size:
        at = int(falls[0]) + 1
        raise OutOfRangeError(_unsorted(at, int(found[at])))
    return np.searchsorted(found, np.arange(size + 1)).astype(np.int32)


def _indptr_cases() -> Iterator[Case]:
    for kind in (np.int32, np.int64, np.uint8):
        yield Case((np.sort(np.array(_IDS, kind)),), {"size": 7})
    yield Case((np.zeros((0,), np.int32),), {"size": 3})
    yield Case((np.zeros((0,), np.int32),), {"size": 0})
    yield Case((np.sort(np.arange(3000) * 7919 % 1000).astype(np.int32),), {"size": 1000})


csr_indptr = defop(
    "csr_indptr",
    inputs="ids:int32",
    attrs={"size": REQUIRED},
    dtype=_indptr_dtype,
    shape=_indptr_shape,
    reference=_indptr_reference,
    vjp=NO_GRADIENT,
    lower=Opaque("csr_indptr", fault=_indptr_fault),
    cases=_indptr_cases,
    facts=AS_GIVEN,
)
"""`indptr` of sorted ids below `size`."""

# csr_rows: the sorted ids again


def check_indptr(indptr: Array, count: int) -> Array:
    """The same as int64.

    Raises:
        OutOfRangeError: not increasing from 0 to `count`; the message names the first bad entry.
    """
    found = indptr.astype(np.int64)
    low = np.concatenate(([0], found[:-1]))
    high = np.full(found.shape, count)
    high[0] = 0
    low[-1] = count
    bad = np.flatnonzero((found < low) | (found > high))
    if bad.size:
        raise OutOfRangeError(indptr_text(int(bad[0]), int(found[bad[0]]), count))
    return found


def indptr_text(position: int, value: int, count: int) -> str:
    """The error message for a bad entry of `indptr`."""
    return f"indptr[{position}]: expected 0 first, no decrease, and {count} last, got {value}"


def check_indptr_shape(indptr: Shape) -> Dim:
    """The number of rows of an `indptr`."""
    entries = vector(indptr, "indptr")
    if entries == 0:
        raise ShapeError("indptr: expected one entry more than rows, got shape (0,)")
    return None if entries is None else entries - 1


def _rows_shape(indptr: Shape, *, size: Any) -> Shape:
    check_indptr_shape(indptr)
    return (_size(size),)


def _rows_dtype(indptr: DType, **_: Any) -> DType:
    index_dtype(indptr, "indptr")
    return int32


def _rows_reference(indptr: Array, *, size: int) -> Array:
    counts = np.diff(check_indptr(indptr, size))
    return np.repeat(np.arange(len(counts), dtype=np.int32), counts)


def _rows_fault(node: Node, position: int, value: int) -> str:
    return indptr_text(position, value, node.attrs["size"])


def _rows_cases() -> Iterator[Case]:
    yield Case((np.array([0, 0, 2, 7, 7, 9], np.int32),), {"size": 9})
    yield Case((np.array([0, 3, 3], np.int64),), {"size": 3})
    yield Case((np.array([0], np.int32),), {"size": 0})
    yield Case((np.array([0, 0], np.int32),), {"size": 0})
    yield Case(((np.arange(900, dtype=np.int32) * 5),), {"size": 4495})


csr_rows = defop(
    "csr_rows",
    inputs="indptr:int32",
    attrs={"size": REQUIRED},
    dtype=_rows_dtype,
    shape=_rows_shape,
    reference=_rows_reference,
    vjp=NO_GRADIENT,
    lower=Opaque("csr_rows", fault=_rows_fault),
    cases=_rows_cases,
    facts=AS_GIVEN,
)
"""The row of each of `size` entries: the sorted ids, the inverse of `csr_indptr`."""
