"""Solutions of linear equations, from matrices or their factors; integer powers of matrices."""

from __future__ import annotations

from typing import Any

import numpy as np

from weft.ir.dtype import int32
from weft.ir.node import Value
from weft.ops.declaration import catalogue
from weft.ops.declaration.fact import Autocast, autocasting
from weft.ops.linalg import elimination, factorization, inversion
from weft.ops.linalg.matrix import H, T, column, constant, diagonal, dims, eye, mm
from weft.ops.shape.creation import zeros_like


def solve(a: Value, b: Value, *, vector: bool, left: bool = True) -> Value:
    """Solve `a @ x == b`, or `x @ a == b` if not `left`; a `vector` is a column."""
    if vector:
        return catalogue.squeeze(inversion.solve(a, column(b)), axes=(-1,))
    return inversion.solve(a, b) if left else T(inversion.solve(T(a), T(b)))


def solve_triangle(a: Value, b: Value, *, upper: bool, left: bool, unit: bool) -> Value:
    """`solve` for triangular `a`; the other triangle, and with `unit` the diagonal, is ignored."""
    part = elimination.triangle(a, upper, unit)
    if left:
        return inversion.solve(part, b, upper)
    return T(inversion.solve(T(part), T(b), not upper))


def cholesky_solve(b: Value, factors: Value, *, upper: bool) -> Value:
    """`solve`, given `cholesky` factors."""
    left = elimination.triangle(factors, upper, False)
    left = H(left) if upper else left
    return inversion.solve(H(left), inversion.solve(left, b, False), True)


def least_squares(a: Value, b: Value, *, l2: float, fast: bool) -> Value:
    """The x with the least sum of squares of `a @ x - b`, plus `l2` times that of x.

    Where there are many, the shortest one. It is computed from the normal equations, which squares
    the condition number, if `fast`; else by pseudo-inverses, without `l2`.
    """
    m, n = dims(a)[-2:]
    if not fast:
        return mm(pinv(a, _precision(a)), b)
    added = constant(l2, a.dtype) * eye(min(m, n), a.dtype)
    if m >= n:
        return _from_gram(mm(H(a), a) + added, mm(H(a), b))
    return mm(H(a), _from_gram(mm(a, H(a)) + added, b))


def _from_gram(gram: Value, b: Value) -> Value:
    return cholesky_solve(b, factorization.cholesky(gram), upper=False)


def pinv(a: Value, limit: Any = None) -> Value:
    """Pseudo-inverses; singular values up to a fraction of the largest count as 0.

    Args:
        limit: the fraction; by default ten times the larger size times the dtype's precision.
    """
    if limit is None:
        limit = 10 * _precision(a)
    return inversion.pinv(a, constant(limit, a.dtype.real), False)


def matrix_rank(a: Value, limit: Any = None) -> Value:
    """How many singular values are above a limit, as int32.

    Args:
        limit: by default the largest one times the larger size times the dtype's precision.
    """
    s = factorization.svdvals(a)
    if limit is None:
        least = catalogue.max(s, axes=(-1,), keepdims=True) * constant(_precision(a), s.dtype)
    else:
        least = constant(limit, s.dtype)
    return catalogue.sum(catalogue.cast(catalogue.greater(s, least), dtype=int32), axes=(-1,))


def _precision(a: Value) -> float:
    """The larger size times the precision of the dtype."""
    return max(dims(a)[-2:]) * float(np.finfo(a.dtype.numpy).eps)


def logdet(a: Value) -> Value:
    """Logarithms of the determinants of positive definite matrices."""
    logs = catalogue.log(diagonal(factorization.cholesky(a)))
    return catalogue.sum(logs, axes=(-1,)) * constant(2, a.dtype)


def cholesky_inverse(factors: Value, *, upper: bool) -> Value:
    """Inverses, given `cholesky` factors."""
    return cholesky_solve(eye(dims(factors)[-1], factors.dtype), factors, upper=upper)


def lu_solve(both: Value, pivots: Value, b: Value, *, left: bool, adjoint: bool) -> Value:
    """`solve`, given LU factors in one matrix and pivots; with `adjoint`, for adjoint matrices."""
    if not left:
        turned = lu_solve(both, pivots, H(b), left=True, adjoint=not adjoint)
        return H(turned)
    lower, upper = (elimination.triangle(both, side, not side) for side in (False, True))
    order = elimination.row_order(pivots, dims(both)[-1])
    lead = np.broadcast_shapes(dims(both)[:-2], dims(b)[:-2])
    b = catalogue.broadcast_to(b, shape=(*lead, *dims(b)[-2:]))
    order = catalogue.broadcast_to(order, shape=(*lead, dims(both)[-1]))
    if adjoint:
        found = inversion.solve(H(lower), inversion.solve(H(upper), b))
        return elimination.rows_put_back(found, order)
    return inversion.solve(upper, inversion.solve(lower, elimination.rows_in_order(b, order)))


@autocasting(Autocast.LOW)
def matrix_power(x: Value, *, n: int) -> Value:
    """Square matrices to a nonnegative integer power, by repeated squaring."""
    if not n:
        return catalogue.broadcast_to(eye(dims(x)[-1], x.dtype), shape=dims(x)) + zeros_like(x)
    base, found = x, None
    while n:
        if n & 1:
            found = base if found is None else catalogue.matmul(found, base)
        n >>= 1
        base = catalogue.matmul(base, base) if n else base
    assert found is not None
    return catalogue.identity(found) if found is x else found
