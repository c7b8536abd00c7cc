"""Activations: elementwise functions, softmax and relatives."""

from __future__ import annotations

import functools
import math
from typing import Any

from weft import ops
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
from weft.eager.tensor.argument import dims_of
from weft.eager.tensor.dispatch import Recorded, lazy_of, recorded
from weft.eager.tensor.elementwise import promoted, unary
from weft.eager.tensor.view.inplace import write
from weft.errors import ArgumentError, ShapeError
from weft.ir.dtype import as_dtype
from weft.ir.node import Value, at_user_line
from weft.ir.shape import known, show
from weft.ops.declaration import REGISTRY, catalogue
from weft.ops.declaration.fact import Autocast
from weft.ops.elementwise import piecewise_activation
from weft.ops.random import relaxed

__all__ = [
    "celu", "celu_", "elu", "elu_", "gelu", "glu", "gumbel_softmax", "hardshrink", "hardsigmoid",
    "hardswish", "hardtanh", "hardtanh_", "leaky_relu", "leaky_relu_", "log_softmax", "logsigmoid",
    "mish", "prelu", "relu", "relu6", "relu_", "rrelu", "selu", "selu_", "sigmoid", "silu",
    "softmax", "softmin", "softplus", "softshrink", "softsign", "tanh", "tanhshrink", "threshold",
    "threshold_",
]  # fmt: skip


def settle(function: Recorded, x: Any, inplace: bool, *rest: Any, **static: Any) -> Any:
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


def relu(input: Any, inplace: bool = False) -> Any:
    """`max(x, 0)`."""
    return _plain("relu", input, inplace)


def relu_(input: Any) -> Any:
    """`relu` in place."""
    return _plain("relu", input, True)


def relu6(input: Any, inplace: bool = False) -> Any:
    """`min(max(x, 0), 6)`."""
    return _plain("relu6", input, inplace)


def selu(input: Any, inplace: bool = False) -> Any:
    """Scaled exponential linear unit (Klambauer et al., 2017)."""
    return _plain("selu", input, inplace)


def selu_(input: Any) -> Any:
    """`selu` in place."""
    return selu(input, inplace=True)


def silu(input: Any, inplace: bool = False) -> Any:
    """`x * sigmoid(x)`, also called swish."""
    if lazy_of(input).type.dtype.is_complex:
        return settle(_complex_silu, input, inplace)
    return _plain("silu", input, inplace)


@recorded
def _complex_silu(x: Value) -> Value:
    return x * catalogue.sigmoid(x)


def sigmoid(input: Any) -> Any:
    """`1 / (1 + exp(-x))`."""
    return _plain("sigmoid", input)


def tanh(input: Any) -> Any:
    """Hyperbolic tangent."""
    return _plain("tanh", input)


def gelu(input: Any, approximate: str = "none") -> Any:
    """`x * Phi(x)`; with `approximate="tanh"`, its tanh approximation.

    Source: Hendrycks and Gimpel, "Gaussian Error Linear Units" (2016).
    """
    if approximate not in ("none", "tanh"):
        raise ArgumentError(
            f"gelu: expected approximate 'none' or 'tanh', got {approximate!r}{at_user_line()}"
        )
    return _plain("gelu", input) if approximate == "none" else gelu_of(input, approximate=True)


def leaky_relu(input: Any, negative_slope: float = 0.01, inplace: bool = False) -> Any:
    """`x` where it is positive, else `negative_slope * x`."""
    return settle(leaky_relu_of, input, inplace, alpha=float(negative_slope))


def leaky_relu_(input: Any, negative_slope: float = 0.01) -> Any:
    """`leaky_relu` in place."""
    return leaky_relu(input, negative_slope, True)


def elu(input: Any, alpha: float = 1.0, inplace: bool = False) -> Any:
    """`x` where it is positive, else `alpha * (exp(x) - 1)`."""
    return settle(elu_of, input, inplace, alpha=float(alpha))


def elu_(input: Any, alpha: float = 1.0) -> Any:
    """`elu` in place."""
    return elu(input, alpha, True)


def celu(input: Any, alpha: float = 1.0, inplace: bool = False) -> Any:
    """`max(0, x) + min(0, alpha * (exp(x / alpha) - 1))`.

    Raises:
        ArgumentError: `alpha` is 0.
    """
    if not alpha:
        raise ArgumentError(f"celu: expected alpha other than 0, got {alpha}{at_user_line()}")
    return settle(celu_of, input, inplace, alpha=float(alpha))


def celu_(input: Any, alpha: float = 1.0) -> Any:
    """`celu` in place."""
    return celu(input, alpha, inplace=True)


_hardtanh = recorded(ops.hardtanh)


def hardtanh(input: Any, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False) -> Any:
    """`x` clipped to [min_val, max_val].

    Raises:
        ArgumentError: `min_val` exceeds `max_val`.
    """
    if min_val > max_val:
        text = f"hardtanh: expected min_val <= max_val, got {min_val} and {max_val}"
        raise ArgumentError(text + at_user_line())
    return settle(_hardtanh, input, inplace, low=float(min_val), high=float(max_val))


def hardtanh_(input: Any, min_val: float = -1.0, max_val: float = 1.0) -> Any:
    """`hardtanh` in place."""
    return hardtanh(input, min_val, max_val, inplace=True)


_hardsigmoid = recorded(ops.hardsigmoid)


def hardsigmoid(input: Any, inplace: bool = False) -> Any:
    """`relu6(x + 3) / 6`."""
    return settle(_hardsigmoid, input, inplace)


_hardswish = recorded(ops.hardswish)


def hardswish(input: Any, inplace: bool = False) -> Any:
    """`x * relu6(x + 3) / 6`."""
    return settle(_hardswish, input, inplace)


_softplus = recorded(piecewise_activation.softplus)


@with_outlet
def softplus(input: Any, beta: float = 1.0, threshold: float = 20.0) -> Any:
    """`log(1 + exp(beta * x)) / beta`, and `x` itself where `beta * x` exceeds `threshold`."""
    return _softplus(input, beta=float(beta), threshold=float(threshold))


_logsigmoid = recorded(ops.log_sigmoid)


@with_outlet
def logsigmoid(input: Any) -> Any:
    """`log(sigmoid(x))`."""
    return _logsigmoid(input)


_softsign = recorded(ops.softsign)


def softsign(input: Any) -> Any:
    """`x / (1 + |x|)`."""
    return _softsign(*promoted(input, floats=True))


_tanhshrink = recorded(ops.tanhshrink)


def tanhshrink(input: Any) -> Any:
    """`x - tanh(x)`."""
    return _tanhshrink(*promoted(input, floats=True))


_mish = recorded(ops.mish)


def mish(input: Any, inplace: bool = False) -> Any:
    """`x * tanh(softplus(x))` (Misra, 2019)."""
    return settle(_mish, input, inplace)


def hardshrink(input: Any, lambd: float = 0.5) -> Any:
    """`x` where `|x| > lambd`, else 0."""
    return hardshrink_of(input, limit=float(lambd))


_softshrink = recorded(ops.softshrink)


@with_outlet
def softshrink(input: Any, lambd: float = 0.5) -> Any:
    """`x` shrunk towards 0 by `lambd`: 0 where `|x| <= lambd`.

    Raises:
        ArgumentError: `lambd` is negative or not finite.
    """
    if not 0 <= lambd < math.inf:
        raise ArgumentError(f"softshrink: expected finite lambd >= 0, got {lambd}{at_user_line()}")
    return _softshrink(input, limit=float(lambd))


_threshold = recorded(ops.threshold)


def threshold(input: Any, threshold: float, value: float, inplace: bool = False) -> Any:
    """`x` where it exceeds `threshold`, else `value`."""
    return settle(_threshold, input, inplace, limit=float(threshold), value=float(value))


def threshold_(input: Any, threshold: float, value: float) -> Any:
    """`threshold` in place."""
    return settle(_threshold, input, True, limit=float(threshold), value=float(value))


def _per_channel(weight: Value, rank: int) -> Value:
    """A weight per channel, dimension 1, reshaped to broadcast."""
    if known(weight.shape) in ((), (1,)) or rank < 2:
        return catalogue.reshape(weight, shape=(1,) * rank) if rank < 2 else weight
    return catalogue.reshape(weight, shape=(-1, *[1] * (rank - 2)))


@recorded
def _prelu(x: Value, weight: Value) -> Value:
    dims, size = known(x.shape), known(weight.shape)
    if size not in ((), (1,)) and (len(dims) < 2 or size != (dims[1],)):
        raise ShapeError(
            f"prelu: expected one weight, or one a channel (dimension 1) of {show(dims)}, got "
            f"{show(size)}{at_user_line()}"
        )
    return ops.prelu(x, _per_channel(weight, len(dims)))


def prelu(input: Any, weight: Any) -> Any:
    """`x` where it is positive, else `weight * x`, one weight or one per channel (dimension 1)."""
    return _prelu(input, weight)


_rrelu = recorded(relaxed.rrelu)


def rrelu(
    input: Any,
    lower: float = 1.0 / 8,
    upper: float = 1.0 / 3,
    training: bool = False,
    inplace: bool = False,
) -> Any:
    """A leaky `relu` with a random slope from [lower, upper] in training, else their mean.

    Raises:
        ArgumentError: the bounds are in the wrong order or not finite.
    """
    if not -math.inf < lower <= upper < math.inf:
        text = f"rrelu: expected finite lower <= upper, got {lower} and {upper}"
        raise ArgumentError(text + at_user_line())
    if training:
        return settle(_rrelu, input, inplace, next_counter(), lower=lower, upper=upper)
    return settle(leaky_relu_of, input, inplace, alpha=(lower + upper) / 2)


_glu = recorded(ops.glu)


def glu(input: Any, dim: int = -1) -> Any:
    """The first half along `dim` times the sigmoid of the second (Dauphin et al., 2016)."""
    return _glu(input, dim=dim)


# softmax and relatives


@recorded(autocast=Autocast.FLOAT32)
def _softmax(x: Value, *, dim: int) -> Value:
    return catalogue.softmax(x, axis=dim)


@recorded(autocast=Autocast.FLOAT32)
def _log_softmax(x: Value, *, dim: int) -> Value:
    return catalogue.log_softmax(x, axis=dim)


@recorded
def _negative(x: Value) -> Value:
    return -x


def _rows(name: str, input: Any, dim: int | None, dtype: Any) -> tuple[Any, int]:
    """The input in the requested type, and the axis."""
    rank = len(dims_of(input))
    if dim is None:  # PyTorch's default, with its warning
        dim = 0 if rank in (0, 1, 3) else 1
    most = max(rank, 1)
    if not -most <= dim < most:
        raise ShapeError(
            f"{name}: expected a dimension from {-most} to {most - 1}, got {dim}{at_user_line()}"
        )
    if rank == 0:
        input, dim = _as_vector(input), 0
    return (input if dtype is None else _as_type(input, dtype=as_dtype(dtype))), dim


@recorded
def _as_type(x: Value, *, dtype: Any) -> Value:
    return catalogue.cast(x, dtype=dtype)


@recorded
def _as_vector(x: Value) -> Value:
    return catalogue.reshape(x, shape=(1,))


@recorded
def _as_scalar(x: Value) -> Value:
    return catalogue.reshape(x, shape=())


def softmax(input: Any, dim: int | None = None, _stacklevel: int = 3, dtype: Any = None) -> Any:
    """`exp(x) / sum(exp(x))` along `dim`, computed in `dtype` if given."""
    x, axis = _rows("softmax", input, dim, dtype)
    return _ranked(_softmax(x, dim=axis), input)


def log_softmax(input: Any, dim: int | None = None, _stacklevel: int = 3, dtype: Any = None) -> Any:
    """`log(softmax(x))` along `dim`, computed in `dtype` if given."""
    x, axis = _rows("log_softmax", input, dim, dtype)
    return _ranked(_log_softmax(x, dim=axis), input)


def softmin(input: Any, dim: int | None = None, _stacklevel: int = 3, dtype: Any = None) -> Any:
    """`softmax(-x)` along `dim`."""
    return softmax(_negative(input), dim, dtype=dtype)


def _ranked(y: Any, input: Any) -> Any:
    """Scalars give scalars."""
    return y if lazy_of(input).type.shape else _as_scalar(y)


_one_hot_of_largest = recorded(relaxed.one_hot_of_largest)


_gumbel_softmax = recorded(relaxed.gumbel_softmax)


def gumbel_softmax(
    logits: Any, tau: float = 1, hard: bool = False, eps: float = 1e-10, dim: int = -1
) -> Any:
    """Differentiable samples from a categorical distribution (Jang et al., 2016).

    Args:
        tau: temperature.
        hard: one-hot results, with the gradient of the soft ones.
    """
    y = _gumbel_softmax(logits, next_counter(), tau=float(tau), dim=dim)
    return _one_hot_of_largest(y, dim=dim) if hard else y
