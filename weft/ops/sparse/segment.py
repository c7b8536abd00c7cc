"""Reductions of rows by segments: `y[r] = reduce(x[indptr[r] : indptr[r + 1]])`.

Rows are taken in their order, so the result does not depend on the number of threads.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from weft.ir.dtype import DType
from weft.ir.node import Node, Value
from weft.ir.shape import Shape, known
from weft.ops.base import Array, Case, Op, Opaque, catalogue, constant_of, defop
from weft.ops.declaration.example import NUMBERS, count
from weft.ops.declaration.fact import Autocast, Facts
from weft.ops.declaration.numeric import widened
from weft.ops.declaration.rule import index_dtype, numeric
from weft.ops.indexing.gather import gather
from weft.ops.shape.reshape import dimension
from weft.ops.sparse.index import check_indptr, check_indptr_shape, csr_rows, indptr_text

__all__ = ["segment_mean", "segment_softmax"]


def _dtype(x: DType, indptr: DType, **_: Any) -> DType:
    index_dtype(indptr, "indptr")
    return numeric(x)


def _shape(x: Shape, indptr: Shape, **_: Any) -> Shape:
    assert x is not None
    return (check_indptr_shape(indptr), *x[1:])


def _fault(node: Node, position: int, value: int) -> str:
    return indptr_text(position, value, known(node.inputs[0].shape)[0])


# Gradients


def _rows(x: Value, indptr: Value) -> Value:
    return csr_rows(indptr, size=dimension(x, 0))


def _sum_vjp(g: Value, y: Value, x: Value, indptr: Value, **_: Any) -> tuple[Any, ...]:
    return gather(g, _rows(x, indptr)), None


def _extreme_vjp(g: Value, y: Value, x: Value, indptr: Value, **_: Any) -> tuple[Any, ...]:
    """Winners share alike, as in a reduction."""
    rows = _rows(x, indptr)
    won = catalogue.cast(catalogue.equal(x, gather(y, rows)), dtype=g.dtype)
    shares = catalogue.maximum(segment_sum(won, indptr), constant_of(1, g.dtype))
    return gather(g / shares, rows) * won, None


# References and cases


def _reference(reduce: np.ufunc) -> Any:
    @widened
    def reference(x: Array, indptr: Array, *, initial: float = 0) -> Array:
        bounds = check_indptr(indptr, len(x))
        y = np.full((len(bounds) - 1, *x.shape[1:]), initial, x.dtype)
        full = np.flatnonzero(np.diff(bounds))
        if full.size and y.size:
            y[full] = reduce.reduceat(x, bounds[full], axis=0, dtype=x.dtype)
        return y

    return reference


def _cases(attrs: dict[str, Any]) -> Iterator[Case]:
    indptr = np.array([0, 2, 2, 3, 7], np.int32)
    for dtype in NUMBERS:
        x = count((7, 5), dtype)
        if dtype.is_floating:
            x = (x * 7 % 36 * x.dtype.type(0.25)).astype(x.dtype)
        yield Case((x, indptr), rtol=2e-6)
    yield Case((count((7,)), indptr.astype(np.int64)), attrs)
    yield Case((count((7, 2, 3)), indptr))
    yield Case((count((0, 3)), np.zeros((3,), np.int32)))
    yield Case((count((7, 0)), indptr))
    yield Case((count((3, 40)), np.array([0, 3], np.int32)))
    yield Case((count((3, 67)), np.array([0, 1, 3], np.int32)))
    long = np.minimum(np.arange(400) * 5, 1500).astype(np.int32)
    yield Case((count((1500, 3)), long), differentiate=False)


def _segment(name: str, combine: str, ufunc: np.ufunc, vjp: Any) -> Op:
    linear = combine == "add"
    return defop(
        name,
        inputs="x indptr:int32",
        attrs={} if linear else {"initial": 0},
        dtype=_dtype,
        shape=_shape,
        reference=_reference(ufunc),
        vjp=vjp,
        lower=Opaque("segment", combine=combine, fault=_fault),
        cases=lambda: _cases({} if linear else {"initial": 5}),
        facts=Facts(autocast=Autocast.WIDEST, linear=linear, cancels=linear),
    )


segment_sum = _segment("segment_sum", "add", np.add, _sum_vjp)
"""Sums by segment; an empty one is 0."""
segment_max = _segment("segment_max", "maximum", np.maximum, _extreme_vjp)
"""The largest of every column of a segment; an empty one is `initial`."""
segment_min = _segment("segment_min", "minimum", np.minimum, _extreme_vjp)


# Written in others


def _counts(x: Value, indptr: Value) -> Value:
    """How many rows each segment has, beside a row of `x`, and at least 1."""
    ends = catalogue.slice(indptr, begin=(1,), end=(dimension(indptr, 0),))
    starts = catalogue.slice(indptr, begin=(0,), end=(dimension(indptr, 0) - 1,))
    most = catalogue.maximum(ends - starts, constant_of(1, indptr.dtype))
    wide = catalogue.reshape(most, shape=(-1, *[1] * (len(x.shape or ()) - 1)))
    return catalogue.cast(wide, dtype=x.dtype)


def segment_mean(x: Value, indptr: Value) -> Value:
    """Means by segment; an empty one is 0."""
    return segment_sum(x, indptr) / _counts(x, indptr)


def segment_softmax(x: Value, indptr: Value) -> Value:
    """`x`, of which every column of a segment becomes its softmax."""
    rows = _rows(x, indptr)
    highest = catalogue.stop_gradient(segment_max(x, indptr))
    powers = catalogue.exp(x - gather(highest, rows))
    return powers / gather(segment_sum(powers, indptr), rows)
