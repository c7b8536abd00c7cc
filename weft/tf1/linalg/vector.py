"""Matrices times vectors, ranks, unit vectors."""

from __future__ import annotations

from typing import Any

from weft import ops
from weft.ops.linalg import solution
from weft.tf1.elementwise.arithmetic import divide, matmul
from weft.tf1.framework.convert import convert_to_tensor, same_type
from weft.tf1.framework.graph import emit, name_scope
from weft.tf1.framework.tensor import Tensor
from weft.tf1.linalg.diagonal import matrix_transpose
from weft.tf1.reduction import norm
from weft.tf1.shaping.arrangement import expand_dims, squeeze


def adjoint(matrix: Any, name: str | None = None) -> Tensor:
    """The conjugate transposes of matrices."""
    return matrix_transpose(matrix, name=name or "adjoint", conjugate=True)


def cross(a: Any, b: Any, name: str | None = None) -> Tensor:
    """The cross products of vectors of 3 elements, in the last axis."""
    with name_scope(name, "Cross", [a, b]) as scope:
        return emit("Cross", list(same_type("cross", a, b)), ops.cross, name=scope)


def matvec(
    a: Any, b: Any, transpose_a: bool = False, adjoint_a: bool = False, a_is_sparse: bool = False,
    b_is_sparse: bool = False, name: str | None = None,
) -> Tensor:  # fmt: skip
    """Matrices times vectors; arguments as for `matmul`."""
    with name_scope(name, "MatVec", [a, b]):
        column = expand_dims(convert_to_tensor(b), -1)
        found = matmul(
            a, column, transpose_a=transpose_a, adjoint_a=adjoint_a, a_is_sparse=a_is_sparse,
            b_is_sparse=b_is_sparse,
        )  # fmt: skip
        return squeeze(found, axis=-1)


def matrix_rank(
    a: Any, tol: Any = None, validate_args: bool = False, name: str | None = None
) -> Tensor:
    """How many singular values are not 0.

    Args:
        tol: singular values up to it count as 0; by default the larger size times the largest one
            times the precision of the dtype.
        validate_args: whether shapes are checked, which they always are.
    """

    with name_scope(name, "matrix_rank", [a]) as scope:
        x = convert_to_tensor(a)
        return emit("MatrixRank", [x], solution.matrix_rank, limit=tol, name=scope)


def normalize(
    tensor: Any, ord: Any = "euclidean", axis: Any = None, name: str | None = None
) -> tuple[Tensor, Tensor]:
    """Vectors divided by their norms, and these; arguments as for `norm`."""
    with name_scope(name, "normalize", [tensor]):
        x = convert_to_tensor(tensor)
        length = norm(x, ord, axis, keepdims=True)
        return divide(x, length), length
