"""Matmuls of sparse CSR matrices with dense ones.

    csr_matmul           y[r] = sum over e in row r of values[e] * x[indices[e]]
    csr_sampled_matmul   y[e] = <g[r], x[indices[e]]> for e in row r: gradient by the values

`values` are numbers, or rows with one number for each head; then the first axis of the rows of `x`
is the head. The transposed product, the gradient with respect to `x`, is one with the rows sorted
by index.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from weft.errors import ShapeError
from weft.ir.dtype import DType
from weft.ir.node import Node, Value
from weft.ir.shape import Shape, compatible, known, show
from weft.ops.declaration import Array, Case, Opaque, defop
from weft.ops.declaration.fact import Autocast, Facts
from weft.ops.declaration.numeric import FLOATS, draw, widened
from weft.ops.declaration.rule import floating, index_dtype
from weft.ops.indexing.gather import check_indices, gather, outside
from weft.ops.shape.reshape import dimension
from weft.ops.sparse.index import (
    check_indptr,
    check_indptr_shape,
    csr_order,
    csr_rows,
    indptr_text,
    vector,
)

_FACTS = Facts(autocast=Autocast.WIDEST, cancels=True)


def _dtype(indptr: DType, indices: DType, first: DType, x: DType, **_: Any) -> DType:
    index_dtype(indptr, "indptr")
    index_dtype(indices)
    return floating(first, x)


def _fault(node: Node, position: int, value: int) -> str:
    """The message for a bad index or, at positions after those of indices, entry of `indptr`."""
    edges, rows = known(node.inputs[1].shape)[0], known(node.inputs[3].shape)[0]
    if position >= edges:
        return indptr_text(position - edges, value, edges)
    return outside((edges,), position, value, rows)


def _transposed(
    indptr: Value, indices: Value, values: Value, x: Value, like: Value, heads: int
) -> Value:
    """The product of the transposed matrix with `x`, with as many rows as `like`."""
    columns, order = csr_order.all(indices, size=dimension(like, 0))
    rows = csr_rows(indptr, size=dimension(indices, 0))
    return csr_matmul(columns, gather(rows, order), gather(values, order), x, heads=heads)


def _references(indptr: Array, indices: Array, rows: int) -> tuple[Array, Array]:
    """The row and column of every entry."""
    bounds = check_indptr(indptr, len(indices))
    columns = check_indices(indices, rows)
    return np.repeat(np.arange(len(bounds) - 1), np.diff(bounds)), columns


def _beside(values: Array, x: Array) -> Array:
    return values.reshape(*values.shape, *[1] * (x.ndim - values.ndim))


# csr_matmul


def _check_heads(x: Shape, heads: int) -> None:
    rank = len(x or ())
    if not 0 <= heads < max(rank, 1):
        raise ShapeError(f"heads: expected 0 <= heads < x.rank == {rank}, got {heads}")


def _matmul_shape(indptr: Shape, indices: Shape, values: Shape, x: Shape, *, heads: int) -> Shape:
    assert x is not None
    rows, entries = check_indptr_shape(indptr), vector(indices, "indices")
    if not x:
        raise ShapeError("x: expected rank at least 1, got shape ()")
    _check_heads(x, heads)
    expected = (entries, *x[1 : 1 + heads])
    if not compatible(values, expected):
        text = f"values: expected one an index, or one a head, of shape {show(expected)}"
        raise ShapeError(f"{text}, got {show(values)}")
    return (rows, *x[1:])


@widened
def _matmul_reference(
    indptr: Array, indices: Array, values: Array, x: Array, *, heads: int
) -> Array:
    rows, columns = _references(indptr, indices, len(x))
    y = np.zeros((len(indptr) - 1, *x.shape[1:]), x.dtype)
    np.add.at(y, rows, _beside(values, x) * x[columns])
    return y


def _fast_matmul(indptr: Array, indices: Array, values: Array, x: Array, *, heads: int) -> Array:
    _, columns = _references(indptr, indices, len(x))
    y = np.zeros((len(indptr) - 1, *x.shape[1:]), x.dtype)
    full = np.flatnonzero(np.diff(indptr.astype(np.int64)))
    if full.size and y.size:
        products = _beside(values, x) * x[columns]
        y[full] = np.add.reduceat(products, indptr[full].astype(np.int64), axis=0, dtype=x.dtype)
    return y


def _matmul_vjp(
    g: Value, y: Value, indptr: Value, indices: Value, values: Value, x: Value, *, heads: int
) -> tuple[Any, ...]:
    by_values = csr_sampled_matmul(indptr, indices, g, x, heads=heads)
    return None, None, by_values, _transposed(indptr, indices, values, g, x, heads)


def _cases(sampled: bool) -> Iterator[Case]:
    indptr = np.array([0, 2, 2, 3, 7], np.int32)
    indices = np.array([4, 0, 2, 1, 4, 4, 3], np.int32)

    def case(p: Array, i: Array, rows: int, tail: tuple[int, ...], heads: int, dtype: Any) -> Case:
        x = draw((rows, *tail), dtype, seed=1)
        if sampled:
            g = draw((len(p) - 1, *tail), dtype, seed=2)
            tol = 2e-6 * max(1, math.prod(tail[heads:])) ** 0.5
            return Case((p, i, g, x), {"heads": heads}, rtol=tol, atol=tol)
        values = draw((len(i), *tail[:heads]), dtype, seed=2)
        return Case((p, i, values, x), {"heads": heads}, rtol=4e-6, atol=4e-6)

    for dtype in FLOATS:
        yield case(indptr, indices, 5, (6,), 0, dtype)
    yield case(indptr.astype(np.int64), indices.astype(np.uint8), 5, (2, 3), 1, FLOATS[0])
    yield case(indptr, indices.astype(np.int64), 5, (2, 2, 3), 2, FLOATS[0])
    yield case(indptr, indices, 5, (), 0, FLOATS[0])
    yield case(indptr, indices, 5, (2,), 1, FLOATS[0])
    yield case(indptr, indices, 5, (35,), 0, FLOATS[0])
    yield case(indptr, indices, 5, (0,), 0, FLOATS[0])
    none = np.zeros((0,), np.int32)
    yield case(np.zeros((3,), np.int32), none, 5, (3,), 0, FLOATS[0])
    yield case(np.zeros((1,), np.int32), none, 0, (3,), 0, FLOATS[0])
    many = (np.arange(900) * 7919 % 50).astype(np.int32)
    yield case(np.minimum(np.arange(400) * 3, 900).astype(np.int32), many, 50, (70,), 0, FLOATS[0])


csr_matmul = defop(
    "csr_matmul",
    inputs="indptr:int32 indices:int32 values x",
    attrs={"heads": 0},
    dtype=_dtype,
    shape=_matmul_shape,
    reference=_matmul_reference,
    vjp=_matmul_vjp,
    lower=Opaque("csr_matmul", fault=_fault),
    cases=lambda: _cases(False),
    fast=_fast_matmul,
    facts=_FACTS,
)

# csr_sampled_matmul


def _sampled_shape(indptr: Shape, indices: Shape, g: Shape, x: Shape, *, heads: int) -> Shape:
    assert x is not None
    rows, entries = check_indptr_shape(indptr), vector(indices, "indices")
    _check_heads(x, heads)
    if not compatible(g, (rows, *x[1:])):
        text = f"g: expected a row for each of indptr's and those of x, {show((rows, *x[1:]))}"
        raise ShapeError(f"{text}, got {show(g)}")
    return (entries, *x[1 : 1 + heads])


@widened
def _sampled_reference(indptr: Array, indices: Array, g: Array, x: Array, *, heads: int) -> Array:
    rows, columns = _references(indptr, indices, len(x))
    products = g[rows] * x[columns]
    return products.sum(axis=tuple(range(1 + heads, x.ndim)), dtype=x.dtype)


def _sampled_vjp(
    s: Value, y: Value, indptr: Value, indices: Value, g: Value, x: Value, *, heads: int
) -> tuple[Any, ...]:
    by_g = csr_matmul(indptr, indices, s, x, heads=heads)
    return None, None, by_g, _transposed(indptr, indices, s, g, x, heads)


csr_sampled_matmul = defop(
    "csr_sampled_matmul",
    inputs="indptr:int32 indices:int32 g x",
    attrs={"heads": 0},
    dtype=_dtype,
    shape=_sampled_shape,
    reference=_sampled_reference,
    vjp=_sampled_vjp,
    lower=Opaque("csr_sampled_matmul", fault=_fault),
    cases=lambda: _cases(True),
    facts=_FACTS,
)
"""`heads` axes of `x` after the first are kept; products along the others are summed."""
