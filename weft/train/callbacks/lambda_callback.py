"""`LambdaCallback`: a callback made of functions."""

from __future__ import annotations

from typing import Any

from weft.errors import ArgumentError
from weft.train.callbacks.callback import Callback


class LambdaCallback(Callback):
    """Calls functions at events: `LambdaCallback(on_train_start=lambda trainer, module: ...)`.

    Args:
        hooks: functions by the names of a callback's methods.

    Raises:
        ArgumentError: a name is no method of a callback.
    """

    def __init__(self, **hooks: Any) -> None:
        for name, function in hooks.items():
            if not callable(getattr(Callback, name, None)):
                raise ArgumentError.here(
                    f"LambdaCallback: expected names of a callback's methods, got {name!r}"
                )
            if function is not None:
                setattr(self, name, function)
