"""Activations as functions and methods; `weft.nn.functional` has them all."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from weft import ops
from weft.eager.functions.elementwise.from_op import with_attributes, written
from weft.eager.tensor.dispatch import kind_of, recorded
from weft.eager.tensor.elementwise import promoted
from weft.errors import DTypeError

if TYPE_CHECKING:
    from weft.eager.tensor.tensor import Tensor

__all__ = ["celu", "elu", "gelu", "hardshrink", "leaky_relu"]

leaky_relu_of: Final = with_attributes("leaky_relu")
elu_of: Final = with_attributes("elu")
gelu_of: Final = with_attributes("gelu")
celu_of: Final = recorded(ops.celu)
hardshrink_of: Final = recorded(ops.hardshrink)


@written
def leaky_relu(x: Any, negative_slope: float = 0.01) -> Tensor:
    """`x`, scaled by a slope where it is negative."""
    return leaky_relu_of.on(kind_of(x), *promoted(x, floats=True), alpha=float(negative_slope))


@written
def elu(x: Any, alpha: float = 1.0) -> Tensor:
    """`x`, or `alpha * (exp(x) - 1)` where it is negative."""
    return elu_of.on(kind_of(x), *promoted(x, floats=True), alpha=float(alpha))


@written
def celu(x: Any, alpha: float = 1.0) -> Tensor:
    """`x`, or `alpha * (exp(x / alpha) - 1)` where it is negative."""
    return celu_of.on(kind_of(x), *promoted(x, floats=True), alpha=float(alpha))


@written
def gelu(x: Any, approximate: str = "none") -> Tensor:
    """`x` times the normal cumulative distribution function at `x`.

    Args:
        approximate: `"none"`, or `"tanh"` for the approximation by `tanh`.

    Raises:
        DTypeError: another approximation.
    """
    if approximate not in ("none", "tanh"):
        raise DTypeError.here(f"gelu: expected approximate 'none' or 'tanh', got {approximate!r}")
    return gelu_of.on(kind_of(x), *promoted(x, floats=True), approximate=approximate == "tanh")


@written
def hardshrink(x: Any, lambd: float = 0.5) -> Tensor:
    """`x`, or 0 where it is between `-lambd` and `lambd`."""
    return hardshrink_of.on(kind_of(x), *promoted(x, floats=True), limit=float(lambd))
