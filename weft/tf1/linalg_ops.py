"""Decompositions and inverses of matrices, by LAPACK through NumPy; not differentiable yet."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from weft import ops
from weft.errors import ShapeError
from weft.ir.node import Value
from weft.tf1.convert import convert_to_tensor, same_type
from weft.tf1.graph import fail, get_default_graph, name_scope
from weft.tf1.tensor import Tensor


def _square(kind: str, tensor: Tensor) -> None:
    dims = tensor.shape
    if dims.ndims is None:
        return
    if dims.ndims < 2 or not dims[-1].is_compatible_with(dims[-2]):
        raise fail(ShapeError, f"{kind}: expected square matrices, got shape {dims}")


def _lapack(
    kind: str, function: Callable[..., Any], x: Any, name: str | None, drop: int = 0
) -> Tensor:
    """An operation on the last two axes that keeps the shape but for the last `drop` axes."""
    with name_scope(name, kind, [x]) as scope:
        tensor = convert_to_tensor(x, name="input")
        _square(kind, tensor)

        def build(v: Value) -> Value:
            shape = None if v.shape is None else v.shape[: len(v.shape) - drop]
            return ops.host_call(
                v, function=lambda a: np.asarray(function(a), a.dtype), dtypes=(v.dtype,),
                shapes=(shape,),
            )  # fmt: skip

        return get_default_graph().emit(kind, [tensor], build, name=scope).outputs[0]


def matrix_inverse(input: Any, adjoint: bool = False, name: str | None = None) -> Tensor:
    """The inverses of square matrices."""

    def inverse(a: Any) -> Any:
        return np.linalg.inv(np.swapaxes(a, -1, -2) if adjoint else a)

    return _lapack("MatrixInverse", inverse, input, name)


def matrix_determinant(input: Any, name: str | None = None) -> Tensor:
    """The determinants of square matrices."""
    return _lapack("MatrixDeterminant", np.linalg.det, input, name, drop=2)


def cholesky(input: Any, name: str | None = None) -> Tensor:
    """Lower triangular L with L @ L.T equal to each positive definite matrix."""
    return _lapack("Cholesky", np.linalg.cholesky, input, name)


def matrix_solve(matrix: Any, rhs: Any, adjoint: bool = False, name: str | None = None) -> Tensor:
    """x such that matrix @ x == rhs."""
    with name_scope(name, "MatrixSolve", [matrix, rhs]) as scope:
        a, b = same_type("matrix_solve", matrix, rhs)
        _square("MatrixSolve", a)

        def solve(m: Any, r: Any) -> Any:
            return np.linalg.solve(np.swapaxes(m, -1, -2) if adjoint else m, r).astype(r.dtype)

        def build(m: Value, r: Value) -> Value:
            return ops.host_call(m, r, function=solve, dtypes=(r.dtype,), shapes=(r.shape,))

        return get_default_graph().emit("MatrixSolve", [a, b], build, name=scope).outputs[0]
