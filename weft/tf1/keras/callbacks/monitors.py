"""Callbacks that monitor a metric: EarlyStopping, ModelCheckpoint."""

from __future__ import annotations

import math
import os
import warnings
from typing import Any

from weft.errors import ArgumentError
from weft.tf1.framework.graph import fail
from weft.tf1.keras.callbacks.callback import Callback, Logs

__all__ = ["EarlyStopping", "ModelCheckpoint"]


def figure_of(logs: Logs | None, monitor: str, what: str) -> float | None:
    """The epoch's value of a metric; `None`, with a warning, if it is missing."""
    found = (logs or {}).get(monitor)
    if found is None:
        told = ", ".join(sorted(logs or {}))
        warnings.warn(f"{what}: expected the metric {monitor!r}, there are {told}", stacklevel=3)
        return None
    return float(found)


class Better:
    """Compares values of a metric.

    Args:
        mode: `"min"`, `"max"`, or `"auto"`, which decides by the metric's name.

    Raises:
        ArgumentError: the mode is unknown.
    """

    def __init__(self, monitor: str, mode: str, min_delta: float = 0.0) -> None:
        if mode not in ("auto", "min", "max"):
            raise fail(ArgumentError, f"mode: expected 'auto', 'min' or 'max', got {mode!r}")
        rises = any(n in monitor for n in ("acc", "auc", "precision", "recall"))
        self.sign = -1.0 if mode == "max" or (mode == "auto" and rises) else 1.0
        self.delta = abs(min_delta)
        self.worst = math.inf * self.sign

    def __call__(self, now: float, best: float) -> bool:
        """Whether `now` is better than `best`."""
        return self.sign * now < self.sign * best - self.delta


class EarlyStopping(Callback):
    """Stops training when a metric has not improved for more than `patience` epochs.

    Args:
        monitor: the metric's name.
        min_delta: the least change that counts as an improvement.
        patience: the number of epochs without improvement to wait for.
        verbose: whether to print why training stops.
        mode: see `Better`.
        baseline: the value that the metric must improve on first.
        restore_best_weights: whether to restore the weights of the best epoch.
    """

    def __init__(
        self, monitor: str = "val_loss", min_delta: float = 0.0, patience: int = 0,
        verbose: int = 0, mode: str = "auto", baseline: float | None = None,
        restore_best_weights: bool = False,
    ) -> None:  # fmt: skip
        super().__init__()
        self.monitor, self.patience, self.verbose = monitor, patience, verbose
        self.baseline, self.restore_best_weights = baseline, restore_best_weights
        self._better = Better(monitor, mode, min_delta)
        self.on_train_begin()

    def on_train_begin(self, logs: Logs | None = None) -> None:
        """Reset the state."""
        self.wait = self.stopped_epoch = 0
        self.best = self._better.worst if self.baseline is None else self.baseline
        self.best_weights: Any = None

    def on_epoch_end(self, epoch: int, logs: Logs | None = None) -> None:
        """Check the metric."""
        now = figure_of(logs, self.monitor, "EarlyStopping")
        if now is None:
            return
        if self._better(now, self.best):
            self.best, self.wait = now, 0
            if self.restore_best_weights:
                self.best_weights = self.model.get_weights()
            return
        self.wait += 1
        if self.wait >= self.patience:
            self.stopped_epoch = epoch
            self.model.stop_training = True
            if self.best_weights is not None:
                self.model.set_weights(self.best_weights)

    def on_train_end(self, logs: Logs | None = None) -> None:
        """Print why training stopped."""
        if self.stopped_epoch and self.verbose:
            print(f"Epoch {self.stopped_epoch + 1}: early stopping")


class ModelCheckpoint(Callback):
    """Saves the weights after epochs.

    Args:
        filepath: may contain the epoch and metrics, as `"{epoch:02d}-{val_loss:.2f}"`.
        monitor: the metric's name.
        verbose: whether to print the path.
        save_best_only: whether to save only improved weights.
        save_weights_only: whether `.h5` files contain only the weights; other names always do.
        mode: see `Better`.
        save_freq: `"epoch"`, or a number of examples.
        period: epochs between checkpoints.
    """

    def __init__(
        self, filepath: Any, monitor: str = "val_loss", verbose: int = 0,
        save_best_only: bool = False, save_weights_only: bool = False, mode: str = "auto",
        save_freq: Any = "epoch", period: int = 1,
    ) -> None:  # fmt: skip
        super().__init__()
        self.save_weights_only = save_weights_only
        self.filepath, self.monitor, self.verbose = os.fspath(filepath), monitor, verbose
        self.save_best_only, self.save_freq, self.period = save_best_only, save_freq, period
        self._better = Better(monitor, mode)
        self.best = self._better.worst
        self._epoch = self._rows = self._since = 0

    def on_epoch_begin(self, epoch: int, logs: Logs | None = None) -> None:
        """Store the epoch."""
        self._epoch = epoch

    def on_batch_end(self, batch: int, logs: Logs | None = None) -> None:
        """Save after every n examples."""
        if isinstance(self.save_freq, int):
            self._rows += int((logs or {}).get("size", 1))
            if self._rows >= self.save_freq:
                self._rows = 0
                self._save(self._epoch, logs)

    def on_epoch_end(self, epoch: int, logs: Logs | None = None) -> None:
        """Save, if due."""
        self._since += 1
        if self.save_freq == "epoch" and self._since >= self.period:
            self._since = 0
            self._save(epoch, logs)

    def _save(self, epoch: int, logs: Logs | None) -> None:
        path = self.filepath.format(epoch=epoch + 1, **(logs or {}))
        if self.save_best_only:
            now = figure_of(logs, self.monitor, "ModelCheckpoint")
            if now is None or not self._better(now, self.best):
                return
            self.best = now
        whole = path.endswith((".h5", ".hdf5")) and not self.save_weights_only
        (self.model.save if whole else self.model.save_weights)(path)
        if self.verbose:
            print(f"Epoch {epoch + 1}: saving to {path}")
