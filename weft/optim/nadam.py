"""NAdam: Adam with Nesterov's look-ahead."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

from weft.ir.node import Value
from weft.ops.declaration import catalogue
from weft.optim.carried import rounded
from weft.optim.check import decays, nonnegative
from weft.optim.optimizer import Group, Hyper, Optimizer, Update
from weft.optim.start import start


def _rule(
    p: Value, g: Value, m: Value, v: Value, *, hyper: Hyper, decay: bool, decoupled: bool,
    maximize: bool,
) -> Update:  # fmt: skip
    p, g = start(p, g, hyper, decay, maximize, decoupled)
    m = m + (g - m) * hyper["rest1"]
    v = v * hyper["beta2"] + g * g * hyper["rest2"]
    scale = catalogue.sqrt(v * hyper["known"]) + hyper["eps"]
    step = (g * hyper["now"] + m * hyper["ahead"]) / scale
    return Update(p - step, (m, v))


def _momentum(beta1: float, decay: float, step: int) -> float:
    return beta1 * (1 - 0.5 * 0.96 ** (step * decay))


def momentum_product(beta1: float, decay: float, steps: int) -> float:
    """The product of the momenta of the first steps."""
    return math.prod([_momentum(beta1, decay, step) for step in range(1, steps + 1)])


class NAdam(Optimizer):
    """Adam with Nesterov momentum, which grows towards beta1 during training.

    Dozat, "Incorporating Nesterov Momentum into Adam", 2016, algorithm 2.

    Args:
        momentum_decay: how fast the momentum grows.
        decoupled_weight_decay: shrink the parameters directly, as `AdamW` does.
    """

    rule = _rule
    carries = ("mu_product",)
    may_lag = True

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 2e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0.0,
        momentum_decay: float = 4e-3,
        decoupled_weight_decay: bool = False,
        *,
        maximize: bool = False,
        foreach: bool | None = None,
        differentiable: bool = False,
        capturable: bool = False,
    ) -> None:
        nonnegative(
            "NAdam", lr=lr, eps=eps, weight_decay=weight_decay, momentum_decay=momentum_decay
        )
        decays("NAdam", betas)
        self.differentiable = differentiable
        super().__init__(
            params,
            {
                "lr": lr,
                "betas": tuple(betas),
                "eps": eps,
                "weight_decay": weight_decay,
                "momentum_decay": momentum_decay,
                "decoupled_weight_decay": decoupled_weight_decay,
                "maximize": maximize,
            },
        )

    def slots(self, group: Group) -> dict[str, float]:
        """The running means."""
        return {"exp_avg": 0.0, "exp_avg_sq": 0.0}

    def scalars(self, group: Group, step: int) -> dict[str, float]:
        """The product of all momenta so far."""
        product = momentum_product(group["betas"][0], group["momentum_decay"], step)
        return {"mu_product": rounded(product)}

    def carried(self, group: Group, step: int) -> dict[str, float]:
        """The product with this step's momentum."""
        now = _momentum(group["betas"][0], group["momentum_decay"], step)
        return {"mu_product": rounded(group["mu_product"] * rounded(now))}

    def numbers(self, group: Group, step: int) -> dict[str, float]:
        """The hyperparameters; momenta and bias corrections are computed here, in float64."""
        beta1, beta2 = group["betas"]
        now, ahead = (_momentum(beta1, group["momentum_decay"], t) for t in (step, step + 1))
        product = self.carried(group, step)["mu_product"]
        return {
            "now": group["lr"] * (1 - now) / (1 - product),
            "ahead": group["lr"] * ahead / (1 - product * ahead),
            "known": 1 / (1 - beta2**step), "rest1": 1 - beta1, "beta2": beta2, "rest2": 1 - beta2,
            "eps": group["eps"], "weight_decay": group["weight_decay"],
            "shrink": 1 - group["lr"] * group["weight_decay"],
        }  # fmt: skip

    def flags(self, group: Group, step: int) -> dict[str, Any]:
        """Which terms the rule has."""
        return {
            "decay": group["weight_decay"] != 0,
            "decoupled": group["decoupled_weight_decay"],
            "maximize": group["maximize"],
        }
