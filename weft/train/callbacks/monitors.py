"""What a run logs of itself: learning rates, and how much it does in a second."""

from __future__ import annotations

import time
from typing import Any

from weft.errors import ArgumentError
from weft.ops.base import at_user_line
from weft.train.batches import size_of
from weft.train.callbacks.callback import Callback


class LearningRateMonitor(Callback):
    """Logs the learning rate of every group: `lr-Adam`, or `lr-Adam/pg1` of several.

    Args:
        logging_interval: `"step"`, `"epoch"`, or `None` for both as schedules step.

    Raises:
        ArgumentError: another interval.
    """

    def __init__(self, logging_interval: str | None = None) -> None:
        if logging_interval not in (None, "step", "epoch"):
            raise ArgumentError(
                "LearningRateMonitor: expected logging_interval 'step', 'epoch' or None, got "
                f"{logging_interval!r}{at_user_line()}"
            )
        self.logging_interval = logging_interval

    def rates(self, trainer: Any) -> dict[str, float]:
        """The rates by name."""
        found: dict[str, float] = {}
        for optimizer in trainer.optimizers:
            name = base = f"lr-{type(optimizer).__name__}"
            number = 1
            while name in found or f"{name}/pg1" in found:
                name, number = f"{base}-{number}", number + 1
            groups = optimizer.param_groups
            for i, group in enumerate(groups):
                found[name if len(groups) == 1 else f"{name}/pg{i + 1}"] = float(group["lr"])
        return found

    def on_train_batch_start(
        self, trainer: Any, pl_module: Any, batch: Any, batch_idx: int
    ) -> None:
        """Log what this step is made with."""
        due = trainer.global_step % trainer.log_every_n_steps == 0
        if self.logging_interval != "epoch" and due:
            self._log(trainer, trainer.global_step)

    def on_train_epoch_start(self, trainer: Any, pl_module: Any) -> None:
        """Log what this epoch begins with."""
        if self.logging_interval != "step":
            self._log(trainer, trainer.global_step)

    def _log(self, trainer: Any, step: int) -> None:
        rates = self.rates(trainer)
        for logger in trainer.loggers:
            logger.log_metrics(rates, step)


class ThroughputMonitor(Callback):
    """Logs `batches_per_second` and `items_per_second`, over the steps between two logs.

    Args:
        batch_size_fn: how many items a batch has; the size of its first tensor unless given.

    Attributes:
        batches_per_second: of the last interval.
        items_per_second: of the last interval.
    """

    def __init__(self, batch_size_fn: Any = None) -> None:
        self._size_of = batch_size_fn or size_of
        self.batches_per_second = self.items_per_second = 0.0
        self._begin: float | None = None
        self._batches = self._items = 0

    def on_train_start(self, trainer: Any, pl_module: Any) -> None:
        """The first step is not measured: it compiles."""
        self._begin = None

    def on_validation_end(self, trainer: Any, pl_module: Any) -> None:
        """Validation is not counted as training."""
        self._begin = None

    def on_train_batch_end(
        self, trainer: Any, pl_module: Any, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        """Count, and log at the trainer's steps."""
        if self._begin is None:
            self._start()
            return
        self._batches += 1
        self._items += self._size_of(batch)
        if trainer.global_step % trainer.log_every_n_steps == 0:
            seconds = max(time.perf_counter() - self._begin, 1e-9)
            self.batches_per_second = self._batches / seconds
            self.items_per_second = self._items / seconds
            for logger in trainer.loggers:
                logger.log_metrics(
                    {
                        "batches_per_second": self.batches_per_second,
                        "items_per_second": self.items_per_second,
                    },
                    max(trainer.global_step - 1, 0),
                )
            self._start()

    def _start(self) -> None:
        self._begin, self._batches, self._items = time.perf_counter(), 0, 0
