"""Gaussian elimination and matrix exponentials as graph nodes, with gradients.

Sources: Golub and Van Loan, "Matrix Computations" (2013), 3.4; de Hoog, Anderssen and Lukas,
"Differentiation of Matrix Functionals Using Triangular Factorization" (2011); Higham, "The Scaling
and Squaring Method for the Matrix Exponential Revisited" (2005); Najfeld and Havel, "Derivatives of
the Matrix Exponential and Their Computation" (1995).
"""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np

from weft.ir.dtype import int32, int64
from weft.ir.node import Value
from weft.ops.boundary.routine import routine
from weft.ops.declaration import catalogue
from weft.ops.linalg.inversion import call, eliminated, solve
from weft.ops.linalg.matrix import H, T, column, conj, constant, dims, eye, mm
from weft.ops.shape.creation import tril, triu, zeros_like

# Triangles


def triangle(a: Value, upper: bool, unit: bool) -> Value:
    """A triangle of matrices, zeros elsewhere; with ones on the diagonal if `unit`."""
    part = triu(a, int(unit)) if upper else tril(a, -int(unit))
    rows, columns = dims(a)[-2:]
    return part + constant(np.eye(rows, columns), a.dtype) if unit else part


# Elimination


@routine
def _order(rows: int, pivots: Any) -> Any:
    """The row permutation of pivots counted from 1.

    Raises:
        ValueError: a pivot is no row number.
    """
    swaps = pivots.astype(np.int64) - 1
    if swaps.size and not 0 <= swaps.min() <= swaps.max() < rows:
        raise ValueError(f"expected pivots from 1 to {rows}, as lu_factor gives")
    flat = swaps.reshape(math.prod(swaps.shape[:-1]), swaps.shape[-1])
    every = np.arange(len(flat))
    found = np.tile(np.arange(rows), (len(flat), 1))
    for k in range(flat.shape[1]):
        at = flat[:, k]
        found[every, k], found[every, at] = found[every, at], found[every, k]
    return found.reshape(*swaps.shape[:-1], rows)


def row_order(pivots: Value, rows: int) -> Value:
    """The row permutation of LAPACK's pivots, which count from 1."""
    kind = (int64, (*dims(pivots)[:-1], rows))
    return call(_order.of(rows), pivots, types_of=[kind], title="pivots")[0]


def _factors(a: Value) -> Value:
    """Both factors in one matrix, without pivoting."""

    return call(_unpivoted, a, types_of=[(a.dtype, dims(a))], gradient=_of_factors)[0]


@routine
def _of_factors(g: Any, y: Any, a: Value) -> list[Value]:
    m, n = dims(a)[-2:]
    k = min(m, n)
    square = y[0][..., :k, :k]
    left, right = triangle(square, False, True), triangle(square, True, False)
    to_both = conj(g[0])
    to_square = to_both[..., :k, :k]
    rest: Value | None = None
    if n > k:  # left @ y[:, k:] is a[:, k:]
        rest = solve(H(left), to_both[..., :, k:])
        to_square = to_square - tril(mm(rest, H(y[0][..., :, k:])), -1)
    if m > k:  # y[k:] @ right is a[k:]
        rest = H(solve(right, H(to_both[..., k:, :])))
        to_square = to_square - triu(mm(H(y[0][..., k:, :]), rest))
    inner = tril(mm(H(left), tril(to_square, -1)), -1) + triu(mm(triu(to_square), H(right)))
    found = H(solve(right, H(solve(H(left), inner))))
    if rest is not None:
        found = catalogue.concatenate(found, rest, axis=-1 if n > k else -2)
    return [conj(found)]


@routine
def _unpivoted(a: Any) -> Any:
    return eliminated(a, pivot=False)[0]


@routine
def _pivots(a: Any) -> Any:
    return eliminated(a)[1] + 1


_ARGSORT: Final = routine(np.argsort)


def lu(a: Value) -> tuple[Value, Value]:
    """Both triangular factors in one matrix, and the pivots, counted from 1."""
    *lead, m, n = dims(a)
    k = min(m, n)
    swaps = call(_pivots, a, types_of=[(int32, (*lead, k))])[0]
    return _factors(rows_in_order(a, row_order(swaps, m))), swaps


def rows_in_order(a: Value, order: Value) -> Value:
    """The rows of matrices, permuted."""
    places = catalogue.broadcast_to(column(order), shape=dims(a))
    return catalogue.take_along_axis(a, places, axis=-2)


def rows_put_back(a: Value, order: Value) -> Value:
    """The inverse permutation of `rows_in_order`."""
    kind = (int64, dims(order))
    return rows_in_order(a, call(_ARGSORT, order, types_of=[kind])[0])


def first_singular(a: Value) -> Value:
    """The first column without a pivot, counted from 1, as int32; 0 if none."""
    return call(_first_singular, a, types_of=[(int32, dims(a)[:-2])])[0]


@routine
def _first_singular(a: Any) -> Any:
    zero = np.diagonal(eliminated(a)[0], axis1=-2, axis2=-1) == 0
    return np.where(zero.any(-1), zero.argmax(-1) + 1, 0) if zero.size else zero.sum(-1)


# Exponentials

# Coefficients of the Padé approximation of degree 13, and the norm up to which it has float64's
# accuracy (Higham's table 2.3).
_PADE: Final = [
    math.factorial(26 - k) * math.factorial(13) // (math.factorial(13 - k) * math.factorial(k))
    for k in range(14)
]
_EXACT_UP_TO: Final = 5.37


@routine
def _exponential(a: Any) -> Any:
    norm = np.abs(a).sum(-2).max(initial=0)
    if not np.isfinite(norm):
        return np.full_like(a, np.nan)
    halvings = max(0, math.ceil(math.log2(norm / _EXACT_UP_TO))) if norm else 0
    x = a.astype(np.result_type(a, np.float64)) / 2.0**halvings
    one = np.broadcast_to(np.eye(a.shape[-1]), a.shape)
    weights = [c / _PADE[13] for c in _PADE]
    powers = [one, square := x @ x, square @ square, square @ square @ square]
    odd, even = (
        powers[3] @ sum(weights[2 * k + 6 + s] * powers[k] for k in (1, 2, 3))
        + sum(weights[2 * k + s] * powers[k] for k in range(4))
        for s in (1, 0)
    )
    found = np.linalg.solve(even - x @ odd, even + x @ odd)
    for _ in range(halvings):
        found = found @ found
    return found


def matrix_exp(a: Value) -> Value:
    """The matrix exponential: the sum of `a ** k / k!`."""
    return call(_exponential, a, types_of=[(a.dtype, dims(a))], gradient=_of_exponential)[0]


@routine
def _of_exponential(g: Any, y: Any, a: Value) -> list[Value]:
    n = dims(a)[-1]
    upper = catalogue.concatenate(T(a), g[0], axis=-1)
    below = catalogue.concatenate(zeros_like(a), T(a), axis=-1)
    return [matrix_exp(catalogue.concatenate(upper, below, axis=-2))[..., :n, n:]]


# Householder reflectors


def householder_product(a: Value, scale: Value) -> Value:
    """The first columns of the product of the Householder reflectors `1 - scale * v @ v.T`.

    The vectors `v` are the columns of `a` below the diagonal, with 1 on it.
    """
    *lead, m, n = dims(a)
    found = catalogue.broadcast_to(eye(m, a.dtype)[:, :n], shape=(*lead, m, n))
    return reflected(a, scale, found)


def reflected(a: Value, scale: Value, x: Value, transposed: bool = False) -> Value:
    """The product of the reflectors and matrices; in reverse order if `transposed`."""
    vectors = triangle(a, False, True)
    order = range(dims(scale)[-1])
    for k in order if transposed else reversed(order):
        v, factor = vectors[..., :, k : k + 1], column(scale[..., k : k + 1])
        x = x - (conj(factor) if transposed else factor) * mm(v, mm(H(v), x))
    return x
