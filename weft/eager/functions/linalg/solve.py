"""Linear equations, inverses, determinants, matrix powers, least squares."""

from __future__ import annotations

import builtins
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from weft.eager.functions.creation.constructor import as_tensor
from weft.eager.functions.elementwise.declared import log
from weft.eager.functions.elementwise.selection import chosen, maximum
from weft.eager.functions.linalg.factorization import check_pivots, eigvalsh, svdvals
from weft.eager.functions.linalg.lapack import by_lapack
from weft.eager.functions.linalg.matrix import are_vectors, equations, matrices
from weft.eager.functions.linalg.product import matmul
from weft.eager.functions.reduction.extremum import amax
from weft.eager.functions.reduction.reduce import sum
from weft.eager.functions.shape.permutation import matrix_transpose
from weft.eager.functions.shape.reshape import expand
from weft.eager.functions.sort.order import sort
from weft.eager.record.pending.access import array_if_known
from weft.eager.tensor.argument import dims_of, integer
from weft.eager.tensor.dispatch import Recorded, kind_of, lazy_of, recorded, wrap
from weft.errors import DTypeError
from weft.ops.declaration.fact import Autocast
from weft.ops.linalg import elimination, fault, inversion, solution, symmetric_factorization

if TYPE_CHECKING:
    from weft.eager.tensor.tensor import Tensor

__all__ = [
    "cholesky_inverse", "cholesky_solve", "det", "inverse", "logdet", "lu_solve", "matrix_exp",
    "matrix_power", "pinverse", "slogdet", "triangular_solve",
]  # fmt: skip


class SlogDet(NamedTuple):
    """The sign of a determinant, and the logarithm of its absolute value."""

    sign: Tensor
    logabsdet: Tensor


class Inverse(NamedTuple):
    """An inverse, and 0 or the first column without a pivot."""

    inverse: Tensor
    info: Tensor


class Solution(NamedTuple):
    """The solution of equations, and 0 or the first column without a pivot."""

    result: Tensor
    info: Tensor


class Triangular(NamedTuple):
    """The solution of equations, and a copy of the matrices."""

    solution: Tensor
    cloned_coefficient: Tensor


class LeastSquares(NamedTuple):
    """Solutions, squared residuals, and ranks and singular values of the matrices."""

    solution: Tensor
    residuals: Tensor
    rank: Tensor
    singular_values: Tensor


# Inverses

_inv = by_lapack(inversion.inv)
_regular_inv = recorded(inversion.inv_where_possible)
_first_singular = recorded(elimination.first_singular, differentiable=False)


def inverse(x: Any) -> Tensor:
    """Inverses of square matrices.

    Raises:
        ShapeError: no square matrices.
        UserOpError: when computed, a singular matrix.
    """
    return _inv.on(kind_of(x), matrices("inv", x, square=True))


def inv_ex(A: Any, *, check_errors: bool = False) -> Inverse:
    """`inverse` with status codes instead of errors; a missing inverse is infinite.

    Args:
        check_errors: raise errors all the same.
    """
    lazy = matrices("inv_ex", A, square=True)
    run = _inv if check_errors else _regular_inv
    return Inverse(run.on(kind_of(A), lazy), _first_singular.on(kind_of(A), lazy))


_pinv = by_lapack(inversion.pinv)


def pinv(
    A: Any, rcond: Any = None, hermitian: bool = False, *, atol: Any = None, rtol: Any = None
) -> Tensor:
    """Pseudo-inverses of matrices.

    Args:
        rcond: `rtol`, under its older name.
        atol: singular values up to this count as 0.
        rtol: singular values up to this fraction of the largest one count as 0.
        hermitian: the matrices are symmetric (Hermitian); only the lower triangle is read.
    """
    lazy = matrices("pinv", A, square=hermitian)
    part = _limit(A, atol, rcond if rtol is None else rtol)
    if atol is not None:
        largest = _sizes(A, hermitian)[..., 0]
        part = chosen(largest > 0, maximum(part, atol / largest), 0.0)
    spread = _real(A, np.zeros(dims_of(lazy)[:-2])) + part
    return _pinv.on(kind_of(A), lazy, spread, hermitian=hermitian)


pinverse = pinv


def _real(x: Any, array: Any) -> Tensor:
    """An array as a tensor with the real dtype of `x`."""
    return as_tensor(array, dtype=lazy_of(x).type.dtype.real)


def _limit(x: Any, atol: Any, rtol: Any) -> Any:
    """The fraction of the largest singular value that counts as 0.

    Raises:
        DTypeError: complex limits.
    """
    for limit in (atol, rtol):
        if limit is not None and lazy_of(limit).type.dtype.is_complex:
            raise DTypeError.here("atol, rtol: expected real numbers, got complex")
    if rtol is not None:
        return rtol
    if atol is not None and (not isinstance(atol, int | float) or atol > 0):
        return 0.0
    return builtins.max(dims_of(x)[-2:]) * float(np.finfo(lazy_of(x).type.dtype.numpy).eps)


def _sizes(x: Any, hermitian: bool) -> Tensor:
    """Singular values in descending order, without a gradient."""
    if not hermitian:
        return svdvals(x).detach()
    return sort(eigvalsh(x).detach().abs(), descending=True).values


def matrix_rank(
    A: Any, tol: Any = None, hermitian: bool = False, *, atol: Any = None, rtol: Any = None
) -> Tensor:
    """The rank: how many singular values are not 0; arguments as for `pinv`.

    Args:
        tol: `atol`, under its older name.
    """
    matrices("matrix_rank", A, square=hermitian)
    atol = tol if atol is None else atol
    s = _sizes(A, hermitian)
    if not s.shape[-1]:
        return sum(s, -1).long()
    bound = amax(s, -1) * _limit(A, atol, rtol)
    bound = bound if atol is None else maximum(bound, _real(A, 0.0) + atol)
    return sum(s > bound.unsqueeze(-1), -1)


# Equations


_solve = by_lapack(solution.solve)
_regular_solve = recorded(fault.as_data(solution.solve))


def solve(A: Any, B: Any, *, left: bool = True) -> Tensor:
    """Solve `A @ x == B`; `B` holds vectors or matrices.

    Args:
        left: `False`: such that `x @ A` is `B`.

    Raises:
        ShapeError: no square matrices, or right sides that do not fit.
        UserOpError: when computed, a singular matrix.
    """
    return _solution(_solve, "solve", A, B, left)


def _solution(run: Recorded, name: str, A: Any, B: Any, left: bool) -> Tensor:
    matrices(name, A, square=True)
    vector = are_vectors(A, B)
    a, b = equations(name, A, B, vector, left or vector)
    return run.on(kind_of(A, B), a, b, vector=vector, left=left)


def solve_ex(A: Any, B: Any, *, left: bool = True, check_errors: bool = False) -> Solution:
    """`solve` with status codes instead of errors; a missing solution is infinite."""
    info = _first_singular.on(kind_of(A, B), matrices("solve_ex", A, square=True))
    run = _solve if check_errors else _regular_solve
    return Solution(_solution(run, "solve_ex", A, B, left), info)


_solve_triangle = by_lapack(solution.solve_triangle)


def solve_triangular(
    A: Any, B: Any, *, upper: bool, left: bool = True, unitriangular: bool = False
) -> Tensor:
    """Solve `A @ x == B` for triangular `A`; the other triangle is ignored.

    Args:
        upper: whether `A` is upper triangular.
        left: `False`: such that `x @ A` is `B`.
        unitriangular: the diagonal counts as ones.
    """
    matrices("solve_triangular", A, square=True)
    a, b = equations("solve_triangular", A, B, False, left)
    how = {"upper": upper, "left": left, "unit": unitriangular}
    return _solve_triangle.on(kind_of(A, B), a, b, **how)


def triangular_solve(
    x: Any, A: Any, upper: bool = True, transpose: bool = False, unitriangular: bool = False
) -> Triangular:
    """`linalg.solve_triangular` under its older name, with the right sides first.

    Args:
        transpose: solve with the transposed matrices.
    """
    turned = matrix_transpose(A) if transpose else A
    how = {"upper": upper != transpose, "unitriangular": unitriangular}
    return Triangular(solve_triangular(turned, x, **how), A.clone())


_cholesky_solve = by_lapack(solution.cholesky_solve)


def cholesky_solve(x: Any, L: Any, upper: bool = False) -> Tensor:
    """Solve equations, given the `cholesky` factors of the matrices.

    Args:
        x: right sides, matrices.
        upper: the factors are upper triangular.
    """
    matrices("cholesky_solve", L, square=True)
    a, b = equations("cholesky_solve", L, x, False)
    return _cholesky_solve.on(kind_of(x, L), b, a, upper=upper)


_cholesky_inverse = by_lapack(solution.cholesky_inverse)


def cholesky_inverse(x: Any, upper: bool = False) -> Tensor:
    """Inverses, given the `cholesky` factors of the matrices."""
    lazy = matrices("cholesky_inverse", x, square=True)
    return _cholesky_inverse.on(kind_of(x), lazy, upper=upper)


_lu_solve = by_lapack(solution.lu_solve)


def lu_solve_of(
    LU: Any, pivots: Any, B: Any, *, left: bool = True, adjoint: bool = False
) -> Tensor:
    """Solve equations, given the `linalg.lu_factor` of the matrices.

    Args:
        left: `False`: such that `x @ A` is `B`.
        adjoint: solve with the conjugate transposed matrices.

    Raises:
        DTypeError: pivots that are not int32.
        UserOpError: when computed, pivots that are no row numbers.
    """
    matrices("lu_solve", LU, square=True)
    check_pivots("lu_solve", pivots)
    a, b = equations("lu_solve", LU, B, False, left)
    return _lu_solve.on(kind_of(LU, B), a, lazy_of(pivots), b, left=left, adjoint=adjoint)


def lu_solve(x: Any, LU_data: Any, LU_pivots: Any) -> Tensor:
    """`linalg.lu_solve` under its older name, with the right sides first."""
    return lu_solve_of(LU_data, LU_pivots, x)


_ldl_solve = recorded(symmetric_factorization.ldl_solve)


def ldl_solve(LD: Any, pivots: Any, B: Any, *, hermitian: bool = False) -> Tensor:
    """Solve equations, given the `linalg.ldl_factor` of the matrices.

    Gradients flow to the right sides only.

    Args:
        B: right sides, matrices.
        hermitian: as for `ldl_factor`.

    Raises:
        DTypeError: pivots that are not int32.
    """
    check_pivots("ldl_solve", pivots)
    matrices("ldl_solve", LD, square=True)
    a, b = equations("ldl_solve", LD, B, False)
    lead = np.broadcast_shapes(dims_of(a)[:-2], dims_of(b)[:-2])
    shapes = [(*lead, *dims_of(a)[-2:]), (*lead, dims_of(a)[-1]), (*lead, *dims_of(b)[-2:])]
    wide = [
        expand(wrap(x), shape).lazy
        for x, shape in zip((a, lazy_of(pivots), b), shapes, strict=True)
    ]
    return _ldl_solve.on(kind_of(LD, B), *wide, hermitian=hermitian)


def lstsq(A: Any, B: Any, rcond: float | None = None, *, driver: str | None = None) -> LeastSquares:
    """The least-squares solution of `A @ x == B` with the smallest norm.

    Args:
        rcond: singular values up to this fraction of the largest one count as 0; a negative one
            means the dtype's precision, and so does one of at least 1 with `"gelsd"`.
        driver: `"gelsy"`, `"gels"`, `"gelsd"` or `"gelss"`, which decides what else is returned;
            `"gels"` needs matrices of full rank and no `rcond`.

    Raises:
        DTypeError: another driver, or sides of different dtypes.
        ShapeError: sides that do not fit each other.
    """
    name = driver or "gelsy"
    if name not in ("gelsy", "gels", "gelsd", "gelss"):
        text = f"lstsq: expected driver of gelsy, gels, gelsd or gelss, got {driver!r}"
        raise DTypeError.here(text)
    types = [lazy_of(x).type.dtype for x in (A, B)]
    if types[0] != types[1]:
        raise DTypeError.here(
            f"lstsq: expected both sides of one dtype, got {types[0]} and {types[1]}"
        )
    vector = are_vectors(A, B)
    equations("lstsq", A, B, vector)
    right = B.unsqueeze(-1) if vector else B
    if name == "gels":
        rcond = None
    elif rcond is not None and (rcond < 0 or (name == "gelsd" and rcond >= 1)):
        rcond = float(np.finfo(types[0].numpy).eps)
    found = matmul(pinv(A, rcond), right)
    rank = matrix_rank(A, rtol=rcond)
    m, n = dims_of(A)[-2:]
    s = _sizes(A, False)
    residuals = s.new_zeros((0,))
    ranks = array_if_known(rank.lazy)  # if unknown, the rank is taken to be full
    if m > n and name != "gelsy" and (name == "gels" or ranks is None or bool((ranks == n).all())):
        residuals = sum((matmul(A, found) - right).abs().square(), -2)
    return LeastSquares(
        found.squeeze(-1) if vector else found,
        residuals,
        rank if name != "gels" else rank.new_zeros((0,)),
        s if name in ("gelsd", "gelss") else s.new_zeros((0,)),
    )


# Determinants

_det = by_lapack(inversion.det)
_slogdet = by_lapack(inversion.slogdet)


def det(x: Any) -> Tensor:
    """Determinants of square matrices."""
    return _det.on(kind_of(x), matrices("det", x, square=True))


def slogdet(x: Any) -> SlogDet:
    """Signs of determinants, and logarithms of their absolute values."""
    return SlogDet(*_slogdet.on(kind_of(x), matrices("slogdet", x, square=True)))


def logdet(x: Any) -> Tensor:
    """Logarithms of determinants; NaN if negative."""
    sign, size = slogdet(x)
    return size + log(sign)


# Powers

_exp = recorded(elimination.matrix_exp)


def matrix_exp(x: Any) -> Tensor:
    """The matrix exponential: the sum of `x ** k / k!`."""
    return _exp.on(kind_of(x), matrices("matrix_exp", x, square=True))


def matrix_power(x: Any, n: Any) -> Tensor:
    """Square matrices to an integer power, by repeated squaring; negative powers of the inverse."""
    count = integer("matrix_power", n)
    lazy = matrices("matrix_power", x, square=True)
    base = inverse(x).lazy if count < 0 else lazy
    return power_of(kind_of(x), base, builtins.abs(count))


def power_of(like: Any, base: Any, count: int) -> Any:
    """Matrices to a nonnegative power; in half precision under mixed precision."""
    return (_power if count > 1 else _no_product).on(like, base, n=count)


_power = by_lapack(solution.matrix_power)
_no_product = recorded(solution.matrix_power, autocast=Autocast.KEPT)
