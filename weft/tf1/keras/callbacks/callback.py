"""`Callback`: methods for all events, and callbacks of a few lines."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

Logs = dict[str, Any]


class Callback:
    """Base class, whose methods do nothing.

    Attributes:
        model: that runs.
        params: what `fit` was called with.
        validation_data: `None`.
    """

    def __init__(self) -> None:
        self.model: Any = None
        self.params: dict[str, Any] = {}
        self.validation_data: Any = None

    def set_params(self, params: dict[str, Any]) -> None:
        """Take over what `fit` was called with."""
        self.params = params

    def set_model(self, model: Any) -> None:
        """Take over the model."""
        self.model = model

    def on_epoch_begin(self, epoch: int, logs: Logs | None = None) -> None:
        """An epoch begins."""

    def on_epoch_end(self, epoch: int, logs: Logs | None = None) -> None:
        """An epoch ends; `logs` has its figures, and what is added is seen by later callbacks."""

    def on_batch_begin(self, batch: int, logs: Logs | None = None) -> None:
        """A batch of training begins."""

    def on_batch_end(self, batch: int, logs: Logs | None = None) -> None:
        """A batch of training ends; `logs` has its figures."""

    def on_train_batch_begin(self, batch: int, logs: Logs | None = None) -> None:
        """A batch of training begins; calls `on_batch_begin`."""
        self.on_batch_begin(batch, logs)

    def on_train_batch_end(self, batch: int, logs: Logs | None = None) -> None:
        """A batch of training ends; calls `on_batch_end`."""
        self.on_batch_end(batch, logs)

    def on_test_batch_begin(self, batch: int, logs: Logs | None = None) -> None:
        """A batch of validation or of a test begins."""

    def on_test_batch_end(self, batch: int, logs: Logs | None = None) -> None:
        """A batch of validation or of a test ends."""

    def on_predict_batch_begin(self, batch: int, logs: Logs | None = None) -> None:
        """A batch of predictions begins."""

    def on_predict_batch_end(self, batch: int, logs: Logs | None = None) -> None:
        """A batch of predictions ends."""

    def on_train_begin(self, logs: Logs | None = None) -> None:
        """Training begins."""

    def on_train_end(self, logs: Logs | None = None) -> None:
        """Training ends."""

    def on_test_begin(self, logs: Logs | None = None) -> None:
        """Validation or a test begins."""

    def on_test_end(self, logs: Logs | None = None) -> None:
        """Validation or a test ends."""

    def on_predict_begin(self, logs: Logs | None = None) -> None:
        """Predictions begin."""

    def on_predict_end(self, logs: Logs | None = None) -> None:
        """Predictions end."""


class LambdaCallback(Callback):
    """Functions for events, by the events' names."""

    def __init__(
        self, on_epoch_begin: Callable[..., Any] | None = None,
        on_epoch_end: Callable[..., Any] | None = None,
        on_batch_begin: Callable[..., Any] | None = None,
        on_batch_end: Callable[..., Any] | None = None,
        on_train_begin: Callable[..., Any] | None = None,
        on_train_end: Callable[..., Any] | None = None, **others: Callable[..., Any],
    ) -> None:  # fmt: skip
        super().__init__()
        given = {
            "on_epoch_begin": on_epoch_begin, "on_epoch_end": on_epoch_end,
            "on_batch_begin": on_batch_begin, "on_batch_end": on_batch_end,
            "on_train_begin": on_train_begin, "on_train_end": on_train_end, **others,
        }  # fmt: skip
        for name, function in given.items():
            if function is not None:
                setattr(self, name, function)


class TerminateOnNaN(Callback):
    """Ends training behind a batch whose loss is NaN or infinite."""

    def on_batch_end(self, batch: int, logs: Logs | None = None) -> None:
        """Look at the loss."""
        loss = (logs or {}).get("loss")
        if loss is not None and not math.isfinite(float(loss)):
            print(f"Batch {batch}: invalid loss {float(loss)}, terminating training")
            self.model.stop_training = True
