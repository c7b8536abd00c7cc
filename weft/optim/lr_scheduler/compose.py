"""Schedulers made of schedulers."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence

from weft.errors import OptimizerError
from weft.ops.base import at_user_line
from weft.optim.lr_scheduler.scheduler import LRScheduler
from weft.optim.optimizer import Optimizer


class SequentialLR(LRScheduler):
    """One scheduler after another: the i-th from milestone i - 1 on, counting from 0 there."""

    def __init__(
        self,
        optimizer: Optimizer,
        schedulers: Sequence[LRScheduler],
        milestones: Sequence[int],
        last_epoch: int = -1,
    ) -> None:
        if len(milestones) != len(schedulers) - 1:
            raise OptimizerError(
                f"SequentialLR: expected {len(schedulers) - 1} milestones between "
                f"{len(schedulers)} schedulers, got {len(milestones)}{at_user_line()}"
            )
        self.schedulers, self.milestones = tuple(schedulers), list(milestones)
        super().__init__(optimizer, last_epoch)

    def rates(self, t: int) -> list[float]:
        """The rates of all groups."""
        i = bisect_right(self.milestones, t)
        return self.schedulers[i].rates(t - (self.milestones[i - 1] if i else 0))


class ChainedScheduler(LRScheduler):
    """The product of what several schedulers make of the first rate."""

    def __init__(
        self, schedulers: Sequence[LRScheduler], optimizer: Optimizer | None = None
    ) -> None:
        self.schedulers = tuple(schedulers)
        super().__init__(optimizer or schedulers[0].optimizer)

    def rates(self, t: int) -> list[float]:
        """The rates of all groups."""
        found = list(self.base_lrs)
        for scheduler in self.schedulers:
            for i, (rate, base) in enumerate(
                zip(scheduler.rates(t), scheduler.base_lrs, strict=True)
            ):
                found[i] *= rate / base
        return found
