"""Matrices with a form of their own."""

from __future__ import annotations

from typing import Any

from weft.tf1.elementwise.arithmetic import matmul
from weft.tf1.framework.convert import convert_to_tensor
from weft.tf1.framework.tensor import Tensor
from weft.tf1.linalg.diagonal import matrix_band_part

__all__ = ["LinearOperatorLowerTriangular"]


class LinearOperatorLowerTriangular:
    """The lower triangles of matrices.

    Args:
        tril: matrices, whose elements above the diagonal do not count.
        is_non_singular, is_self_adjoint, is_positive_definite, is_square, name: accepted.
    """

    def __init__(
        self, tril: Any, is_non_singular: bool | None = None, is_self_adjoint: bool | None = None,
        is_positive_definite: bool | None = None, is_square: bool | None = None,
        name: str = "LinearOperatorLowerTriangular",
    ) -> None:  # fmt: skip
        del is_non_singular, is_self_adjoint, is_positive_definite, is_square
        self._name, self._matrix = name, convert_to_tensor(tril, name="tril")

    def to_dense(self, name: str = "to_dense") -> Tensor:
        """The matrices, with zeros above the diagonal."""
        return matrix_band_part(self._matrix, -1, 0, name=name)

    def matmul(self, x: Any, adjoint: bool = False) -> Tensor:
        """Their product with other matrices."""
        return matmul(self.to_dense(), convert_to_tensor(x), transpose_a=adjoint)
