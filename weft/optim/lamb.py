"""LAMB: Adam whose step is scaled, per tensor, by the norm of the tensor."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

from weft.ir.node import Value
from weft.ops.declaration import catalogue
from weft.ops.shape.creation import ones_like
from weft.optim.check import decays, nonnegative
from weft.optim.optimizer import Group, Hyper, Optimizer, Update


def _rule(p: Value, g: Value, m: Value, v: Value, *, hyper: Hyper) -> Update:
    m = m + (g - m) * hyper["rest1"]
    v = v * hyper["beta2"] + g * g * hyper["rest2"]
    step = (m * hyper["correct"]) / (catalogue.sqrt(v) * hyper["scale"] + hyper["eps"])
    step = step + p * hyper["weight_decay"]
    size, length = catalogue.norm(p), catalogue.norm(step)
    usable = catalogue.greater(size * length, 0.0)
    one = ones_like(length)
    trust = catalogue.select(usable, size, one) / catalogue.select(usable, length, one)
    return Update(p - hyper["lr"] * trust * step, (m, v))


class LAMB(Optimizer):
    """p -= lr * (|p| / |u|) * u, with u Adam's step plus weight_decay * p.

    You et al., "Large Batch Optimization for Deep Learning: Training BERT in 76 minutes", 2020,
    algorithm 2, with the ratio 1 where either norm is 0.
    """

    rule = _rule
    elementwise = False

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-6,
        weight_decay: float = 0.0,
    ) -> None:
        nonnegative("LAMB", lr=lr, eps=eps, weight_decay=weight_decay)
        decays("LAMB", betas)
        super().__init__(
            params, {"lr": lr, "betas": tuple(betas), "eps": eps, "weight_decay": weight_decay}
        )

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
            "rest1": 1 - beta1,
            "beta2": beta2,
            "rest2": 1 - beta2,
            "eps": group["eps"],
            "weight_decay": group["weight_decay"],
        }
