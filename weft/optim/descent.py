"""What PyTorch's optimizers have in common: their options, and how their rules begin."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import KW_ONLY
from typing import Any

from weft.optim.optimizer import Group, Optimizer
from weft.optim.option import hint, option


def moments(group: Group) -> dict[str, float]:
    """The numbers of the running means of gradients and of their squares, and `eps`."""
    beta1, beta2 = group["betas"]
    return {"rest1": 1 - beta1, "beta2": beta2, "rest2": 1 - beta2, "eps": group["eps"]}


class Descent(Optimizer):
    """Base of the optimizers whose rule begins with the gradient's sign and weight decay.

    Args:
        lr: the learning rate.
        betas: the factors of the running means of the gradient and of its square.
        eps: added to the denominator, so that it is not 0.
        weight_decay: added to the gradient as weight_decay * p.
        decoupled_weight_decay: shrink the parameters directly, as `AdamW` does.
        maximize: ascend instead of descending.
        foreach, fused, capturable: accepted as in PyTorch; all updates are always one program.
        differentiable: gradients flow through the update, and parameters need not be leaves.
    """

    params: Iterable[Any]
    _: KW_ONLY
    maximize: bool = option(default=False)
    foreach: bool | None = hint(default=None)
    differentiable: bool = option(default=False, grouped=False)

    def _is_decoupled(self, group: Group) -> bool:
        """Whether weight decay shrinks the parameters directly."""
        return group.get("decoupled_weight_decay", False)

    def numbers(self, group: Group, step: int) -> dict[str, float]:
        """The factor of weight decay; a subclass adds the numbers of its rule."""
        decay: float = group.get("weight_decay", 0.0)
        return {"decay_factor": 1 - group["lr"] * decay if self._is_decoupled(group) else decay}

    def flags(self, group: Group, step: int) -> dict[str, Any]:
        """Which terms the rule has."""
        return {
            "decay": group.get("weight_decay", 0.0) != 0,
            "decoupled": self._is_decoupled(group),
            "maximize": bool(group["maximize"]),
        }
