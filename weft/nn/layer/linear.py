"""`Linear`, `Bilinear` and `Identity`."""

from __future__ import annotations

import math
from dataclasses import InitVar
from typing import Any

from weft.eager.functions.creation.constructor import empty
from weft.nn import init
from weft.nn.functional.linear import bilinear, linear
from weft.nn.layer.base import Layer, options
from weft.nn.parameter import Parameter

__all__ = ["Bilinear", "Identity", "Linear"]


class Identity(Layer):
    """Returns its input; takes any arguments."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__()

    def forward(self, input: Any) -> Any:
        """The input."""
        return input


@options
class Linear(Layer):
    """`y = x @ weight.T + bias`.

    Args:
        in_features: size of the input's last dimension.
        out_features: size of the output's last dimension.
        bias: whether there is a bias.
    """

    in_features: int
    out_features: int
    bias: Any = True
    device: InitVar[Any] = None
    dtype: InitVar[Any] = None
    _shown = "in_features=, out_features=, bias="

    def __post_init__(self, device: Any, dtype: Any) -> None:
        rows, kind = self.out_features, {"dtype": dtype, "device": device}
        self.weight = Parameter(empty(rows, self.in_features, **kind))
        self.bias = Parameter(empty(rows, **kind)) if self.bias else None
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Uniform in +-1 / sqrt(in_features)."""
        init.kaiming_uniform_(self.weight, a=math.sqrt(5))
        if self.bias is not None:
            bound = 1 / math.sqrt(self.in_features) if self.in_features else 0
            init.uniform_(self.bias, -bound, bound)

    def forward(self, input: Any) -> Any:
        """(..., in_features) to (..., out_features)."""
        return linear(input, self.weight, self.bias)


@options
class Bilinear(Layer):
    """`y[k] = x1 @ weight[k] @ x2 + bias[k]`.

    Args:
        in1_features: size of the first input's last dimension.
        in2_features: size of the second input's last dimension.
        out_features: size of the output's last dimension.
        bias: whether there is a bias.
    """

    in1_features: int
    in2_features: int
    out_features: int
    bias: Any = True
    device: InitVar[Any] = None
    dtype: InitVar[Any] = None
    _shown = "in1_features=, in2_features=, out_features=, bias="

    def __post_init__(self, device: Any, dtype: Any) -> None:
        shape = (self.out_features, self.in1_features, self.in2_features)
        self.weight = Parameter(empty(shape, dtype=dtype, device=device))
        self.bias = Parameter(empty(shape[0], dtype=dtype, device=device)) if self.bias else None
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Uniform in +-1 / sqrt(in1_features)."""
        bound = 1 / math.sqrt(self.in1_features)
        init.uniform_(self.weight, -bound, bound)
        if self.bias is not None:
            init.uniform_(self.bias, -bound, bound)

    def forward(self, input1: Any, input2: Any) -> Any:
        """(..., in1_features) and (..., in2_features) to (..., out_features)."""
        return bilinear(input1, input2, self.weight, self.bias)
