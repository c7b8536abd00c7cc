"""`jax.scipy.linalg`: `weft.scipy.linalg` on JAX's arrays."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

import numpy as np

from weft import exports as _exports
from weft import linalg as _wl
from weft.documentation import named
from weft.eager.functions import api as _api
from weft.eager.functions.linalg.lapack import by_lapack
from weft.errors import ArgumentError
from weft.jax.array import canonical
from weft.jax.array import given as _given
from weft.jax.config import refuse_given, without_effect
from weft.jax.face import face_of as _face_of
from weft.jax.host import several
from weft.jax.numpy import api as _numpy
from weft.jax.numpy.kind import promoted as _promoted
from weft.ops.linalg import factorization
from weft.ops.linalg.fault import as_data as _as_data
from weft.scipy import linalg as _linalg

jnp: Any = _numpy
_polar = by_lapack(factorization.polar)

__all__ = [
    "cho_factor", "cho_solve", "cholesky", "circulant", "eigh_tridiagonal", "expm", "hadamard",
    "helmert", "hessenberg", "hilbert", "invhilbert", "invpascal", "lu", "lu_factor", "lu_solve",
    "pascal", "polar", "qr", "schur", "solve", "sqrtm", "svd", "toeplitz",
]  # fmt: skip


def _of(x: Any) -> Any:
    return jnp.asarray(x, None if jnp.asarray(x).dtype.is_inexact else float)


def cholesky(
    a: Any, lower: bool = False, overwrite_a: bool = False, check_finite: bool = True
) -> Any:
    """The triangular factor of a positive definite matrix: upper unless `lower`."""
    without_effect("cholesky", overwrite_a=overwrite_a, check_finite=check_finite)
    given = _of(a) if lower else jnp.conj(jnp.swapaxes(_of(a), -1, -2))
    factor = jnp.linalg.cholesky(given, symmetrize_input=False)
    return factor if lower else jnp.conj(jnp.swapaxes(factor, -1, -2))


def cho_factor(a: Any, lower: bool = False, **_: Any) -> tuple[Any, bool]:
    """The factor for `cho_solve`, and whether it is the lower one."""
    return cholesky(a, lower), lower


def cho_solve(c_and_lower: tuple[Any, bool], b: Any, **_: Any) -> Any:
    """The solution of a system from the factor of its matrix."""
    c, lower = c_and_lower
    first, second = ("N", "C") if lower else ("C", "N")
    y = solve_triangular(c, b, trans=first, lower=lower)
    return solve_triangular(c, y, trans=second, lower=lower)


@_as_data
def solve_triangular(
    a: Any, b: Any, trans: Any = 0, lower: bool = False, unit_diagonal: bool = False, **_: Any
) -> Any:
    """The solution of a triangular system."""
    x, y = _promoted(_of(a), b)
    code = 0 if trans == "N" else trans
    return _given(_linalg.solve_triangular(x, y, code, lower, unit_diagonal))


@_as_data
def solve(a: Any, b: Any, lower: bool = False, assume_a: str = "gen", **_: Any) -> Any:
    """The solution of a linear system; of a positive definite matrix, `lower` is read or not.

    Raises:
        ArgumentError: an unknown kind of matrix.
    """
    if assume_a not in ("gen", "her", "pos", "sym"):
        raise ArgumentError.here(
            f"solve: expected assume_a of gen, her, pos, sym, got {assume_a!r}"
        )
    if assume_a == "pos":
        return cho_solve(cho_factor(a, lower), b)
    return jnp.linalg.solve(*_promoted(_of(a), b))


def lu_factor(a: Any, **_: Any) -> tuple[Any, Any]:
    """The LU factors in one matrix, and the rows that were exchanged, from 0 on."""
    lu_, pivots = _wl.lu_factor(_of(a))
    return _given(lu_), _given(pivots) - 1


@_as_data
def lu_solve(lu_and_piv: tuple[Any, Any], b: Any, trans: int = 0, **_: Any) -> Any:
    """The solution of a system from the LU factors of its matrix."""
    refuse_given("lu_solve", trans=trans)
    factors, pivots = lu_and_piv
    right = _of(b)
    column = right[..., None] if right.ndim == 1 else right
    found = _given(_wl.lu_solve(factors, pivots + 1, column))
    return found[..., 0] if right.ndim == 1 else found


def lu(a: Any, permute_l: bool = False, **_: Any) -> Any:
    """The factors of an LU decomposition: a permutation, a lower and an upper matrix."""
    p, low, up = map(_given, _api.lu_unpack(*_wl.lu_factor(_of(a))))
    return (p @ low, up) if permute_l else (p, low, up)


def qr(a: Any, mode: str = "full", **_: Any) -> Any:
    """The factors of a QR decomposition."""
    found = jnp.linalg.qr(_of(a), "reduced" if mode == "economic" else "complete")
    return found[1] if mode == "r" else tuple(found)


def svd(a: Any, full_matrices: bool = True, compute_uv: bool = True, **_: Any) -> Any:
    """The singular value decomposition."""
    if not compute_uv:
        return jnp.linalg.svdvals(_of(a))
    return tuple(jnp.linalg.svd(_of(a), full_matrices=full_matrices))


def expm(A: Any, **_: Any) -> Any:
    """The exponential of a matrix."""
    return _given(_api.matrix_exp(_of(A)))


def toeplitz(c: Any, r: Any = None) -> Any:
    """A matrix with constant diagonals."""
    first = jnp.ravel(jnp.asarray(c))
    row = jnp.conj(first) if r is None else jnp.ravel(jnp.asarray(r))
    whole = jnp.concatenate([first[::-1], row[1:]])
    n, m = first.shape[0], row.shape[0]
    return whole[np.arange(n)[::-1][:, None] + np.arange(m)[None, :]]


def _scipy(name: str) -> Any:
    return getattr(importlib.import_module("scipy.linalg"), name)


def _constant(name: str) -> Callable[..., Any]:
    """A matrix that only numbers choose."""

    def run(n: int, *args: Any, **kwargs: Any) -> Any:
        found = _scipy(name)(n, *args, **kwargs)
        return jnp.asarray(found, float if found.dtype.kind == "u" else None)

    return named(name, f"`scipy.linalg.{name}`.")(run)


def _arranged(name: str) -> Callable[..., Any]:
    """A matrix whose elements are those of a vector."""

    def run(c: Any, *args: Any) -> Any:
        x = jnp.ravel(jnp.asarray(c))
        return x[_scipy(name)(np.arange(x.shape[0]), *args)]

    return named(name, f"`scipy.linalg.{name}`.")(run)


def _factors(name: str, count: int) -> Callable[..., Any]:
    """A factorization into square matrices, without a gradient."""

    def run(a: Any, *args: Any, **kwargs: Any) -> Any:
        x = _of(a)
        options = {k: v for k, v in kwargs.items() if k not in ("overwrite_a", "check_finite")}
        wide = name == "sqrtm" or "complex" in (*args, options.get("output"))
        kind = (canonical("complex128") if wide else x.dtype, tuple(x.shape))
        found = several(lambda m: _scipy(name)(m, *args, **options), [x], [kind] * count)
        return found[0] if count == 1 else tuple(found)

    return named(name, f"`scipy.linalg.{name}`.")(run)


hadamard, helmert, hilbert = map(_constant, ("hadamard", "helmert", "hilbert"))
invhilbert, invpascal, pascal = map(_constant, ("invhilbert", "invpascal", "pascal"))
circulant = _arranged("circulant")
sqrtm, schur, hessenberg = _factors("sqrtm", 1), _factors("schur", 2), _factors("hessenberg", 1)


def eigh_tridiagonal(
    d: Any, e: Any, *, eigvals_only: bool = False, select: str = "a", **_: Any
) -> Any:
    """Eigenvalues and eigenvectors of a symmetric matrix with three diagonals.

    Args:
        d, e: the main diagonal, and the one beside it.
    """
    refuse_given("eigh_tridiagonal", select=select if select != "a" else None)
    x, y = _promoted(_of(d), e)
    whole = jnp.diag(x) + jnp.diag(y, 1) + jnp.diag(y, -1)
    return jnp.linalg.eigvalsh(whole) if eigvals_only else tuple(jnp.linalg.eigh(whole))


@_as_data
def polar(a: Any, side: str = "right", **_: Any) -> tuple[Any, Any]:
    """The unitary and the positive semidefinite factor of a matrix.

    Raises:
        ArgumentError: another side.
    """
    if side not in ("left", "right"):
        raise ArgumentError.here(f"polar: expected side left or right, got {side!r}")
    return tuple(map(_given, _polar(_of(a), left=side == "left")))


_looked_up = _face_of(_linalg, "jax.scipy.linalg", _as_data)
_exports.lazy(globals(), {}, _looked_up, lambda: _linalg.__all__)
