"""Adapter from Keras callbacks (`on_epoch_end(epoch, logs)`, ...) to one trainer callback."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, Final

from weft.train.batches import size_of
from weft.train.callbacks.callback import Callback
from weft.train.events import Call, defines

STAGES: Final = {"train": "train", "validation": "test", "test": "test", "predict": "predict"}
"""Keras has the same events for validation and tests."""


class Listeners(Callback):
    """Emits Keras's events in order; entries that one adds to `logs` are seen by the next ones.

    Args:
        callbacks: objects with any of Keras's methods.
        model: passed to `set_model`.
        params: passed to `set_params`.
    """

    def __init__(self, callbacks: Sequence[Any], model: Any, params: dict[str, Any]) -> None:
        self._callbacks = list(callbacks)
        self._calls: dict[str, list[Call]] = {}
        self._validated = -1
        for callback in callbacks:
            for name, given in (("set_params", params), ("set_model", model)):
                if hasattr(callback, name):
                    getattr(callback, name)(given)
        for stage, name in STAGES.items():
            setattr(self, f"on_{stage}_batch_start", partial(self._begin_batch, name))
            setattr(self, f"on_{stage}_batch_end", partial(self._end_batch, name))
            setattr(self, f"on_{stage}_start", partial(self._begin, stage, name))
            setattr(self, f"on_{stage}_end", partial(self._end, name))

    def on_train_epoch_start(self, trainer: Any, pl_module: Any) -> None:
        """Emit `on_epoch_begin`."""
        self._tell("on_epoch_begin", trainer.current_epoch, {})

    def on_train_epoch_end(self, trainer: Any, pl_module: Any) -> None:
        """Emit `on_epoch_end`, with the epoch's metrics."""
        every = _figures(trainer)
        figures = {k: v for k, v in every.items() if not k.startswith("val_")}
        if self._validated == trainer.current_epoch:
            figures.update(every)
        self._tell("on_epoch_end", trainer.current_epoch, figures)

    # -- helpers

    def _tell(self, name: str, *args: Any) -> None:
        calls = self._calls.get(name)
        if calls is None:
            those = [c for c in self._callbacks if defines(c, name, Callback)]
            calls = self._calls[name] = [getattr(c, name) for c in those]
        for call in calls:
            call(*args)

    def _begin(self, stage: str, name: str, trainer: Any, pl_module: Any) -> None:
        if stage == "validation":
            self._validated = trainer.current_epoch
        self._tell(f"on_{name}_begin", {})

    def _end(self, name: str, trainer: Any, pl_module: Any) -> None:
        self._tell(f"on_{name}_end", _figures(trainer))

    def _begin_batch(
        self, name: str, trainer: Any, pl_module: Any, batch: Any, batch_idx: int, *_: int
    ) -> None:
        self._tell(f"on_{name}_batch_begin", batch_idx, _sizes(batch, batch_idx))

    def _end_batch(
        self, name: str, trainer: Any, pl_module: Any, outputs: Any, batch: Any, batch_idx: int,
        *_: int,
    ) -> None:  # fmt: skip
        logs = _sizes(batch, batch_idx)
        if name == "train":
            logs.update(outputs if isinstance(outputs, dict) else {"loss": outputs})
        self._tell(f"on_{name}_batch_end", batch_idx, logs)


def _figures(trainer: Any) -> dict[str, Any]:
    return trainer.numbers()


def _sizes(batch: Any, number: int) -> dict[str, Any]:
    return {"batch": number, "size": size_of(batch)}
