"""Checks and defaults of a trainer's arguments."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterable, Mapping
from datetime import timedelta
from typing import Any, Final

from weft.errors import ArgumentError
from weft.train.batches import is_number, whole
from weft.train.callbacks.callback import Callback
from weft.train.callbacks.model_checkpoint import Checkpoint, ModelCheckpoint
from weft.train.callbacks.model_summary import ModelSummary
from weft.train.callbacks.progress_bar import ProgressBar
from weft.train.callbacks.timer import Timer
from weft.train.loggers import CSVLogger, Logger, TensorBoardLogger
from weft.train.progress import seconds_of

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
    if isinstance(interval, str | timedelta | Mapping):
        seconds_of(interval)
        if every_n_epoch is not None:
            whole("check_val_every_n_epoch", every_n_epoch, 1)
        return
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
        known = any([importlib.util.find_spec(n) for n in ("tensorboard", "tensorboardX")])
        return [TensorBoardLogger(folder) if known else CSVLogger(folder)]
    if given is False:
        return []
    several: Any = given  # of a class of its own, as configurations have
    return [*several] if isinstance(given, Iterable) else [given]


def callbacks_of(
    given: Any, max_time: Any, checkpoints: bool, bar: bool, summary: bool
) -> list[Any]:
    """Callbacks as a list, with the default ones unless disabled; checkpoint callbacks last."""
    found = [] if given is None else [given] if isinstance(given, Callback) else list(given)
    found += [] if max_time is None else [Timer(max_time)]
    wanted = ((ProgressBar, bar), (ModelSummary, summary), (ModelCheckpoint, checkpoints))
    for kind, is_wanted in wanted:
        if is_wanted and not any(isinstance(c, kind) for c in found):
            found.append(kind())
    return in_order(found)


def in_order(callbacks: list[Any]) -> list[Any]:
    """Callbacks: those that change the run first, and those that write checkpoints last."""
    return sorted(callbacks, key=lambda c: isinstance(c, Checkpoint))


def check_unused(plugins: Any, model_registry: Any) -> None:
    """Refuse arguments that nothing here could act on.

    Raises:
        ArgumentError: one is given.
    """
    if plugins:
        raise ArgumentError.here(
            f"Trainer: expected plugins=None, got {plugins!r}; precision and strategy have "
            f"arguments of their own"
        )
    if model_registry is not None:
        raise ArgumentError.here(
            f"Trainer: expected model_registry=None, got {model_registry!r}: there is no registry"
        )


def check_bare(logger: Any, checkpoints: Any, bar: Any, profiler: Any) -> None:
    """Refuse what `barebones=True` leaves out.

    Raises:
        ArgumentError: some of it is asked for.
    """
    told = {"logger": logger, "enable_checkpointing": checkpoints, "enable_progress_bar": bar}
    odd = [name for name, value in {**told, "profiler": profiler}.items() if value]
    if odd:
        raise ArgumentError.here(f"Trainer: barebones=True leaves out what is given: {odd}")


def print_figures(found: list[dict[str, Any]], stage: str) -> None:
    """Print the metrics of an evaluation as a table, one for each loader."""
    for number, figures in enumerate(found):
        names = {name: str(value) for name, value in figures.items()}
        width = max(map(len, names), default=0)
        print(f"{stage} metrics" + (f", loader {number}" if len(found) > 1 else ""))
        for name, value in names.items():
            print(f"  {name:<{width}}  {value}")
