"""Adamax: steps scaled by the largest recent gradient."""

from __future__ import annotations

from dataclasses import KW_ONLY

from weft.ops.optimizer.adam import adamax
from weft.ops.optimizer.rule import begun
from weft.optim.descent import Descent
from weft.optim.optimizer import Group
from weft.optim.option import decays, hint, nonnegative


class Adamax(Descent):
    """p -= lr * m / u, with m a running mean of g and u a maximum of |g| that decays by beta2.

    Kingma and Ba, "Adam: A Method for Stochastic Optimization", 2015, algorithm 2.

    Args:
        betas: the factors of the mean and of the maximum.
        eps: added to |g|, so that u is not 0.
    """

    rule = begun(adamax)
    may_lag = True

    lr: float = nonnegative(default=2e-3)
    betas: tuple[float, float] = decays(default=(0.9, 0.999))
    eps: float = nonnegative(default=1e-8)
    weight_decay: float = nonnegative(default=0.0)
    _: KW_ONLY
    capturable: bool = hint(default=False)

    def slots(self, group: Group) -> dict[str, float]:
        """The running mean, and the largest gradient."""
        return {"exp_avg": 0.0, "exp_inf": 0.0}

    def numbers(self, group: Group, step: int) -> dict[str, float]:
        """The hyperparameters; the bias correction is computed here, in float64."""
        beta1, beta2 = group["betas"]
        numbers = {"step": group["lr"] / (1 - beta1**step), "rest1": 1 - beta1, "beta2": beta2}
        return {**numbers, "eps": group["eps"], **super().numbers(group, step)}
