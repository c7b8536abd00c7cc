"""Adam and AdamW: steps scaled by running moments of the gradient."""

from __future__ import annotations

import math
from dataclasses import KW_ONLY

from weft.ops.optimizer.adam import adam
from weft.ops.optimizer.rule import begun
from weft.optim.descent import Descent, moments
from weft.optim.optimizer import Group
from weft.optim.option import decays, hint, nonnegative, option


class Adam(Descent):
    """p -= lr * m / (sqrt(v) + eps), with m and v running means of g and g * g, bias-corrected.

    Kingma and Ba, "Adam: A Method for Stochastic Optimization", 2015, algorithm 1; `amsgrad` is
    Reddi et al., "On the Convergence of Adam and Beyond", 2018.

    Args:
        weight_decay: added to the gradient as weight_decay * p; see `AdamW` for the other way.
        amsgrad: divide by the root of the largest v so far.
    """

    rule = begun(adam)
    may_lag = True
    decoupled = False

    lr: float = nonnegative(default=1e-3)
    betas: tuple[float, float] = decays(default=(0.9, 0.999))
    eps: float = nonnegative(default=1e-8)
    weight_decay: float = nonnegative(default=0.0)
    amsgrad: bool = option(default=False)
    _: KW_ONLY
    fused: bool | None = hint(default=None)
    capturable: bool = hint(default=False)

    def _is_decoupled(self, group: Group) -> bool:
        return self.decoupled

    def slots(self, group: Group) -> dict[str, float]:
        """The running means, and with `amsgrad` the largest second moment so far."""
        names = ("exp_avg", "exp_avg_sq", "max_exp_avg_sq")
        return dict.fromkeys(names if group["amsgrad"] else names[:2], 0.0)

    def numbers(self, group: Group, step: int) -> dict[str, float]:
        """The hyperparameters; bias corrections are computed here, in float64."""
        beta1, beta2 = group["betas"]
        return {
            "step": group["lr"] / (1 - beta1**step),
            "scale": 1 / math.sqrt(1 - beta2**step),
            **moments(group),
            **super().numbers(group, step),
        }


class AdamW(Adam):
    """Adam whose weight decay shrinks the parameters directly: p *= 1 - lr * weight_decay.

    Loshchilov and Hutter, "Decoupled Weight Decay Regularization", 2019, algorithm 2.

    Args:
        weight_decay: what part of lr * p is taken from the parameters.
    """

    decoupled = True

    weight_decay: float = nonnegative(default=1e-2)
