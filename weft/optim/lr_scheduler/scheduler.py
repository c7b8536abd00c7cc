"""What all schedulers share: a learning rate per group as a function of how often it stepped."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from weft.optim.optimizer import Optimizer


def figures(scheduler: object) -> dict[str, Any]:
    """The attributes of a scheduler that can be written down."""
    plain = (bool, int, float, str, list)
    return {k: v for k, v in vars(scheduler).items() if isinstance(v, plain)}


class LRScheduler:
    """Base class: a subclass says the rate of a group after `t` steps.

    Making a scheduler sets the rates for t = 0. `last_epoch` is t. Where `chains` is set a step
    changes the rate as it is by a factor, so that several schedulers of one optimiser act together.

    Args:
        last_epoch: where to go on from; -1 begins.
    """

    chains: ClassVar[bool] = False
    eta_min: float = 0.0  # what the rate falls to; the factor is that of the rest

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
        before = self.last_epoch
        self.last_epoch = before + 1 if epoch is None else epoch
        after = self.rates(self.last_epoch)
        chained = self.chains and epoch is None
        earlier = (self.rates(before) if before >= 0 else self.base_lrs) if chained else after
        groups = self.optimizer.param_groups
        for group, old, new in zip(groups, earlier, after, strict=True):
            group["lr"] = self._moved(group["lr"], old, new) if chained else new

    def _moved(self, rate: float, old: float, new: float) -> float:
        """What the way from `old` to `new` makes of a rate."""
        if rate == old:
            return new
        rest = old - self.eta_min
        if not rest:
            return rate + new - old
        return self.eta_min + (rate - self.eta_min) * (new - self.eta_min) / rest

    def get_last_lr(self) -> list[float]:
        """The rates now."""
        return [group["lr"] for group in self.optimizer.param_groups]

    def state_dict(self) -> dict[str, Any]:
        """Numbers to go on from."""
        return figures(self)

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Go on from what `state_dict` gave, at the rates that go with it."""
        vars(self).update(state_dict)
        groups = self.optimizer.param_groups
        for group, rate in zip(groups, self.rates(self.last_epoch), strict=True):
            if group["lr"] == group["initial_lr"]:  # the optimiser's state was not loaded
                group["lr"] = rate
