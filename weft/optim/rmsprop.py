"""RMSprop: steps scaled by a running mean of squared gradients."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from weft.ir.node import Value
from weft.ops.declaration import catalogue
from weft.optim.check import nonnegative
from weft.optim.optimizer import Group, Hyper, Optimizer, Update
from weft.optim.start import start


def _rule(
    p: Value,
    g: Value,
    *slots: Value,
    hyper: Hyper,
    decay: bool,
    centered: bool,
    momentum: bool,
    maximize: bool,
) -> Update:
    p, g = start(p, g, hyper, decay, maximize)
    square = slots[0] * hyper["alpha"] + g * g * hyper["rest"]
    kept = [square]
    spread = square
    if centered:
        mean = slots[1] + (g - slots[1]) * hyper["rest"]
        spread = square - mean * mean
        kept.append(mean)
    step = g / (catalogue.sqrt(spread) + hyper["eps"])
    if momentum:
        step = slots[-1] * hyper["momentum"] + step
        kept.append(step)
    return Update(p - hyper["lr"] * step, tuple(kept))


class RMSprop(Optimizer):
    """p -= lr * g / (sqrt(v) + eps), with v the running mean of g * g.

    Tieleman and Hinton, lecture 6.5 of "Neural Networks for Machine Learning", 2012; `centered` is
    Graves, "Generating Sequences With Recurrent Neural Networks", 2013: v is the variance.
    """

    rule = _rule
    may_lag = True

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1e-2,
        alpha: float = 0.99,
        eps: float = 1e-8,
        weight_decay: float = 0.0,
        momentum: float = 0.0,
        centered: bool = False,
        *,
        maximize: bool = False,
        foreach: bool | None = None,
        differentiable: bool = False,
        capturable: bool = False,
    ) -> None:
        nonnegative(
            "RMSprop", lr=lr, alpha=alpha, eps=eps, weight_decay=weight_decay, momentum=momentum
        )
        self.differentiable = differentiable
        super().__init__(params, {
            "lr": lr, "alpha": alpha, "eps": eps, "weight_decay": weight_decay,
            "momentum": momentum, "centered": centered, "maximize": maximize,
        })  # fmt: skip

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
        names = ("lr", "alpha", "eps", "weight_decay", "momentum")
        return {**{n: group[n] for n in names}, "rest": 1 - group["alpha"]}

    def flags(self, group: Group, step: int) -> dict[str, Any]:
        """Which terms the rule has."""
        return {
            "decay": group["weight_decay"] != 0,
            "centered": group["centered"],
            "momentum": group["momentum"] > 0,
            "maximize": group["maximize"],
        }
