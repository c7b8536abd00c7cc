"""Lion: steps along the sign of an average of gradients."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from weft.ops.optimizer.descent import lion
from weft.ops.optimizer.rule import begun
from weft.optim.optimizer import Group, Optimizer
from weft.optim.option import decays, nonnegative


class Lion(Optimizer):
    """p -= lr * (sign(beta1 * m + (1 - beta1) * g) + weight_decay * p); then m moves towards g.

    Chen et al., "Symbolic Discovery of Optimization Algorithms", 2023, program 1.

    Args:
        lr: the learning rate.
        betas: the factors of m in the step's direction and in the next m.
        weight_decay: what part of lr * p is taken from the parameters.
    """

    rule = begun(lion)
    may_lag = True

    params: Iterable[Any]
    lr: float = nonnegative(default=1e-4)
    betas: tuple[float, float] = decays(default=(0.9, 0.99))
    weight_decay: float = nonnegative(default=0.0)

    def slots(self, group: Group) -> dict[str, float]:
        """The running mean."""
        return {"exp_avg": 0.0}

    def numbers(self, group: Group, step: int) -> dict[str, float]:
        """The hyperparameters that the rule takes as numbers."""
        beta1, beta2 = group["betas"]
        return {
            "lr": group["lr"],
            "beta1": beta1,
            "rest1": 1 - beta1,
            "beta2": beta2,
            "rest2": 1 - beta2,
            "shrink": 1 - group["lr"] * group["weight_decay"],
        }
