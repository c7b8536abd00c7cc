"""The events of a run: who listens to which, and in which order.

A run is one loop. Everything else (callbacks, the module's own hooks, checkpoints, progress bars,
early stopping) listens to its events. Listeners are collected once per run, and only those that
define an event's method are called.

Order: callbacks in the given order, then the module; at the end of an epoch, callbacks that act on
    metrics come last, so that they see what the module logs there.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final

Call = Callable[..., Any]

STAGES: Final = ("fit", "validate", "test", "predict")

_BATCH: Final = ("batch_start", "batch_end")
_EVALUATION: Final = ("start", "epoch_start", *_BATCH, "epoch_end", "end")

OF_FIT: Final = (
    "on_fit_start", "on_sanity_check_start", "on_sanity_check_end", "on_train_start",
    "on_train_epoch_start", "on_train_batch_start", "on_before_zero_grad", "on_before_backward",
    "on_after_backward", "on_before_optimizer_step", "on_train_batch_end", "on_train_epoch_end",
    "on_train_end", "on_fit_end",
)  # fmt: skip
OF_EVALUATION: Final = tuple(
    [f"on_{stage}_{event}" for stage in ("validation", "test", "predict") for event in _EVALUATION]
)
OF_EVERY_RUN: Final = ("setup", "teardown", "on_exception")
EVENTS: Final = (*OF_EVERY_RUN, *OF_FIT, *OF_EVALUATION)
"""All events; `on_save_checkpoint` and `on_load_checkpoint` also get the state."""

LATE: Final = ("on_train_epoch_end",)


def defines(listener: Any, name: str, base: type) -> bool:
    """Whether an object overrides an event's method of `base`; `None` in its place is no method."""
    if name in vars(listener):
        return vars(listener)[name] is not None
    own = getattr(type(listener), name, None)
    return own is not None and own is not getattr(base, name, None)


class Events:
    """The calls for each event.

    Args:
        trainer: the first argument of callbacks.
        module: gets events without the trainer; callbacks get it as second argument.
        callbacks: in order; those with `monitors` act on metrics.
        bases: the classes of callbacks and modules with the empty methods.
        profiler: measures the calls, if it is given and active.
    """

    def __init__(
        self, trainer: Any, module: Any, callbacks: Sequence[Any], bases: tuple[type, type],
        profiler: Any = None,
    ) -> None:  # fmt: skip
        self._profiler = profiler if profiler is not None and profiler.is_active else None
        self._calls: dict[str, tuple[Call, ...]] = {}
        self._late: dict[str, tuple[Call, ...]] = {}
        for name in EVENTS:
            early, late = self._split(name, trainer, module, callbacks, bases[0])
            own = [getattr(module, name)] if defines(module, name, bases[1]) else []
            own = [self._measured(call, module, name) for call in own]
            self._calls[name] = (*early, *own, *late)
            if late:
                self._late[name] = tuple(late)

    def _split(
        self, name: str, trainer: Any, module: Any, callbacks: Sequence[Any], base: type
    ) -> tuple[list[Call], list[Call]]:
        """Calls of callbacks before the module's, and after it."""
        early: list[Call] = []
        late: list[Call] = []
        for callback in callbacks:
            if defines(callback, name, base):
                call = partial(getattr(callback, name), trainer, module)
                call = self._measured(call, callback, name)
                is_late = name in LATE and getattr(callback, "monitors", False)
                (late if is_late else early).append(call)
        return early, late

    def _measured(self, call: Call, listener: Any, name: str) -> Call:
        if self._profiler is None:
            return call
        kind = "Callback" if hasattr(listener, "state_key") else "LightningModule"
        return self._profiler.measured(call, f"[{kind}]{type(listener).__qualname__}.{name}")

    def of(self, name: str) -> tuple[Call, ...]:
        """The calls for an event; loops fetch them once."""
        return self._calls[name]

    def parts(self, name: str) -> tuple[tuple[Call, ...], tuple[Call, ...]]:
        """The calls for an event, and separately those that act on metrics."""
        late = self._late.get(name, ())
        every = self._calls[name]
        return every[: len(every) - len(late)], late

    def tell(self, name: str, *args: Any) -> None:
        """Call all listeners of an event."""
        for call in self._calls[name]:
            call(*args)
