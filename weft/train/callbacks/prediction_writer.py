"""`BasePredictionWriter`: writes predictions as they are made, or all at the end."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from weft.errors import ArgumentError
from weft.train.callbacks.callback import Callback


class BasePredictionWriter(Callback):
    """Base class: a subclass defines `write_on_batch_end`, `write_on_epoch_end` or both.

    Args:
        write_interval: `"batch"`, `"epoch"` or `"batch_and_epoch"`: which of them are called.

    Raises:
        ArgumentError: the interval is unknown.
    """

    def __init__(self, write_interval: str = "batch") -> None:
        if write_interval not in ("batch", "epoch", "batch_and_epoch"):
            raise ArgumentError.here(
                f"{type(self).__name__}: expected write_interval 'batch', 'epoch' or "
                f"'batch_and_epoch', got {write_interval!r}"
            )
        self.interval = write_interval
        self.keeps_predictions = "epoch" in write_interval

    def write_on_batch_end(
        self, trainer: Any, pl_module: Any, prediction: Any,
        batch_indices: Sequence[int] | None, batch: Any, batch_idx: int, dataloader_idx: int,
    ) -> None:  # fmt: skip
        """Write the predictions for a batch.

        Args:
            batch_indices: the items of the data set in the batch; `None` if they are not known.
        """
        raise NotImplementedError(f"{type(self).__name__}: write_on_batch_end is not defined")

    def write_on_epoch_end(
        self, trainer: Any, pl_module: Any, predictions: Sequence[Any],
        batch_indices: Sequence[Any],
    ) -> None:  # fmt: skip
        """Write all predictions.

        Args:
            predictions: those of each batch; for several loaders, a list for each.
            batch_indices: for each loader, the items in each batch.
        """
        raise NotImplementedError(f"{type(self).__name__}: write_on_epoch_end is not defined")

    def on_predict_batch_end(
        self, trainer: Any, pl_module: Any, outputs: Any, batch: Any, batch_idx: int,
        dataloader_idx: int = 0,
    ) -> None:  # fmt: skip
        """Write the predictions for a batch."""
        if "batch" in self.interval:
            items = trainer.evaluation.items[dataloader_idx]
            self.write_on_batch_end(
                trainer, pl_module, outputs, items[-1] if items else None, batch, batch_idx,
                dataloader_idx,
            )  # fmt: skip

    def on_predict_epoch_end(self, trainer: Any, pl_module: Any) -> None:
        """Write all predictions."""
        if self.keeps_predictions:
            loop = trainer.evaluation
            self.write_on_epoch_end(trainer, pl_module, loop.predictions, loop.items)
