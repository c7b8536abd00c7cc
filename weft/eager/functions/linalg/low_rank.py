"""Low-rank approximation: the largest singular values and vectors, by random projections.

Source: Halko, Martinsson and Tropp, "Finding Structure with Randomness" (2011), algorithms 4.4 and
5.1.
"""

from __future__ import annotations

import builtins
from typing import TYPE_CHECKING, Any

from weft.eager.functions.elementwise.complex_number import adjoint
from weft.eager.functions.linalg.factorization import Turned, qr_of, svd_of
from weft.eager.functions.linalg.matrix import matrices
from weft.eager.functions.linalg.product import matmul
from weft.eager.functions.random.generator import randn
from weft.eager.functions.reduction.reduce import mean
from weft.eager.tensor.argument import dims_of, integer
from weft.errors import ShapeError

if TYPE_CHECKING:
    pass

__all__ = ["pca_lowrank", "svd_lowrank"]


def svd_lowrank(A: Any, q: int | None = 6, niter: int = 2, M: Any = None) -> Turned:
    """Approximately the `q` largest singular values of matrices, with their vectors as columns.

    Args:
        A: shape (..., m, n).
        q: how many, slightly more than the approximate rank; at most min(m, n).
        niter: number of power iterations; more are more accurate.
        M: subtracted from `A` first.

    Raises:
        ShapeError: no matrices, or a `q` or `niter` that there cannot be.

    Example:
        >>> import weft as wf
        >>> a = wf.ones(5, 1) @ wf.ones(1, 4)
        >>> wf.svd_lowrank(a, q=2).S[0].isclose(wf.tensor(20.0).sqrt()).item()
        True
    """
    matrices("svd_lowrank", A)
    x = A if M is None else A - M
    m, n = dims_of(x)[-2:]
    count = integer("svd_lowrank", 6 if q is None else q)
    if not 0 <= count <= builtins.min(m, n) or niter < 0:
        raise ShapeError.here(
            f"svd_lowrank: expected q from 0 to {builtins.min(m, n)} and niter of 0 or more, got "
            f"{count} and {niter}"
        )
    if m < n:
        u, s, v = svd_lowrank(adjoint(x), count, niter)
        return Turned(v, s, u)
    basis = qr_of(matmul(x, randn(n, count, dtype=x.dtype))).Q
    for _ in range(niter):
        basis = qr_of(matmul(adjoint(x), basis)).Q
        basis = qr_of(matmul(x, basis)).Q
    u, s, vh = svd_of(matmul(adjoint(basis), x), full_matrices=False)
    return Turned(matmul(basis, u), s, adjoint(vh))


def pca_lowrank(A: Any, q: int | None = None, center: bool = True, niter: int = 2) -> Turned:
    """Approximately the `q` principal components of rows of data: `svd_lowrank` of centered data.

    Args:
        A: shape (..., rows, columns).
        q: how many; by default min(6, rows, columns).
        center: whether to subtract each column's mean.
        niter: as for `svd_lowrank`.

    Raises:
        ShapeError: no matrices, or a `q` or `niter` that there cannot be.
    """
    matrices("pca_lowrank", A)
    count = builtins.min(6, *dims_of(A)[-2:]) if q is None else q
    return svd_lowrank(A - mean(A, -2, True) if center else A, count, niter)
