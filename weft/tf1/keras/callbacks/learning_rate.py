"""Callbacks that change the learning rate: LearningRateScheduler, ReduceLROnPlateau."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from weft.errors import ArgumentError
from weft.tf1.framework.graph import fail
from weft.tf1.keras.callbacks.callback import Callback, Logs
from weft.tf1.keras.callbacks.monitors import Better, figure_of

__all__ = ["LearningRateScheduler", "ReduceLROnPlateau"]


class _Rate(Callback):
    def _now(self) -> float:
        return self.model.get_learning_rate()

    def _change(self, rate: float) -> None:
        self.model.set_learning_rate(rate)


class LearningRateScheduler(_Rate):
    """Sets the learning rate before each epoch.

    Args:
        schedule: a function of the epoch, or of the epoch and the rate.
        verbose: whether to print the rate.
    """

    def __init__(self, schedule: Callable[..., float], verbose: int = 0) -> None:
        super().__init__()
        self.schedule, self.verbose = schedule, verbose

    def on_epoch_begin(self, epoch: int, logs: Logs | None = None) -> None:
        """Set the rate."""
        takes_rate = len(inspect.signature(self.schedule).parameters) > 1
        found: Any = self.schedule(epoch, self._now()) if takes_rate else self.schedule(epoch)
        try:
            rate = float(found)
        except (TypeError, ValueError):
            raise fail(
                ArgumentError, f"LearningRateScheduler: expected a number, got {found!r}"
            ) from None
        self._change(rate)
        if self.verbose:
            print(f"Epoch {epoch + 1}: the learning rate is {rate}")

    def on_epoch_end(self, epoch: int, logs: Logs | None = None) -> None:
        """Add the rate to the logs."""
        if logs is not None:
            logs["lr"] = self._now()


class ReduceLROnPlateau(_Rate):
    """Reduces the learning rate when a metric stops improving.

    Args:
        monitor: the metric's name.
        factor: the factor of the rate, below 1.
        patience: the number of epochs without improvement to wait for.
        verbose: whether to print the rate.
        mode: see `Better`.
        min_delta: the least change that counts as an improvement.
        cooldown: epochs to wait after a reduction.
        min_lr: the lowest rate.

    Raises:
        ArgumentError: the factor is 1 or more.
    """

    def __init__(
        self, monitor: str = "val_loss", factor: float = 0.1, patience: int = 10, verbose: int = 0,
        mode: str = "auto", min_delta: float = 1e-4, cooldown: int = 0, min_lr: float = 0.0,
    ) -> None:  # fmt: skip
        super().__init__()
        if factor >= 1.0:
            raise fail(ArgumentError, f"ReduceLROnPlateau: expected a factor below 1, got {factor}")
        self.monitor, self.factor, self.patience = monitor, factor, patience
        self.verbose, self.cooldown, self.min_lr = verbose, cooldown, min_lr
        self._better = Better(monitor, mode, min_delta)
        self.on_train_begin()

    def on_train_begin(self, logs: Logs | None = None) -> None:
        """Reset the state."""
        self.best = self._better.worst
        self.wait = self.cooldown_counter = 0

    def on_epoch_end(self, epoch: int, logs: Logs | None = None) -> None:
        """Check the metric."""
        if logs is not None:
            logs["lr"] = self._now()
        now = figure_of(logs, self.monitor, "ReduceLROnPlateau")
        if now is None:
            return
        if self.cooldown_counter:
            self.cooldown_counter -= 1
            self.wait = 0
        if self._better(now, self.best):
            self.best, self.wait = now, 0
        elif not self.cooldown_counter:
            self.wait += 1
            if self.wait >= self.patience:
                self._lower(epoch)

    def _lower(self, epoch: int) -> None:
        before = self._now()
        if before <= self.min_lr:
            return
        rate = max(before * self.factor, self.min_lr)
        self._change(rate)
        self.cooldown_counter, self.wait = self.cooldown, 0
        if self.verbose:
            print(f"Epoch {epoch + 1}: the learning rate becomes {rate}")
