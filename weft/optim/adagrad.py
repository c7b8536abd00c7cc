"""Adagrad: steps scaled by the sum of all squared gradients so far."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from weft.ir.node import Value
from weft.ops.declaration import catalogue
from weft.optim.check import nonnegative
from weft.optim.optimizer import Group, Hyper, Optimizer, Update
from weft.optim.start import start


def _rule(p: Value, g: Value, total: Value, *, hyper: Hyper, decay: bool, maximize: bool) -> Update:
    p, g = start(p, g, hyper, decay, maximize)
    total = total + g * g
    return Update(p - hyper["lr"] * (g / (catalogue.sqrt(total) + hyper["eps"])), (total,))


class Adagrad(Optimizer):
    """p -= lr * g / (sqrt(sum of all g * g) + eps), where lr falls as 1 / (1 + (t - 1) * lr_decay).

    Duchi, Hazan and Singer, "Adaptive Subgradient Methods", 2011.
    """

    rule = _rule
    may_lag = True

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1e-2,
        lr_decay: float = 0.0,
        weight_decay: float = 0.0,
        initial_accumulator_value: float = 0.0,
        eps: float = 1e-10,
        *,
        maximize: bool = False,
        foreach: bool | None = None,
        differentiable: bool = False,
        fused: bool | None = None,
    ) -> None:
        nonnegative(
            "Adagrad", lr=lr, lr_decay=lr_decay, weight_decay=weight_decay, eps=eps,
            initial_accumulator_value=initial_accumulator_value,
        )  # fmt: skip
        self.differentiable = differentiable
        super().__init__(params, {
            "lr": lr, "lr_decay": lr_decay, "weight_decay": weight_decay, "eps": eps,
            "initial_accumulator_value": initial_accumulator_value, "maximize": maximize,
        })  # fmt: skip

    def slots(self, group: Group) -> dict[str, float]:
        """The sum of squares."""
        return {"sum": group["initial_accumulator_value"]}

    def numbers(self, group: Group, step: int) -> dict[str, float]:
        """The decayed learning rate."""
        return {
            "lr": group["lr"] / (1 + (step - 1) * group["lr_decay"]),
            "weight_decay": group["weight_decay"],
            "eps": group["eps"],
        }

    def flags(self, group: Group, step: int) -> dict[str, Any]:
        """Which terms the rule has."""
        return {"decay": group["weight_decay"] != 0, "maximize": group["maximize"]}
