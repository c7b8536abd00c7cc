"""RAdam: Adam whose scaling waits until its variance is known well enough."""

from __future__ import annotations

import math
from dataclasses import KW_ONLY
from typing import Any

from weft.ops.optimizer.adam import radam
from weft.ops.optimizer.rule import begun
from weft.optim.descent import Descent, moments
from weft.optim.optimizer import Group
from weft.optim.option import decays, hint, nonnegative, option


def _lengths(beta2: float, step: int) -> tuple[float, float]:
    """The length of the running mean of squares, in gradients: now, and in the limit."""
    most = 2 / (1 - beta2) - 1
    return most - 2 * step * beta2**step / (1 - beta2**step), most


class RAdam(Descent):
    """Adam whose scaling starts once its variance is bounded, with a factor that rectifies it.

    Liu et al., "On the Variance of the Adaptive Learning Rate and Beyond", 2020, algorithm 2.
    """

    rule = begun(radam)
    may_lag = True

    lr: float = nonnegative(default=1e-3)
    betas: tuple[float, float] = decays(default=(0.9, 0.999))
    eps: float = nonnegative(default=1e-8)
    weight_decay: float = nonnegative(default=0.0)
    decoupled_weight_decay: bool = option(default=False)
    _: KW_ONLY
    capturable: bool = hint(default=False)

    def slots(self, group: Group) -> dict[str, float]:
        """The running means."""
        return {"exp_avg": 0.0, "exp_avg_sq": 0.0}

    def numbers(self, group: Group, step: int) -> dict[str, float]:
        """The hyperparameters: bias corrections and the rectification, in float64."""
        beta1, beta2 = group["betas"]
        length, most = _lengths(beta2, step)
        part = (length - 4) * (length - 2) * most / ((most - 4) * (most - 2) * length)
        return {
            "step": group["lr"] / (1 - beta1**step),
            "scale": math.sqrt(part * (1 - beta2**step)) if length > 5 else 1.0,
            **moments(group),
            **super().numbers(group, step),
        }

    def flags(self, group: Group, step: int) -> dict[str, Any]:
        """Which terms the rule has."""
        rectified = _lengths(group["betas"][1], step)[0] > 5
        return {**super().flags(group, step), "rectified": rectified}
