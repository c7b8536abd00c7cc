"""Schedulers made of other schedulers."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from typing import Any

from weft.errors import OptimizerError
from weft.optim.lr_scheduler.scheduler import LRScheduler
from weft.optim.optimizer import Optimizer

__all__ = ["ChainedScheduler", "SequentialLR"]


class SequentialLR(LRScheduler):
    """One scheduler after another: each milestone starts the next one, which counts from 0.

    Args:
        schedulers: in their order.
        milestones: the steps at which the second and later ones start.

    Raises:
        OptimizerError: not one milestone between each two schedulers.
    """

    def __init__(
        self,
        optimizer: Optimizer,
        schedulers: Sequence[LRScheduler],
        milestones: Sequence[int],
        last_epoch: int = -1,
    ) -> None:
        if len(milestones) != len(schedulers) - 1:
            raise OptimizerError.here(
                f"SequentialLR: expected {len(schedulers) - 1} milestones between "
                f"{len(schedulers)} schedulers, got {len(milestones)}"
            )
        self.schedulers, self.milestones = tuple(schedulers), list(milestones)
        super().__init__(optimizer, last_epoch)

    def rates(self, t: int) -> list[float]:
        """The learning rates of all groups."""
        i = bisect_right(self.milestones, t)
        return self.schedulers[i].rates(t - (self.milestones[i - 1] if i else 0))


class ChainedScheduler(LRScheduler):
    """Several schedulers that step together; each changes the rate that the previous ones set.

    Args:
        schedulers: in the order in which they step.
        optimizer: the one that all have; found if left out.

    Raises:
        OptimizerError: no schedulers, or schedulers of several optimizers.
    """

    def __init__(
        self, schedulers: Sequence[LRScheduler], optimizer: Optimizer | None = None
    ) -> None:
        given = {id(s.optimizer) for s in schedulers}
        if len(given | ({id(optimizer)} if optimizer is not None else set())) != 1:
            raise OptimizerError.here(
                "ChainedScheduler: expected schedulers of one optimizer, got "
                f"{len(schedulers)} of {len(given)}"
            )
        self.optimizer = schedulers[0].optimizer
        self.schedulers = tuple(schedulers)
        self._note()

    def _note(self) -> None:
        self._last_lr = [group["lr"] for group in self.optimizer.param_groups]

    def step(self, epoch: int | None = None) -> None:
        """Advance all schedulers by one step, or to step `epoch`."""
        for scheduler in self.schedulers:
            scheduler.step(epoch)
        self._note()

    def state_dict(self) -> dict[str, Any]:
        """The state of each scheduler."""
        return {"schedulers": [scheduler.state_dict() for scheduler in self.schedulers]}

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Restore the state that `state_dict` returned."""
        for scheduler, state in zip(self.schedulers, state_dict["schedulers"], strict=True):
            scheduler.load_state_dict(state)
        self._note()
