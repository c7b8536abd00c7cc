"""`Callback`: methods for all events; and the smallest callbacks."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

__all__ = ["Callback", "CallbackList", "History", "LambdaCallback", "TerminateOnNaN"]

Logs = dict[str, Any]


class Callback:
    """Base class, whose methods do nothing.

    Attributes:
        model: the running model.
        params: the arguments of `fit`.
        validation_data: `None`.
    """

    def __init__(self) -> None:
        self.model: Any = None
        self.params: dict[str, Any] = {}
        self.validation_data: Any = None

    def set_params(self, params: dict[str, Any]) -> None:
        """Set the arguments of `fit`."""
        self.params = params

    def set_model(self, model: Any) -> None:
        """Set the model."""
        self.model = model

    def on_epoch_begin(self, epoch: int, logs: Logs | None = None) -> None:
        """At the start of an epoch."""

    def on_epoch_end(self, epoch: int, logs: Logs | None = None) -> None:
        """At the end of an epoch; `logs` has its metrics, and later callbacks see added entries."""

    def on_batch_begin(self, batch: int, logs: Logs | None = None) -> None:
        """At the start of a training batch."""

    def on_batch_end(self, batch: int, logs: Logs | None = None) -> None:
        """At the end of a training batch; `logs` has its metrics."""

    def on_train_batch_begin(self, batch: int, logs: Logs | None = None) -> None:
        """At the start of a training batch; calls `on_batch_begin`."""
        self.on_batch_begin(batch, logs)

    def on_train_batch_end(self, batch: int, logs: Logs | None = None) -> None:
        """At the end of a training batch; calls `on_batch_end`."""
        self.on_batch_end(batch, logs)

    def on_test_batch_begin(self, batch: int, logs: Logs | None = None) -> None:
        """At the start of a validation or test batch."""

    def on_test_batch_end(self, batch: int, logs: Logs | None = None) -> None:
        """At the end of a validation or test batch."""

    def on_predict_batch_begin(self, batch: int, logs: Logs | None = None) -> None:
        """At the start of a prediction batch."""

    def on_predict_batch_end(self, batch: int, logs: Logs | None = None) -> None:
        """At the end of a prediction batch."""

    def on_train_begin(self, logs: Logs | None = None) -> None:
        """At the start of training."""

    def on_train_end(self, logs: Logs | None = None) -> None:
        """At the end of training."""

    def on_test_begin(self, logs: Logs | None = None) -> None:
        """At the start of validation or a test."""

    def on_test_end(self, logs: Logs | None = None) -> None:
        """At the end of validation or a test."""

    def on_predict_begin(self, logs: Logs | None = None) -> None:
        """At the start of predictions."""

    def on_predict_end(self, logs: Logs | None = None) -> None:
        """At the end of predictions."""


class History(Callback):
    """The metrics of all epochs, which `fit` returns.

    Attributes:
        history: for each name, a list with one number per epoch.
        epoch: the numbers of the epochs.
    """

    def __init__(self) -> None:
        super().__init__()
        self.history: dict[str, list[Any]] = {}
        self.epoch: list[int] = []

    def set_model(self, model: Any) -> None:
        """Set the model, which starts a new run."""
        self.model = model
        self.history, self.epoch = {}, []

    def on_epoch_end(self, epoch: int, logs: Logs | None = None) -> None:
        """Store an epoch's metrics."""
        self.epoch.append(epoch)
        for name, value in (logs or {}).items():
            self.history.setdefault(name, []).append(value)


class CallbackList:
    """Callbacks that are told of events together, for loops that a program writes itself.

    Its methods are those of `Callback`.

    Args:
        callbacks: the callbacks, in order.
        queue_length: accepted.

    Attributes:
        callbacks: those of now.
    """

    def __init__(self, callbacks: Any = None, queue_length: int = 10) -> None:
        del queue_length
        self.callbacks: list[Any] = list(callbacks or [])
        self.params: dict[str, Any] = {}
        self.model: Any = None

    def append(self, callback: Any) -> None:
        """Add a callback."""
        self.callbacks.append(callback)

    def set_params(self, params: dict[str, Any]) -> None:
        """Pass the arguments of `fit` to each."""
        self.params = params
        self._tell("set_params", params)

    def set_model(self, model: Any) -> None:
        """Pass the model to each."""
        self.model = model
        self._tell("set_model", model)

    def __iter__(self) -> Iterator[Any]:
        return iter(self.callbacks)

    def _tell(self, event: str, *args: Any) -> None:
        for callback in self.callbacks:
            getattr(callback, event)(*args)

    def __getattr__(self, event: str) -> Callable[..., None]:
        if not event.startswith("on_") or not hasattr(Callback, event):
            raise AttributeError(f"{type(self).__name__} has no attribute {event!r}")

        numbers = int("epoch" in event or "batch" in event)

        def tell(*args: Any, logs: Logs | None = None) -> None:
            given = args[numbers] if len(args) > numbers else logs
            self._tell(event, *args[:numbers], given or {})

        return tell


class LambdaCallback(Callback):
    """A callback made from functions, named after the events.

    Args:
        on_epoch_begin, on_epoch_end: called with the epoch's number and its figures.
        on_batch_begin, on_batch_end: called with the batch's number and its figures.
        on_train_begin, on_train_end: called with the figures.
        others: functions for the other events of `Callback`, by name.
    """

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
    """Stops training after a batch whose loss is NaN or infinite."""

    def on_batch_end(self, batch: int, logs: Logs | None = None) -> None:
        """Check the loss."""
        loss = (logs or {}).get("loss")
        if loss is not None and not math.isfinite(float(loss)):
            print(f"Batch {batch}: invalid loss {float(loss)}, terminating training")
            self.model.stop_training = True
