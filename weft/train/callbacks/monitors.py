"""Monitors of a run: learning rates and throughput."""

from __future__ import annotations

import time
from typing import Any

from weft.errors import ArgumentError
from weft.train.batches import size_of
from weft.train.callbacks.callback import Callback

__all__ = ["LearningRateMonitor", "ThroughputMonitor"]


class LearningRateMonitor(Callback):
    """Logs the learning rate of each group: `lr-Adam`, or `lr-Adam/pg1` if there are several.

    They are also in `trainer.callback_metrics`.

    Args:
        logging_interval: `"step"`, `"epoch"`, or `None` for the intervals of the schedules.

    Raises:
        ArgumentError: the interval is unknown.
    """

    def __init__(self, logging_interval: str | None = None) -> None:
        if logging_interval not in (None, "step", "epoch"):
            raise ArgumentError.here(
                "LearningRateMonitor: expected logging_interval 'step', 'epoch' or None, got "
                f"{logging_interval!r}"
            )
        self.logging_interval = logging_interval

    def rates(self, trainer: Any) -> dict[str, float]:
        """The learning rates by name."""
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
        """Log the rates of this step."""
        if trainer.logs_at(trainer.global_step + 1):
            self._log(trainer, "step")

    def on_train_epoch_start(self, trainer: Any, pl_module: Any) -> None:
        """Log the rates of this epoch."""
        self._log(trainer, "epoch")

    def _log(self, trainer: Any, interval: str) -> None:
        """Log, if rates are logged at this interval: of steps, or of epochs."""
        own = {s.interval for s in trainer.schedules} or {"step", "epoch"}
        if interval in (own if self.logging_interval is None else {self.logging_interval}):
            trainer.log_rates(self.rates(trainer), trainer.global_step)


class ThroughputMonitor(Callback):
    """Logs `batches_per_second` and `items_per_second`, averaged between logging steps.

    Args:
        batch_size_fn: gives a batch's size; by default that of its first tensor.

    Attributes:
        batches_per_second: in the last interval.
        items_per_second: in the last interval.
    """

    def __init__(self, batch_size_fn: Any = None) -> None:
        self._size_of = batch_size_fn or size_of
        self.batches_per_second = self.items_per_second = 0.0
        self._begin: float | None = None
        self._batches = self._items = 0

    def on_train_start(self, trainer: Any, pl_module: Any) -> None:
        """Exclude the first step, which compiles."""
        self._begin = None

    def on_validation_end(self, trainer: Any, pl_module: Any) -> None:
        """Exclude validation."""
        self._begin = None

    def on_train_batch_end(
        self, trainer: Any, pl_module: Any, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        """Count, and log when the trainer does."""
        if self._begin is None:
            self._start()
            return
        self._batches += 1
        self._items += self._size_of(batch)
        if trainer.logs_at(trainer.global_step):
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
