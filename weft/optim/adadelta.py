"""Adadelta: the step size follows from the sizes of past steps and of past gradients."""

from __future__ import annotations

from dataclasses import KW_ONLY

from weft.errors import OptimizerError
from weft.ops.optimizer.root import adadelta
from weft.ops.optimizer.rule import begun
from weft.optim.descent import Descent
from weft.optim.optimizer import Group
from weft.optim.option import check_nonnegative, hint, nonnegative, option


def _at_most_one(owner: str, name: str, value: float) -> float:
    if value > 1:
        raise OptimizerError.here(f"{owner}: expected {name} <= 1, got {value}")
    return check_nonnegative(owner, name, value)


class Adadelta(Descent):
    """p -= lr * g * sqrt(u + eps) / sqrt(v + eps), u and v running means of their squares.

    Zeiler, "ADADELTA: An Adaptive Learning Rate Method", 2012, algorithm 1.

    Args:
        rho: the factor of the running means.
        eps: added to both means before their roots are taken.
    """

    rule = begun(adadelta)
    may_lag = True

    lr: float = nonnegative(default=1.0)
    rho: float = option(default=0.9, check=_at_most_one)
    eps: float = nonnegative(default=1e-6)
    weight_decay: float = nonnegative(default=0.0)
    _: KW_ONLY
    capturable: bool = hint(default=False)

    def slots(self, group: Group) -> dict[str, float]:
        """The running means of squared gradients and of squared steps."""
        return {"square_avg": 0.0, "acc_delta": 0.0}

    def numbers(self, group: Group, step: int) -> dict[str, float]:
        """The hyperparameters that the rule takes as numbers."""
        numbers = {"lr": group["lr"], "rho": group["rho"], "rest": 1 - group["rho"]}
        return {**numbers, "eps": group["eps"], **super().numbers(group, step)}
