"""RAdam: Adam whose scaling waits until its variance is known well enough."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

from weft.ir.node import Value
from weft.ops.declaration import catalogue
from weft.optim.check import decays, nonnegative
from weft.optim.optimizer import Group, Hyper, Optimizer, Update
from weft.optim.start import start


def _rule(
    p: Value, g: Value, m: Value, v: Value, *, hyper: Hyper, decay: bool, decoupled: bool,
    rectified: bool, maximize: bool,
) -> Update:  # fmt: skip
    p, g = start(p, g, hyper, decay, maximize, decoupled)
    m = m + (g - m) * hyper["rest1"]
    v = v * hyper["beta2"] + g * g * hyper["rest2"]
    step = m * hyper["step"]
    if rectified:
        step = step * (hyper["scale"] / (catalogue.sqrt(v) + hyper["eps"]))
    return Update(p - step, (m, v))


def _lengths(beta2: float, step: int) -> tuple[float, float]:
    """The length of the running mean of squares, in gradients: now, and in the limit."""
    most = 2 / (1 - beta2) - 1
    return most - 2 * step * beta2**step / (1 - beta2**step), most


class RAdam(Optimizer):
    """Adam whose scaling starts once its variance is bounded, with a factor that rectifies it.

    Liu et al., "On the Variance of the Adaptive Learning Rate and Beyond", 2020, algorithm 2.

    Args:
        decoupled_weight_decay: shrink the parameters directly, as `AdamW` does.
    """

    rule = _rule
    may_lag = True

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0.0,
        decoupled_weight_decay: bool = False,
        *,
        maximize: bool = False,
        foreach: bool | None = None,
        differentiable: bool = False,
        capturable: bool = False,
    ) -> None:
        nonnegative("RAdam", lr=lr, eps=eps, weight_decay=weight_decay)
        decays("RAdam", betas)
        self.differentiable = differentiable
        super().__init__(
            params,
            {
                "lr": lr,
                "betas": tuple(betas),
                "eps": eps,
                "weight_decay": weight_decay,
                "decoupled_weight_decay": decoupled_weight_decay,
                "maximize": maximize,
            },
        )

    def slots(self, group: Group) -> dict[str, float]:
        """The running means."""
        return {"exp_avg": 0.0, "exp_avg_sq": 0.0}

    def numbers(self, group: Group, step: int) -> dict[str, float]:
        """The hyperparameters: bias corrections and the rectification, in float64."""
        beta1, beta2 = group["betas"]
        length, most = _lengths(beta2, step)
        part = (length - 4) * (length - 2) * most / ((most - 4) * (most - 2) * length)
        known = length > 5
        return {
            "step": group["lr"] / (1 - beta1**step), "rest1": 1 - beta1, "beta2": beta2,
            "rest2": 1 - beta2, "scale": math.sqrt(part * (1 - beta2**step)) if known else 1.0,
            "eps": group["eps"], "weight_decay": group["weight_decay"],
            "shrink": 1 - group["lr"] * group["weight_decay"],
        }  # fmt: skip

    def flags(self, group: Group, step: int) -> dict[str, Any]:
        """Which terms the rule has."""
        return {
            "decay": group["weight_decay"] != 0,
            "decoupled": group["decoupled_weight_decay"],
            "rectified": _lengths(group["betas"][1], step)[0] > 5,
            "maximize": group["maximize"],
        }
