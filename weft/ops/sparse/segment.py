"""Reductions of rows by segments: `y[r] = reduce(x[indptr[r] : indptr[r + 1]])`.

With an `order`, they reduce `x[order]`, without making it. Rows are reduced in order, so the result
does not depend on the number of threads. With `spare`, the last segment is dropped.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, Final

import numpy as np
from ml_dtypes import finfo

from weft.errors import ShapeError, UnknownShapeError
from weft.host.memory import LINE
from weft.ir.dtype import DType
from weft.ir.node import Node, Value
from weft.ir.shape import Shape, compatible, known, show
from weft.ops.declaration import Array, Case, Composite, Op, Opaque, catalogue, constant_of, defop
from weft.ops.declaration.attribute import REQUIRED
from weft.ops.declaration.example import NUMBERS, count
from weft.ops.declaration.fact import Autocast, Facts
from weft.ops.declaration.numeric import widened
from weft.ops.declaration.rule import concrete, index_dtype, numeric
from weft.ops.indexing.gather import check_indices, gather, outside
from weft.ops.shape.creation import full
from weft.ops.shape.reshape import dimension
from weft.ops.sparse.index import (
    check_indptr,
    check_indptr_shape,
    csr_indptr,
    csr_order,
    csr_rows,
    indptr_text,
    vector,
)

__all__ = ["identity_of", "reduce_by_ids", "softmax_by_ids"]


def _dtype(x: DType, indptr: DType, *order: DType, **_: Any) -> DType:
    index_dtype(indptr, "indptr")
    for one in order:
        index_dtype(one, "order")
    return numeric(x)


def _shape(x: Shape, indptr: Shape, *order: Shape, spare: bool, **_: Any) -> Shape:
    for one in order:
        if one is not None:
            vector(one, "order")
    if x is None:
        return None
    if not x:
        raise ShapeError("x: expected rank at least 1, got shape ()")
    rows = None if indptr is None else check_indptr_shape(indptr)
    if rows is not None and rows < spare:
        raise ShapeError("indptr: expected a spare row at least, got shape (1,)")
    return (None if rows is None else rows - spare, *x[1:])


def _fault(node: Node, position: int, value: int) -> str:
    """The error message for a bad entry of an order or of `indptr`, whose positions come after."""
    x, _, *order = node.inputs
    if not order:
        return indptr_text(position, value, known(x.shape)[0])
    (entries,) = known(order[0].shape)
    if position >= entries:
        return indptr_text(position - entries, value, entries)
    return outside((entries,), position, value, known(x.shape)[0], "order")


# Gradients


def _beside_spare(y: Value, spare: bool) -> Value:
    """Append a row of zeros for the dropped segment."""
    if not spare:
        return y
    if y.rank is None:
        raise UnknownShapeError("spare: expected a known rank")
    return catalogue.pad(y, paddings=((0, 1), *[(0, 0)] * (y.rank - 1)))


def _sum_vjp(
    g: Value, y: Value, x: Value, indptr: Value, *order: Value, spare: bool
) -> tuple[Any, ...]:
    g = _beside_spare(g, spare)
    if not order:
        return gather(g, csr_rows(indptr, size=dimension(x, 0))), None
    rows = csr_rows(indptr, size=dimension(order[0], 0))
    starts, places = csr_order.all(order[0], size=dimension(x, 0))
    return segment_sum(g, starts, gather(rows, places)), None, None


def _extreme_vjp(
    g: Value, y: Value, x: Value, indptr: Value, *order: Value, spare: bool, initial: float
) -> tuple[Any, ...]:
    """Equal elements share the gradient, as in a reduction."""
    found = gather(x, order[0]) if order else x
    rows = csr_rows(indptr, size=dimension(found, 0))
    most = gather(_beside_spare(y, spare), rows)
    won = catalogue.cast(catalogue.equal(found, most), dtype=g.dtype)
    shares = catalogue.maximum(segment_sum(won, indptr), constant_of(1, g.dtype))
    found = gather(_beside_spare(g, spare) / shares, rows) * won
    if not order:
        return found, None
    starts, places = csr_order.all(order[0], size=dimension(x, 0))
    return segment_sum(found, starts, places), None, None


# References and cases


def _reference(reduce: np.ufunc) -> Any:
    @widened
    def reference(x: Array, indptr: Array, *order: Array, spare: bool, initial: float = 0) -> Array:
        for one in order:
            x = x[check_indices(one, len(x), "order")]
        bounds = check_indptr(indptr, len(x))
        y = np.full((len(bounds) - 1, *x.shape[1:]), initial, x.dtype)
        full = np.flatnonzero(np.diff(bounds))
        if full.size and y.size:
            y[full] = reduce.reduceat(x, bounds[full], axis=0, dtype=x.dtype)
        return y[: len(y) - spare]

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
    order = np.array([2, 0, 2, 5, 1, 6, 2], np.int32)
    yield Case((count((7, 40)), indptr, order), attrs)
    yield Case((count((7, 3)), indptr, order.astype(np.int64)), {**attrs, "spare": True})
    yield Case((count((3, 40)), np.array([0, 3], np.int32)))
    yield Case((count((3, 67)), np.array([0, 1, 3], np.int32)))
    long = np.minimum(np.arange(400) * 5, 1500).astype(np.int32)
    yield Case((count((1500, 3)), long), differentiate=False)


def _segment(name: str, combine: str, ufunc: np.ufunc, vjp: Any) -> Op:
    linear = combine == "add"
    return defop(
        name,
        inputs="x indptr:int32 *order",
        attrs={"spare": False} if linear else {"initial": 0, "spare": False},
        dtype=_dtype,
        shape=_shape,
        reference=_reference(ufunc),
        vjp=vjp,
        lower=Opaque("segment", combine=combine, fault=_fault),
        partial=True,
        cases=lambda: _cases({} if linear else {"initial": 5}),
        facts=Facts(autocast=Autocast.WIDEST, linear=linear, cancels=linear),
    )


segment_sum = _segment("segment_sum", "add", np.add, _sum_vjp)
"""The sum of each segment; 0 if empty."""
segment_max = _segment("segment_max", "maximum", np.maximum, _extreme_vjp)
"""The maximum of each segment, by column; `initial` if empty."""
segment_min = _segment("segment_min", "minimum", np.minimum, _extreme_vjp)


# Composites: reductions by ids, one for each row, in any order


def _counts(x: Value, ids: Value, size: Any) -> Value:
    """The number of rows of each segment, at least 1, shaped to broadcast with `x`."""
    ones = full([dimension(ids, 0)], 1, x.dtype)
    found = catalogue.scatter_add(full([size], 0, x.dtype), ids, ones)
    most = catalogue.maximum(found, constant_of(1, x.dtype))
    return catalogue.reshape(most, shape=(-1, *[1] * ((x.rank or 1) - 1)))


def _filled(x: Value, size: Any, value: float) -> Value:
    return full([size, *[dimension(x, a) for a in range(1, x.rank or 1)]], value, x.dtype)


def _extreme(
    op: Op, x: Value, ids: Value, size: Any, is_sorted: bool, initial: float | None
) -> Value:
    if initial is None:
        initial = identity_of("max" if op is segment_max else "min", x.dtype)
    if is_sorted:
        return op(x, csr_indptr(ids, size=size), initial=initial)
    indptr, order = csr_order.all(ids, size=size)
    return op(x, indptr, order, initial=initial)


def identity_of(reduce: str, dtype: DType) -> float:
    """The result for empty segments; for `max` and `min` the dtype's lowest or highest number."""
    if reduce not in ("max", "min"):
        return 1 if reduce == "prod" else 0
    if dtype.is_floating:
        highest = float(finfo(dtype.numpy).max)
        return -highest if reduce == "max" else highest
    bounds = np.iinfo(dtype.numpy)
    return int(bounds.min if reduce == "max" else bounds.max)


# unsorted_segment_sum: a scatter, or for many wide rows a sum of sorted rows

MANY: Final = 1 << 16  # rows from which sorting pays off: 3.5 ns per row, no waiting


def _unsorted_shape(x: Shape, ids: Shape, *, size: Any, drop: bool) -> Shape:
    assert x is not None
    if not x or not compatible(ids, x[:1]):
        text = f"ids: expected an id for each row of x, of shape {show(x[:1])}"
        raise ShapeError(f"{text}, got {show(ids)}")
    return (size, *x[1:])


@widened
def _unsorted_reference(x: Array, ids: Array, *, size: int, drop: bool) -> Array:
    if drop:
        x, ids = x[ids >= 0], ids[ids >= 0]
    y = np.zeros((size, *x.shape[1:]), x.dtype)
    np.add.at(y, check_indices(ids, size, "ids"), x)
    return y


def _unsorted_expand(x: Value, ids: Value, *, size: int, drop: bool) -> Value:
    rows, *rest = concrete(x)
    # a row below a cache line is no faster to read than its id
    if not x.dtype.is_floating or rows < MANY or math.prod(rest) * x.dtype.size < LINE:
        if drop:
            x, ids = _kept(x, ids), catalogue.maximum(ids, constant_of(0, ids.dtype))
        return catalogue.scatter_add(full((size, *rest), 0, x.dtype), ids, x)
    indptr, order = csr_order.all(ids, size=size, spare=drop)
    return segment_sum(x, indptr, order, spare=drop)


def _kept(x: Value, ids: Value) -> Value:
    """Rows of `x`, with zeros for those whose id is negative."""
    if x.rank is None:
        raise UnknownShapeError("unsorted_segment_sum: expected a known rank")
    flags = catalogue.greater_equal(ids, constant_of(0, ids.dtype))
    beside = catalogue.reshape(flags, shape=(-1, *[1] * (x.rank - 1)))
    return catalogue.select(beside, x, constant_of(0, x.dtype))


def _unsorted_vjp(g: Value, y: Value, x: Value, ids: Value, *, size: Any, drop: bool) -> Any:
    if not drop:
        return gather(g, ids), None
    inside = catalogue.maximum(ids, constant_of(0, ids.dtype))
    return _kept(gather(g, inside), ids), None


def _unsorted_cases() -> Iterator[Case]:
    ids = np.array([3, 0, 3, 1], np.int32)
    for dtype in NUMBERS:
        yield Case((count((4, 3), dtype), ids), {"size": 5}, rtol=2e-2)
    yield Case((count((4,)), ids.astype(np.int64)), {"size": 4})
    yield Case((count((0, 2)), ids[:0]), {"size": 2})
    many = (np.arange(MANY) * 7919 % 100).astype(np.int32)
    yield Case((count((MANY, 16)), many), {"size": 100}, differentiate=False)
    some = np.where(many % 7 == 0, -1 - many, many).astype(np.int32)
    yield Case((count((MANY, 16)), some), {"size": 100, "drop": True}, differentiate=False)
    yield Case((count((4, 3)), np.array([3, -1, 3, -9], np.int32)), {"size": 5, "drop": True})


unsorted_segment_sum = defop(
    "unsorted_segment_sum",
    inputs="x ids:int32",
    attrs={"size": REQUIRED, "drop": False},
    dtype=_dtype,
    shape=_unsorted_shape,
    reference=_unsorted_reference,
    vjp=_unsorted_vjp,
    lower=Composite(_unsorted_expand),
    cases=_unsorted_cases,
    facts=Facts(autocast=Autocast.WIDEST, linear=True, cancels=True),
)
"""Sums of rows by id, in row order; ids need not be sorted.

With `drop`, rows with negative ids are ignored.
"""


def reduce_by_ids(
    x: Value, ids: Value, size: Any, reduce: str, is_sorted: bool = False, initial: float | None = 0
) -> Value:
    """Rows of `x` reduced by id: `sum`, `mean`, `prod`, `max` or `min`.

    Args:
        ids: shape (rows,); when computed, one outside [0, size) is an error, and so is a decrease
            if they are declared sorted.
        size: the number of segments.
        initial: the value of empty segments for `max` and `min`; by default the lowest or highest
            number.
    """
    if reduce in ("max", "min"):
        op = segment_max if reduce == "max" else segment_min
        return _extreme(op, x, ids, size, is_sorted, initial)
    if reduce == "prod":
        return catalogue.scatter_multiply(_filled(x, size, 1), ids, x)
    if is_sorted:
        total = segment_sum(x, csr_indptr(ids, size=size))
    else:
        total = unsorted_segment_sum(x, ids, size=size)
    return total / _counts(x, ids, size) if reduce == "mean" else total


def softmax_by_ids(x: Value, ids: Value, size: Any, is_sorted: bool = False) -> Value:
    """The softmax of each column of each segment."""
    highest = reduce_by_ids(catalogue.stop_gradient(x), ids, size, "max", is_sorted)
    powers = catalogue.exp(x - gather(highest, ids))
    return powers / gather(reduce_by_ids(powers, ids, size, "sum", is_sorted), ids)
