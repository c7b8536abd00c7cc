"""Callbacks that change a run from epoch to epoch, or write where it ended."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from weft.errors import ArgumentError
from weft.train.batches import whole
from weft.train.callbacks.callback import Callback
from weft.train.callbacks.model_checkpoint import Checkpoint

__all__ = ["GradientAccumulationScheduler", "OnExceptionCheckpoint"]


class GradientAccumulationScheduler(Callback):
    """Changes `accumulate_grad_batches` from some epochs on.

    Args:
        scheduling: the number of batches by the first epoch that it holds in.

    Raises:
        ArgumentError: an epoch or a number is out of range; or the trainer accumulates by itself.

    >>> scheduler = GradientAccumulationScheduler({4: 2})
    >>> [scheduler.get_accumulate_grad_batches(epoch) for epoch in (0, 3, 4, 9)]
    [1, 1, 2, 2]
    """

    def __init__(self, scheduling: Mapping[int, int]) -> None:
        if not scheduling:
            raise ArgumentError.here("GradientAccumulationScheduler: expected epochs, got none")
        told = {whole("an epoch", k, 0): whole("scheduling", v, 1) for k, v in scheduling.items()}
        self.scheduling = {0: 1, **told}

    def going_to_accumulate_grad_batches(self) -> bool:
        """Whether any epoch accumulates."""
        return any(x > 1 for x in self.scheduling.values())

    def get_accumulate_grad_batches(self, epoch: int) -> int:
        """The number of batches in an epoch."""
        return self.scheduling[max(k for k in self.scheduling if k <= epoch)]

    def on_train_start(self, trainer: Any, pl_module: Any) -> None:
        """Require a trainer that does not accumulate by itself."""
        if trainer.accumulate_grad_batches != 1 or not pl_module.automatic_optimization:
            raise ArgumentError.here(
                "GradientAccumulationScheduler: expected automatic optimization and "
                f"accumulate_grad_batches=1, got {trainer.accumulate_grad_batches}"
            )

    def on_train_epoch_start(self, trainer: Any, pl_module: Any) -> None:
        """Set the number of batches."""
        trainer.accumulate_grad_batches = self.get_accumulate_grad_batches(trainer.current_epoch)

    def on_train_end(self, trainer: Any, pl_module: Any) -> None:
        """Accumulate no more, as before."""
        trainer.accumulate_grad_batches = 1


class OnExceptionCheckpoint(Checkpoint):
    """Saves a checkpoint when a run raises.

    Args:
        dirpath: the folder.
        filename: the file's name, without its ending.
    """

    def __init__(self, dirpath: str | Path, filename: str = "on_exception") -> None:
        self.dirpath, self.filename = str(dirpath), filename

    @property
    def ckpt_path(self) -> str:
        """The file."""
        return str(Path(self.dirpath) / f"{self.filename}.ckpt")

    def on_exception(self, trainer: Any, pl_module: Any, exception: BaseException) -> None:
        """Save."""
        trainer.save_checkpoint(self.ckpt_path)
