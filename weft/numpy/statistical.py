"""Statistics: sums, means, variances, minima, maxima, quantiles, any, all, cumulative sums."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from weft import ops
from weft.eager.functions.indexing import gather
from weft.eager.functions.sort import order
from weft.eager.tensor.argument import axes_of
from weft.eager.tensor.dispatch import record, recorded, wrap
from weft.eager.tensor.handle import Handle
from weft.ir.dtype import bool_, int64
from weft.numpy.convert import alike, array_like, floats, hosted, typed
from weft.numpy.cumulative import counted
from weft.numpy.elementwise import isnan
from weft.numpy.manipulation import axis_within, ravel
from weft.ops.declaration import REGISTRY
from weft.ops.declaration.fact import Autocast
from weft.ops.reduction import spread

if TYPE_CHECKING:
    from weft.numpy.array import ndarray

__all__ = [
    "all", "amax", "amin", "any", "average", "count_nonzero", "max", "mean", "median", "min",
    "nanmean", "nansum", "percentile", "prod", "ptp", "quantile", "std", "sum", "var",
]  # fmt: skip


def axes_within(name: str, axis: Any, rank: int) -> tuple[int, ...]:
    """Axes counted from the front; all of them for `None`, and none for `()`."""
    if isinstance(axis, tuple) and not axis:
        return ()
    if axis is not None and not rank:
        axis_within(name, axis, rank)
    return axes_of(name, axis, rank)


def _reduced(name: str, x: Any, axis: Any, keepdims: bool) -> Any:
    """A reduction of the catalogue."""
    axes = axes_within(name, axis, x.ndim)
    return wrap(record(REGISTRY[name], (x.lazy,), {"axes": axes, "keepdims": keepdims})[0], x)


# Sums


def sum(
    x: Any, /, axis: Any = None, dtype: Any = None, *, keepdims: bool = False
) -> ndarray:  # fmt: skip
    """The sum over axes (all by default); 64-bit for integers.

    Raises:
        OutOfRangeError: an axis outside the rank.
    """
    return _reduced("sum", counted(x, dtype), axis, keepdims)


def prod(x: Any, /, axis: Any = None, dtype: Any = None, *, keepdims: bool = False) -> ndarray:
    """The product over axes (all by default); 64-bit for integers.

    Raises:
        OutOfRangeError: an axis outside the rank.
    """
    return _reduced("prod", counted(x, dtype), axis, keepdims)


def mean(x: Any, /, axis: Any = None, dtype: Any = None, *, keepdims: bool = False) -> ndarray:
    """The mean over axes (all by default).

    Raises:
        OutOfRangeError: an axis outside the rank.
    """
    return _reduced("mean", floats(typed(x, dtype)), axis, keepdims)


def average(a: Any, axis: Any = None, weights: Any = None) -> ndarray:
    """The mean over axes, optionally weighted."""
    x = floats(a)
    if weights is None:
        return mean(x, axis)
    w: Any = array_like(weights)
    if w.shape != x.shape:
        at = axis_within("average", axis, x.ndim)
        w = w.reshape(tuple([d if i == at else 1 for i, d in enumerate(x.shape)]))
        w = w.broadcast_to(x.shape)
    return _weighted_mean.on(x, *alike(x, w), axes=axes_within("average", axis, x.ndim))


_weighted_mean = recorded(spread.weighted_mean)


def var(
    x: Any, /, axis: Any = None, *, correction: float = 0.0, keepdims: bool = False,
    ddof: float | None = None,
) -> ndarray:  # fmt: skip
    """The variance over axes, divided by the count minus `correction`.

    Args:
        ddof: the correction, under NumPy's name.
    """
    return _spread("var", "variance", _var, x, axis, keepdims, correction if ddof is None else ddof)


_std = recorded(spread.std_of)
_var = recorded(spread.variance_of)


def std(
    x: Any, /, axis: Any = None, *, correction: float = 0.0, keepdims: bool = False,
    ddof: float | None = None,
) -> ndarray:  # fmt: skip
    """The square root of `var`."""
    return _spread("std", "std", _std, x, axis, keepdims, correction if ddof is None else ddof)


def _spread(
    name: str, op: str, of_complex: Any, x: Any, axis: Any, keepdims: bool, free: float
) -> Any:
    """A variance or deviation by a catalogue operation, or for complex numbers by a function."""
    x = floats(x)
    axes = axes_within(name, axis, x.ndim)
    static = {"axes": axes, "keepdims": keepdims, "ddof": int(free) if free == int(free) else free}
    if x.dtype.is_complex:
        return of_complex.on(x, x, **static)
    return wrap(record(REGISTRY[op], (x.lazy,), static)[0], x)


def nansum(x: Any, axis: Any = None, dtype: Any = None, *, keepdims: bool = False) -> ndarray:
    """The sum, ignoring NaN."""
    x = typed(x, dtype)
    return sum(_without_nan(x), axis, keepdims=keepdims)


def nanmean(x: Any, axis: Any = None, dtype: Any = None, *, keepdims: bool = False) -> ndarray:
    """The mean, ignoring NaN; NaN if there are no other elements."""
    x = floats(typed(x, dtype))
    return _nanmean.on(x, x, axes=axes_within("nanmean", axis, x.ndim), keepdims=keepdims)


_nanmean = recorded(ops.nanmean, autocast=Autocast.FLOAT32)


def _without_nan(x: Any) -> Any:
    return x.masked_fill(isnan(x), 0)


# Minimum and maximum


def max(x: Any, /, axis: Any = None, *, keepdims: bool = False) -> ndarray:
    """The largest element over axes; equal elements share the gradient.

    Raises:
        ShapeError: no elements.
    """
    return _extreme("max", x, axis, keepdims)


def min(x: Any, /, axis: Any = None, *, keepdims: bool = False) -> ndarray:
    """The smallest element over axes; equal elements share the gradient.

    Raises:
        ShapeError: no elements.
    """
    return _extreme("min", x, axis, keepdims)


def _extreme(name: str, x: Any, axis: Any, keepdims: bool) -> Any:
    x = array_like(x)
    if x.dtype.is_complex:
        return _lexicographic(name, x, axis, keepdims)
    if x.dtype is bool_:
        return _reduced("any" if name == "max" else "all", x, axis, keepdims)
    return _reduced(name, x, axis, keepdims)


def _lexicographic(name: str, x: Any, axis: Any, keepdims: bool) -> Any:
    """Complex numbers are ordered by their real parts first, as in NumPy; values are read."""
    at = () if axis is None else axes_within(name, axis, x.ndim)
    if len(at) != 1:
        shape = (1,) * x.ndim if keepdims else ()
        found = _lexicographic(name, ravel(x), 0, False) if x.ndim else x
        return found.reshape(shape)
    find = np.argmax if name == "max" else np.argmin
    places = hosted(lambda a: np.expand_dims(find(a, at[0]), at[0]), x)
    found = gather.take_along_axis(x, places, at[0])
    return found if keepdims else found.squeeze(at[0])


amax, amin = max, min


def ptp(a: Any, axis: Any = None) -> ndarray:
    """The largest element minus the smallest."""
    found: Any = max(a, axis)
    return found - min(a, axis)


# Order


def median(a: Any, axis: Any = None, *, keepdims: bool = False) -> ndarray:
    """The median; the mean of the middle two for an even number of elements, NaN of none."""
    given = floats(a)
    if not math.prod(given.shape):
        return mean(given, axis=axis, keepdims=keepdims)
    return quantile(given, 0.5, axis, keepdims=keepdims)


def quantile(
    a: Any, q: Any, axis: Any = None, *, keepdims: bool = False, method: str = "linear"
) -> ndarray:
    """The quantiles `q`; several give a new first axis."""
    found: Any = order.quantile(floats(a), q, axis=axis, keepdims=keepdims, method=method)
    return found


def percentile(a: Any, q: Any, axis: Any = None, *, keepdims: bool = False) -> ndarray:
    """`quantile`, with `q` in percent."""
    if isinstance(q, Handle):
        return quantile(a, floats(q) / 100, axis, keepdims=keepdims)
    parts = np.asarray(q) / 100
    return quantile(a, parts if parts.ndim else float(parts), axis, keepdims=keepdims)


# Truth


def all(x: Any, /, axis: Any = None, *, keepdims: bool = False) -> ndarray:
    """Whether all elements are not 0."""
    return _reduced("all", typed(x, bool_), axis, keepdims)


def any(x: Any, /, axis: Any = None, *, keepdims: bool = False) -> ndarray:
    """Whether any element is not 0."""
    return _reduced("any", typed(x, bool_), axis, keepdims)


def count_nonzero(x: Any, /, axis: Any = None, *, keepdims: bool = False) -> ndarray:
    """The number of nonzero elements."""
    return _reduced("sum", typed(typed(x, bool_), int64), axis, keepdims)
