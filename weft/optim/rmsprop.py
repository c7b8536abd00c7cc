"""RMSprop: steps scaled by a running mean of squared gradients."""

from __future__ import annotations

from dataclasses import KW_ONLY
from typing import Any

from weft.ops.optimizer.root import rmsprop
from weft.ops.optimizer.rule import begun
from weft.optim.descent import Descent
from weft.optim.optimizer import Group
from weft.optim.option import hint, nonnegative, option


class RMSprop(Descent):
    """p -= lr * g / (sqrt(v) + eps), with v the running mean of g * g.

    Tieleman and Hinton, lecture 6.5 of "Neural Networks for Machine Learning", 2012; `centered` is
    Graves, "Generating Sequences With Recurrent Neural Networks", 2013: v is the variance.

    Args:
        alpha: the factor of the running mean.
        momentum: the factor of the running sum of steps; 0 goes without one.
        centered: subtract the square of the gradients' running mean from v.
    """

    rule = begun(rmsprop)
    may_lag = True

    lr: float = nonnegative(default=1e-2)
    alpha: float = nonnegative(default=0.99)
    eps: float = nonnegative(default=1e-8)
    weight_decay: float = nonnegative(default=0.0)
    momentum: float = nonnegative(default=0.0)
    centered: bool = option(default=False)
    _: KW_ONLY
    capturable: bool = hint(default=False)

    def slots(self, group: Group) -> dict[str, float]:
        """The running means, then the momentum buffer."""
        wanted = {
            "square_avg": True,
            "grad_avg": group["centered"],
            "momentum_buffer": group["momentum"] > 0,
        }
        return {name: 0.0 for name, there in wanted.items() if there}

    def numbers(self, group: Group, step: int) -> dict[str, float]:
        """The hyperparameters that the rule takes as numbers."""
        numbers = {n: group[n] for n in ("lr", "alpha", "eps", "momentum")}
        return {**numbers, "rest": 1 - group["alpha"], **super().numbers(group, step)}

    def flags(self, group: Group, step: int) -> dict[str, Any]:
        """Which terms the rule has."""
        return {**super().flags(group, step), "centered": group["centered"]}
