"""Linear algebra: the Array API's extension and NumPy's names; factorizations are LAPACK's."""

from __future__ import annotations

import builtins
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from weft import ops
from weft.eager.functions.linalg import solve as solve_of_tensors
from weft.eager.functions.linalg.factorization import QR, SVD, Eigen
from weft.eager.functions.linalg.lapack import by_lapack
from weft.eager.functions.linalg.solve import SlogDet
from weft.eager.tensor.dispatch import recorded
from weft.errors import ShapeError
from weft.ir.dtype import int64
from weft.ir.node import Value
from weft.ir.shape import show
from weft.numpy import manipulation, product
from weft.numpy.convert import alike, array_like, floats, typed
from weft.numpy.manipulation import matrix_transpose, moveaxis
from weft.numpy.product import matmul, outer, tensordot, vecdot
from weft.numpy.statistical import axes_within
from weft.ops.boundary.state import LinAlgError
from weft.ops.linalg import factorization, inversion, solution
from weft.ops.linalg.matrix import H
from weft.ops.reduction.norm import MATRIX_NORMS

if TYPE_CHECKING:
    from weft.numpy.array import ndarray

__all__ = [
    "LinAlgError", "cholesky", "cond", "cross", "det", "diagonal", "eig", "eigh", "eigvalsh",
    "inv", "matmul", "matrix_norm", "matrix_power", "matrix_rank", "matrix_transpose", "multi_dot",
    "norm", "outer", "pinv", "qr", "slogdet", "solve", "svd", "svdvals", "tensordot", "trace",
    "vecdot", "vector_norm",
]  # fmt: skip


def _matrices(name: str, x: Any, square: bool = True) -> Any:
    """Floating-point matrices.

    Raises:
        ShapeError: no matrices, or not square if they have to be.
    """
    x = floats(x)
    if x.ndim < 2 or (square and x.shape[-1] != x.shape[-2]):
        kind = "square matrices" if square else "matrices"
        raise ShapeError.here(f"{name}: expected {kind}, got shape {show(x.shape)}")
    return x


# Factorizations


@by_lapack
def _cholesky(x: Value, *, upper: bool) -> Value:
    return H(factorization.cholesky(x)) if upper else factorization.cholesky(x)


def cholesky(x: Any, /, *, upper: bool = False) -> ndarray:
    """The lower triangular `l` with `l @ l.T == x` for symmetric positive definite matrices.

    The gradient is that for symmetric matrices, and symmetric itself.

    Args:
        upper: return the upper triangular factor instead.

    Raises:
        ShapeError: no square matrices.
        LinAlgError: when computed, a matrix that is not positive definite.
    """
    return _cholesky(_matrices("cholesky", x), upper=upper)


_eigh = by_lapack(factorization.eigh)
_eigvalsh = by_lapack(factorization.eigvalsh)
_eig = by_lapack(factorization.eig)


def eigh(x: Any, /, UPLO: str = "L") -> Eigen:
    """Eigenvalues in ascending order and eigenvectors of symmetric (Hermitian) matrices.

    The gradient is that of the triangle that is read, as in autograd, and 0 in the other. Gradients
    through eigenvectors are infinite if eigenvalues are equal.

    Args:
        UPLO: which triangle is read: `"L"` or `"U"`.
    """
    return Eigen(*_eigh(_matrices("eigh", x), uplo=UPLO))


def eigvalsh(x: Any, /, UPLO: str = "L") -> ndarray:
    """Eigenvalues of symmetric (Hermitian) matrices in ascending order."""
    return _eigvalsh(_matrices("eigvalsh", x), uplo=UPLO)


def eig(a: Any) -> Eigen:
    """Eigenvalues and eigenvectors of square matrices; always complex."""
    return Eigen(*_eig(_matrices("eig", a)))


_qr = by_lapack(factorization.qr)
_svd = by_lapack(factorization.svd)
_svdvals = by_lapack(factorization.svdvals)
_slogdet = by_lapack(inversion.slogdet)
_det = by_lapack(inversion.det)
_inv = by_lapack(inversion.inv)


def qr(x: Any, /, *, mode: Literal["reduced", "complete"] = "reduced") -> QR:
    """An orthogonal (unitary) and an upper triangular factor.

    Args:
        mode: `complete` gives a square `Q`, with a gradient only if matrices are not tall.
    """
    x = _matrices("qr", x, square=False)
    return QR(*_qr(x, mode=mode))


def svd(x: Any, /, full_matrices: bool = True, compute_uv: bool = True) -> Any:
    """Singular values and vectors: `x == U * S @ Vh`.

    Args:
        full_matrices: square `U` and `Vh`; gradients flow through the first vectors only.
        compute_uv: if false, return the singular values only.
    """
    if not compute_uv:
        return svdvals(x)
    return SVD(*_svd(_matrices("svd", x, square=False), full_matrices=full_matrices))


def svdvals(x: Any, /) -> ndarray:
    """Singular values in descending order."""
    return _svdvals(_matrices("svdvals", x, square=False))


def det(x: Any, /) -> ndarray:
    """Determinants of square matrices."""
    return _det(_matrices("det", x))


def slogdet(x: Any, /) -> SlogDet:
    """Signs of determinants, and logarithms of their absolute values."""
    return SlogDet(*_slogdet(_matrices("slogdet", x)))


# Inverses


def inv(x: Any, /) -> ndarray:
    """Inverses of square matrices.

    Raises:
        LinAlgError: when computed, a singular matrix.
    """
    return _inv(_matrices("inv", x))


_solve = by_lapack(solution.solve)


def solve(x1: Any, x2: Any, /) -> ndarray:
    """Solve `x1 @ x == x2`, for a vector or matrices.

    Raises:
        ShapeError: no square matrices.
        LinAlgError: when computed, a singular matrix.
    """
    a, b = alike(x1, x2)
    a, b = _matrices("solve", a), floats(b)
    if not b.ndim or b.shape[-1 if b.ndim == 1 else -2] != a.shape[-1]:
        raise ShapeError.here(
            f"solve: expected right sides of {a.shape[-1]} rows, got shape {show(b.shape)}"
        )
    return _solve(a, b, vector=b.ndim == 1)


_pinv = by_lapack(inversion.pinv)


def pinv(x: Any, /, *, rtol: Any = None, rcond: Any = None, hermitian: bool = False) -> ndarray:
    """Pseudo-inverses of matrices.

    Args:
        rtol: singular values up to this fraction of the largest one count as 0.
        rcond: the same, under NumPy's older name.
    """
    x = _matrices("pinv", x, square=False)
    limit = rcond if rtol is None else rtol
    if limit is None:
        limit = builtins.max(x.shape[-2:]) * float(np.finfo(x.dtype.numpy).eps)
    bounds = array_like(limit)
    lead = np.broadcast_shapes(x.shape[:-2], bounds.shape)
    x = manipulation.broadcast_to(x, (*lead, *x.shape[-2:]))
    return _pinv(x, bounds, hermitian=hermitian)


def matrix_power(x: Any, n: int, /) -> ndarray:
    """Square matrices to an integer power, by repeated squaring."""
    x = array_like(x)
    x = _matrices("matrix_power", x) if n < 0 or x.dtype.is_inexact else x
    base: Any = inv(x) if n < 0 else x if x.dtype.is_inexact else typed(x, int64)
    return typed(solve_of_tensors.power_of(x, base, builtins.abs(n)), x.dtype)


def matrix_rank(x: Any, /, *, rtol: Any = None) -> ndarray:
    """The rank: how many singular values exceed `rtol` times the largest one."""
    x = _matrices("matrix_rank", x, square=False)
    found: Any = solve_of_tensors.matrix_rank(x, rtol=rtol)
    return found


# Norms


def vector_norm(x: Any, /, *, axis: Any = None, keepdims: bool = False, ord: float = 2) -> ndarray:
    """`sum(abs(x) ** ord) ** (1 / ord)` over axes (all by default)."""
    x = floats(x)
    axes = axes_within("vector_norm", axis, x.ndim)
    return _vector_norm(x, axes=axes, keepdims=keepdims, ord=float(ord))


_vector_norm = recorded(ops.vector_norm)
_matrix_norm = by_lapack(ops.matrix_norm)


def matrix_norm(x: Any, /, *, keepdims: bool = False, ord: Any = "fro") -> ndarray:
    """A norm of matrices: `"fro"`, `"nuc"`, 1, 2, `inf`; -1, -2 or `-inf` take the minimum.

    Raises:
        ShapeError: another `ord`.
    """
    x = _matrices("matrix_norm", x, square=False)
    if ord not in MATRIX_NORMS:
        raise ShapeError.here(f"matrix_norm: expected fro, nuc, 1, 2, inf or less, got {ord!r}")
    return _matrix_norm(x, ord=ord, axes=(x.ndim - 2, x.ndim - 1), keepdims=keepdims)


def norm(x: Any, ord: Any = None, axis: Any = None, keepdims: bool = False) -> ndarray:
    """A norm of vectors (one axis), matrices (two axes), or of all elements."""
    x = floats(x)
    axes = axes_within("norm", axis, x.ndim) if not isinstance(axis, tuple) else axis
    if ord is None or (len(axes) == 2 and ord == "fro"):
        return vector_norm(x, axis=axes, keepdims=keepdims)
    if len(axes) == 1:
        return vector_norm(x, axis=axes, keepdims=keepdims, ord=ord)
    found = matrix_norm(moveaxis(x, axes, (-2, -1)), ord=ord)
    return manipulation.expand_dims(found, sorted(a % x.ndim for a in axes)) if keepdims else found


def cond(x: Any, p: Any = None) -> ndarray:
    """The condition number: the norm of matrices times that of their inverses."""
    if p is None:
        s: Any = svdvals(x)
        return s[..., 0] / s[..., -1]
    found: Any = matrix_norm(x, ord=p)
    return found * matrix_norm(inv(x), ord=p)


# Products and parts


def cross(x1: Any, x2: Any, /, *, axis: int = -1) -> ndarray:
    """The cross product of vectors of 3 elements along an axis."""
    return product.cross(x1, x2, axis=axis)


def diagonal(x: Any, /, *, offset: int = 0) -> ndarray:
    """The `offset`-th diagonals of matrices."""
    return manipulation.diagonal(_stacked("diagonal", x), offset, -2, -1)


def trace(x: Any, /, *, offset: int = 0, dtype: Any = None) -> ndarray:
    """The sums of the `offset`-th diagonals of matrices."""
    return product.trace(_stacked("trace", x), offset, -2, -1, dtype)


def _stacked(name: str, x: Any) -> Any:
    x = array_like(x)
    if x.ndim < 2:
        raise ShapeError.here(f"{name}: expected matrices, got shape {show(x.shape)}")
    return x


def multi_dot(arrays: Sequence[Any]) -> ndarray:
    """The matmul of several matrices; the first and last may be vectors.

    Raises:
        LinAlgError: fewer than two, or wrong ranks.
    """
    given = [array_like(x) for x in arrays]
    ranks = [x.ndim for x in given]
    if len(ranks) < 2 or set(ranks[1:-1]) - {2} or {ranks[0], ranks[-1]} - {1, 2}:
        raise LinAlgError.here(
            "multi_dot: expected two or more matrices, of which only the first and last may be "
            f"vectors, got ranks {ranks}"
        )
    found = given[0]
    for x in given[1:]:
        found = product.dot(found, x)
    return found
