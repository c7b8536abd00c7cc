"""Inverses, solutions of equations and determinants by LAPACK as graph nodes, with gradients.

Conventions and sources of the gradients are those of `weft.ops.linalg.factorization`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from weft.ir.node import Value
from weft.ir.shape import compatible
from weft.ops.boundary.host import Type
from weft.ops.boundary.host import call as host_call
from weft.ops.boundary.routine import routine
from weft.ops.declaration import catalogue
from weft.ops.linalg import fault
from weft.ops.linalg.matrix import (
    H,
    T,
    column,
    conj,
    constant,
    dims,
    eye,
    like,
    mm,
)


def call(
    function: Callable[..., Any], *xs: Value, types_of: Sequence[Type],
    gradient: Callable[..., Any] | None = None, title: str = "host_call",
    instead: Callable[..., Any] | None = None,
) -> tuple[Value, ...]:  # fmt: skip
    """Call a function of LAPACK, which takes any leading axes.

    Args:
        instead: what is computed of a matrix where it fails and failures are data.
    """
    if fault.are_data():
        axes = len(dims(xs[0])) - 2
        one = tuple([(dtype, tuple(shape[axes:])) for dtype, shape in types_of])
        function = fault.Filled(function, one, instead)
        gradient = gradient and fault.GradientOfData(gradient)
    return host_call(function, *xs, types_of=types_of, gradient=gradient, title=title, wide=True)


# Equations


def inv(a: Value) -> Value:
    """Inverse matrices."""
    return _inverse(a, _inv)


@routine
def _inv(a: Any) -> Any:
    try:
        return np.linalg.inv(a)
    except np.linalg.LinAlgError as error:
        text = f"{error}, which has no inverse; pinv() takes any, inv_ex() says which it is"
        raise np.linalg.LinAlgError(text) from error


@routine
def _solve(a: Any, b: Any) -> Any:
    try:
        return np.linalg.solve(a, b)
    except np.linalg.LinAlgError as error:
        text = f"{error}: no solution or many; lstsq() takes any, solve_ex() says which it is"
        raise np.linalg.LinAlgError(text) from error


def inv_where_possible(a: Value) -> Value:
    """Inverse matrices; infinite if singular."""
    return _inverse(a, _inv_where_possible)


def _inverse(a: Value, run: Any) -> Value:
    kinds = [(a.dtype, dims(a))]
    return call(run, a, types_of=kinds, gradient=_of_inverse, title="inv", instead=_eliminated)[0]


@routine
def _of_inverse(g: Any, y: Any, a: Value) -> list[Value]:
    return [-mm(T(y[0]), g[0], T(y[0]))]


@routine
def _eliminated(a: Any) -> Any:
    return _eliminated_solution(a, np.eye(len(a), dtype=a.dtype))


@routine
def _inv_where_possible(a: Any) -> Any:
    try:
        return np.linalg.inv(a)
    except np.linalg.LinAlgError:
        if a.ndim == 2:
            return np.full_like(a, np.inf)
        return np.stack([_inv_where_possible(x) for x in a])


def solve(a: Value, b: Value, upper: bool | None = None) -> Value:
    """Solve `a @ x == b`, for matrices.

    Args:
        upper: of a triangle, whether it is the upper one.
    """
    if fault.are_data() and dims(a)[-2:] == (1, 1) == (1, dims(b)[-2]):
        return b / a  # filters of one measurement solve this in loops
    a, b = _of_one_batch(a, b)
    other = _eliminated_solution if upper is None else substituted.of(upper)
    return call(
        _solve, a, b, types_of=[(a.dtype, dims(b))], gradient=_of_solve.of(upper), title="solve",
        instead=other,
    )[0]  # fmt: skip


@routine
def _of_solve(upper: bool | None, g: Any, y: Any, a: Value, b: Value) -> list[Value]:
    to_b = solve(T(a), g[0], None if upper is None else not upper)
    return [-mm(to_b, T(y[0])), to_b]


def _of_one_batch(*xs: Value) -> tuple[Value, ...]:
    """Matrices whose leading axes are broadcast; unknown ones are equal."""
    leads = [x.shape[:-2] for x in xs if x.shape is not None]
    if all([compatible(lead, leads[0]) for lead in leads]):
        return xs
    lead = np.broadcast_shapes(*[dims(x)[:-2] for x in xs])
    return tuple([catalogue.broadcast_to(x, shape=(*lead, *dims(x)[-2:])) for x in xs])


def eliminated(a: Any, pivot: bool = True) -> tuple[Any, Any]:
    """Both factors in one matrix, and for each k the row swapped with it, counted from 0."""
    found = np.array(a, order="C")
    m, n = found.shape[-2:]
    flat = found.reshape(math.prod(found.shape[:-2]), m, n)
    every = np.arange(len(flat))
    swaps = np.zeros((len(flat), min(m, n)), np.int64)
    for k in range(min(m, n)):
        at = k + np.abs(flat[:, k:, k]).argmax(1) if pivot else np.full(len(flat), k)
        swaps[:, k] = at
        flat[every, k], flat[every, at] = flat[every, at], flat[every, k]
        corner = flat[:, k, k, None]
        below = flat[:, k + 1 :, k]
        below /= np.where(corner == 0, 1, corner)
        flat[:, k + 1 :, k + 1 :] -= below[:, :, None] * flat[:, k, None, k + 1 :]
    return found, swaps.reshape(*found.shape[:-2], min(m, n))


@routine
def _eliminated_solution(a: Any, b: Any) -> Any:
    """Infinities and NaN where elimination divides by zero."""
    factors, swaps = eliminated(a)
    x = b.copy()
    for i, swap in enumerate(swaps):
        x[[i, swap]] = x[[swap, i]]
    x = substituted(False, np.tril(factors, -1) + np.eye(len(a), dtype=a.dtype), x)
    return substituted(True, factors, x)


@routine
def substituted(upper: bool, a: Any, b: Any) -> Any:
    """The solution for a triangle, row after row: infinities and NaN where the diagonal is 0."""
    x, done = b.copy(), []
    with np.errstate(all="ignore"):
        for i in reversed(range(len(x))) if upper else range(len(x)):
            x[i] = (x[i] - a[i, done] @ x[done]) / a[i, i]
            done.append(i)
    return x


def pinv(a: Value, limit: Value, hermitian: bool) -> Value:
    """Pseudo-inverses; singular values up to a fraction `limit` of the largest count as 0.

    (Golub and Pereyra, "The Differentiation of Pseudo-Inverses", 1973.)
    """
    run = _hermitian_pinv if hermitian else _PINV
    *lead, m, n = dims(a)
    return call(run, a, limit, types_of=[(a.dtype, (*lead, n, m))], gradient=_of_pinv)[0]


@routine
def _of_pinv(g: Any, y: Any, a: Value, limit: Value) -> list[Value | None]:
    p, to_p = y[0], conj(g[0])
    m, n = dims(a)[-2:]
    left, right = eye(m, a.dtype) - mm(a, p), eye(n, a.dtype) - mm(p, a)
    found = mm(left, H(to_p), p, H(p)) + mm(H(p), p, H(to_p), right) - mm(H(p), to_p, H(p))
    return [conj(found), None]


_PINV: Final = routine(np.linalg.pinv)


@routine
def _hermitian_pinv(a: Any, limit: Any) -> Any:
    w, v = np.linalg.eigh(a)
    size = np.abs(w)
    kept = size > np.asarray(limit)[..., None] * size.max(-1, keepdims=True, initial=0)
    inverse = np.where(kept, 1 / np.where(kept, w, 1), 0).astype(a.dtype)
    return (v * inverse[..., None, :]) @ np.conj(np.swapaxes(v, -1, -2))


# Determinants


@routine
def _cofactors(a: Any) -> Any:
    """The gradient of the determinant, also where that is 0."""
    u, s, v = np.linalg.svd(a)
    n = s.shape[-1]
    others = np.where(np.eye(n, dtype=bool), 1, s[..., None, :]).prod(-1).astype(a.dtype)
    sign = np.linalg.det(u) * np.linalg.det(v)
    found = np.conj(u * others[..., None, :] @ v)
    return np.asarray(sign)[..., None, None] * found


def _cofactor(a: Value) -> Value:
    return call(_cofactors, a, types_of=[(a.dtype, dims(a))], gradient=_of_cofactors)[0]


@routine
def _of_cofactors(g: Any, y: Any, a: Value) -> list[Value]:
    # The derivative of det(a) * inv(a).T, for invertible matrices.
    inverse = T(inv(a))
    total = catalogue.sum(g[0] * y[0], axes=(-2, -1), keepdims=True)
    return [total * inverse - mm(inverse, T(g[0]), y[0])]


_DET: Final = routine(np.linalg.det)


def det(a: Value) -> Value:
    """Determinants."""
    return call(_DET, a, types_of=[(a.dtype, dims(a)[:-2])], gradient=_of_det)[0]


@routine
def _of_det(g: Any, y: Any, a: Value) -> list[Value]:
    return [column(column(g[0])) * _cofactor(a)]


def slogdet(a: Value) -> tuple[Value, ...]:
    """Signs of determinants, and logarithms of their absolute values."""
    lead = dims(a)[:-2]
    kinds = [(a.dtype, lead), (a.dtype.real, lead)]
    return call(_slogdet, a, types_of=kinds, gradient=_of_slogdet)


@routine
def _of_slogdet(g: Any, y: Any, a: Value) -> list[Value]:
    scale = like(g[1], a)
    if a.dtype.is_complex:
        turn = catalogue.real(g[0] * y[0] * constant(1j, a.dtype))
        scale = scale - constant(1j, a.dtype) * like(turn, a)
    return [column(column(scale)) * T(inv(a))]


@routine
def _slogdet(a: Any) -> tuple[Any, ...]:
    return tuple(np.linalg.slogdet(a))
