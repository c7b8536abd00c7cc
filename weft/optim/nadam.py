"""NAdam: Adam with Nesterov's look-ahead."""

from __future__ import annotations

from dataclasses import KW_ONLY

from weft.ops.optimizer.adam import momentum_at, momentum_product, nadam
from weft.ops.optimizer.rule import begun
from weft.optim.carried import rounded
from weft.optim.descent import Descent, moments
from weft.optim.optimizer import Group
from weft.optim.option import decays, hint, nonnegative, option


class NAdam(Descent):
    """Adam with Nesterov momentum, which grows towards beta1 during training.

    Dozat, "Incorporating Nesterov Momentum into Adam", 2016, algorithm 2.

    Args:
        momentum_decay: how fast the momentum grows.
    """

    rule = begun(nadam)
    carries = ("mu_product",)
    may_lag = True

    lr: float = nonnegative(default=2e-3)
    betas: tuple[float, float] = decays(default=(0.9, 0.999))
    eps: float = nonnegative(default=1e-8)
    weight_decay: float = nonnegative(default=0.0)
    momentum_decay: float = nonnegative(default=4e-3)
    decoupled_weight_decay: bool = option(default=False)
    _: KW_ONLY
    capturable: bool = hint(default=False)

    def slots(self, group: Group) -> dict[str, float]:
        """The running means."""
        return {"exp_avg": 0.0, "exp_avg_sq": 0.0}

    def scalars(self, group: Group, step: int) -> dict[str, float]:
        """The product of all momenta so far."""
        product = momentum_product(group["betas"][0], group["momentum_decay"], step)
        return {"mu_product": rounded(product)}

    def carried(self, group: Group, step: int) -> dict[str, float]:
        """The product with this step's momentum."""
        now = momentum_at(group["betas"][0], group["momentum_decay"], step)
        return {"mu_product": rounded(group["mu_product"] * rounded(now))}

    def numbers(self, group: Group, step: int) -> dict[str, float]:
        """The hyperparameters; momenta and bias corrections are computed here, in float64."""
        beta1, beta2 = group["betas"]
        now, ahead = (momentum_at(beta1, group["momentum_decay"], t) for t in (step, step + 1))
        product = self.carried(group, step)["mu_product"]
        return {
            "now": group["lr"] * (1 - now) / (1 - product),
            "ahead": group["lr"] * ahead / (1 - product * ahead),
            "correction": 1 / (1 - beta2**step),
            **moments(group),
            **super().numbers(group, step),
        }
