"""`jax.lax.linalg`."""

from __future__ import annotations

from typing import Any

from weft.jax.config import refuse_given
from weft.jax.numpy import api as _numpy
from weft.jax.scipy import linalg as _linalg

jnp: Any = _numpy

__all__ = ["cholesky", "eigh", "qr", "svd", "triangular_solve"]


def cholesky(x: Any, *, symmetrize_input: bool = True) -> Any:
    """The lower triangular factor."""
    return jnp.linalg.cholesky(x, symmetrize_input=symmetrize_input)


def eigh(x: Any, *, lower: bool = True, symmetrize_input: bool = True) -> Any:
    """Eigenvectors, and eigenvalues."""
    UPLO = "L" if lower else "U"
    w, v = jnp.linalg.eigh(x, UPLO=UPLO, symmetrize_input=symmetrize_input)
    return v, w


def qr(x: Any, *, full_matrices: bool = True) -> Any:
    """The factors of a QR decomposition."""
    return jnp.linalg.qr(x, mode="complete" if full_matrices else "reduced")


def svd(x: Any, *, full_matrices: bool = True, compute_uv: bool = True) -> Any:
    """The singular value decomposition."""
    if not compute_uv:
        return jnp.linalg.svdvals(x)
    return jnp.linalg.svd(x, full_matrices=full_matrices)


def triangular_solve(
    a: Any, b: Any, *, left_side: bool = False, lower: bool = False, transpose_a: bool = False,
    conjugate_a: bool = False, unit_diagonal: bool = False,
) -> Any:  # fmt: skip
    """The solution of a triangular system."""
    refuse_given("triangular_solve", conjugate_a=conjugate_a)
    if left_side:
        return _linalg.solve_triangular(
            a, b, trans=int(transpose_a), lower=lower, unit_diagonal=unit_diagonal
        )
    turned = jnp.swapaxes(jnp.asarray(b), -1, -2)
    found = _linalg.solve_triangular(
        a, turned, trans=int(not transpose_a), lower=lower, unit_diagonal=unit_diagonal
    )
    return jnp.swapaxes(found, -1, -2)
