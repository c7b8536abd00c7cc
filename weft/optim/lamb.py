"""LAMB: Adam whose step is scaled, per tensor, by the norm of the tensor."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

from weft.ops.optimizer.adam import lamb
from weft.ops.optimizer.rule import begun
from weft.optim.descent import moments
from weft.optim.optimizer import Group, Optimizer
from weft.optim.option import decays, nonnegative


class LAMB(Optimizer):
    """p -= lr * (|p| / |u|) * u, with u Adam's step plus weight_decay * p.

    You et al., "Large Batch Optimization for Deep Learning: Training BERT in 76 minutes", 2020,
    algorithm 2, with the ratio 1 where either norm is 0.

    Args:
        lr: the learning rate.
        betas: the factors of the running means of the gradient and of its square.
        eps: added to the denominator, so that it is not 0.
        weight_decay: added to the step as weight_decay * p.
    """

    rule = begun(lamb)
    elementwise = False

    params: Iterable[Any]
    lr: float = nonnegative(default=1e-3)
    betas: tuple[float, float] = decays(default=(0.9, 0.999))
    eps: float = nonnegative(default=1e-6)
    weight_decay: float = nonnegative(default=0.0)

    def slots(self, group: Group) -> dict[str, float]:
        """The running means."""
        return {"exp_avg": 0.0, "exp_avg_sq": 0.0}

    def numbers(self, group: Group, step: int) -> dict[str, float]:
        """The hyperparameters; bias corrections are computed here, in float64."""
        beta1, beta2 = group["betas"]
        return {
            "lr": group["lr"],
            "correct": 1 / (1 - beta1**step),
            "scale": 1 / math.sqrt(1 - beta2**step),
            **moments(group),
            "weight_decay": group["weight_decay"],
        }
