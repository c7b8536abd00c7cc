"""Tensor contractions: `tensordot` and `einsum`."""

from __future__ import annotations

from typing import Any

from weft import ops
from weft.tf1.framework.convert import convert_n_to_tensor, same_type
from weft.tf1.framework.graph import emit, name_scope
from weft.tf1.framework.tensor import Tensor

__all__ = ["einsum", "tensordot"]


def tensordot(a: Any, b: Any, axes: Any, name: str | None = None) -> Tensor:
    """A contraction over `axes`: a number, or a pair of lists of axes."""
    with name_scope(name, "Tensordot", [a, b]):
        x, y = same_type("tensordot", a, b)

        def build(u: Any, v: Any) -> Any:
            return ops.tensordot(u, v, axes)

        return emit("MatMul", [x, y], build, name="MatMul")


def einsum(equation: str, *inputs: Any, name: str | None = None) -> Tensor:
    """A contraction in Einstein's notation, such as `'bij,bjk->bik'`: see `ops.einsum`.

    Raises:
        GraphError: the equation is malformed or does not fit the inputs' ranks.
    """
    with name_scope(name, "einsum", list(inputs)):
        tensors = convert_n_to_tensor(inputs, name="inputs")

        def build(*values: Any) -> Any:
            return ops.einsum(equation, *values)

        attrs = {"equation": equation}
        return emit("Einsum", tensors, build, name="Einsum", attrs=attrs)
