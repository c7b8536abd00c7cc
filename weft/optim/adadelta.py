"""Adadelta: the step size follows from the sizes of past steps and of past gradients."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from weft.errors import OptimizerError
from weft.ir.node import Value, at_user_line
from weft.ops.declaration import catalogue
from weft.optim.check import nonnegative
from weft.optim.optimizer import Group, Hyper, Optimizer, Update
from weft.optim.start import start


def _rule(
    p: Value, g: Value, square: Value, moved: Value, *, hyper: Hyper, decay: bool, maximize: bool
) -> Update:
    p, g = start(p, g, hyper, decay, maximize)
    square = square * hyper["rho"] + g * g * hyper["rest"]
    step = catalogue.sqrt(moved + hyper["eps"]) / catalogue.sqrt(square + hyper["eps"]) * g
    moved = moved * hyper["rho"] + step * step * hyper["rest"]
    return Update(p - hyper["lr"] * step, (square, moved))


class Adadelta(Optimizer):
    """p -= lr * g * sqrt(u + eps) / sqrt(v + eps), u and v running means of their squares.

    Zeiler, "ADADELTA: An Adaptive Learning Rate Method", 2012, algorithm 1.
    """

    rule = _rule
    may_lag = True

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1.0,
        rho: float = 0.9,
        eps: float = 1e-6,
        weight_decay: float = 0.0,
        *,
        maximize: bool = False,
        foreach: bool | None = None,
        differentiable: bool = False,
        capturable: bool = False,
    ) -> None:
        if rho > 1:
            raise OptimizerError(f"Adadelta: expected rho <= 1, got {rho}{at_user_line()}")
        nonnegative("Adadelta", lr=lr, rho=rho, eps=eps, weight_decay=weight_decay)
        self.differentiable = differentiable
        super().__init__(
            params,
            {"lr": lr, "rho": rho, "eps": eps, "weight_decay": weight_decay, "maximize": maximize},
        )

    def slots(self, group: Group) -> dict[str, float]:
        """The running means of squared gradients and of squared steps."""
        return {"square_avg": 0.0, "acc_delta": 0.0}

    def numbers(self, group: Group, step: int) -> dict[str, float]:
        """The hyperparameters that the rule takes as numbers."""
        names = ("lr", "rho", "eps", "weight_decay")
        return {**{n: group[n] for n in names}, "rest": 1 - group["rho"]}

    def flags(self, group: Group, step: int) -> dict[str, Any]:
        """Which terms the rule has."""
        return {"decay": group["weight_decay"] != 0, "maximize": group["maximize"]}
