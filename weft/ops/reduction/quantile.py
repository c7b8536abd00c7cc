"""Quantiles, differences, counts, and reductions that ignore NaN."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Final

from weft.errors import GraphError, ShapeError
from weft.ir.dtype import int64
from weft.ir.node import Value
from weft.ir.shape import show
from weft.ops.declaration import catalogue, constant_of
from weft.ops.declaration.rule import concrete
from weft.ops.elementwise.compare import isnan, not_equal, select
from weft.ops.elementwise.convert import cast
from weft.ops.indexing.advanced_index import take_nd
from weft.ops.indexing.slicing import cut
from weft.ops.reduction import reduce
from weft.ops.shape.movement import moveaxis
from weft.ops.shape.reshape import axis_of
from weft.ops.special.real import lerp

__all__ = [
    "bincount", "count_nonzero", "diff", "median", "nanmax", "nanmean", "nanmin", "nanprod",
    "nansum", "part_between", "ptp", "quantile", "quantile_at",
]  # fmt: skip

Axes = int | Sequence[int] | None


def _axes(axes: Axes) -> tuple[int, ...] | None:
    return (axes,) if isinstance(axes, int) else None if axes is None else tuple(axes)


# Order statistics

METHODS: Final = ("linear", "lower", "higher", "nearest", "midpoint")


def quantile(
    x: Value,
    q: float | Sequence[float],
    axes: Axes = None,
    keepdims: bool = False,
    method: str = "linear",
) -> Value:
    """The quantiles `q`, as in `numpy.quantile`.

    Several `q` give a new first axis. NaN among the elements gives NaN. Gradients flow to the
    elements around the quantile. The shape must be known.

    Raises:
        GraphError: a `q` outside [0, 1], or an unknown method.
        ShapeError: no elements.
    """
    parts = [q] if isinstance(q, int | float) else list(q)
    if method not in METHODS or not all(0 <= p <= 1 for p in parts):
        names = ", ".join(METHODS)
        raise GraphError.here(
            f"quantile: expected parts between 0 and 1 and a method of {names}, got {q} and"
            f" {method!r}"
        )
    order, shape = _ordered(x, axes, keepdims)
    count = concrete(order)[-1]
    # NaN is sorted last.
    last = cut(order, len(concrete(order)) - 1, count - 1, count)
    found = [select(isnan(last), last, _between(order, p, count, method)) for p in parts]
    ys = [catalogue.reshape(y, shape=shape) for y in found]
    return ys[0] if isinstance(q, int | float) else catalogue.stack(*ys, axis=0)


def _ordered(x: Value, axes: Axes, keepdims: bool) -> tuple[Value, tuple[int, ...]]:
    """The elements of `axes` in sorted rows, and the shape of the results.

    Raises:
        ShapeError: no elements.
    """
    dims = concrete(x)
    given = range(len(dims)) if axes is None else (axes,) if isinstance(axes, int) else axes
    gone = sorted({axis_of("quantile", x, a) for a in given})
    rest = [i for i in range(len(dims)) if i not in gone]
    count = math.prod(dims[i] for i in gone)
    if not count:
        raise ShapeError.here(f"quantile: expected at least one element, got shape {show(dims)}")
    rows = catalogue.reshape(
        catalogue.transpose(x, perm=(*rest, *gone)), shape=(*[dims[i] for i in rest], count)
    )
    shape = tuple(1 if i in gone else d for i, d in enumerate(dims) if keepdims or i not in gone)
    return catalogue.sort(rows, axis=-1), shape


def quantile_at(x: Value, q: Value, axes: Axes, keepdims: bool, method: str) -> Value:
    """`quantile` for `q` as a graph value: a scalar or vector between 0 and 1."""
    order, shape = _ordered(x, axes, keepdims)
    axis, count = len(concrete(order)) - 1, concrete(order)[-1]
    place = q * constant_of(count - 1, q.dtype)
    low, high = catalogue.floor(place), catalogue.ceil(place)
    first, second = (
        take_nd(order, [*[None] * axis, cast(where, dtype=int64)]) for where in (low, high)
    )
    last = cut(order, axis, count - 1, count)
    last = last if q.shape else catalogue.squeeze(last, axes=(axis,))
    found = lerp(first, second, part_between(place, low, high, method))
    found = select(isnan(last), last, found)
    if not q.shape:
        return catalogue.reshape(found, shape=shape)
    return catalogue.reshape(moveaxis(found, -1, 0), shape=(*concrete(q), *shape))


def part_between(place: Value, low: Value, high: Value, method: str) -> Value:
    """The interpolation weight between `low` and `high`, the integers around a position."""
    return {
        "linear": place - low, "lower": low * 0, "higher": high - low,
        "nearest": catalogue.round(place) - low, "midpoint": catalogue.sign(high - low) * 0.5,
    }[method]  # fmt: skip


def _between(order: Value, part: float, count: int, method: str) -> Value:
    """The element of sorted rows at a fractional position."""
    place = part * (count - 1)
    low, high = math.floor(place), math.ceil(place)
    axis = len(concrete(order)) - 1
    weight = {
        "linear": place - low, "lower": 0.0, "higher": 1.0, "midpoint": 0.5,
        "nearest": float(round(place) - low),
    }[method]  # fmt: skip
    first, second = (cut(order, axis, i, i + 1) for i in (low, high))
    if low == high or weight in (0.0, 1.0):
        return second if weight == 1.0 else first
    # From the nearer end, as in NumPy.
    step = second - first
    return first + step * weight if weight < 0.5 else second - step * (1 - weight)


def median(x: Value, axes: Axes = None, keepdims: bool = False) -> Value:
    """The median: the middle element, or the mean of the middle two, as in `numpy.median`."""
    return quantile(x, 0.5, axes, keepdims, "midpoint")


def ptp(x: Value, axes: Axes = None, keepdims: bool = False) -> Value:
    """The difference of the largest and the smallest element."""
    attrs: dict[str, Any] = {"axes": _axes(axes), "keepdims": keepdims}
    return reduce.max(x, **attrs) - reduce.min(x, **attrs)


# Differences and counts


def diff(x: Value, n: int = 1, axis: int = -1) -> Value:
    """The `n`-th difference of adjacent elements along an axis; for booleans, not_equal."""
    at = axis_of("diff", x, axis)
    for _ in range(min(n, concrete(x)[at])):  # then nothing is left
        size = concrete(x)[at]
        later, earlier = cut(x, at, min(1, size), size), cut(x, at, 0, max(size - 1, 0))
        x = not_equal(later, earlier) if x.dtype.kind == "b" else later - earlier
    return x


def count_nonzero(x: Value, axes: Axes = None, keepdims: bool = False) -> Value:
    """How many elements are not zero, as int64."""
    hits = cast(not_equal(x, constant_of(0, x.dtype)), dtype=int64)
    return reduce.sum(hits, axes=_axes(axes), keepdims=keepdims)


def bincount(x: Value, length: int, weights: Value | None = None) -> Value:
    """How often each of 0, 1, ... `length - 1` occurs in `x` as int64, or the sum of its weights.

    Raises:
        OutOfRangeError: when run, a number outside [0, `length`).
    """
    count = math.prod(concrete(x))
    flat = catalogue.reshape(x, shape=(count,))
    if weights is None:
        ones = catalogue.broadcast_to(constant_of(1, int64), shape=(count,))
    else:
        ones = catalogue.reshape(weights, shape=(count,))
    zeros = catalogue.broadcast_to(constant_of(0, ones.dtype), shape=(length,))
    return catalogue.scatter_add(zeros, flat, ones)


# Reductions that ignore NaN


def _instead(x: Value, value: float) -> Value:
    if not x.dtype.is_inexact:
        return x
    return select(catalogue.equal(x, x), x, constant_of(value, x.dtype))


def nansum(x: Value, axes: Axes = None, keepdims: bool = False) -> Value:
    """The sum, ignoring NaN."""
    return reduce.sum(_instead(x, 0), axes=_axes(axes), keepdims=keepdims)


def nanprod(x: Value, axes: Axes = None, keepdims: bool = False) -> Value:
    """The product, ignoring NaN."""
    return reduce.prod(_instead(x, 1), axes=_axes(axes), keepdims=keepdims)


def nanmean(x: Value, axes: Axes = None, keepdims: bool = False) -> Value:
    """The mean, ignoring NaN; NaN if there are no other elements."""
    proper = cast(catalogue.equal(x, x), dtype=x.dtype)
    count = reduce.sum(proper, axes=_axes(axes), keepdims=keepdims)
    return nansum(x, axes, keepdims) / count


def nanmax(x: Value, axes: Axes = None, keepdims: bool = False) -> Value:
    """The maximum, ignoring NaN; NaN if there are no other elements."""
    return _nan_extreme(reduce.max, -math.inf, x, axes, keepdims)


def nanmin(x: Value, axes: Axes = None, keepdims: bool = False) -> Value:
    """The minimum, ignoring NaN; NaN if there are no other elements."""
    return _nan_extreme(reduce.min, math.inf, x, axes, keepdims)


def _nan_extreme(op: Any, neutral: float, x: Value, axes: Axes, keepdims: bool) -> Value:
    attrs: dict[str, Any] = {"axes": _axes(axes), "keepdims": keepdims}
    if not x.dtype.is_floating:
        return op(x, **attrs)
    nothing = reduce.all(isnan(x), **attrs)
    return select(nothing, constant_of(math.nan, x.dtype), op(_instead(x, neutral), **attrs))
