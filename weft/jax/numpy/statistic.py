"""Covariances, histograms, interpolation, convolution, polynomials."""

from __future__ import annotations

from typing import Any

import numpy as np

import weft.numpy as _plain
from weft.eager.functions.reduction import statistic
from weft.errors import ArgumentError
from weft.jax.array import Array, canonical, given
from weft.jax.config import refuse_given, without_effect
from weft.jax.numpy import creation
from weft.jax.numpy.common import array_of, dtype_promoted, floating_of, public, where_of
from weft.jax.numpy.joining import concatenate, matmul
from weft.numpy import linalg

plain: Any = _plain

__all__: list[str] = []

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
    c = cov(x, y, rowvar)
    if not c.ndim:
        return c / c
    d = plain.sqrt(plain.diagonal(c))
    return given(plain.clip(c / d[:, None] / d[None, :], -1, 1))


@public
def histogram(
    a: Any, bins: Any = 10, range: Any = None, weights: Any = None, density: Any = None
) -> tuple[Array, Array]:
    """How many elements lie in each bin, and the edges."""
    x = plain.ravel(floating_of(a))
    if isinstance(bins, int):
        low, high = (x.min(), x.max()) if range is None else range
        edges = creation.linspace(low, high, bins + 1)
    else:
        edges = floating_of(bins)
    count = edges.shape[0] - 1
    places = plain.searchsorted(edges, x, side="right") - 1
    places = plain.where(x == edges[-1], count - 1, places)
    inside = (x >= edges[0]) & (x <= edges[-1])
    w = creation.ones_like(x) if weights is None else plain.ravel(floating_of(weights))
    found = creation.zeros(count + 1, w.dtype).at[plain.where(inside, places, count)].add(w)[:count]
    if density:
        found = found / (found.sum() * diff_of(edges))
    return found, edges


def diff_of(x: Any) -> Any:
    """Differences of neighbors."""
    return x[1:] - x[:-1]


@public
def interp(
    x: Any, xp: Any, fp: Any, left: Any = None, right: Any = None, period: Any = None
) -> Array:
    """Values of a piecewise linear function with the points (xp, fp)."""
    x, xs, ys = (floating_of(v) for v in (x, xp, fp))
    if period is not None:
        x, xs = x % period, xs % period
        turn = plain.argsort(xs)
        xs, ys = xs[turn], ys[turn]
        xs = concatenate([xs[-1:] - period, xs, xs[:1] + period])
        ys = concatenate([ys[-1:], ys, ys[:1]])
    i = plain.clip(plain.searchsorted(xs, x, side="right"), 1, xs.shape[0] - 1)
    x0, x1, y0, y1 = xs[i - 1], xs[i], ys[i - 1], ys[i]
    step = x1 - x0
    safe = where_of(step == 0, 1, step)
    found = where_of(step == 0, y0, y0 + (x - x0) / safe * (y1 - y0))
    if period is not None:
        return found
    found = where_of(x < xs[0], ys[0] if left is None else left, found)
    return where_of(x > xs[-1], ys[-1] if right is None else right, found)


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
    x, w = dtype_promoted(a, v)
    kind = x.dtype if dtype is None else canonical(dtype)
    x, w = floating_of(x), floating_of(w)
    w = w if turned else w[::-1]
    if len(x) < len(w):
        x, w = w, x
    n = len(w)
    pads = {"full": (n - 1, n - 1), "same": (n // 2, n - 1 - n // 2), "valid": (0, 0)}
    if mode not in pads:
        raise ArgumentError.here(f"convolve: expected mode full, same or valid, got {mode!r}")
    low, high = pads[mode]
    if mode == "same":
        low, high = n - 1 - (n - 1) // 2, (n - 1) // 2
    whole = plain.pad(x, ((low, high),))
    rows = np.arange(len(x) + low + high - n + 1)[:, None] + np.arange(n)[None, :]
    found = given(matmul(plain.take(whole, rows, 0), w[::-1]))
    return (found if kind.is_inexact else plain.round(found)).astype(kind)


# Polynomials: coefficients from the highest power down


@public
def polyval(p: Any, x: Any, *, unroll: int = 16) -> Array:
    """The values of a polynomial."""
    without_effect("polyval", unroll=unroll)
    c, x = dtype_promoted(p, x)
    found = creation.zeros_like(x)
    for i in range(c.shape[0]):
        found = found * x + c[i]
    return found


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
    c = array_of(p)
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
    table = given(plain.stack([x**k for k in range(deg, -1, -1)], -1))
    if w is not None:
        table, y = (
            table * array_of(w)[:, None],
            y * (array_of(w) if y.ndim == 1 else array_of(w)[:, None]),
        )
    scale = plain.sqrt((table * table).sum(0))
    found = matmul(given(linalg.pinv(table / scale, rcond=rcond)), y)
    return given(found / (scale if y.ndim == 1 else scale[:, None]))
