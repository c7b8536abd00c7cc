"""Activations: elementwise functions; `softmax` has a module of its own."""

from __future__ import annotations

import functools
import math
from typing import Any

from weft import ops
from weft.documentation import arguments_of
from weft.eager.functions.elementwise.activation import (
    celu_of,
    elu_of,
    gelu_of,
    hardshrink_of,
    leaky_relu_of,
)
from weft.eager.functions.elementwise.from_op import of_one
from weft.eager.functions.out_argument import with_outlet
from weft.eager.functions.random.generator import next_counter
from weft.eager.functions.recall.memory import of_any_sizes
from weft.eager.tensor.dispatch import Recorded, lazy_of, recorded
from weft.eager.tensor.elementwise import promoted, unary
from weft.eager.tensor.view.inplace import write
from weft.errors import ArgumentError, ShapeError
from weft.ir.node import Value
from weft.ir.shape import known, show
from weft.ops.declaration import REGISTRY, catalogue
from weft.ops.elementwise import piecewise_activation
from weft.ops.random import relaxed

__all__ = [
    "celu", "celu_", "elu", "elu_", "gelu", "glu", "hardshrink", "hardsigmoid", "hardswish",
    "hardtanh", "hardtanh_", "leaky_relu", "leaky_relu_", "logsigmoid", "mish", "prelu", "relu",
    "relu6", "relu_", "rrelu", "selu", "selu_", "sigmoid", "silu", "softplus", "softshrink",
    "softsign", "tanh", "tanhshrink", "threshold", "threshold_",
]  # fmt: skip


def _applied(function: Recorded, x: Any, inplace: bool, *rest: Any, **static: Any) -> Any:
    """Call an elementwise function, in place if requested."""
    if inplace:
        name = function.function.__name__.strip("_")
        return write(x, function.record((x, *rest), static)[0], name)
    return function(x, *rest, **static)


def _plain(name: str, x: Any, inplace: bool = False) -> Any:
    """Call an operation of the catalogue, in place if requested."""
    if inplace:
        return write(x, unary(REGISTRY[name], x).lazy, name)
    return _function(name)(x)


_function = functools.cache(lambda name: of_one(name, floats=name not in ("relu", "relu6")))


@of_any_sizes
def relu(input: Any, inplace: bool = False) -> Any:
    """`max(x, 0)`.

    Args:
        input: any shape.
        inplace: replace the input by the result.
    """
    return _plain("relu", input, inplace)


@arguments_of(relu)
def relu_(input: Any) -> Any:
    """`relu` in place."""
    return _plain("relu", input, True)


@of_any_sizes
@arguments_of(relu)
def relu6(input: Any, inplace: bool = False) -> Any:
    """`min(max(x, 0), 6)`."""
    return _plain("relu6", input, inplace)


@of_any_sizes
@arguments_of(relu)
def selu(input: Any, inplace: bool = False) -> Any:
    """Scaled exponential linear unit (Klambauer et al., 2017)."""
    return _plain("selu", input, inplace)


@arguments_of(relu)
def selu_(input: Any) -> Any:
    """`selu` in place."""
    return selu(input, inplace=True)


@of_any_sizes
@arguments_of(relu)
def silu(input: Any, inplace: bool = False) -> Any:
    """`x * sigmoid(x)`, also called swish."""
    if lazy_of(input).type.dtype.is_complex:
        return _applied(_complex_silu, input, inplace)
    return _plain("silu", input, inplace)


@recorded
def _complex_silu(x: Value) -> Value:
    return x * catalogue.sigmoid(x)


@of_any_sizes
@arguments_of(relu)
def sigmoid(input: Any) -> Any:
    """`1 / (1 + exp(-x))`."""
    return _plain("sigmoid", input)


@of_any_sizes
@arguments_of(relu)
def tanh(input: Any) -> Any:
    """Hyperbolic tangent."""
    return _plain("tanh", input)


@of_any_sizes
@arguments_of(relu)
def gelu(input: Any, approximate: str = "none") -> Any:
    """`x * Phi(x)`; with `approximate="tanh"`, its tanh approximation.

    Args:
        approximate: `none` or `tanh`.

    Source: Hendrycks and Gimpel, "Gaussian Error Linear Units" (2016).
    """
    if approximate not in ("none", "tanh"):
        raise ArgumentError.here(
            f"gelu: expected approximate 'none' or 'tanh', got {approximate!r}"
        )
    return _plain("gelu", input) if approximate == "none" else gelu_of(input, approximate=True)


@of_any_sizes
@arguments_of(relu)
def leaky_relu(input: Any, negative_slope: float = 0.01, inplace: bool = False) -> Any:
    """`x` where it is positive, else `negative_slope * x`.

    Args:
        negative_slope: the slope below 0.
    """
    return _applied(leaky_relu_of, input, inplace, alpha=float(negative_slope))


@arguments_of(leaky_relu)
def leaky_relu_(input: Any, negative_slope: float = 0.01) -> Any:
    """`leaky_relu` in place."""
    return leaky_relu(input, negative_slope, True)


@of_any_sizes
@arguments_of(relu)
def elu(input: Any, alpha: float = 1.0, inplace: bool = False) -> Any:
    """`x` where it is positive, else `alpha * (exp(x) - 1)`.

    Args:
        alpha: the negative of the limit at minus infinity.
    """
    return _applied(elu_of, input, inplace, alpha=float(alpha))


@arguments_of(elu)
def elu_(input: Any, alpha: float = 1.0) -> Any:
    """`elu` in place."""
    return elu(input, alpha, True)


@of_any_sizes
@arguments_of(relu)
def celu(input: Any, alpha: float = 1.0, inplace: bool = False) -> Any:
    """`max(0, x) + min(0, alpha * (exp(x / alpha) - 1))`.

    Args:
        alpha: the negative of the limit at minus infinity; not 0.

    Raises:
        ArgumentError: `alpha` is 0.
    """
    if not alpha:
        raise ArgumentError.here(f"celu: expected alpha other than 0, got {alpha}")
    return _applied(celu_of, input, inplace, alpha=float(alpha))


@arguments_of(celu)
def celu_(input: Any, alpha: float = 1.0) -> Any:
    """`celu` in place."""
    return celu(input, alpha, inplace=True)


_hardtanh = recorded(ops.hardtanh)


@arguments_of(relu)
def hardtanh(input: Any, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False) -> Any:
    """`x` clipped to [min_val, max_val].

    Args:
        min_val: the least result.
        max_val: the largest result.

    Raises:
        ArgumentError: `min_val` exceeds `max_val`.
    """
    if min_val > max_val:
        text = f"hardtanh: expected min_val <= max_val, got {min_val} and {max_val}"
        raise ArgumentError.here(text)
    return _applied(_hardtanh, input, inplace, low=float(min_val), high=float(max_val))


@arguments_of(hardtanh)
def hardtanh_(input: Any, min_val: float = -1.0, max_val: float = 1.0) -> Any:
    """`hardtanh` in place."""
    return hardtanh(input, min_val, max_val, inplace=True)


_hardsigmoid = recorded(ops.hardsigmoid)


@of_any_sizes
@arguments_of(relu)
def hardsigmoid(input: Any, inplace: bool = False) -> Any:
    """`relu6(x + 3) / 6`."""
    return _applied(_hardsigmoid, input, inplace)


_hardswish = recorded(ops.hardswish)


@of_any_sizes
@arguments_of(relu)
def hardswish(input: Any, inplace: bool = False) -> Any:
    """`x * relu6(x + 3) / 6`."""
    return _applied(_hardswish, input, inplace)


_softplus = recorded(piecewise_activation.softplus)


@with_outlet
@of_any_sizes
@arguments_of(relu)
def softplus(input: Any, beta: float = 1.0, threshold: float = 20.0) -> Any:
    """`log(1 + exp(beta * x)) / beta`, and `x` itself where `beta * x` exceeds `threshold`.

    Args:
        beta: the sharpness of the bend at 0.
        threshold: `beta * x` from which on the result is `x`, which avoids overflow.
    """
    return _softplus(input, beta=float(beta), threshold=float(threshold))


_logsigmoid = recorded(ops.log_sigmoid)


@with_outlet
@arguments_of(relu)
def logsigmoid(input: Any) -> Any:
    """`log(sigmoid(x))`."""
    return _logsigmoid(input)


_softsign = recorded(ops.softsign)


@arguments_of(relu)
def softsign(input: Any) -> Any:
    """`x / (1 + |x|)`."""
    return _softsign(*promoted(input, floats=True))


_tanhshrink = recorded(ops.tanhshrink)


@arguments_of(relu)
def tanhshrink(input: Any) -> Any:
    """`x - tanh(x)`."""
    return _tanhshrink(*promoted(input, floats=True))


_mish = recorded(ops.mish)


@of_any_sizes
@arguments_of(relu)
def mish(input: Any, inplace: bool = False) -> Any:
    """`x * tanh(softplus(x))` (Misra, 2019)."""
    return _applied(_mish, input, inplace)


@arguments_of(relu)
def hardshrink(input: Any, lambd: float = 0.5) -> Any:
    """`x` where `|x| > lambd`, else 0.

    Args:
        lambd: the largest magnitude that becomes 0.
    """
    return hardshrink_of(input, limit=float(lambd))


_softshrink = recorded(ops.softshrink)


@with_outlet
@arguments_of(relu)
def softshrink(input: Any, lambd: float = 0.5) -> Any:
    """`x` shrunk towards 0 by `lambd`: 0 where `|x| <= lambd`.

    Args:
        lambd: the largest magnitude that becomes 0, by which others shrink.

    Raises:
        ArgumentError: `lambd` is negative or not finite.
    """
    if not 0 <= lambd < math.inf:
        raise ArgumentError.here(f"softshrink: expected finite lambd >= 0, got {lambd}")
    return _softshrink(input, limit=float(lambd))


_threshold = recorded(ops.threshold)


@arguments_of(relu)
def threshold(input: Any, threshold: float, value: float, inplace: bool = False) -> Any:
    """`x` where it exceeds `threshold`, else `value`.

    Args:
        threshold: the largest element that is replaced.
        value: what it is replaced by.
    """
    return _applied(_threshold, input, inplace, limit=float(threshold), value=float(value))


@arguments_of(threshold)
def threshold_(input: Any, threshold: float, value: float) -> Any:
    """`threshold` in place."""
    return _applied(_threshold, input, True, limit=float(threshold), value=float(value))


def _per_channel(weight: Value, rank: int) -> Value:
    """A weight per channel, dimension 1, reshaped to broadcast."""
    if known(weight.shape) in ((), (1,)) or rank < 2:
        return catalogue.reshape(weight, shape=(1,) * rank) if rank < 2 else weight
    return catalogue.reshape(weight, shape=(-1, *[1] * (rank - 2)))


@recorded
def _prelu(x: Value, weight: Value) -> Value:
    dims, size = known(x.shape), known(weight.shape)
    if size not in ((), (1,)) and (len(dims) < 2 or size != (dims[1],)):
        raise ShapeError.here(
            f"prelu: expected one weight, or one a channel (dimension 1) of {show(dims)}, got "
            f"{show(size)}"
        )
    return ops.prelu(x, _per_channel(weight, len(dims)))


def prelu(input: Any, weight: Any) -> Any:
    """`x` where it is positive, else `weight * x`, one weight or one per channel (dimension 1).

    Args:
        input: (N, C, ...), or any shape with one weight.
        weight: the slope below 0: one number, or one for each channel.
    """
    return _prelu(input, weight)


_rrelu = recorded(relaxed.rrelu)


@arguments_of(relu)
def rrelu(
    input: Any,
    lower: float = 1.0 / 8,
    upper: float = 1.0 / 3,
    training: bool = False,
    inplace: bool = False,
) -> Any:
    """A leaky `relu` with a random slope from [lower, upper] in training, else their mean.

    Args:
        lower: the least slope below 0.
        upper: the largest slope below 0.
        training: draw a slope for each element, instead of the mean for all.

    Raises:
        ArgumentError: the bounds are in the wrong order or not finite.
    """
    if not -math.inf < lower <= upper < math.inf:
        raise ArgumentError.here(f"rrelu: expected finite lower <= upper, got {lower} and {upper}")
    if training:
        return _applied(_rrelu, input, inplace, next_counter(), lower=lower, upper=upper)
    return _applied(leaky_relu_of, input, inplace, alpha=(lower + upper) / 2)


_glu = recorded(ops.glu)


def glu(input: Any, dim: int = -1) -> Any:
    """The first half along `dim` times the sigmoid of the second (Dauphin et al., 2016).

    Args:
        input: any shape, of even size along `dim`.
        dim: the dimension that is halved.
    """
    return _glu(input, dim=dim)
