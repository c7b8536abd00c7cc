"""Reading and adding at computed positions: gather, scatter_add, take_along_axis.

Positions are checked: one out of bounds raises `OutOfRangeError` with its place and value.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, Final

import numpy as np

from weft.errors import DTypeError, OutOfRangeError, ShapeError
from weft.ir.dtype import DType, int64
from weft.ir.node import Node, Value
from weft.ir.shape import Shape, broadcast, compatible, known, merge, normal_axis, show
from weft.ops.declaration import BY_EXPANSION, Array, Case, Composite, Opaque, catalogue, defop
from weft.ops.declaration.attribute import REQUIRED
from weft.ops.declaration.example import ALL, ARITHMETIC, count
from weft.ops.declaration.fact import Autocast, Batching, Facts
from weft.ops.declaration.numeric import widened
from weft.ops.declaration.rule import (
    concrete,
    front_axis,
    index_dtype,
    shape_argument,
)
from weft.ops.indexing.row_sparse import RowSparse
from weft.ops.shape.creation import full, iota


def check_indices(indices: Array, size: int, name: str = "indices") -> Array:
    """The same indices as int64.

    Raises:
        OutOfRangeError: one is outside [0, size); the message names the first.
    """
    bad = (indices < 0) | (indices >= size)
    if bad.any():
        flat = int(np.argmax(bad.reshape(-1)))
        value = int(indices.reshape(-1)[flat])
        raise OutOfRangeError(outside(indices.shape, flat, value, size, name))
    return indices.astype(np.int64)


def outside(
    shape: tuple[int, ...], position: int, value: int, size: int, name: str = "indices"
) -> str:
    """The error message for an index outside [0, size), at `position` in an index array."""
    place = ", ".join(str(int(i)) for i in np.unravel_index(position, shape))
    return f"{name}{f'[{place}]' if shape else ''}: expected 0 <= index < {size}, got {value}"


def index_fault(node: Node, position: int, value: int) -> str:
    """The error message for an index that a node's kernel reports; the second input holds it."""
    x, indices = (known(v.shape) for v in node.inputs[:2])
    return outside(indices, position, value, x[node.attrs.get("axis", 0)])


# gather: y[b..., o..., i..., r...] = x[b..., o..., indices[b..., i...], r...]


def gather_dtype(x: DType, indices: DType, **_: Any) -> DType:
    """The dtype of `x`; indices must be integers."""
    index_dtype(indices)
    return x


def _gather_shape(x: Shape, indices: Shape, *, axis: int, batch_dims: int) -> Shape:
    assert x is not None and indices is not None
    if not x:
        raise ShapeError("expected x of rank at least 1, got shape ()")
    at = normal_axis(axis, len(x))
    if not 0 <= batch_dims <= min(at, len(indices)):
        raise ShapeError(
            f"batch_dims: expected 0 <= batch_dims <= min(axis, indices.rank)"
            f" == {min(at, len(indices))}, got {batch_dims}"
        )
    if not compatible(x[:batch_dims], indices[:batch_dims]):
        raise ShapeError(
            f"expected x and indices equal in their first {batch_dims} dimensions,"
            f" got shapes {show(x)} and {show(indices)}"
        )
    lead = merge(x[:batch_dims], indices[:batch_dims]) or ()
    return (*lead, *x[batch_dims:at], *indices[batch_dims:], *x[at + 1 :])


def _gather_reference(x: Array, indices: Array, *, axis: int, batch_dims: int) -> Array:
    at = normal_axis(axis, x.ndim)
    found = check_indices(indices, x.shape[at])
    if not batch_dims:
        return np.take(x, found, at)
    shape = _gather_shape(x.shape, indices.shape, axis=axis, batch_dims=batch_dims)
    y = np.empty(known(shape), x.dtype)
    for place in np.ndindex(x.shape[:batch_dims]):
        y[place] = np.take(x[place], found[place], at - batch_dims)
    return y


def _gather_vjp(
    g: Value, y: Value, x: Value, indices: Value, *, axis: int, batch_dims: int
) -> tuple[Any, None]:
    if axis == 0 and batch_dims == 0:
        rows = catalogue.reshape(indices, shape=(-1,))
        if x.shape is not None and None not in x.shape[1:]:
            tail = x.shape[1:]
            values = catalogue.reshape(g, shape=(*_flat(indices.shape), *tail))
            return RowSparse(rows, values, shape_argument(x)), None
    dims = concrete(x)
    at = normal_axis(axis, len(dims))
    lead, outer, size, tail = dims[:batch_dims], dims[batch_dims:at], dims[at], dims[at + 1 :]
    picked = concrete(indices)[batch_dims:]
    b, o, n, r, k = (math.prod(d) for d in (lead, outer, (size,), tail, picked))
    # As rows: x is (b * size, o * r), g is (b * k, o * r), and each batch has its own rows.
    flat = catalogue.reshape(catalogue.cast(indices, dtype=int64), shape=(b, k))
    if batch_dims:
        flat = flat + iota(shape=(b, 1), axis=0, dtype=int64) * n
    moved = catalogue.transpose(catalogue.reshape(g, shape=(b, o, k, r)), perm=(0, 2, 1, 3))
    zeros = full((b * n, o * r), 0, g.dtype)
    rows = scatter_add(
        zeros,
        catalogue.reshape(flat, shape=(b * k,)),
        catalogue.reshape(moved, shape=(b * k, o * r)),
    )
    back = catalogue.transpose(catalogue.reshape(rows, shape=(b, n, o, r)), perm=(0, 2, 1, 3))
    return catalogue.reshape(back, shape=dims), None


def _flat(shape: Shape) -> tuple[int, ...]:
    known = shape is not None and None not in shape
    return (math.prod(shape),) if known else (-1,)  # pyright: ignore


def _gather_cases() -> Iterator[Case]:
    indices = np.array([[3, 0], [1, 3], [2, 2]], np.int32)
    for dtype in ALL:
        yield Case((count((4, 5), dtype), indices))
    for kind in (np.int64, np.uint8, np.int8, np.uint32):
        yield Case((count((4, 5)), indices.astype(kind)), {"axis": 0})
    yield Case((count((2, 4, 3)), indices), {"axis": 1})
    yield Case((count((2, 4)), indices), {"axis": -1})
    yield Case((count((3, 4)), indices), {"axis": 1, "batch_dims": 1})
    yield Case((count((3, 2, 4, 5)), indices), {"axis": 2, "batch_dims": 1})
    yield Case((count((3, 2, 5)), indices % 2), {"axis": 2, "batch_dims": 2})
    yield Case((count((4,)), np.array(2, np.int32)))
    yield Case((count((4, 0)), indices))
    yield Case((count((0, 3)), np.zeros((0,), np.int32)))


gather = defop(
    "gather",
    inputs="x indices:int32",
    attrs={"axis": 0, "batch_dims": 0},
    dtype=gather_dtype,
    shape=_gather_shape,
    reference=_gather_reference,
    vjp=_gather_vjp,
    normal=front_axis,
    lower=Opaque("gather", fault=index_fault),
    cases=_gather_cases,
    facts=Facts(autocast=Autocast.WIDEST, linear=True),
)

# scatter_add: y = x, then y[indices[i...]] += updates[i...]


def scatter_dtype(x: DType, indices: DType, updates: DType) -> DType:
    """Updates have the dtype of `x`, which is the output's."""
    index_dtype(indices)
    if x is not updates:
        raise DTypeError(f"updates: expected the dtype of x, {x}, got {updates}")
    return x


def scatter_shape(x: Shape, indices: Shape, updates: Shape) -> Shape:
    """Updates have the dimensions of the indices, then those of a row of `x`."""
    assert x is not None and indices is not None
    if not x:
        raise ShapeError("expected x of rank at least 1, got shape ()")
    if not compatible(updates, (*indices, *x[1:])):
        raise ShapeError(
            f"updates: expected shape {show((*indices, *x[1:]))} (indices' dimensions, then a row"
            f" of x), got {show(updates)}"
        )
    return x


@widened
def _scatter_reference(x: Array, indices: Array, updates: Array) -> Array:
    found = check_indices(indices, x.shape[0])
    y = np.array(x)
    np.add.at(y, found, updates)
    return y


def _fast_scatter(x: Array, indices: Array, updates: Array) -> Array:
    """Adds the updates of each row together, by sorting: `np.add.at` adds element by element."""
    found = check_indices(indices, x.shape[0]).reshape(-1)
    y = np.array(x)
    if not found.size:
        return y
    order = np.argsort(found, kind="stable")
    rows = found[order]
    starts = np.flatnonzero(np.concatenate(([True], rows[1:] != rows[:-1])))
    given = updates.reshape(found.size, *x.shape[1:])
    counts = np.diff(starts, append=found.size)
    if counts.max() > _FEW:
        y[rows[starts]] += np.add.reduceat(given[order], starts, axis=0)
        return y
    for i in range(counts.max()):  # first updates of rows, then second ones, ...
        place = order[(starts + i)[counts > i]]
        y[found[place]] += given[place]
    return y


_FEW: Final = 16  # updates per row, up to which passes over all rows are faster than reduceat


def _scatter_vjp(g: Value, y: Value, x: Value, indices: Value, updates: Value) -> tuple[Any, ...]:
    return g, None, gather(g, indices)


def _scatter_cases() -> Iterator[Case]:
    indices = np.array([[3, 0], [1, 3], [2, 3]], np.int32)
    for dtype in ARITHMETIC:
        yield Case((count((4, 5), dtype), indices, count((3, 2, 5), dtype)), rtol=2e-2)
    yield Case((count((4,)), indices.astype(np.int64), count((3, 2))))
    yield Case((count((4, 2)), np.array(2, np.int32), count((2,))))
    yield Case((count((4, 2)), np.zeros((0,), np.int32), count((0, 2))))
    yield Case((count((4, 0)), indices[:, 0], count((3, 0))))


scatter_add = defop(
    "scatter_add",
    inputs="x indices:int32 updates",
    dtype=scatter_dtype,
    shape=scatter_shape,
    reference=_scatter_reference,
    vjp=_scatter_vjp,
    lower=Opaque("scatter", combine="add", fault=index_fault),
    cases=_scatter_cases,
    fast=_fast_scatter,
    facts=Facts(autocast=Autocast.WIDEST, linear=True, cancels=True),
)

# take_along_axis: y[.., i, ..] = x[.., indices[.., i, ..], ..], other axes side by side


def _take_shape(x: Shape, indices: Shape, *, axis: int) -> Shape:
    assert x is not None and indices is not None
    if len(x) != len(indices):
        raise ShapeError(f"expected x and indices of one rank, got {show(x)} and {show(indices)}")
    at = normal_axis(axis, len(x))
    rest = broadcast(*[tuple(1 if i == at else d for i, d in enumerate(s)) for s in (x, indices)])
    return tuple(indices[at] if i == at else d for i, d in enumerate(rest or ()))


def _take_reference(x: Array, indices: Array, *, axis: int) -> Array:
    at = normal_axis(axis, x.ndim)
    found = check_indices(indices, x.shape[at])
    shape = known(_take_shape(x.shape, indices.shape, axis=at))
    wide = tuple(x.shape[at] if i == at else d for i, d in enumerate(shape))
    return np.take_along_axis(np.broadcast_to(x, wide), np.broadcast_to(found, shape), at)


def _take_expand(x: Value, indices: Value, *, axis: int) -> Value:
    """All other axes as one batch, then the axis last."""
    at = normal_axis(axis, len(concrete(x)))
    shape = known(_take_shape(x.shape, indices.shape, axis=at))
    order = (*[i for i in range(len(shape)) if i != at], at)
    size, picked = concrete(x)[at], concrete(indices)[at]
    rest = tuple(shape[i] for i in order[:-1])

    def rows(value: Value, along: int) -> Value:
        wide = tuple(along if i == at else d for i, d in enumerate(shape))
        moved = catalogue.transpose(catalogue.broadcast_to(value, shape=wide), perm=order)
        return catalogue.reshape(moved, shape=(math.prod(rest), along))

    found = gather(rows(x, size), rows(indices, picked), axis=1, batch_dims=1)
    back = tuple(order.index(i) for i in range(len(shape)))
    return catalogue.transpose(catalogue.reshape(found, shape=(*rest, picked)), perm=back)


def _take_cases() -> Iterator[Case]:
    indices = np.array([[3, 0, 1], [1, 3, 0]], np.int32)
    yield Case((count((4, 3)), indices), {"axis": 0})
    yield Case((count((2, 4)), indices), {"axis": -1})
    yield Case((count((1, 4)), indices), {"axis": 1})
    yield Case((count((2, 5, 4)), indices[:, None]), {"axis": 2})


take_along_axis = defop(
    "take_along_axis",
    inputs="x indices:int32",
    attrs={"axis": REQUIRED},
    dtype=gather_dtype,
    shape=_take_shape,
    reference=_take_reference,
    vjp=BY_EXPANSION,
    normal=front_axis,
    lower=Composite(_take_expand),
    cases=_take_cases,
    facts=Facts(autocast=Autocast.WIDEST, linear=True, batching=Batching.AXIS),
)
