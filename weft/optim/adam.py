"""Adam and AdamW: steps scaled by running moments of the gradient."""

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
    p: Value,
    g: Value,
    *slots: Value,
    hyper: Hyper,
    decay: bool,
    decoupled: bool,
    amsgrad: bool,
    maximize: bool,
) -> Update:
    p, g = start(p, g, hyper, decay, maximize, decoupled)
    m = slots[0] + (g - slots[0]) * hyper["rest1"]
    v = slots[1] * hyper["beta2"] + g * g * hyper["rest2"]
    largest = catalogue.maximum(slots[2], v) if amsgrad else v
    scale = catalogue.sqrt(largest) * hyper["scale"] + hyper["eps"]
    return Update(p - hyper["step"] * (m / scale), (m, v, largest)[: len(slots)])


class Adam(Optimizer):
    """p -= lr * m / (sqrt(v) + eps), with m and v running means of g and g * g, bias-corrected.

    Kingma and Ba, "Adam: A Method for Stochastic Optimization", 2015, algorithm 1; `amsgrad` is
    Reddi et al., "On the Convergence of Adam and Beyond", 2018.

    Args:
        weight_decay: added to the gradient as weight_decay * p; see `AdamW` for the other way.
    """

    rule = _rule
    may_lag = True
    decoupled = False

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0.0,
        amsgrad: bool = False,
        *,
        maximize: bool = False,
        foreach: bool | None = None,
        differentiable: bool = False,
        fused: bool | None = None,
        capturable: bool = False,
    ) -> None:
        name = type(self).__name__
        nonnegative(name, lr=lr, eps=eps, weight_decay=weight_decay)
        decays(name, betas)
        self.differentiable = differentiable
        super().__init__(params, {
            "lr": lr, "betas": tuple(betas), "eps": eps, "weight_decay": weight_decay,
            "amsgrad": amsgrad, "maximize": maximize,
        })  # fmt: skip

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
            "rest1": 1 - beta1,
            "beta2": beta2,
            "rest2": 1 - beta2,
            "eps": group["eps"],
            "weight_decay": group["weight_decay"],
            "shrink": 1 - group["lr"] * group["weight_decay"],
        }

    def flags(self, group: Group, step: int) -> dict[str, Any]:
        """Which terms the rule has."""
        return {
            "decay": group["weight_decay"] != 0,
            "decoupled": self.decoupled,
            "amsgrad": group["amsgrad"],
            "maximize": group["maximize"],
        }


class AdamW(Adam):
    """Adam whose weight decay shrinks the parameters directly: p *= 1 - lr * weight_decay.

    Loshchilov and Hutter, "Decoupled Weight Decay Regularization", 2019, algorithm 2.
    """

    decoupled = True

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 1e-2,
        amsgrad: bool = False,
        *,
        maximize: bool = False,
        foreach: bool | None = None,
        differentiable: bool = False,
        fused: bool | None = None,
        capturable: bool = False,
    ) -> None:
        super().__init__(
            params, lr, betas, eps, weight_decay, amsgrad, maximize=maximize,
            differentiable=differentiable,
        )  # fmt: skip
