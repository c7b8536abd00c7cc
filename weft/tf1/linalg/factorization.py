"""Factorizations, inverses and solutions of linear equations, by LAPACK."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from weft import ops
from weft.errors import ShapeError
from weft.ir.node import Value
from weft.ops.linalg import elimination, factorization, inversion, solution
from weft.ops.linalg.matrix import H, dims
from weft.tf1.framework import dtypes
from weft.tf1.framework.convert import convert_to_tensor, same_type
from weft.tf1.framework.dtypes import as_dtype
from weft.tf1.framework.graph import fail, get_default_graph, name_scope
from weft.tf1.framework.tensor import Tensor

__all__ = [
    "cholesky", "cholesky_solve", "log_matrix_determinant", "matrix_determinant",
    "matrix_inverse", "matrix_solve", "matrix_solve_ls", "matrix_triangular_solve", "qr",
    "self_adjoint_eig", "self_adjoint_eigvals", "svd",
]  # fmt: skip


def _emitted(
    kind: str, inputs: Sequence[Any], build: Callable[..., Any], name: str | None,
    square: bool = True,
) -> tuple[Tensor, ...]:  # fmt: skip
    """The outputs of an operation on matrices.

    Args:
        square: whether the first ones must be square.
    """
    with name_scope(name, kind, inputs) as scope:
        if len(inputs) > 1:
            tensors = list(same_type(kind, *inputs))
        else:
            tensors = [convert_to_tensor(inputs[0], name="input")]
        for tensor in tensors:
            if tensor.shape.ndims is not None and tensor.shape.ndims < 2:
                raise fail(ShapeError, f"{kind}: expected matrices, got shape {tensor.shape}")
        shape = tensors[0].shape
        sizes = {d for d in (shape.as_list()[-2:] if shape.ndims else ()) if d is not None}
        if square and len(sizes) > 1:
            raise fail(ShapeError, f"{kind}: expected square matrices, got shape {shape}")
        return tuple(get_default_graph().emit(kind, tensors, build, name=scope).outputs)


def cholesky(input: Any, name: str | None = None) -> Tensor:
    """The lower triangular L with L @ L.T equal to each positive definite matrix."""
    return _emitted("Cholesky", [input], factorization.cholesky, name)[0]


def cholesky_solve(chol: Any, rhs: Any, name: str | None = None) -> Tensor:
    """x such that a @ x == rhs, given the Cholesky factor of a."""

    def build(factor: Value, b: Value) -> Value:
        return solution.cholesky_solve(b, factor, upper=False)

    return _emitted("CholeskySolve", [chol, rhs], build, name)[0]


def matrix_inverse(input: Any, adjoint: bool = False, name: str | None = None) -> Tensor:
    """The inverses of square matrices (`adjoint`: of their adjoints)."""

    def build(x: Value) -> Value:
        return inversion.inv(H(x) if adjoint else x)

    return _emitted("MatrixInverse", [input], build, name)[0]


def matrix_determinant(input: Any, name: str | None = None) -> Tensor:
    """The determinants of square matrices."""
    return _emitted("MatrixDeterminant", [input], inversion.det, name)[0]


def log_matrix_determinant(input: Any, name: str | None = None) -> tuple[Tensor, Tensor]:
    """Signs of determinants, and logarithms of their absolute values."""
    sign, log = _emitted("LogMatrixDeterminant", [input], inversion.slogdet, name)
    return sign, log


def logdet(matrix: Any, name: str | None = None) -> Tensor:
    """The logarithms of the determinants of positive definite matrices."""

    return _emitted("logdet", [matrix], solution.logdet, name)[0]


def matrix_exponential(input: Any, name: str | None = None) -> Tensor:
    """The sum of `input ** k / k!`."""
    return _emitted("matrix_exponential", [input], elimination.matrix_exp, name)[0]


# Equations


def matrix_solve(matrix: Any, rhs: Any, adjoint: bool = False, name: str | None = None) -> Tensor:
    """x such that matrix @ x == rhs (`adjoint`: with the adjoint matrix)."""

    def build(a: Value, b: Value) -> Value:
        return inversion.solve(H(a) if adjoint else a, b)

    return _emitted("MatrixSolve", [matrix, rhs], build, name)[0]


def matrix_triangular_solve(
    matrix: Any, rhs: Any, lower: bool = True, adjoint: bool = False, name: str | None = None
) -> Tensor:
    """`matrix_solve` for a triangle; the other one is not read."""

    def build(a: Value, b: Value) -> Value:
        upper = lower if adjoint else not lower
        return solution.solve_triangle(
            H(a) if adjoint else a, b, upper=upper, left=True, unit=False
        )

    return _emitted("MatrixTriangularSolve", [matrix, rhs], build, name)[0]


def matrix_solve_ls(
    matrix: Any, rhs: Any, l2_regularizer: float = 0.0, fast: bool = True, name: str | None = None
) -> Tensor:
    """The x with the least sum of squares of matrix @ x - rhs, plus that of x times a factor.

    Where there are many, the shortest one; it is computed by pseudo-inverses if not `fast`.
    """

    def build(a: Value, b: Value) -> Value:
        return solution.least_squares(a, b, l2=l2_regularizer, fast=fast)

    return _emitted("matrix_solve_ls", [matrix, rhs], build, name, square=False)[0]


# Factorizations


def self_adjoint_eig(tensor: Any, name: str | None = None) -> tuple[Tensor, Tensor]:
    """Eigenvalues in ascending order, and eigenvectors as columns, of the lower triangles."""

    def build(x: Value) -> tuple[Value, ...]:
        return factorization.eigh(x, "L")

    values, vectors = _emitted("SelfAdjointEigV2", [tensor], build, name)
    return values, vectors


def self_adjoint_eigvals(tensor: Any, name: str | None = None) -> Tensor:
    """The eigenvalues of `self_adjoint_eig`."""

    def build(x: Value) -> Value:
        return factorization.eigvalsh(x, "L")

    return _emitted("SelfAdjointEigV2", [tensor], build, name)[0]


def svd(
    tensor: Any, full_matrices: bool = False, compute_uv: bool = True, name: str | None = None
) -> Any:
    """Singular values in descending order, and u, v with `tensor == u * s @ adjoint(v)`."""

    def build(x: Value) -> tuple[Value, ...] | Value:
        if not compute_uv:
            return factorization.svdvals(x)
        u, s, vh = factorization.svd(x, full_matrices)
        return s, u, H(vh)

    found = _emitted("Svd", [tensor], build, name, square=False)
    return found if compute_uv else found[0]


def qr(input: Any, full_matrices: bool = False, name: str | None = None) -> tuple[Tensor, Tensor]:
    """q, r with `input == q @ r`."""

    def build(x: Value) -> tuple[Value, ...]:
        return factorization.qr(x, "complete" if full_matrices else "reduced")

    q, r = _emitted("Qr", [input], build, name, square=False)
    return q, r


def lu(input: Any, output_idx_type: Any = None, name: str | None = None) -> tuple[Tensor, Tensor]:
    """Both triangular factors of permuted rows in one matrix, and which rows these are."""
    kind = as_dtype(output_idx_type or dtypes.int32).ir

    def build(x: Value) -> tuple[Value, ...]:
        both, pivots = elimination.lu(x)
        return both, ops.cast(elimination.row_order(pivots, dims(x)[-2]), dtype=kind)

    both, order = _emitted("Lu", [input], build, name)
    return both, order


def pinv(a: Any, rcond: Any = None, validate_args: bool = False, name: str | None = None) -> Tensor:
    """The pseudo-inverses of matrices.

    Args:
        rcond: singular values up to this fraction of the largest count as 0; by default ten times
            the larger size times the precision of the dtype.
        validate_args: whether shapes are checked, which they always are.
    """

    def build(x: Value) -> Value:
        return solution.pinv(x, rcond)

    return _emitted("pinv", [a], build, name, square=False)[0]
