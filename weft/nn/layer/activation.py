"""Activation layers."""

from __future__ import annotations

from typing import Any

from weft.eager.functions.creation.constructor import full
from weft.nn.functional import plain as F
from weft.nn.module.module import Module
from weft.nn.parameter import Parameter


class _Activation(Module):
    """An activation whose options are attributes, which the printed form shows if they are set."""

    _shown: tuple[str, ...] = ()
    inplace: bool = False

    def extra_repr(self) -> str:
        """The options."""
        parts = [f"{name}={getattr(self, name)!r}" for name in self._shown]
        return ", ".join([*parts, "inplace=True"] if self.inplace else parts)


class ReLU(_Activation):
    """`max(x, 0)`."""

    def __init__(self, inplace: bool = False) -> None:
        super().__init__()
        self.inplace = inplace

    def forward(self, input: Any) -> Any:
        """The activation of every element."""
        return F.relu(input, inplace=self.inplace)


class ReLU6(_Activation):
    """`min(max(x, 0), 6)`."""

    def __init__(self, inplace: bool = False) -> None:
        super().__init__()
        self.inplace = inplace

    def forward(self, input: Any) -> Any:
        """The activation of every element."""
        return F.relu6(input, inplace=self.inplace)


class SELU(_Activation):
    """Scaled exponential linear unit (Klambauer et al., 2017)."""

    def __init__(self, inplace: bool = False) -> None:
        super().__init__()
        self.inplace = inplace

    def forward(self, input: Any) -> Any:
        """The activation of every element."""
        return F.selu(input, inplace=self.inplace)


class SiLU(_Activation):
    """`x * sigmoid(x)`."""

    def __init__(self, inplace: bool = False) -> None:
        super().__init__()
        self.inplace = inplace

    def forward(self, input: Any) -> Any:
        """The activation of every element."""
        return F.silu(input, inplace=self.inplace)


class Mish(_Activation):
    """`x * tanh(softplus(x))`."""

    def __init__(self, inplace: bool = False) -> None:
        super().__init__()
        self.inplace = inplace

    def forward(self, input: Any) -> Any:
        """The activation of every element."""
        return F.mish(input, inplace=self.inplace)


class Hardswish(_Activation):
    """`x * relu6(x + 3) / 6`."""

    def __init__(self, inplace: bool = False) -> None:
        super().__init__()
        self.inplace = inplace

    def forward(self, input: Any) -> Any:
        """The activation of every element."""
        return F.hardswish(input, inplace=self.inplace)


class Hardsigmoid(_Activation):
    """`relu6(x + 3) / 6`."""

    def __init__(self, inplace: bool = False) -> None:
        super().__init__()
        self.inplace = inplace

    def forward(self, input: Any) -> Any:
        """The activation of every element."""
        return F.hardsigmoid(input, inplace=self.inplace)


class Sigmoid(_Activation):
    """`1 / (1 + exp(-x))`."""

    def forward(self, input: Any) -> Any:
        """The activation of every element."""
        return F.sigmoid(input)


class Tanh(_Activation):
    """Hyperbolic tangent."""

    def forward(self, input: Any) -> Any:
        """The activation of every element."""
        return F.tanh(input)


class LogSigmoid(_Activation):
    """`log(sigmoid(x))`."""

    def forward(self, input: Any) -> Any:
        """The activation of every element."""
        return F.logsigmoid(input)


class Softsign(_Activation):
    """`x / (1 + |x|)`."""

    def forward(self, input: Any) -> Any:
        """The activation of every element."""
        return F.softsign(input)


class Tanhshrink(_Activation):
    """`x - tanh(x)`."""

    def forward(self, input: Any) -> Any:
        """The activation of every element."""
        return F.tanhshrink(input)


class GELU(_Activation):
    """`x * Phi(x)`, or its approximation by a hyperbolic tangent with `approximate="tanh"`."""

    _shown = ("approximate",)

    def __init__(self, approximate: str = "none") -> None:
        super().__init__()
        self.approximate = approximate

    def forward(self, input: Any) -> Any:
        """The activation of every element."""
        return F.gelu(input, self.approximate)


class LeakyReLU(_Activation):
    """`x` where it is positive, else `negative_slope * x`."""

    _shown = ("negative_slope",)

    def __init__(self, negative_slope: float = 0.01, inplace: bool = False) -> None:
        super().__init__()
        self.negative_slope = negative_slope
        self.inplace = inplace

    def forward(self, input: Any) -> Any:
        """The activation of every element."""
        return F.leaky_relu(input, self.negative_slope, self.inplace)


class ELU(_Activation):
    """`x` where it is positive, else `alpha * (exp(x) - 1)`."""

    _shown = ("alpha",)

    def __init__(self, alpha: float = 1.0, inplace: bool = False) -> None:
        super().__init__()
        self.alpha = alpha
        self.inplace = inplace

    def forward(self, input: Any) -> Any:
        """The activation of every element."""
        return F.elu(input, self.alpha, self.inplace)


class CELU(_Activation):
    """`max(0, x) + min(0, alpha * (exp(x / alpha) - 1))`."""

    _shown = ("alpha",)

    def __init__(self, alpha: float = 1.0, inplace: bool = False) -> None:
        super().__init__()
        self.alpha = alpha
        self.inplace = inplace

    def forward(self, input: Any) -> Any:
        """The activation of every element."""
        return F.celu(input, self.alpha, self.inplace)


class Hardtanh(_Activation):
    """`x` clipped to [min_val, max_val]."""

    _shown = ("min_val", "max_val")

    def __init__(self, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False) -> None:
        super().__init__()
        self.min_val = min_val
        self.max_val = max_val
        self.inplace = inplace

    def forward(self, input: Any) -> Any:
        """The activation of every element."""
        return F.hardtanh(input, self.min_val, self.max_val, self.inplace)


class Threshold(_Activation):
    """`x` where it exceeds `threshold`, else `value`."""

    _shown = ("threshold", "value")

    def __init__(self, threshold: float, value: float, inplace: bool = False) -> None:
        super().__init__()
        self.threshold = threshold
        self.value = value
        self.inplace = inplace

    def forward(self, input: Any) -> Any:
        """The activation of every element."""
        return F.threshold(input, self.threshold, self.value, self.inplace)


class Softplus(_Activation):
    """`log(1 + exp(beta * x)) / beta`, and `x` itself where `beta * x` exceeds `threshold`."""

    _shown = ("beta", "threshold")

    def __init__(self, beta: float = 1.0, threshold: float = 20.0) -> None:
        super().__init__()
        self.beta = beta
        self.threshold = threshold

    def forward(self, input: Any) -> Any:
        """The activation of every element."""
        return F.softplus(input, self.beta, self.threshold)


class Hardshrink(_Activation):
    """`x` where `|x| > lambd`, else 0."""

    def __init__(self, lambd: float = 0.5) -> None:
        super().__init__()
        self.lambd = lambd

    def forward(self, input: Any) -> Any:
        """The activation of every element."""
        return F.hardshrink(input, self.lambd)

    def extra_repr(self) -> str:
        """The threshold."""
        return str(self.lambd)


class Softshrink(_Activation):
    """`x` shrunk towards 0 by `lambd`: 0 where `
    x
     <= lambd`.
    """

    def __init__(self, lambd: float = 0.5) -> None:
        super().__init__()
        self.lambd = lambd

    def forward(self, input: Any) -> Any:
        """The activation of every element."""
        return F.softshrink(input, self.lambd)

    def extra_repr(self) -> str:
        """The threshold."""
        return str(self.lambd)


class GLU(_Activation):
    """The first half along `dim` times the sigmoid of the second."""

    _shown = ("dim",)

    def __init__(self, dim: int = -1) -> None:
        super().__init__()
        self.dim = dim

    def forward(self, input: Any) -> Any:
        """The input with half the size along `dim`."""
        return F.glu(input, self.dim)


class Softmax(_Activation):
    """`exp(x) / sum(exp(x))` along `dim`."""

    _shown = ("dim",)

    def __init__(self, dim: int | None = None) -> None:
        super().__init__()
        self.dim = dim

    def forward(self, input: Any) -> Any:
        """The input's shape."""
        return F.softmax(input, self.dim)


class LogSoftmax(_Activation):
    """`log(softmax(x))` along `dim`."""

    _shown = ("dim",)

    def __init__(self, dim: int | None = None) -> None:
        super().__init__()
        self.dim = dim

    def forward(self, input: Any) -> Any:
        """The input's shape."""
        return F.log_softmax(input, self.dim)


class Softmin(_Activation):
    """`softmax(-x)` along `dim`."""

    _shown = ("dim",)

    def __init__(self, dim: int | None = None) -> None:
        super().__init__()
        self.dim = dim

    def forward(self, input: Any) -> Any:
        """The input's shape."""
        return F.softmin(input, self.dim)


class RReLU(_Activation):
    """A leaky `ReLU` with a random slope from [lower, upper] in training, else their mean."""

    _shown = ("lower", "upper")

    def __init__(
        self, lower: float = 1.0 / 8, upper: float = 1.0 / 3, inplace: bool = False
    ) -> None:
        super().__init__()
        self.lower = lower
        self.upper = upper
        self.inplace = inplace

    def forward(self, input: Any) -> Any:
        """The activation of every element."""
        return F.rrelu(input, self.lower, self.upper, self.training, self.inplace)


class Softmax2d(_Activation):
    """`softmax` over the channels of (N, C, H, W) or (C, H, W)."""

    def forward(self, input: Any) -> Any:
        """The input's shape."""
        return F.softmax(input, -3)


class PReLU(_Activation):
    """`x` where it is positive, else `weight * x` with a learned weight, or one per channel."""

    _shown = ("num_parameters",)

    def __init__(
        self, num_parameters: int = 1, init: float = 0.25, device: Any = None, dtype: Any = None
    ) -> None:
        super().__init__()
        self.num_parameters = num_parameters
        self.init = init
        self.weight = Parameter(full((num_parameters,), float(init), dtype, device))

    def forward(self, input: Any) -> Any:
        """The activation of every element."""
        return F.prelu(input, self.weight)
