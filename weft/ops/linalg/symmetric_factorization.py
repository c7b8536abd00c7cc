"""LDL factorization of symmetric indefinite matrices, as graph nodes.

Source: Bunch and Kaufman, "Some Stable Methods for Calculating Inertia and Solving Symmetric Linear
Systems" (1977); pivots are those of LAPACK's `sytrf` and `hetrf` for lower triangles.
"""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np

from weft.ir.dtype import int32
from weft.ir.node import Value
from weft.ops.boundary.routine import routine
from weft.ops.linalg.inversion import call
from weft.ops.linalg.matrix import conj, dims

_ALPHA: Final = (1 + math.sqrt(17)) / 8  # bounds the growth of elements


def ldl(a: Value, hermitian: bool) -> tuple[Value, ...]:
    """`l` below the diagonal of `d`, pivots, and the first zero column (from 1)."""
    *lead, n, _ = dims(a)
    kinds = [(a.dtype, dims(a)), (int32, (*lead, n)), (int32, tuple(lead))]
    return call(_ldl.of(hermitian), a, types_of=kinds)


@routine
def _ldl(hermitian: bool, a: Any) -> tuple[Any, ...]:
    lead, n = a.shape[:-2], a.shape[-1]
    factors, pivots = np.zeros_like(a), np.zeros((*lead, n), np.int32)
    info = np.zeros(lead, np.int32)
    for at in np.ndindex(*lead):
        factors[at], pivots[at], info[at] = _factors(a[at], hermitian)
    return factors, pivots, info


def _turned(x: Any, hermitian: bool) -> Any:
    return np.conj(x.T) if hermitian else x.T


def _factors(a: Any, hermitian: bool) -> tuple[Any, Any, int]:
    x = np.tril(a)
    if hermitian:
        np.fill_diagonal(x, x.diagonal().real)
    x += _turned(np.tril(x, -1), hermitian)
    n, k, fault = len(x), 0, 0
    pivots = np.zeros(n, np.int32)
    while k < n:
        at, step = _pivot(x, k)
        last = k + step - 1
        pivots[k : last + 1] = at + 1 if step == 1 else -at - 1
        x[[last, at], k:] = x[[at, last], k:]
        x[k:, [last, at]] = x[k:, [at, last]]
        block = x[k : k + step, k : k + step]
        if step == 1 and block[0, 0] == 0:
            fault = fault or k + 1
        else:
            below = x[k + step :, k : k + step].copy()
            x[k + step :, k : k + step] = np.linalg.solve(block.T, below.T).T
            x[k + step :, k + step :] -= x[k + step :, k : k + step] @ _turned(below, hermitian)
        k += step
    return np.tril(x), pivots, fault


def _pivot(x: Any, k: int) -> tuple[int, int]:
    """The next pivot row, and the block size: 1 or 2 columns."""
    here, below = _size(x[k, k]), _size(x[k + 1 :, k])
    most = below.max(initial=0)
    if here >= _ALPHA * most:
        return k, 1
    at = k + 1 + int(below.argmax())
    row = _size(x[at, k:])
    diagonal, row[at - k] = row[at - k], 0
    if here * row.max() >= _ALPHA * most * most:
        return k, 1
    return at, 1 if diagonal >= _ALPHA * row.max() else 2


def _size(x: Any) -> Any:
    """The 1-norm of numbers, which LAPACK compares."""
    return np.abs(x.real) + np.abs(x.imag)


def ldl_solve(factors: Value, pivots: Value, b: Value, hermitian: bool) -> Value:
    """Solve equations, given a result of `ldl`; leading axes are equal."""
    kind = (b.dtype, dims(b))
    return call(
        _solve.of(hermitian), factors, pivots, b, types_of=[kind],
        gradient=_of_ldl_solve.of(hermitian), title="ldl_solve",
    )[0]  # fmt: skip


@routine
def _of_ldl_solve(
    hermitian: bool, g: Any, y: Any, factors: Value, pivots: Value, b: Value
) -> list[Value | None]:
    to_b = conj(g[0]) if hermitian else g[0]
    found = ldl_solve(factors, pivots, to_b, hermitian)
    return [None, None, conj(found) if hermitian else found]


@routine
def _solve(hermitian: bool, factors: Any, pivots: Any, b: Any) -> Any:
    found = np.array(b)
    for at in np.ndindex(*b.shape[:-2]):
        _substitute(factors[at], pivots[at], found[at], hermitian)
    return found


def _substitute(x: Any, pivots: Any, b: Any, hermitian: bool) -> None:
    """Solve in place of the right sides."""
    blocks: list[tuple[int, int, int]] = []
    k = 0
    while k < len(x):
        end = k + (1 if pivots[k] > 0 else 2)
        blocks.append((k, end, abs(int(pivots[k])) - 1))
        k = end
    for k, end, at in blocks:
        b[[end - 1, at]] = b[[at, end - 1]]
        b[end:] -= x[end:, k:end] @ b[k:end]
        block = x[k:end, k:end] + _turned(np.tril(x[k:end, k:end], -1), hermitian)
        b[k:end] = np.linalg.solve(block, b[k:end])
    for k, end, at in reversed(blocks):
        b[k:end] -= _turned(x[end:, k:end], hermitian) @ b[end:]
        b[[end - 1, at]] = b[[at, end - 1]]
