"""Statistics: median, mode, covariance, histograms, differences, integrals, combinations."""

from __future__ import annotations

import itertools
import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from weft import ops
from weft.eager.functions.creation.arange import meshgrid
from weft.eager.functions.elementwise.declared import cumsum, multiply
from weft.eager.functions.indexing.gather import index_select, take
from weft.eager.functions.reduction.extremum import Extreme, shared
from weft.eager.functions.reduction.reduce import floating, rank_of, sum
from weft.eager.functions.shape.joining import cat, stack
from weft.eager.functions.shape.reshape import reshape
from weft.eager.functions.sort.order import known_parts, quantile
from weft.eager.record.pending.access import array_of
from weft.eager.record.pending.lazy import Lazy
from weft.eager.record.pending.state import trace
from weft.eager.tensor.argument import axis_of, dims_of, either, sizes
from weft.eager.tensor.dispatch import cast, kind_of, lazy_of, leaf, record, recorded, wrap
from weft.eager.tensor.elementwise import promoted
from weft.eager.tensor.handle import Handle
from weft.errors import DTypeError, ShapeError
from weft.ir import dtype as types
from weft.ir.dtype import bool_
from weft.ir.node import Value
from weft.ir.shape import known, show
from weft.ops.boundary import probability
from weft.ops.boundary.host import call
from weft.ops.boundary.routine import routine
from weft.ops.declaration import REGISTRY
from weft.ops.declaration.memory_check import check_table
from weft.ops.reduction import covariance, numerical_gradient, order_statistic

if TYPE_CHECKING:
    from weft.eager.tensor.tensor import Tensor

__all__ = [
    "cartesian_prod", "combinations", "corrcoef", "cov", "cumulative_trapezoid", "diff",
    "histogram", "histogramdd", "mode", "nanmedian", "nanquantile", "trapezoid", "trapz",
]  # fmt: skip


class Histogram(NamedTuple):
    """Counts for each bin, and the bin edges."""

    hist: Tensor
    bin_edges: Tensor


class HistogramDD(NamedTuple):
    """Counts for each multidimensional bin, and the bin edges of each dimension."""

    hist: Tensor
    bin_edges: tuple[Tensor, ...]


# Median and mode


_nanmedian = recorded(order_statistic.nanmedian)
_mode = recorded(order_statistic.mode)


def _along(name: str, run: Any, x: Any, dim: Any, keepdim: bool) -> Extreme:
    """Values along an axis and their indices."""
    lazy = lazy_of(x)
    at = axis_of(name, dim, rank_of(lazy))
    if not rank_of(lazy):
        return Extreme(*[y.reshape(()) for y in run.on(kind_of(x), reshape(x, 1), axis=0)])
    if not known(lazy.type.shape)[at]:
        raise ShapeError.here(f"{name}: expected at least one element, got none")
    found = run.on(kind_of(x), lazy, axis=at)
    return Extreme(*[y if keepdim else y.squeeze(at) for y in found])


def nanmedian(x: Any, dim: Any = None, keepdim: bool = False) -> Any:
    """The median, ignoring NaN; along `dim` with its index.

    Raises:
        ShapeError: no elements.
    """
    if dim is None:
        return shared(x, _along("nanmedian", _nanmedian, reshape(x, -1), 0, False).values)
    return _along("nanmedian", _nanmedian, x, dim, keepdim)


def mode(x: Any, dim: Any = -1, keepdim: bool = False) -> Extreme:
    """The most frequent element along an axis (the smallest in a tie), and its last index.

    Raises:
        ShapeError: no elements.
    """
    return _along("mode", _mode, x, dim, keepdim)


_nanquantile = recorded(order_statistic.nanquantile)


def nanquantile(
    x: Any, q: Any, dim: Any = None, keepdim: bool = False, *, interpolation: str = "linear"
) -> Tensor:
    """`quantile`, ignoring NaN; NaN if there are no other elements."""
    if dim is None or not dims_of(x):
        whole = nanquantile(reshape(x, -1), q, 0, interpolation=interpolation)
        ones = (1,) * len(dims_of(x)) if keepdim else ()
        return reshape(whole, *dims_of(whole), *ones)
    at = axis_of("nanquantile", dim, len(dims_of(x)))
    lazy = floating(x)
    array = known_parts(q)
    if array is None:
        parts = [p.lazy for p in reshape(q, -1).to(lazy.type.dtype).unbind()]
    else:
        quantile(reshape(x, -1)[:1], q, interpolation=interpolation)  # for its argument checks
        kind = lazy.type.dtype.numpy
        parts = [leaf(p.astype(kind)) for p in array.reshape(-1)]
    found = [
        _nanquantile.on(kind_of(x, q), lazy, p, axis=at, method=interpolation)
        for p in parts or [leaf(np.zeros((), lazy.type.dtype.numpy))]
    ]
    found = [y if keepdim else y.squeeze(at) for y in found]
    return stack(found)[: len(parts)] if dims_of(q) else found[0]


# Covariance


def _weights(x: Any, fweights: Any, aweights: Any) -> Any:
    """The weight of each observation, `None` if all are 1; always real.

    Raises:
        DTypeError: `fweights` that are not integers, or `aweights` that are.
        ShapeError: not one for each observation.
    """
    for name, w in (("fweights", fweights), ("aweights", aweights)):
        if w is not None:
            _check_weights(name, lazy_of(w), dims_of(x)[1])
    dtype = lazy_of(x).type.dtype.real
    pairs = [(cast(lazy_of(w), dtype), w) for w in (fweights, aweights) if w is not None]
    given = [_shares.on(kind_of(w), lazy, name="cov") for lazy, w in pairs]
    return None if not given else given[0] if len(given) == 1 else multiply(*given)


_shares = recorded(probability.shares)


def _check_weights(name: str, w: Lazy, count: int) -> None:
    dtype: Any = w.type.dtype
    if dims_of(w) != (count,) and not (count == 1 and dims_of(w) == ()):
        raise ShapeError.here(
            f"cov: {name}: expected one for each of {count} observations, got shape "
            f"{show(dims_of(w))}"
        )
    if not (dtype.is_integer if name == "fweights" else dtype.is_floating):
        kind = "an integer" if name == "fweights" else "a floating"
        raise DTypeError.here(f"cov: {name}: expected {kind} type, got {dtype}")


def cov(x: Any, *, correction: int = 1, fweights: Any = None, aweights: Any = None) -> Tensor:
    """The covariance matrix of variables (rows) from observations (columns).

    Args:
        correction: the divisor is the number of observations minus this.
        fweights: how often each observation occurs.
        aweights: how much each observation counts.

    Raises:
        DTypeError: booleans; `fweights` that are not integers, `aweights` that are.
        OutOfRangeError: when computed, negative weights.
        ShapeError: a tensor of rank above 2, or not one weight for each observation.
    """
    if lazy_of(x).type.dtype is bool_:
        raise DTypeError.here("cov: expected numbers, got bool")
    if len(dims_of(x)) > 2:
        raise ShapeError.here(f"cov: expected rank 2 or less, got {show(dims_of(x))}")
    rows: Any = wrap(floating(x), kind_of(x))
    rows = reshape(rows, 1, -1) if rows.ndim < 2 else rows
    weights = _weights(rows, fweights, aweights)
    real = lazy_of(rows).type.dtype.real
    important = None if aweights is None else cast(lazy_of(aweights), real)
    low = trace.now.autocast
    return _covariance(rows, weights, important, correction=correction, low=low)


_covariance = recorded(covariance.covariance)
_correlation = recorded(covariance.correlation)


def corrcoef(x: Any) -> Tensor:
    """The correlation matrix of variables (rows) from observations (columns)."""
    return _correlation(cov(x))


def histogram(
    x: Any, bins: Any, *, range: Any = None, weight: Any = None, density: bool = False
) -> Histogram:
    """Counts of elements in each bin, or sums of their weights.

    Args:
        bins: how many bins, or their edges.
        range: the outer limits; by default those of the elements.
        density: so that the integral is 1.

    Raises:
        ShapeError: no bins.
    """
    limits = None if isinstance(bins, int) else lazy_of(bins)
    if limits is None and bins < 1:
        raise ShapeError.here(f"histogram: expected at least one bin, got {bins}")
    weights = None if weight is None else lazy_of(weight)
    span = None if range is None else tuple(range)
    how = {"bins": bins if limits is None else None, "span": span, "density": density}
    return Histogram(*_histogram.on(kind_of(x), floating(x), limits, weights, **how))


@recorded(differentiable=False)
def _histogram(
    x: Value, limits: Value | None, weights: Value | None, *, bins: Any, span: Any, density: bool
) -> tuple[Value, ...]:
    count = bins if limits is None else known(limits.shape)[0] - 1
    given = [v for v in (x, limits, weights) if v is not None]
    counted = _counted.of(bins, span, density, weights is not None)
    return call(
        counted, *given, types_of=[(x.dtype, (count,)), (x.dtype, (count + 1,))], title="histogram"
    )


@routine
def _counted(bins: Any, span: Any, density: bool, weighted: bool, *arrays: Any) -> Any:
    """The histogram of elements, for given bin edges and weights."""
    x, *rest = arrays
    weights = rest.pop().reshape(-1) if weighted else None
    with np.errstate(invalid="ignore"):  # the density of no elements is NaN
        cuts = rest[0] if rest else bins
        return np.histogram(x.reshape(-1), cuts, span, density, weights)


def histogramdd(
    x: Any, bins: Any, *, range: Any = None, weight: Any = None, density: bool = False
) -> HistogramDD:
    """Counts of points, the rows of `x`, in each multidimensional bin.

    Args:
        bins: how many bins (one number for all dimensions, or one for each), or their edges.
        range: the outer limits, two numbers for each dimension; by default those of the elements.
        density: so that the integral is 1.

    Raises:
        ShapeError: a scalar, or bins or limits for another number of dimensions.

    Example:
        >>> import weft as wf
        >>> wf.histogramdd(wf.tensor([[0.0, 1.0], [2.0, 1.0]]), [2, 1]).hist.tolist()
        [[1.0], [1.0]]
    """
    points = array_of(floating(x))
    if points.ndim:
        points = points.reshape(math.prod(points.shape[:-1]), points.shape[-1])
    cuts = [bins] * points.shape[-1] if isinstance(bins, int) else list(bins)
    limits: Any = None if range is None else np.reshape(range, (-1, 2))
    count = points.shape[-1] if points.ndim == 2 else -1
    if len(cuts) != count or (limits is not None and len(limits) != count):
        raise ShapeError.here(
            f"histogramdd: expected points along the last axis, and bins and limits for each of "
            f"its elements, got shape {show(points.shape)}, {len(cuts)} bins and limits {range}"
        )
    check_table("histogramdd", [c if isinstance(c, int) else len(c) for c in cuts], types.float64)
    edges: Any = [array_of(lazy_of(e)) if isinstance(e, Handle) else e for e in cuts]
    weights = None if weight is None else array_of(lazy_of(weight)).reshape(-1)
    hist, found = np.histogramdd(points, edges, limits, density=density, weights=weights)
    like = kind_of(x)
    several = tuple([wrap(leaf(e.astype(points.dtype)), like) for e in found])
    return HistogramDD(wrap(leaf(hist.astype(points.dtype)), like), several)


# Differences and integrals


_difference = recorded(ops.diff)


def diff(
    x: Any, n: int = 1, dim: Any = -1, prepend: Any = None, append: Any = None, *, axis: Any = None
) -> Tensor:
    """The `n`-th difference of adjacent elements along an axis.

    Raises:
        ShapeError: an `n` below 0.
    """
    if n < 0:
        raise ShapeError.here(f"diff: expected n of 0 or more, got {n}")
    at = axis_of("diff", either("diff", dim, axis, -1), len(dims_of(x)))
    if not n:
        return wrap(record(REGISTRY["identity"], (lazy_of(x),), {})[0], kind_of(x))
    if prepend is not None or append is not None:
        x = cat([v for v in (prepend, x, append) if v is not None], at)
    return _difference.on(kind_of(x), lazy_of(x), n=n, axis=at)


_areas = recorded(numerical_gradient.areas)


def areas(y: Any, width: Any, axis: int) -> Tensor:
    """The trapezoid areas between samples that are `width` apart along an axis."""
    return _areas.on(kind_of(y, width), *beside(y, width), axis=axis)


def _between(name: str, y: Any, x: Any, dx: Any, dim: Any) -> Any:
    """The trapezoid areas between adjacent samples along an axis."""
    dims = dims_of(y)
    at = axis_of(name, dim, len(dims))
    width: Any = 1 if dx is None else dx
    if x is not None:
        spaced = x
        if len(dims_of(x)) == 1 and len(dims) > 1:
            spaced = reshape(x, *[-1 if i == at else 1 for i in range(len(dims))])
        width = diff(spaced, dim=at - len(dims))
    return areas(y, width, at), at


def beside(x: Any, other: Any) -> list[Lazy]:
    """`x`, unchanged if integer, and the other operand in the floating-point dtype of both."""
    whole, wide = lazy_of(x), promoted(x, other, floats=True)
    return [wide[0] if whole.type.dtype.is_inexact else whole, wide[1]]


def trapezoid(y: Any, x: Any = None, *, dx: Any = None, dim: Any = -1) -> Tensor:
    """The integral of `y` along an axis by the trapezoidal rule.

    Args:
        x: coordinates of the samples; by default they are `dx` (1) apart.
    """
    found, at = _between("trapezoid", y, x, dx, dim)
    return sum(found, at)


trapz = trapezoid


def cumulative_trapezoid(y: Any, x: Any = None, *, dx: Any = None, dim: Any = -1) -> Tensor:
    """The integrals of `y` up to each sample but the first; arguments as for `trapezoid`."""
    found, at = _between("cumulative_trapezoid", y, x, dx, dim)
    return cumsum(found, at)


# Combinations


def combinations(x: Any, r: int = 2, with_replacement: bool = False) -> Tensor:
    """All combinations of `r` elements of a vector, one row for each.

    Raises:
        ShapeError: no vector.
    """
    dims = dims_of(x)
    if len(dims) != 1:
        raise ShapeError.here(f"combinations: expected a vector, got {show(dims)}")
    choose = itertools.combinations_with_replacement if with_replacement else itertools.combinations
    rows = math.comb(max(dims[0] + r - 1, 0) if with_replacement and r else dims[0], r)
    check_table("combinations", (rows, r), types.int64)
    chosen = itertools.chain.from_iterable(choose(range(dims[0]), r)) if rows else ()
    places = np.fromiter(chosen, np.int64, rows * r).reshape(rows, r)
    return take(x, wrap(leaf(places))) if r else index_select(x, 0, wrap(leaf(places[0])))


def cartesian_prod(*tensors: Any) -> Tensor:
    """The Cartesian product of vectors, one row for each combination."""
    if len(tensors) == 1:
        return reshape(tensors[0], -1)
    return stack([reshape(y, -1) for y in meshgrid(*tensors, indexing="ij")], 1)


def sum_to_size(x: Any, *size: Any) -> Tensor:
    """`x` summed over the axes along which a tensor of this size would broadcast to it.

    Raises:
        ShapeError: it would not broadcast.
    """
    dims, wanted = dims_of(x), sizes("sum_to_size", size)
    extra = len(dims) - len(wanted)
    if extra < 0 or any(n not in (1, d) for n, d in zip(wanted, dims[extra:], strict=True)):
        raise ShapeError.here(
            f"sum_to_size: expected a size that broadcasts to {show(dims)}, got {show(wanted)}"
        )
    repeated = [i for i, d in enumerate(dims) if i < extra or wanted[i - extra] != d]
    return reshape(sum(x, repeated), *wanted) if repeated else x
