"""Factorizations and inverses of matrices, by LAPACK through NumPy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from weft import ops
from weft.errors import NotDifferentiableError, ShapeError
from weft.ir.node import Value
from weft.tf1.framework.convert import convert_to_tensor, same_type
from weft.tf1.framework.dynamic_shape import dimension
from weft.tf1.framework.graph import emit, fail, name_scope
from weft.tf1.framework.tensor import Tensor

__all__ = ["cholesky", "matrix_determinant", "matrix_inverse", "matrix_solve"]


def _require_square(kind: str, tensor: Tensor) -> None:
    dims = tensor.shape
    if dims.ndims is None:
        return
    if dims.ndims < 2 or not dims[-1].is_compatible_with(dims[-2]):
        raise fail(ShapeError, f"{kind}: expected square matrices, got shape {dims}")


def _shape(x: Value, drop: int = 0) -> Any:
    """The shape of `x` without its last `drop` axes, which may be known only at execution."""
    if x.shape is None:
        return None
    kept = range(len(x.shape) - drop)
    return tuple(dimension(x, i) for i in kept)


def _on_host(
    function: Callable[..., Any], *xs: Value, shape: Any, gradient: Callable[..., Any]
) -> Value:
    kind = xs[0].dtype

    def run(*arrays: Any) -> Any:
        return np.asarray(function(*arrays)).astype(kind.numpy)

    def pulled(g: Any, y: Any, *inputs: Value) -> Any:
        return gradient(g[0], y[0], *inputs)

    return ops.host_call(*xs, function=run, dtypes=(kind,), shapes=(shape,), gradient=pulled)


def _inverse(x: Value) -> Value:
    return _on_host(np.linalg.inv, x, shape=_shape(x), gradient=_inverse_vjp)


def _inverse_vjp(g: Value, y: Value, x: Value) -> tuple[Value]:
    inner = ops.matmul(y, g, transpose_x=True)
    return (-ops.matmul(inner, y, transpose_y=True),)


def _transposed(x: Value) -> Value:
    rank = x.rank or 2
    return ops.transpose(x, perm=(*range(rank - 2), rank - 1, rank - 2))


def _determinant_vjp(g: Value, y: Value, x: Value) -> tuple[Value]:
    scale = ops.expand_dims(ops.expand_dims(g * y, axis=-1), axis=-1)
    return (scale * _transposed(_inverse(x)),)


def _solve(a: Value, b: Value) -> Value:
    return _on_host(np.linalg.solve, a, b, shape=_shape(b), gradient=_solve_vjp)


def _solve_vjp(g: Value, y: Value, a: Value, b: Value) -> tuple[Value, Value]:
    to_b = _solve(_transposed(a), g)
    return -ops.matmul(to_b, y, transpose_y=True), to_b


def _cholesky_vjp(*_: Value) -> tuple[Value]:
    raise NotDifferentiableError("cholesky: has no gradient")


def _emit(kind: str, x: Any, name: str | None, build: Callable[[Value], Value]) -> Tensor:
    with name_scope(name, kind, [x]) as scope:
        tensor = convert_to_tensor(x, name="input")
        _require_square(kind, tensor)
        return emit(kind, [tensor], build, name=scope)


def matrix_inverse(input: Any, adjoint: bool = False, name: str | None = None) -> Tensor:
    """The inverses of square matrices (`adjoint`: of their transposes)."""

    def build(x: Value) -> Value:
        return _inverse(_transposed(x) if adjoint else x)

    return _emit("MatrixInverse", input, name, build)


def matrix_determinant(input: Any, name: str | None = None) -> Tensor:
    """The determinants of square matrices."""

    def build(x: Value) -> Value:
        return _on_host(np.linalg.det, x, shape=_shape(x, drop=2), gradient=_determinant_vjp)

    return _emit("MatrixDeterminant", input, name, build)


def cholesky(input: Any, name: str | None = None) -> Tensor:
    """Cholesky factors: lower triangular L with L @ L.T equal to each matrix; no gradient yet."""

    def build(x: Value) -> Value:
        return _on_host(np.linalg.cholesky, x, shape=_shape(x), gradient=_cholesky_vjp)

    return _emit("Cholesky", input, name, build)


def matrix_solve(matrix: Any, rhs: Any, adjoint: bool = False, name: str | None = None) -> Tensor:
    """x such that matrix @ x == rhs (`adjoint`: with the transposed matrix)."""
    with name_scope(name, "MatrixSolve", [matrix, rhs]) as scope:
        a, b = same_type("matrix_solve", matrix, rhs)
        _require_square("MatrixSolve", a)

        def build(m: Value, r: Value) -> Value:
            return _solve(_transposed(m) if adjoint else m, r)

        return emit("MatrixSolve", [a, b], build, name=scope)
