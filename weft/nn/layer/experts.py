"""`MixtureOfExperts`: feed-forward experts of which each token uses one or a few."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from weft import ops
from weft.eager.functions.creation.constructor import empty
from weft.eager.tensor.argument import dims_of
from weft.eager.tensor.dispatch import recorded
from weft.errors import ArgumentError, ShapeError
from weft.ir.shape import show
from weft.nn import init
from weft.nn.layer.base import Layer, options
from weft.nn.layer.linear import Linear
from weft.nn.parameter import Parameter
from weft.ops.declaration.fact import Autocast

_route = recorded(ops.route, autocast=Autocast.FLOAT32)
_run = recorded(ops.run_experts, autocast=Autocast.LOW)


class ExpertsResult(NamedTuple):
    """The results of a mixture of experts.

    Attributes:
        output: of the input's shape.
        balance_loss: 1 if all experts are chosen equally often, up to their number if one is always
            chosen; add about 0.01 of it to the loss.
        z_loss: the mean of squared logsumexp of the router's scores; add about 0.001 of it.
        dropped: int32, the number of choices whose expert was full.
    """

    output: Any
    balance_loss: Any
    z_loss: Any
    dropped: Any


@options
class MixtureOfExperts(Layer):
    """`sum over chosen experts of gate * (act(x @ weight1 + bias1) @ weight2 + bias2)`.

    Each token goes to the experts with its highest scores, `x @ router.weight.T`. An expert takes
    up to `ceil(capacity_factor * tokens * top_k / num_experts)` tokens; further ones are dropped,
    which adds 0 to their outputs (Fedus et al., "Switch Transformers", 2021; Lepikhin et al.,
    "GShard", 2020). With one choice, the gate is its probability; with several, gates are
    normalized to sum 1.

    Args:
        features: size of the input's last dimension, and of the output's.
        hidden: width between an expert's two layers.
        num_experts: the number of experts.
        top_k: experts per token.
        capacity_factor: capacity of each expert, relative to an equal share.
        eval_capacity_factor: the same in evaluation.
        activation: `relu`, `gelu` or `silu`.

    Raises:
        ArgumentError: `top_k` exceeds the experts, or a capacity factor is not positive.

    Example:
        >>> import weft as wf
        >>> layer = wf.nn.MixtureOfExperts(8, 16, num_experts=4, top_k=2, capacity_factor=4.0)
        >>> y, balance, z, dropped = layer(wf.randn(2, 5, 8))
        >>> y.shape, dropped.item()
        ((2, 5, 8), 0)
    """

    features: int
    hidden: int
    num_experts: int
    top_k: int = 1
    capacity_factor: float = 1.25
    eval_capacity_factor: float = 2.0
    activation: str = "gelu"
    _shown = "features, hidden, num_experts=, top_k=, capacity_factor="

    def __post_init__(self) -> None:
        features, hidden, num_experts = self.features, self.hidden, self.num_experts
        factors = self.capacity_factor, self.eval_capacity_factor
        if not 1 <= self.top_k <= num_experts or min(factors) <= 0:
            raise ArgumentError.here(
                f"MixtureOfExperts: expected 1 <= top_k <= num_experts and capacity factors above "
                f"0, got {self.top_k}, {num_experts}, {factors[0]} and {factors[1]}"
            )
        self.router = Linear(features, num_experts, bias=False)
        self.weight1 = Parameter(empty(num_experts, features, hidden))
        self.bias1 = Parameter(empty(num_experts, 1, hidden))
        self.weight2 = Parameter(empty(num_experts, hidden, features))
        self.bias2 = Parameter(empty(num_experts, 1, features))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Initialize each expert like a `Linear` of its sizes."""
        for weight, bias in ((self.weight1, self.bias1), (self.weight2, self.bias2)):
            bound = 1 / math.sqrt(max(1, dims_of(weight)[1]))
            init.uniform_(weight, -bound, bound)
            init.uniform_(bias, -bound, bound)

    def capacity(self, tokens: int) -> int:
        """How many tokens an expert takes."""
        factor = self.capacity_factor if self.training else self.eval_capacity_factor
        return max(1, math.ceil(factor * tokens * self.top_k / self.num_experts))

    def forward(self, input: Any) -> ExpertsResult:
        """(..., features) to the same shape, with losses and the number of dropped choices.

        Raises:
            ShapeError: the last dimension differs.
        """
        dims = dims_of(input)
        if not dims or dims[-1] != self.features:
            raise ShapeError.here(
                f"MixtureOfExperts: expected shape (..., {self.features}), got {show(dims)}"
            )
        x = input.reshape(-1, self.features)
        capacity = self.capacity(dims_of(x)[0])
        *routes, balance, z, dropped = _route(self.router(x), top_k=self.top_k, capacity=capacity)
        y = _run(
            x, *routes, self.weight1, self.bias1, self.weight2, self.bias2,
            activation=self.activation,
        )  # fmt: skip
        return ExpertsResult(y.reshape(dims), balance, z, dropped)
