"""Checks and defaults of a trainer's arguments."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from weft.errors import ArgumentError
from weft.train.batches import is_number
from weft.train.callbacks.callback import Callback
from weft.train.callbacks.model_checkpoint import ModelCheckpoint
from weft.train.callbacks.progress_bar import ProgressBar
from weft.train.callbacks.timer import Timer
from weft.train.loggers import CSVLogger, Logger

LIMITS: Final = {
    "fit": "limit_train_batches", "validate": "limit_val_batches",
    "test": "limit_test_batches", "predict": "limit_predict_batches",
}  # fmt: skip
"""The argument that limits each stage."""


def epochs_of(given: int | None, max_steps: int, max_time: Any) -> int:
    """The maximum number of epochs; -1 is no limit."""
    if given is not None:
        return given
    return 1000 if max_steps == -1 and max_time is None else -1


def whole(name: str, value: Any, least: int) -> int:
    """A trainer's argument that is an integer; whole floats are converted.

    Raises:
        ArgumentError: it is none, or less than `least`.
    """
    number = isinstance(value, int | np.integer) or (
        isinstance(value, float | np.floating) and float(value).is_integer()
    )
    if not number or value < least:
        raise ArgumentError.here(
            f"Trainer: expected {name} as an integer from {least} on, got {value!r}"
        )
    return int(value)


def check_clipping(gradient_clip_val: Any, gradient_clip_algorithm: str | None) -> None:
    """Check the arguments of gradient clipping.

    Raises:
        ArgumentError: an argument is out of range.
    """
    if gradient_clip_val is not None and not is_number(gradient_clip_val):
        raise ArgumentError.here(
            f"Trainer: expected gradient_clip_val as a number, got {gradient_clip_val!r}"
        )
    if gradient_clip_algorithm not in (None, "norm", "value"):
        raise ArgumentError.here(
            "Trainer: expected gradient_clip_algorithm 'norm' or 'value', got "
            f"{gradient_clip_algorithm!r}"
        )


def check_interval(interval: float | int, every_n_epoch: int | None) -> None:
    """Check the arguments of validation.

    Raises:
        ArgumentError: an argument is out of range.
    """
    if not is_number(interval) or interval <= 0 or (isinstance(interval, float) and interval > 1):
        raise ArgumentError.here(
            "Trainer: expected val_check_interval as a part from 0.0 to 1.0 or a number of "
            f"batches, got {interval!r}"
        )
    if every_n_epoch is not None:
        whole("check_val_every_n_epoch", every_n_epoch, 1)
    elif not isinstance(interval, int):
        raise ArgumentError.here(
            "Trainer: expected an integer val_check_interval with check_val_every_n_epoch=None,"
            f" got {interval!r}"
        )


def loggers_of(given: Any, folder: str) -> list[Logger]:
    """Loggers as a list: empty for false, one that writes to `folder` for true or by default."""
    if given is None or given is True:
        return [CSVLogger(folder)]
    if given is False:
        return []
    return list(given) if isinstance(given, list | tuple) else [given]


def callbacks_of(given: Any, max_time: Any, checkpoints: bool, bar: bool) -> list[Any]:
    """Callbacks as a list, with the default ones unless disabled; checkpoint callbacks last."""
    found = [] if given is None else [given] if isinstance(given, Callback) else list(given)
    found += [] if max_time is None else [Timer(max_time)]
    for kind, wanted in ((ProgressBar, bar), (ModelCheckpoint, checkpoints)):
        if wanted and not any(isinstance(c, kind) for c in found):
            found.append(kind())
    return in_order(found)


def in_order(callbacks: list[Any]) -> list[Any]:
    """Callbacks, with those that write checkpoints moved to the end."""
    return sorted(callbacks, key=lambda c: isinstance(c, ModelCheckpoint))
