"""Adamax: steps scaled by the largest recent gradient."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from weft.ir.node import Value
from weft.ops.declaration import catalogue
from weft.optim.check import decays, nonnegative
from weft.optim.optimizer import Group, Hyper, Optimizer, Update
from weft.optim.start import start


def _rule(
    p: Value, g: Value, m: Value, largest: Value, *, hyper: Hyper, decay: bool, maximize: bool
) -> Update:
    p, g = start(p, g, hyper, decay, maximize)
    m = m + (g - m) * hyper["rest1"]
    largest = catalogue.maximum(largest * hyper["beta2"], catalogue.abs(g) + hyper["eps"])
    return Update(p - hyper["step"] * (m / largest), (m, largest))


class Adamax(Optimizer):
    """p -= lr * m / u, with m a running mean of g and u a maximum of
    g
     that decays by beta2.

    Kingma and Ba, "Adam: A Method for Stochastic Optimization", 2015, algorithm 2.
    """

    rule = _rule
    may_lag = True

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 2e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0.0,
        *,
        maximize: bool = False,
        foreach: bool | None = None,
        differentiable: bool = False,
        capturable: bool = False,
    ) -> None:
        nonnegative("Adamax", lr=lr, eps=eps, weight_decay=weight_decay)
        decays("Adamax", betas)
        self.differentiable = differentiable
        super().__init__(
            params,
            {
                "lr": lr,
                "betas": tuple(betas),
                "eps": eps,
                "weight_decay": weight_decay,
                "maximize": maximize,
            },
        )

    def slots(self, group: Group) -> dict[str, float]:
        """The running mean, and the largest gradient."""
        return {"exp_avg": 0.0, "exp_inf": 0.0}

    def numbers(self, group: Group, step: int) -> dict[str, float]:
        """The hyperparameters; the bias correction is computed here, in float64."""
        beta1, beta2 = group["betas"]
        return {
            "step": group["lr"] / (1 - beta1**step), "rest1": 1 - beta1, "beta2": beta2,
            "eps": group["eps"], "weight_decay": group["weight_decay"],
        }  # fmt: skip

    def flags(self, group: Group, step: int) -> dict[str, Any]:
        """Which terms the rule has."""
        return {"decay": group["weight_decay"] != 0, "maximize": group["maximize"]}
