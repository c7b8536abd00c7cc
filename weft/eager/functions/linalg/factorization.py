"""Matrix factorizations, by LAPACK where NumPy has them, with gradients."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from weft.eager.functions.elementwise.complex_number import adjoint
from weft.eager.functions.linalg.lapack import by_lapack
from weft.eager.functions.linalg.matrix import matrices
from weft.eager.tensor.argument import dims_of
from weft.eager.tensor.autograd.non_differentiable import undefined
from weft.eager.tensor.dispatch import kind_of, lazy_of, recorded
from weft.errors import ArgumentError, DTypeError, ShapeError
from weft.ir.dtype import int32
from weft.ir.node import Value
from weft.ops.declaration import catalogue
from weft.ops.linalg import elimination, factorization, symmetric_factorization
from weft.ops.linalg.matrix import H, dims, eye

if TYPE_CHECKING:
    from weft.eager.tensor.tensor import Tensor

__all__ = ["cholesky", "geqrf", "lu", "lu_unpack", "orgqr", "ormqr", "qr", "svd"]


class Cholesky(NamedTuple):
    """A triangular factor, and 0; or the order of the first minor that is not positive."""

    L: Tensor
    info: Tensor


class Eigen(NamedTuple):
    """Eigenvalues, and eigenvectors as columns."""

    eigenvalues: Tensor
    eigenvectors: Tensor


class QR(NamedTuple):
    """An orthogonal and an upper triangular factor."""

    Q: Tensor
    R: Tensor


class SVD(NamedTuple):
    """Left singular vectors as columns, singular values, right singular vectors as rows."""

    U: Tensor
    S: Tensor
    Vh: Tensor


class Turned(NamedTuple):
    """Left singular vectors, singular values, right singular vectors; vectors are columns."""

    U: Tensor
    S: Tensor
    V: Tensor


class LU(NamedTuple):
    """Both triangular factors in one matrix, and the pivots, counted from 1."""

    LU: Tensor
    pivots: Tensor


class CheckedLU(NamedTuple):
    """`LU`, and 0 or the first column without a pivot, counted from 1."""

    LU: Tensor
    pivots: Tensor
    info: Tensor


class LDL(NamedTuple):
    """Both factors of symmetric matrices in one matrix, and pivots."""

    LD: Tensor
    pivots: Tensor


class CheckedLDL(NamedTuple):
    """`LDL`, and 0 or the first column of zeros, counted from 1."""

    LD: Tensor
    pivots: Tensor
    info: Tensor


class PLU(NamedTuple):
    """A permutation, a lower and an upper triangular matrix."""

    P: Tensor
    L: Tensor
    U: Tensor


class Reflections(NamedTuple):
    """Householder reflectors below the diagonal of an upper triangular matrix, and their scales."""

    a: Tensor
    tau: Tensor


# Symmetric matrices


@by_lapack
def _cholesky(x: Value, *, upper: bool) -> Value:
    return H(factorization.cholesky(H(x))) if upper else factorization.cholesky(x)


_cholesky_ex = recorded(factorization.cholesky_where_possible)
_eigh = by_lapack(factorization.eigh)
_eigvalsh = by_lapack(factorization.eigvalsh)
_eig = by_lapack(factorization.eig)
_ldl = recorded(symmetric_factorization.ldl, differentiable=False)


def cholesky(x: Any, upper: bool = False) -> Tensor:
    """The lower triangular `l` with `l @ l.T == x` for symmetric positive definite matrices.

    Args:
        upper: return the upper triangular factor instead.

    Raises:
        ShapeError: no square matrices.
        UserOpError: when computed, a matrix that is not positive definite.
    """
    return _cholesky.on(kind_of(x), matrices("cholesky", x, square=True), upper=upper)


def cholesky_ex(x: Any, *, upper: bool = False, check_errors: bool = False) -> Cholesky:
    """`cholesky` with status codes instead of errors; a missing factor is zeros.

    Args:
        check_errors: raise errors all the same.
    """
    lazy = matrices("cholesky_ex", x, square=True)
    found, info = _cholesky_ex.on(kind_of(x), lazy)
    if check_errors:
        return Cholesky(cholesky(x, upper), info)
    return Cholesky(adjoint(found) if upper else found, info)


def eigh(A: Any, UPLO: str = "L") -> Eigen:
    """Eigenvalues in ascending order and eigenvectors of symmetric (Hermitian) matrices.

    Gradients through eigenvectors are infinite if eigenvalues are equal.

    Args:
        UPLO: which triangle is read: `"L"` or `"U"`.
    """
    lazy = matrices("eigh", A, square=True)
    return Eigen(*_eigh.on(kind_of(A), lazy, uplo=_triangle(UPLO), whole=True))


def eigvalsh(A: Any, UPLO: str = "L") -> Tensor:
    """Eigenvalues of symmetric (Hermitian) matrices in ascending order."""
    lazy = matrices("eigvalsh", A, square=True)
    return _eigvalsh.on(kind_of(A), lazy, uplo=_triangle(UPLO), whole=True)


def _triangle(uplo: str) -> str:
    if uplo.upper() not in ("L", "U"):
        raise DTypeError.here(f"eigh: expected UPLO of 'L' or 'U', got {uplo!r}")
    return uplo.upper()


def eig(A: Any) -> Eigen:
    """Eigenvalues and eigenvectors of square matrices; always complex."""
    return Eigen(*_eig.on(kind_of(A), matrices("eig", A, square=True)))


def eigvals(A: Any) -> Tensor:
    """Eigenvalues of square matrices; always complex."""
    return eig(A).eigenvalues


def ldl_factor(A: Any, *, hermitian: bool = False) -> LDL:
    """`l` and `d` with `A == l @ d @ l.T` for symmetric matrices, up to row pivoting.

    Only the lower triangle is read. `ldl_solve` takes the result; it has no gradient.

    Args:
        hermitian: use `l.mH` instead of `l.T` for complex numbers.
    """
    return LDL(*ldl_factor_ex(A, hermitian=hermitian)[:2])


def ldl_factor_ex(A: Any, *, hermitian: bool = False, check_errors: bool = False) -> CheckedLDL:
    """`ldl_factor` with status codes that tell where `d` is singular.

    Args:
        check_errors: no effect: factors always exist.
    """
    lazy = matrices("ldl_factor", A, square=True)
    return CheckedLDL(*_ldl.on(kind_of(A), lazy, hermitian=hermitian))


# Orthogonal factors

_qr = by_lapack(factorization.qr)
_svd = by_lapack(factorization.svd)
_svdvals = by_lapack(factorization.svdvals)


def qr_of(A: Any, mode: str = "reduced") -> QR:
    """An orthogonal (unitary) and an upper triangular factor.

    Args:
        mode: `"complete"` gives a square `Q`, with a gradient only if matrices are not tall; `"r"`
            gives an empty `Q`.
    """
    lazy = matrices("qr", A)
    if mode not in ("reduced", "complete", "r"):
        raise DTypeError.here(f"qr: expected mode of 'reduced', 'complete' or 'r', got {mode!r}")
    q, r = _qr.on(kind_of(A), lazy, mode="reduced" if mode == "r" else mode)
    return QR(q.new_zeros((0,)), r) if mode == "r" else QR(q, r)


def qr(x: Any, some: bool = True) -> QR:
    """`linalg.qr` under its older name; `some` means the mode `"reduced"`."""
    return qr_of(x, "reduced" if some else "complete")


def svd_of(A: Any, full_matrices: bool = True, *, driver: str | None = None) -> SVD:
    """Singular values and vectors: `A == U * S @ Vh`.

    Args:
        full_matrices: square `U` and `Vh`; gradients flow through the first vectors only.
        driver: `None`: it selects algorithms on other devices.
    """
    _check_driver("svd", driver)
    return SVD(*_svd.on(kind_of(A), matrices("svd", A), full_matrices=full_matrices))


def _check_driver(name: str, driver: Any) -> None:
    """Refuse the name of an algorithm, as PyTorch does on a CPU.

    Raises:
        ArgumentError: one is given.
    """
    if driver is not None:
        text = f"{name}: expected no driver, which is for CUDA devices, got {driver!r}"
        raise ArgumentError.here(text)


def svd(x: Any, some: bool = True, compute_uv: bool = True) -> Turned:
    """`linalg.svd` under its older name, with right singular vectors as columns.

    Args:
        some: return no more vectors than singular values.
        compute_uv: if false, the vectors are zeros.
    """
    if compute_uv:
        u, s, vh = svd_of(x, not some)
        return Turned(u, s, adjoint(vh))
    s = svdvals(x)
    *lead, m, n = dims_of(x)
    return Turned(s.new_zeros((*lead, m, m)), s, s.new_zeros((*lead, n, n)))


def svdvals(A: Any, *, driver: str | None = None) -> Tensor:
    """Singular values in descending order."""
    _check_driver("svdvals", driver)
    return _svdvals.on(kind_of(A), matrices("svdvals", A))


_orgqr = recorded(elimination.householder_product)


def orgqr(x: Any, tau: Any) -> Tensor:
    """The first columns of the product of the Householder reflectors from `geqrf`.

    Raises:
        ShapeError: more columns than rows, or more scales than columns.
    """
    lazy = matrices("householder_product", x)
    m, n = dims_of(lazy)[-2:]
    if n > m or dims_of(tau)[-1] > n:
        raise ShapeError.here(
            f"householder_product: expected rows >= columns >= scales, got {m}, {n} and "
            f"{dims_of(tau)[-1]}"
        )
    return _orgqr.on(kind_of(x, tau), lazy, lazy_of(tau))


@recorded
def _ormqr(a: Value, tau: Value, other: Value, *, left: bool, transpose: bool) -> Value:
    if not left:
        return H(_ormqr.function(a, tau, H(other), left=True, transpose=not transpose))
    return elimination.reflected(a, tau, other, transpose)


def ormqr(x: Any, tau: Any, other: Any, left: bool = True, transpose: bool = False) -> Tensor:
    """Multiply matrices by the orthogonal factor, given as Householder reflectors from `geqrf`.

    Args:
        x: reflectors, shape (..., m, k).
        tau: their scales.
        other: the matrices, of m rows.
        left: if false, multiply from the right; the matrices have m columns.
        transpose: use the (conjugate) transpose of the factor.

    Raises:
        ShapeError: shapes that do not fit.
    """
    a, c, scales = matrices("ormqr", x), matrices("ormqr", other), lazy_of(tau)
    (*lead, m, n), (*rest, rows, columns), (*first, count) = map(dims_of, (a, c, scales))
    if count > n or count > m or (rows if left else columns) != m or not lead == rest == first:
        raise ShapeError.here(
            f"ormqr: expected reflections (..., m, k), at most min(m, k) scales, and matrices of m "
            f"{'rows' if left else 'columns'}, got shapes {dims_of(a)}, {dims_of(scales)} and "
            f"{dims_of(c)}"
        )
    how = {"left": left, "transpose": transpose}
    return _ormqr.on(kind_of(x, tau, other), a, scales, c, **how)


_geqrf = recorded(factorization.reflections, differentiable=False)


def geqrf(x: Any) -> Reflections:
    """The Householder reflectors of `qr`'s orthogonal factor; without a gradient."""
    found = _geqrf.on(kind_of(x), matrices("geqrf", x))
    return Reflections(*[undefined("geqrf", y, x) for y in found])


# Triangular factors

_lu = recorded(elimination.lu)
_first_singular = recorded(elimination.first_singular, differentiable=False)


def lu_factor(A: Any, *, pivot: bool = True) -> LU:
    """Both triangular factors in one matrix, and the pivots.

    Raises:
        DTypeError: `pivot=False`, which would not be accurate.
    """
    lazy = matrices("lu_factor", A)
    if not pivot:
        raise DTypeError.here("lu_factor: expected pivot=True, got False")
    return LU(*_lu.on(kind_of(A), lazy))


def lu_factor_ex(A: Any, *, pivot: bool = True, check_errors: bool = False) -> CheckedLU:
    """`lu_factor` with status codes that tell which column has no pivot.

    Raises:
        DTypeError: `pivot=False`, which would not be accurate.
        ArgumentError: a column has no pivot, if `check_errors`, which computes the codes.
    """
    found = lu_factor(A, pivot=pivot)
    info = _first_singular.on(kind_of(A), matrices("lu_factor_ex", A))
    if check_errors and info.array.any():
        column = int(info.array[info.array > 0].min())
        text = f"expected factors that can be inverted, got U[{column},{column}] of 0"
        raise ArgumentError.here(f"lu_factor_ex: {text}")
    return CheckedLU(*found, info)


def lu(x: Any, pivot: bool = True, get_infos: bool = False) -> LU | CheckedLU:
    """`linalg.lu_factor` under its older name; with `get_infos` as `linalg.lu_factor_ex`."""
    return lu_factor_ex(x, pivot=pivot) if get_infos else lu_factor(x, pivot=pivot)


def check_pivots(name: str, pivots: Any) -> None:
    """Refuse pivots that are not from `lu_factor`.

    Raises:
        DTypeError: pivots that are not int32.
    """
    dtype = lazy_of(pivots).type.dtype
    if dtype is not int32:
        raise DTypeError.here(f"{name}: expected pivots of int32, as lu_factor gives, got {dtype}")


@recorded
def _unpacked(both: Value, pivots: Value) -> tuple[Value, ...]:
    *lead, m, n = dims(both)
    k = min(m, n)
    order = elimination.row_order(pivots, m)
    one = catalogue.broadcast_to(eye(m, both.dtype), shape=(*lead, m, m))
    left = elimination.triangle(both[..., :, :k], False, True)
    right = elimination.triangle(both[..., :k, :], True, False)
    return elimination.rows_put_back(one, order), left, right


def lu_unpack(
    LU_data: Any, LU_pivots: Any, unpack_data: bool = True, unpack_pivots: bool = True
) -> PLU:
    """The permutation and both triangular factors of a result of `lu_factor`.

    Args:
        unpack_data: if false, the triangular factors are empty.
        unpack_pivots: if false, the permutation is empty.

    Raises:
        DTypeError: pivots that are not int32.
        UserOpError: when computed, pivots that are no row numbers.
    """
    lazy = matrices("lu_unpack", LU_data)
    check_pivots("lu_unpack", LU_pivots)
    p, left, right = _unpacked.on(kind_of(LU_data), lazy, lazy_of(LU_pivots))
    empty = p.new_zeros((0,))
    found = (left, right) if unpack_data else (empty, empty)
    return PLU(p.detach() if unpack_pivots else empty, *found)


def lu_of(A: Any, *, pivot: bool = True) -> PLU:
    """`p, l, u` with `A == p @ l @ u`: a permutation, a lower and an upper triangular matrix."""
    return lu_unpack(*lu_factor(A, pivot=pivot))
