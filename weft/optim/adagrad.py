"""Adagrad: steps scaled by the sum of all squared gradients so far."""

from __future__ import annotations

from dataclasses import KW_ONLY

from weft.ops.optimizer.root import adagrad
from weft.ops.optimizer.rule import begun
from weft.optim.descent import Descent
from weft.optim.optimizer import Group
from weft.optim.option import hint, nonnegative


class Adagrad(Descent):
    """p -= lr * g / (sqrt(sum of all g * g) + eps), where lr falls as 1 / (1 + (t - 1) * lr_decay).

    Duchi, Hazan and Singer, "Adaptive Subgradient Methods", 2011.

    Args:
        lr_decay: how fast the learning rate falls.
        initial_accumulator_value: the sum before the first step.
    """

    rule = begun(adagrad)
    may_lag = True

    lr: float = nonnegative(default=1e-2)
    lr_decay: float = nonnegative(default=0.0)
    weight_decay: float = nonnegative(default=0.0)
    initial_accumulator_value: float = nonnegative(default=0.0)
    eps: float = nonnegative(default=1e-10)
    _: KW_ONLY
    fused: bool | None = hint(default=None)

    def slots(self, group: Group) -> dict[str, float]:
        """The sum of squares."""
        return {"sum": group["initial_accumulator_value"]}

    def numbers(self, group: Group, step: int) -> dict[str, float]:
        """The decayed learning rate."""
        lr = group["lr"] / (1 + (step - 1) * group["lr_decay"])
        return {"lr": lr, "eps": group["eps"], **super().numbers(group, step)}
