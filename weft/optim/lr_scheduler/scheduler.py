"""What all schedulers share: a learning rate per group as a function of how often it stepped."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from weft.optim.optimizer import Optimizer


def figures(scheduler: object) -> dict[str, Any]:
    """The attributes of a scheduler that can be written down."""
    plain = (bool, int, float, str, list)
    return {k: v for k, v in vars(scheduler).items() if isinstance(v, plain)}


class LRScheduler:
    """Base class: a subclass says the rate of a group after `t` steps.

    Making a scheduler sets the rates for t = 0. `last_epoch` is t.

    Args:
        last_epoch: where to go on from; -1 begins.
    """

    def __init__(self, optimizer: Optimizer, last_epoch: int = -1) -> None:
        self.optimizer = optimizer
        for group in optimizer.param_groups:
            group.setdefault("initial_lr", group["lr"])
        self.base_lrs = [float(g["initial_lr"]) for g in optimizer.param_groups]
        self.last_epoch = last_epoch
        self.step()

    def rate(self, base: float, t: int) -> float:
        """The rate after `t` steps of a group that began with `base`."""
        raise NotImplementedError

    def rates(self, t: int) -> list[float]:
        """The rates of all groups."""
        return [self.rate(base, t) for base in self.base_lrs]

    def step(self, epoch: int | None = None) -> None:
        """Go on by one step, or to step `epoch`."""
        self.last_epoch = self.last_epoch + 1 if epoch is None else epoch
        for group, rate in zip(
            self.optimizer.param_groups, self.rates(self.last_epoch), strict=True
        ):
            group["lr"] = rate

    def get_last_lr(self) -> list[float]:
        """The rates now."""
        return [group["lr"] for group in self.optimizer.param_groups]

    def state_dict(self) -> dict[str, Any]:
        """Numbers to go on from."""
        return figures(self)

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Go on from what `state_dict` gave."""
        vars(self).update(state_dict)
