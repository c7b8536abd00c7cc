"""Lion: steps along the sign of an average of gradients."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from weft.ir.node import Value
from weft.ops.declaration import catalogue
from weft.optim.check import decays, nonnegative
from weft.optim.optimizer import Group, Hyper, Optimizer, Update


def _rule(p: Value, g: Value, m: Value, *, hyper: Hyper) -> Update:
    direction = catalogue.sign(m * hyper["beta1"] + g * hyper["rest1"])
    stepped = p * hyper["shrink"] - hyper["lr"] * direction
    return Update(stepped, (m * hyper["beta2"] + g * hyper["rest2"],))


class Lion(Optimizer):
    """p -= lr * (sign(beta1 * m + (1 - beta1) * g) + weight_decay * p); then m moves towards g.

    Chen et al., "Symbolic Discovery of Optimization Algorithms", 2023, program 1.
    """

    rule = _rule
    may_lag = True

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1e-4,
        betas: tuple[float, float] = (0.9, 0.99),
        weight_decay: float = 0.0,
    ) -> None:
        nonnegative("Lion", lr=lr, weight_decay=weight_decay)
        decays("Lion", betas)
        super().__init__(params, {"lr": lr, "betas": tuple(betas), "weight_decay": weight_decay})

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
