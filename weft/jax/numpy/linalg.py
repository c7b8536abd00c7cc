"""`jax.numpy.linalg`: `weft.numpy.linalg` with JAX's arrays."""

from __future__ import annotations

from typing import Any

import numpy as _numpy

from weft import exports as _exports
from weft import linalg as _torch
from weft.eager.functions.linalg.lapack import by_lapack as _by_lapack
from weft.eager.tensor.dispatch import recorded as _recorded
from weft.errors import ArgumentError as _ArgumentError
from weft.errors import ShapeError as _ShapeError
from weft.jax.array import given as _given
from weft.jax.face import face_of as _face_of
from weft.jax.numpy.common import floating_of as _floating_of
from weft.jax.numpy.creation import eye as _eye
from weft.jax.numpy.kind import promoted as _promoted
from weft.numpy import linalg as _linalg
from weft.ops.linalg import iterative as _iterative
from weft.ops.linalg import matrix as _matrix
from weft.ops.linalg import solution as _solution
from weft.ops.linalg.fault import as_data as _as_data

__all__ = [
    "cholesky",
    "eigh",
    "eigvals",
    "eigvalsh",
    "inv",
    "lstsq",
    "qr",
    "solve",
    "tensorinv",
    "tensorsolve",
]

_symmetric = _recorded(_matrix.symmetric)
_residuals = _recorded(_iterative.residuals)
_solve = _by_lapack(_solution.solve)


def _read(x: Any, symmetrize_input: bool) -> Any:
    return _symmetric(_floating_of(x)) if symmetrize_input else _floating_of(x)


@_as_data
def cholesky(a: Any, *, upper: bool = False, symmetrize_input: bool = True) -> Any:
    """The triangular factor of positive definite matrices: of their symmetric part, or as given."""
    return _given(_linalg.cholesky(_read(a, symmetrize_input), upper=upper))


@_as_data
def eigh(a: Any, UPLO: str | None = None, symmetrize_input: bool = True) -> Any:
    """Eigenvalues and eigenvectors of the symmetric part, or as one triangle gives them."""
    return _given(_linalg.eigh(_read(a, symmetrize_input), UPLO or "L"))


@_as_data
def eigvalsh(a: Any, UPLO: str | None = "L", *, symmetrize_input: bool = True) -> Any:
    """The eigenvalues of `eigh`."""
    return _given(_linalg.eigvalsh(_read(a, symmetrize_input), UPLO or "L"))


@_as_data
def eigvals(a: Any) -> Any:
    """The eigenvalues of square matrices, as complex numbers."""
    return _given(_torch.eigvals(_floating_of(a)))


@_as_data
def qr(a: Any, mode: str = "reduced") -> Any:
    """An orthogonal and an upper triangular factor; with `mode="r"`, the latter alone.

    Raises:
        ArgumentError: another mode.
    """
    if mode not in ("complete", "r", "reduced"):
        raise _ArgumentError.here(f"qr: expected mode reduced, complete or r, got {mode!r}")
    found = _linalg.qr(_floating_of(a), mode="complete" if mode == "complete" else "reduced")
    return _given(found.R if mode == "r" else found)


@_as_data
def tensorinv(a: Any, ind: int = 2) -> Any:
    """The inverse of an array as a map from its last axes to its first `ind` ones."""
    return _given(_torch.tensorinv(_floating_of(a), ind))


@_as_data
def tensorsolve(a: Any, b: Any, axes: Any = None) -> Any:
    """`x` such that `tensordot(a, x, x.ndim)` is `b`."""
    x, y = _promoted(_floating_of(a), b)
    return _given(_torch.tensorsolve(x, y, axes))


@_as_data
def solve(a: Any, b: Any) -> Any:
    """Solve `a @ x == b`, for a vector or matrices; infinite or NaN if `a` is singular.

    Raises:
        ShapeError: no square matrices, or another number of rows.
    """
    x, y = _promoted(_floating_of(a), _floating_of(b))
    if x.ndim < 2 or x.shape[-1] != x.shape[-2]:
        raise _ShapeError.here(f"solve: expected square matrices, got shape {x.shape}")
    if not y.ndim or y.shape[-1 if y.ndim == 1 else -2] != x.shape[-1]:
        raise _ShapeError.here(f"solve: expected {x.shape[-1]} rows, got shape {y.shape}")
    return _given(_solve(x, y, vector=y.ndim == 1))


@_as_data
def inv(a: Any) -> Any:
    """Inverse matrices; infinite or NaN if singular."""
    x = _floating_of(a)
    if x.ndim < 2 or x.shape[-1] != x.shape[-2]:
        raise _ShapeError.here(f"inv: expected square matrices, got shape {x.shape}")
    return _given(_solve(x, _eye(x.shape[-1], dtype=x.dtype), vector=False))


@_as_data
def lstsq(a: Any, b: Any, rcond: float | None = None, *, numpy_resid: bool = False) -> Any:
    """The least-squares solution with the smallest norm, residuals, rank and singular values.

    Args:
        rcond: singular values up to this fraction of the largest one count as 0.
        numpy_resid: whether there are no residuals where NumPy gives none.
    """
    x, y = _promoted(_floating_of(a), b)
    columns = y if y.ndim > 1 else y[:, None]
    usual = float(_numpy.finfo(x.dtype.numpy).eps * max(x.shape))
    limit = usual if rcond is None or rcond < 0 else rcond
    found = _torch.lstsq(x, columns, limit, driver="gelsd")
    solution = _given(found.solution)
    left = _residuals.on(x, x, solution, columns)
    if numpy_resid and (x.shape[0] <= x.shape[1] or int(found.rank) < x.shape[1]):
        left = left[:0]
    solution = solution if y.ndim > 1 else solution[:, 0]
    return solution, left, _given(found.rank), _given(found.singular_values)


_looked_up = _face_of(_linalg, "jax.numpy.linalg", _as_data)
_exports.lazy(globals(), {}, _looked_up, lambda: _linalg.__all__)
