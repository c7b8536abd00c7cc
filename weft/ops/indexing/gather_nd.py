"""gather_nd and scatter_nd: reading and adding at multidimensional positions."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from weft.errors import OutOfRangeError, ShapeError
from weft.ir.dtype import DType, int64
from weft.ir.node import Value
from weft.ir.shape import Dims, Shape, compatible, show
from weft.ops.declaration import BY_EXPANSION, Array, Case, Composite, catalogue, constant_of, defop
from weft.ops.declaration.attribute import REQUIRED
from weft.ops.declaration.example import count
from weft.ops.declaration.fact import Autocast, Facts
from weft.ops.declaration.numeric import widened
from weft.ops.declaration.rule import (
    attribute_shape,
    concrete,
    index_dtype,
    whole_shape,
)
from weft.ops.indexing.gather import gather, gather_dtype, scatter_add
from weft.ops.shape.creation import full, iota
from weft.ops.shape.reshape import dimension

# gather_nd and scatter_nd: the last axis of indices holds whole positions


def _depth(indices: Dims) -> int:
    if not indices or indices[-1] is None:
        raise ShapeError(
            f"indices: expected rank at least 1, the last axis holding positions,"
            f" got shape {show(indices)}"
        )
    return indices[-1]


def _gather_nd_shape(x: Shape, indices: Shape) -> Shape:
    assert x is not None and indices is not None
    if indices and indices[-1] is None:
        return None
    depth = _depth(indices)
    if depth > len(x):
        raise ShapeError(
            f"indices: expected positions of at most {len(x)} entries for x of shape {show(x)},"
            f" got {depth}"
        )
    return (*indices[:-1], *x[depth:])


def _check_positions(indices: Array, dims: tuple[int, ...]) -> tuple[Array, ...]:
    bad = ((indices < 0) | (indices >= np.array(dims, np.int64))).any(-1)
    if bad.any():
        flat = int(np.argmax(bad.reshape(-1)))
        place = ", ".join(str(int(i)) for i in np.unravel_index(flat, bad.shape))
        entry = tuple(int(i) for i in indices.reshape(-1, len(dims))[flat])
        raise OutOfRangeError(f"indices[{place}]: expected a position inside {dims}, got {entry}")
    return tuple(indices[..., i].astype(np.int64) for i in range(len(dims)))


def _gather_nd_reference(x: Array, indices: Array) -> Array:
    depth = indices.shape[-1]
    if not depth:
        return np.array(np.broadcast_to(x, (*indices.shape[:-1], *x.shape)))
    return x[_check_positions(indices, x.shape[:depth])]


def flat_positions(indices: Value, dims: tuple[int, ...]) -> Value:
    """Multidimensional positions in `dims` as int64 row-major positions.

    An entry out of bounds gives a position outside the array.
    """
    found = catalogue.cast(indices, dtype=int64)
    weights = [math.prod(dims[i + 1 :]) for i in range(len(dims))]
    limits = constant_of(np.array(dims, np.int64))
    zero = constant_of(np.zeros((), np.int64))
    inside = catalogue.logical_and(
        catalogue.greater_equal(found, zero), catalogue.less(found, limits)
    )
    flat = catalogue.sum(found * constant_of(np.array(weights, np.int64)), axes=(-1,))
    outside = full(concrete(flat), -1, int64)
    return catalogue.select(catalogue.all(inside, axes=(-1,)), flat, outside)


def _gather_nd_expand(x: Value, indices: Value) -> Value:
    dims, places = concrete(x), concrete(indices)
    depth = _depth(places)
    shape = (*places[:-1], *dims[depth:])
    if not depth:
        return catalogue.broadcast_to(x, shape=shape)
    rows = catalogue.reshape(x, shape=(math.prod(dims[:depth]), *dims[depth:]))
    return gather(rows, flat_positions(indices, dims[:depth]))


def _gather_nd_cases() -> Iterator[Case]:
    indices = np.array([[[1, 0], [0, 2]], [[1, 2], [1, 1]]], np.int32)
    yield Case((count((2, 3)), indices))
    yield Case((count((2, 3, 4)), indices))
    yield Case((count((2, 3)), indices[..., :1].astype(np.int64)))
    yield Case((count((2, 3)), np.zeros((2, 0), np.int32)))


gather_nd = defop(
    "gather_nd",
    inputs="x indices:int32",
    dtype=gather_dtype,
    shape=_gather_nd_shape,
    reference=_gather_nd_reference,
    vjp=BY_EXPANSION,
    lower=Composite(_gather_nd_expand),
    cases=_gather_nd_cases,
    facts=Facts(autocast=Autocast.WIDEST, linear=True),
)


def gather_nd_of_batches(x: Value, indices: Value, batch_dims: int = 0) -> Value:
    """`gather_nd` of each example: the first `batch_dims` axes of both are examples."""
    if not batch_dims:
        return gather_nd(x, indices)
    if indices.shape is None:
        raise ShapeError("gather_nd: expected indices of a known rank")
    rank = len(indices.shape)
    first = indices[..., :1] * 0
    examples = [
        first + iota(
            shape=tuple([dimension(indices, i) if i == axis else 1 for i in range(rank)]),
            axis=axis, dtype=indices.dtype,
        )
        for axis in range(batch_dims)
    ]  # fmt: skip
    return gather_nd(x, catalogue.concatenate(*examples, indices, axis=-1))


def _scatter_nd_dtype(indices: DType, updates: DType, **_: Any) -> DType:
    index_dtype(indices)
    return updates


def _scatter_nd_shape(indices: Shape, updates: Shape, *, shape: Any) -> Shape:
    whole = attribute_shape(shape=shape)
    if whole is not None and indices is not None:
        expected = _gather_nd_shape(whole, indices)
        if not compatible(updates, expected):
            raise ShapeError(f"updates: expected shape {show(expected)}, got {show(updates)}")
    return whole


@widened
def _scatter_nd_reference(indices: Array, updates: Array, *, shape: Any) -> Array:
    y = np.zeros(shape, updates.dtype)
    depth = indices.shape[-1]
    if not depth:
        return y + updates.reshape(-1, *shape).sum(0, dtype=y.dtype)
    np.add.at(y, _check_positions(indices, shape[:depth]), updates)
    return y


def _scatter_nd_expand(indices: Value, updates: Value, *, shape: Any) -> Value:
    depth = _depth(concrete(indices))
    if not depth:
        return catalogue.sum_to(updates, shape=shape)
    rows = full((math.prod(shape[:depth]), *shape[depth:]), 0, updates.dtype)
    added = scatter_add(rows, flat_positions(indices, shape[:depth]), updates)
    return catalogue.reshape(added, shape=shape)


def _scatter_nd_cases() -> Iterator[Case]:
    indices = np.array([[1, 0], [0, 2], [1, 0]], np.int32)
    yield Case((indices, count((3,))), {"shape": (2, 3)})
    yield Case((indices, count((3, 4))), {"shape": (2, 3, 4)})
    yield Case((indices[:, :1], count((3, 4))), {"shape": (2, 4)})


scatter_nd = defop(
    "scatter_nd",
    inputs="indices:int32 updates",
    attrs={"shape": REQUIRED},
    dtype=_scatter_nd_dtype,
    shape=_scatter_nd_shape,
    reference=_scatter_nd_reference,
    vjp=BY_EXPANSION,
    normal=whole_shape,
    lower=Composite(_scatter_nd_expand),
    cases=_scatter_nd_cases,
    partial=True,
    facts=Facts(autocast=Autocast.WIDEST, linear=True),
)
