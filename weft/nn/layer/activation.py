"""Activation layers."""

from __future__ import annotations

from dataclasses import InitVar
from typing import Any

from weft.eager.functions.creation.constructor import full
from weft.nn.functional import activation as F
from weft.nn.functional.softmax import log_softmax, softmax, softmin
from weft.nn.init import constant_
from weft.nn.layer.base import Layer, layer, options
from weft.nn.parameter import Parameter

__all__ = [
    "CELU", "ELU", "GELU", "GLU", "SELU", "Hardshrink", "Hardsigmoid", "Hardswish", "Hardtanh",
    "LeakyReLU", "LogSigmoid", "LogSoftmax", "Mish", "PReLU", "RReLU", "ReLU", "ReLU6", "SiLU",
    "Sigmoid", "Softmax", "Softmax2d", "Softmin", "Softplus", "Softshrink", "Softsign", "Tanh",
    "Tanhshrink", "Threshold",
]  # fmt: skip


class _Activation(Layer):
    """An activation; `inplace` is `False` where it is no option."""

    inplace: bool = False


@layer(F.relu)
class ReLU(_Activation):
    """`max(x, 0)`."""

    inplace: bool = False


@layer(F.relu6)
class ReLU6(_Activation):
    """`min(max(x, 0), 6)`."""

    inplace: bool = False


@layer(F.selu)
class SELU(_Activation):
    """Scaled exponential linear unit (Klambauer et al., 2017)."""

    inplace: bool = False


@layer(F.silu)
class SiLU(_Activation):
    """`x * sigmoid(x)`."""

    inplace: bool = False


@layer(F.mish)
class Mish(_Activation):
    """`x * tanh(softplus(x))`."""

    inplace: bool = False


@layer(F.hardswish)
class Hardswish(_Activation):
    """`x * relu6(x + 3) / 6`."""

    inplace: bool = False


@layer(F.hardsigmoid)
class Hardsigmoid(_Activation):
    """`relu6(x + 3) / 6`."""

    inplace: bool = False


@layer(F.sigmoid)
class Sigmoid(_Activation):
    """`1 / (1 + exp(-x))`."""


@layer(F.tanh)
class Tanh(_Activation):
    """Hyperbolic tangent."""


@layer(F.logsigmoid)
class LogSigmoid(_Activation):
    """`log(sigmoid(x))`."""


@layer(F.softsign)
class Softsign(_Activation):
    """`x / (1 + |x|)`."""


@layer(F.tanhshrink)
class Tanhshrink(_Activation):
    """`x - tanh(x)`."""


@layer(F.gelu)
class GELU(_Activation):
    """`x * Phi(x)`, or its approximation by a hyperbolic tangent with `approximate="tanh"`."""

    approximate: str = "none"


@layer(F.leaky_relu)
class LeakyReLU(_Activation):
    """`x` where it is positive, else `negative_slope * x`."""

    negative_slope: float = 0.01
    inplace: bool = False


@layer(F.elu)
class ELU(_Activation):
    """`x` where it is positive, else `alpha * (exp(x) - 1)`."""

    alpha: float = 1.0
    inplace: bool = False


@layer(F.celu)
class CELU(_Activation):
    """`max(0, x) + min(0, alpha * (exp(x / alpha) - 1))`."""

    alpha: float = 1.0
    inplace: bool = False


@layer(F.hardtanh)
class Hardtanh(_Activation):
    """`x` clipped to [min_val, max_val]."""

    min_val: float = -1.0
    max_val: float = 1.0
    inplace: bool = False


@layer(F.threshold)
class Threshold(_Activation):
    """`x` where it exceeds `threshold`, else `value`."""

    threshold: float
    value: float
    inplace: bool = False


@layer(F.softplus)
class Softplus(_Activation):
    """`log(1 + exp(beta * x)) / beta`, and `x` itself where `beta * x` exceeds `threshold`."""

    beta: float = 1.0
    threshold: float = 20.0


@layer(F.hardshrink)
class Hardshrink(_Activation):
    """`x` where `|x| > lambd`, else 0."""

    lambd: float = 0.5
    _shown = "lambd"


@layer(F.softshrink)
class Softshrink(_Activation):
    """`x` shrunk towards 0 by `lambd`: 0 where `|x| <= lambd`."""

    lambd: float = 0.5
    _shown = "lambd"


@layer(F.glu)
class GLU(_Activation):
    """The first half along `dim` times the sigmoid of the second."""

    dim: int = -1


@layer(softmax)
class Softmax(_Activation):
    """`exp(x) / sum(exp(x))` along `dim`."""

    dim: int | None = None


@layer(log_softmax)
class LogSoftmax(_Activation):
    """`log(softmax(x))` along `dim`."""

    dim: int | None = None


@layer(softmin)
class Softmin(_Activation):
    """`softmax(-x)` along `dim`."""

    dim: int | None = None


@layer(F.rrelu)
class RReLU(_Activation):
    """A leaky `ReLU` with a random slope from [lower, upper] in training, else their mean."""

    lower: float = 1.0 / 8
    upper: float = 1.0 / 3
    inplace: bool = False


@options
class Softmax2d(_Activation):
    """`softmax` over the channels of (N, C, H, W) or (C, H, W)."""

    def forward(self, input: Any) -> Any:
        """The input's shape."""
        return softmax(input, -3)


@options
class PReLU(_Activation):
    """`x` where it is positive, else `weight * x` with a learned weight, or one per channel.

    Args:
        num_parameters: the number of weights: 1, or that of the channels.
        init: the weights' initial value.
    """

    num_parameters: int = 1
    init: float = 0.25
    device: InitVar[Any] = None
    dtype: InitVar[Any] = None
    _shown = "num_parameters="

    def __post_init__(self, device: Any, dtype: Any) -> None:
        self.weight = Parameter(full((self.num_parameters,), float(self.init), dtype, device))

    def reset_parameters(self) -> None:
        """Set all weights to `init`."""
        constant_(self.weight, self.init)

    def forward(self, input: Any) -> Any:
        """The activation of every element."""
        return F.prelu(input, self.weight)
