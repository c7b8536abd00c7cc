"""Covariances, histograms, interpolation, convolution, polynomials."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

import weft.numpy as _plain
from weft.eager.functions.reduction import statistic
from weft.eager.tensor.dispatch import recorded
from weft.errors import ArgumentError
from weft.jax.array import Array, canonical, given
from weft.jax.config import refuse_given, without_effect
from weft.jax.numpy import creation
from weft.jax.numpy.common import array_of, dtype_promoted, floating_of, public
from weft.jax.numpy.joining import concatenate, matmul
from weft.numpy import linalg
from weft.ops.indexing import interpolation
from weft.ops.linalg import polynomial
from weft.ops.reduction import covariance
from weft.scipy import signal

plain: Any = _plain

__all__: list[str] = []
_MODES: Final = ("full", "same", "valid")

_correlation = recorded(covariance.correlation)
_histogram, _interpolated = map(recorded, (interpolation.histogram, interpolation.interpolated))
_value_at, _powers, _unscaled = map(
    recorded, (polynomial.value_at, polynomial.scaled_powers, polynomial.unscaled)
)

# Statistics


@public
def cov(
    m: Any, y: Any = None, rowvar: bool = True, bias: bool = False, ddof: int | None = None,
    fweights: Any = None, aweights: Any = None,
) -> Array:  # fmt: skip
    """The covariance of variables in rows."""
    x = plain.atleast_2d(floating_of(m))
    x = x if rowvar or x.shape[0] == 1 else x.T
    if y is not None:
        other = plain.atleast_2d(floating_of(y))
        x = concatenate([x, other if rowvar or other.shape[0] == 1 else other.T], 0)
    free = (0 if bias else 1) if ddof is None else ddof
    options = {
        k: array_of(v) for k, v in (("fweights", fweights), ("aweights", aweights)) if v is not None
    }
    return given(statistic.cov(x, correction=free, **options))


@public
def corrcoef(x: Any, y: Any = None, rowvar: bool = True) -> Array:
    """Correlations of variables in rows."""
    return _correlation(cov(x, y, rowvar))


@public
def histogram_bin_edges(a: Any, bins: Any = 10, range: Any = None, weights: Any = None) -> Array:
    """The edges of a histogram's bins."""
    without_effect("histogram_bin_edges", weights=weights)
    if not isinstance(bins, int):
        return floating_of(bins)
    x = plain.ravel(floating_of(a))
    low, high = (x.min(), x.max()) if range is None else range
    apart = low != high  # of one value, NumPy's bins are around it
    low, high = plain.where(apart, low, low - 0.5), plain.where(apart, high, high + 0.5)
    return creation.linspace(low, high, bins + 1)


@public
def histogram(
    a: Any, bins: Any = 10, range: Any = None, weights: Any = None, density: Any = None
) -> tuple[Array, Array]:
    """How many elements lie in each bin, and the edges."""
    x, edges = plain.ravel(floating_of(a)), histogram_bin_edges(a, bins, range)
    w = None if weights is None else plain.ravel(floating_of(weights))
    return _histogram(x, edges, w, density=bool(density)), edges


@public
def interp(
    x: Any, xp: Any, fp: Any, left: Any = None, right: Any = None, period: Any = None
) -> Array:
    """Values of a piecewise linear function with the points (xp, fp)."""
    x, xs, ys = dtype_promoted(*map(floating_of, (x, xp, fp)))
    rest = [None if v is None else creation.asarray(v, x.dtype) for v in (left, right, period)]
    return given(_interpolated(x, xs, ys, *rest))


@public
def convolve(
    a: Any, v: Any, mode: str = "full", *, precision: Any = None, preferred_element_type: Any = None
) -> Array:
    """The discrete convolution of two vectors."""
    return _convolved(a, v, mode, True, precision, preferred_element_type)


@public
def correlate(
    a: Any, v: Any, mode: str = "valid", *, precision: Any = None,
    preferred_element_type: Any = None,
) -> Array:  # fmt: skip
    """The discrete correlation of two vectors."""
    return _convolved(a, v, mode, False, precision, preferred_element_type)


def _convolved(a: Any, v: Any, mode: str, turned: bool, precision: Any, dtype: Any) -> Any:
    without_effect("convolve", precision=precision)
    if mode not in _MODES:
        raise ArgumentError.here(f"convolve: expected mode full, same or valid, got {mode!r}")
    x, w = dtype_promoted(a, v)
    if not (len(x) and len(w)):
        shapes = f"{tuple(x.shape)} and {tuple(w.shape)}"
        raise ArgumentError.here(f"convolve: inputs cannot be empty, got shapes {shapes}")
    x, w = floating_of(x), floating_of(w if turned else plain.conj(w))
    back = not turned and len(x) < len(w)
    if len(x) < len(w):
        x, w = w, x
    found = given(signal.convolve(x, w if turned else w[::-1], mode=mode))
    found = found[::-1] if back else found
    return found if dtype is None else found.astype(canonical(dtype))


# Polynomials: coefficients from the highest power down


@public
def polyval(p: Any, x: Any, *, unroll: int = 16) -> Array:
    """The values of a polynomial."""
    without_effect("polyval", unroll=unroll)
    return given(_value_at(*dtype_promoted(p, x)))


def _padded(a: Any, b: Any) -> Any:
    x, y = dtype_promoted(plain.atleast_1d(array_of(a)), plain.atleast_1d(array_of(b)))
    n = x.shape[0] if x.shape[0] > y.shape[0] else y.shape[0]
    return [plain.pad(v, ((n - v.shape[0], 0),)) for v in (x, y)]


@public
def polyadd(a1: Any, a2: Any) -> Array:
    """The sum of two polynomials."""
    x, y = _padded(a1, a2)
    return x + y


@public
def polysub(a1: Any, a2: Any) -> Array:
    """The difference of two polynomials."""
    x, y = _padded(a1, a2)
    return x - y


@public
def polymul(a1: Any, a2: Any, *, trim_leading_zeros: bool = False) -> Array:
    """The product of two polynomials."""
    refuse_given("polymul", trim_leading_zeros=trim_leading_zeros)
    return convolve(plain.atleast_1d(array_of(a1)), plain.atleast_1d(array_of(a2)))


@public
def polyder(p: Any, m: int = 1) -> Array:
    """The derivative of a polynomial."""
    c = floating_of(p)
    for _ in range(m):
        c = c[:-1] * np.arange(c.shape[0] - 1, 0, -1).astype(c.dtype.numpy)
    return c


@public
def polyint(p: Any, m: int = 1, k: Any = None) -> Array:
    """The integral of a polynomial."""
    c = floating_of(p)
    constants = np.broadcast_to(np.atleast_1d(0 if k is None else np.asarray(k)), (m,))
    for i in range(m):
        c = concatenate(
            [
                c / np.arange(c.shape[0], 0, -1).astype(c.dtype.numpy),
                creation.full((1,), float(constants[i])),
            ]
        )
    return c


@public
def polyfit(
    x: Any, y: Any, deg: int, rcond: Any = None, full: bool = False, w: Any = None,
    cov: bool = False,
) -> Any:  # fmt: skip
    """The polynomial of a degree that fits points best."""
    if full or cov:
        raise ArgumentError.here("polyfit: expected full=False and cov=False")
    x, y = floating_of(x), floating_of(y)
    weights = None if w is None else array_of(w).astype(x.dtype)
    table, y, length = _powers(x, y, weights, degree=deg)
    return given(_unscaled(matmul(linalg.pinv(table, rcond=rcond), y), length))
