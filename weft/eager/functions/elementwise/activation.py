"""Activations of neural networks, as functions and methods; `weft.nn.functional` has them all."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from weft import ops
from weft.eager.functions.elementwise.from_op import of_floats, of_one
from weft.eager.tensor.dispatch import kind_of, promoted, recorded
from weft.errors import DTypeError
from weft.ir.node import Value
from weft.ops.base import at_user_line, catalogue

if TYPE_CHECKING:
    from weft.eager.tensor.tensor import Tensor

__all__ = ["celu", "elu", "gelu", "hardshrink", "leaky_relu", "relu6", "selu", "silu", "softplus"]

relu6 = of_one("relu6", floats=True)
selu = of_one("selu", floats=True)
silu = of_one("silu", floats=True)
softplus = of_floats("softplus", catalogue.softplus)


@recorded
def _leaky_relu(x: Value, *, alpha: float) -> Value:
    return catalogue.leaky_relu(x, alpha=alpha)


@recorded
def _elu(x: Value, *, alpha: float) -> Value:
    return catalogue.elu(x, alpha=alpha)


@recorded
def _celu(x: Value, *, alpha: float) -> Value:
    return ops.celu(x, alpha)


@recorded
def _gelu(x: Value, *, approximate: bool) -> Value:
    return catalogue.gelu(x, approximate=approximate)


@recorded
def _hardshrink(x: Value, *, limit: float) -> Value:
    return ops.hardshrink(x, limit)


def leaky_relu(x: Any, negative_slope: float = 0.01) -> Tensor:
    """`x`, times a slope where it is negative."""
    return _leaky_relu.on(kind_of(x), *promoted(x, floats=True), alpha=float(negative_slope))


def elu(x: Any, alpha: float = 1.0) -> Tensor:
    """`x`, or `alpha * (exp(x) - 1)` where it is negative."""
    return _elu.on(kind_of(x), *promoted(x, floats=True), alpha=float(alpha))


def celu(x: Any, alpha: float = 1.0) -> Tensor:
    """`x`, or `alpha * (exp(x / alpha) - 1)` where it is negative."""
    return _celu.on(kind_of(x), *promoted(x, floats=True), alpha=float(alpha))


def gelu(x: Any, approximate: str = "none") -> Tensor:
    """`x` times the part of a normal distribution that is below it.

    Args:
        approximate: `"none"`, or `"tanh"` for the formula with `tanh`.

    Raises:
        DTypeError: another approximation.
    """
    if approximate not in ("none", "tanh"):
        raise DTypeError(
            f"gelu: expected approximate 'none' or 'tanh', got {approximate!r}{at_user_line()}"
        )
    return _gelu.on(kind_of(x), *promoted(x, floats=True), approximate=approximate == "tanh")


def hardshrink(x: Any, lambd: float = 0.5) -> Tensor:
    """`x`, or 0 where it is between `-lambd` and `lambd`."""
    return _hardshrink.on(kind_of(x), *promoted(x, floats=True), limit=float(lambd))
