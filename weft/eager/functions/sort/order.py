"""Sorting, order statistics and cumulative operations along an axis."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from weft import ops
from weft.eager.functions.elementwise.from_op import running
from weft.eager.functions.reduction.extremum import Extreme, not_empty, ordered, shared
from weft.eager.functions.reduction.reduce import floating, rank_of
from weft.eager.functions.shape.reshape import reshape
from weft.eager.record.pending.access import array_if_known
from weft.eager.record.pending.lazy import Array
from weft.eager.record.pending.state import trace
from weft.eager.tensor.argument import axis_of, dims_of, either, integer, kept
from weft.eager.tensor.dispatch import converted, kind_of, lazy_of, recorded
from weft.eager.tensor.handle import Handle
from weft.errors import DTypeError, ShapeError
from weft.ir import dtype as types
from weft.ir.node import Value
from weft.ir.shape import known
from weft.ops.declaration import catalogue, constant_of
from weft.ops.reduction import order_statistic

if TYPE_CHECKING:
    from weft.eager.tensor.tensor import Tensor

__all__ = [
    "argsort", "cummax", "cummin", "kthvalue", "logcumsumexp", "median",
    "msort", "quantile", "sort", "topk",
]  # fmt: skip

# Sorted


@recorded
def _sorted(x: Value, *, axis: int, descending: bool) -> tuple[Value, Value]:
    if not x.shape:
        return catalogue.identity(x), constant_of(0, types.int64)
    values, places = catalogue.sort.all(x, axis=axis, descending=descending)
    return values, catalogue.cast(places, dtype=types.int64)


def sort(
    x: Any, dim: Any = -1, descending: bool = False, stable: bool = True, *, axis: Any = None
) -> Extreme:
    """The sorted elements along an axis and their indices; NaN counts as the largest.

    Args:
        stable: no effect: equal elements always keep their order.

    Raises:
        OutOfRangeError: an axis outside the rank.
    """
    lazy = lazy_of(x)
    at = axis_of("sort", either("sort", dim, axis, -1), rank_of(lazy))
    return Extreme(*_sorted.on(kind_of(x), lazy, axis=at, descending=descending))


def argsort(
    x: Any, dim: Any = -1, descending: bool = False, stable: bool = True, *, axis: Any = None
) -> Tensor:
    """The indices that sort the elements along an axis."""
    return sort(x, dim, descending, stable, axis=axis).indices


def msort(x: Any) -> Tensor:
    """The sorted elements along the first axis."""
    return sort(x, 0).values


_top = recorded(order_statistic.top)


def topk(
    x: Any, k: Any, dim: Any = -1, largest: bool = True, sorted: bool = True, *, axis: Any = None
) -> Extreme:
    """The `k` largest (or smallest) elements along an axis, sorted, and their indices.

    Args:
        sorted: no effect: they always are.

    Raises:
        DTypeError: a boolean as `k` or `dim`, where `largest` was probably meant.
        ShapeError: the axis has fewer elements.
    """
    if isinstance(k, bool) or isinstance(dim, bool):
        raise DTypeError.here(f"topk: expected integers k, dim, got {k}, {dim}")
    lazy = lazy_of(x)
    dims = known(lazy.type.shape)
    at = axis_of("topk", either("topk", dim, axis, -1), len(dims))
    count = integer("topk", k)
    size = dims[at] if dims else 1
    if not 0 <= count <= size:
        raise ShapeError.here(f"topk: expected 0 <= k <= {size}, got {count}")
    return Extreme(*_top.on(kind_of(x), lazy, k=count, axis=at, largest=largest))


_ranked = recorded(order_statistic.ranked)


def kthvalue(x: Any, k: Any, dim: Any = -1, keepdim: bool = False) -> Extreme:
    """The `k`-th smallest element along an axis, counted from 1, and its index.

    Raises:
        ShapeError: the axis has fewer elements.
    """
    lazy = lazy_of(x)
    dims = known(lazy.type.shape)
    at, count = axis_of("kthvalue", dim, len(dims)), integer("kthvalue", k)
    size = dims[at] if dims else 1
    if not 1 <= count <= size:
        raise ShapeError.here(f"kthvalue: expected 1 <= k <= {size}, got {count}")
    found = _ranked.on(kind_of(x), lazy, rank=count - 1, axis=at, keepdims=keepdim, nan=False)
    return Extreme(*found)


def median(x: Any, dim: Any = None, keepdim: bool = False, *, axis: Any = None) -> Any:
    """The median, the lower one of two; along `dim` with its index.

    Raises:
        ShapeError: no elements.
    """
    return _median(x, either("median", dim, axis), keepdim)


def _median(x: Any, dim: Any, keepdim: bool) -> Any:
    lazy = lazy_of(x)
    whole = dim is None
    if whole:
        x = reshape(x, -1)
        lazy = x.lazy
    dims = known(lazy.type.shape)
    at = axis_of("median", 0 if whole else dim, len(dims))
    size = dims[at] if dims else 1
    if whole and not size and lazy.type.dtype.is_floating:
        return x.new_full((), math.nan)
    not_empty("median", lazy, at if dims else None)
    rank = (size - 1) // 2
    found = _ranked.on(kind_of(x), lazy, rank=rank, axis=at, keepdims=keepdim, nan=True)
    return shared(x, found[0]) if whole else Extreme(*found)


@recorded
def _quantile(x: Value, *, q: Any, axes: Any, keepdims: bool, method: str) -> Value:
    return ops.quantile(x, q, axes, keepdims, method)


_quantile_at = recorded(order_statistic.quantile_at)


def quantile(
    x: Any, q: Any, dim: Any = None, keepdim: bool = False, *, interpolation: str = "linear",
    axis: Any = None, method: str | None = None, keepdims: bool | None = None,
) -> Tensor:  # fmt: skip
    """The quantiles `q`; several give a new first axis.

    Args:
        interpolation: `linear`, `lower`, `higher`, `nearest` or `midpoint`.

    Raises:
        GraphError: a `q` outside [0, 1].
        ShapeError: no elements.
    """
    at = either("quantile", dim, axis)
    dims = dims_of(x)
    how: dict[str, Any] = {
        "axes": (axis_of("quantile", at, len(dims)),) if dims and at is not None else None,
        "keepdims": kept("quantile", keepdim, keepdims), "method": method or interpolation,
    }  # fmt: skip
    array = known_parts(q)
    if array is None:
        lazy = floating(x)
        return _quantile_at.on(kind_of(x, q), lazy, converted(floating(q), lazy.type.dtype), **how)
    parts = float(array) if not array.ndim else tuple(array.tolist())
    found = _quantile.on(kind_of(x), floating(x), q=(0.0,) if parts == () else parts, **how)
    return found[:0] if parts == () else found


def known_parts(q: Any) -> Array | None:
    """The quantiles as numbers; `None` if they are traced or require grad."""
    if not isinstance(q, Handle):
        return np.asarray(q)
    is_moving = q.lazy.tracked and trace.now.grad_mode and dims_of(q) != (0,)
    return None if is_moving else array_if_known(q.lazy)


# Cumulative


def logcumsumexp(x: Any, dim: Any = None, *, axis: Any = None) -> Tensor:
    """The logarithm of cumulative sums of `exp(x)` along an axis, without overflow."""
    return running("cumlogsumexp", floating(x), either("logcumsumexp", dim, axis, 0))


_running_extreme = recorded(order_statistic.running_extreme)


def cummax(x: Any, dim: Any = None, *, axis: Any = None) -> Extreme:
    """The cumulative maximum along an axis, and its last index."""
    return _extreme("cummax", x, either("cummax", dim, axis))


def _extreme(name: str, x: Any, dim: Any) -> Extreme:
    lazy = lazy_of(x)
    at = axis_of(name, dim, rank_of(lazy))
    largest = name == "cummax"
    values, places = _running_extreme.on(kind_of(x), ordered(lazy), axis=at, largest=largest)
    return Extreme(values.to(lazy.type.dtype), places)


def cummin(x: Any, dim: Any = None, *, axis: Any = None) -> Extreme:
    """The cumulative minimum along an axis, and its last index."""
    return _extreme("cummin", x, either("cummin", dim, axis))
