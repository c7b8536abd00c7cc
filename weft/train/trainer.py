"""`Trainer`: fits, validates, tests and predicts with a module; Lightning's API."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from weft.eager.functions.api import manual_seed
from weft.errors import ArgumentError, StateError
from weft.train.arguments import (
    LIMITS,
    callbacks_of,
    check_clipping,
    check_interval,
    epochs_of,
    loggers_of,
    whole,
)
from weft.train.batches import Limit, check_limit
from weft.train.callbacks.early_stopping import EarlyStopping
from weft.train.callbacks.model_checkpoint import ModelCheckpoint
from weft.train.callbacks.progress_bar import ProgressBar
from weft.train.loggers import Logger
from weft.train.module import Module
from weft.train.precision import Precision
from weft.train.runs import Runs, told_apart
from weft.train.strategy import Strategy, strategy_of

__all__ = ["Trainer", "seed_everything"]


def _limit(stage: str) -> Any:
    """The limit of a stage's batches, as a setting of the trainer."""

    def get(trainer: Trainer) -> Limit:
        return trainer.limits[stage]

    def change(trainer: Trainer, value: Limit) -> None:
        check_limit(value, LIMITS[stage])
        trainer.limits[stage] = value

    return property(get, change, doc=f"The constructor's `{LIMITS[stage]}`.")


def _only_given(name: str) -> Any:
    """An argument of the constructor that cannot be changed later."""

    def change(trainer: Trainer, value: Any) -> None:
        raise StateError.here(
            f"Trainer.{name}: expected it as an argument of Trainer(...), which alone reads it, "
            f"got {value!r} later"
        )

    return property(None, change)


class Trainer(Runs):
    """Runs a `Module`: one loop, whose events callbacks, loggers and the module listen to.

    Args:
        accelerator: `"cpu"`.
        strategy: how processes cooperate; `"auto"` is a single process.
        devices: the number of processes.
        num_nodes: the number of machines.
        precision: `"32-true"`, `"bf16-mixed"`, `"16-mixed"`, `"64-true"` or `"bf16-true"`.
        logger: one or several loggers; true for a `CSVLogger`.
        callbacks: one or several.
        fast_dev_run: run this many batches of everything (1 if true), and write nothing.
        max_epochs: 1000 unless something else limits the run; -1 is no limit.
        min_epochs: the minimum before early stopping.
        max_steps: the maximum number of updates; -1 is no limit.
        min_steps: the minimum before early stopping.
        max_time: `"DD:HH:MM:SS"`, a `timedelta`, its arguments as a dictionary, or seconds.
        limit_train_batches: a fraction of an epoch (float) or a number of batches (int).
        limit_val_batches: likewise, per loader.
        limit_test_batches: likewise, per loader.
        limit_predict_batches: likewise, per loader.
        overfit_batches: train on the same first batches in each epoch, and validate on as many of
            each validation loader.
        val_check_interval: validate after a fraction of an epoch (float) or n batches (int).
        check_val_every_n_epoch: validate in every n-th epoch; with `None`, an integer
            `val_check_interval` counts batches of all epochs.
        num_sanity_val_steps: batches of validation before training; -1 is all.
        log_every_n_steps: how often loggers get a step's values; 0 is never.
        enable_checkpointing: whether to add a `ModelCheckpoint` if none is given.
        enable_progress_bar: whether to add a `ProgressBar` if none is given.
        accumulate_grad_batches: accumulate the gradients of this many batches to those of one large
            batch, weighted by batch sizes.
        gradient_clip_val: the maximum norm, or element, of gradients.
        gradient_clip_algorithm: `"norm"` or `"value"`.
        deterministic: whether also half precision and large embedding tables have the same bits
            in a resumed run; see `weft.use_deterministic_algorithms`.
        inference_mode: whether evaluation uses `inference_mode()`, else `no_grad()`.
        default_root_dir: where the default logger and checkpoints are written.
        stop_on_nan: whether a NaN loss ends the run, with a report of its origin.

    Raises:
        ArgumentError: an argument is out of range.
    """

    def __init__(
        self, *, accelerator: str = "auto", strategy: str | Strategy = "auto",
        devices: Any = "auto", num_nodes: int = 1, precision: str | int = "32-true",
        logger: Logger | Sequence[Logger] | bool | None = None, callbacks: Any = None,
        fast_dev_run: int | bool = False, max_epochs: int | None = None,
        min_epochs: int | None = None, max_steps: int = -1, min_steps: int | None = None,
        max_time: Any = None, limit_train_batches: Limit = None, limit_val_batches: Limit = None,
        limit_test_batches: Limit = None, limit_predict_batches: Limit = None,
        overfit_batches: float | int = 0.0, val_check_interval: float | int = 1.0,
        check_val_every_n_epoch: int | None = 1, num_sanity_val_steps: int = 2,
        log_every_n_steps: int = 50, enable_checkpointing: bool = True,
        enable_progress_bar: bool = True, accumulate_grad_batches: int = 1,
        gradient_clip_val: float | None = None, gradient_clip_algorithm: str | None = None,
        deterministic: bool = False, inference_mode: bool = True,
        default_root_dir: str | Path | None = None, stop_on_nan: bool = True,
    ) -> None:  # fmt: skip
        super().__init__()
        self.strategy = strategy_of(strategy, devices, accelerator, num_nodes)
        self.precision = Precision(precision)
        self.fast_dev_run = whole("fast_dev_run", fast_dev_run, 0)
        self.max_steps = whole("max_steps", max_steps, -1)
        epochs = None if max_epochs is None else whole("max_epochs", max_epochs, -1)
        self.max_epochs = epochs_of(epochs, self.max_steps, max_time)
        self.min_epochs = None if min_epochs is None else whole("min_epochs", min_epochs, 0)
        self.min_steps = None if min_steps is None else whole("min_steps", min_steps, 0)
        self.limits: dict[str, Limit] = {
            "fit": limit_train_batches, "validate": limit_val_batches,
            "test": limit_test_batches, "predict": limit_predict_batches,
        }  # fmt: skip
        for name, limit in self.limits.items():
            check_limit(limit, LIMITS[name])
        check_limit(overfit_batches, "overfit_batches")
        self.overfit_batches = overfit_batches
        self.val_check_interval = val_check_interval
        self.check_val_every_n_epoch = check_val_every_n_epoch
        self.num_sanity_val_steps = whole("num_sanity_val_steps", num_sanity_val_steps, -1)
        self.log_every_n_steps = whole("log_every_n_steps", log_every_n_steps, 0)
        self.accumulate_grad_batches = whole("accumulate_grad_batches", accumulate_grad_batches, 1)
        self.gradient_clip_val = gradient_clip_val
        self.gradient_clip_algorithm = gradient_clip_algorithm
        self.deterministic, self.inference_mode = deterministic, inference_mode
        self.default_root_dir = str(default_root_dir or Path.cwd())
        self.stops_on_nan = stop_on_nan
        check_clipping(gradient_clip_val, gradient_clip_algorithm)
        check_interval(val_check_interval, check_val_every_n_epoch)
        self._create_listeners(
            logger, callbacks, max_time, enable_checkpointing, enable_progress_bar
        )

    def _create_listeners(
        self, logger: Any, callbacks: Any, max_time: Any, checkpointing: bool, progress_bar: bool
    ) -> None:
        """Create the loggers and the callbacks."""
        if self.fast_dev_run:
            self._make_short()
            logger, checkpointing = False, False
        self.loggers = loggers_of(logger, self.default_root_dir)
        bar = progress_bar and self.strategy.is_global_zero
        self.callbacks = callbacks_of(callbacks, max_time, checkpointing, bar)

    def _make_short(self) -> None:
        """Run `fast_dev_run` batches of everything, once."""
        count = self.fast_dev_run
        self.limits = dict.fromkeys(self.limits, count)
        self.max_steps, self.max_epochs, self.num_sanity_val_steps = count, 1, 0
        self.val_check_interval = 1.0

    # -- settings

    limit_train_batches = _limit("fit")
    limit_val_batches = _limit("validate")
    limit_test_batches = _limit("test")
    limit_predict_batches = _limit("predict")
    enable_checkpointing = _only_given("enable_checkpointing")
    enable_progress_bar = _only_given("enable_progress_bar")
    max_time = _only_given("max_time")
    accelerator = _only_given("accelerator")
    devices = _only_given("devices")
    num_nodes = _only_given("num_nodes")

    @property
    def stop_on_nan(self) -> bool:
        """Whether a NaN loss ends the run."""
        return self.stops_on_nan

    @stop_on_nan.setter
    def stop_on_nan(self, value: bool) -> None:
        self.stops_on_nan = value

    # -- properties for callbacks and modules

    def logs_at(self, step: int) -> bool:
        """Whether loggers get the values of this update, counted from 1."""
        every = self.log_every_n_steps
        return every > 0 and step % every == 0

    @property
    def global_step(self) -> int:
        """The number of updates so far."""
        return self.progress.global_step

    @property
    def current_epoch(self) -> int:
        """The index of the epoch."""
        return self.progress.epoch

    @property
    def optimizers(self) -> list[Any]:
        """The optimizers."""
        return self.optimization.optimizers

    @property
    def schedules(self) -> list[Any]:
        """The schedulers, with their intervals."""
        return self.optimization.schedules

    @property
    def logger(self) -> Any:
        """The first logger, or `None`."""
        return self.loggers[0] if self.loggers else None

    @property
    def model(self) -> Any:
        """The running module, or the last one; also `lightning_module`."""
        return self.module

    lightning_module = model

    @property
    def training(self) -> bool:
        """Whether training batches are running: not between runs, and not during validation."""
        return self._runs("fit") and not (self.validating or self.sanity_checking)

    @property
    def testing(self) -> bool:
        """Whether a test is running."""
        return self._runs("test")

    @property
    def predicting(self) -> bool:
        """Whether predictions are running."""
        return self._runs("predict")

    @property
    def interrupted(self) -> bool:
        """Whether Ctrl-C was pressed in this run."""
        return self.interruption.came

    @property
    def global_rank(self) -> int:
        """The rank of this process."""
        return self.strategy.rank

    @property
    def world_size(self) -> int:
        """The number of processes."""
        return self.strategy.world_size

    @property
    def is_global_zero(self) -> bool:
        """Whether this process writes files and prints."""
        return self.strategy.is_global_zero

    def print(self, *args: Any, **kwargs: Any) -> None:
        """`print`, on rank 0 only."""
        if self.is_global_zero:
            print(*args, **kwargs)

    @property
    def lr_scheduler_configs(self) -> list[Any]:
        """The schedulers, with their intervals."""
        return self.schedules

    @property
    def checkpoint_callbacks(self) -> list[Any]:
        """Every `ModelCheckpoint`."""
        return [c for c in self.callbacks if isinstance(c, ModelCheckpoint)]

    @property
    def early_stopping_callbacks(self) -> list[Any]:
        """Every `EarlyStopping`."""
        return [c for c in self.callbacks if isinstance(c, EarlyStopping)]

    @property
    def early_stopping_callback(self) -> Any:
        """The first `EarlyStopping`, or `None`."""
        return next(iter(self.early_stopping_callbacks), None)

    @property
    def progress_bar_callback(self) -> Any:
        """The `ProgressBar`, or `None`."""
        return next((c for c in self.callbacks if isinstance(c, ProgressBar)), None)

    @property
    def train_dataloader(self) -> Any:
        """The training loader; `None` before the first `fit`."""
        return None if self.fit_loop is None else self.fit_loop.batches.loader

    @property
    def is_last_batch(self) -> bool:
        """Whether the epoch's last batch is running."""
        return self.fit_loop is not None and self.fit_loop.is_last_batch

    @property
    def num_training_batches(self) -> float:
        """Batches per epoch; infinite if the loader has no length."""
        return 0 if self.fit_loop is None else self.fit_loop.batches.most

    @property
    def estimated_stepping_batches(self) -> float:
        """The number of updates of the whole run, for schedules."""
        windows = -(-self._train_count // self.accumulate_grad_batches)
        total = float("inf") if self.max_epochs == -1 else self.max_epochs * windows
        found = total if self.max_steps == -1 else min(total, self.max_steps)
        return found if found == float("inf") else int(found)

    def manual_backward(self, loss: Any, **options: Any) -> None:
        """The backward pass of manual optimization; see `Module.manual_backward`."""
        if self._step is None:
            raise StateError.here("manual_backward: expected a call inside of fit()")
        self._step.backward(loss, **options)

    # -- runs

    def fit(
        self, model: Module, train_dataloaders: Any = None, val_dataloaders: Any = None,
        datamodule: Any = None, ckpt_path: Any = None,
    ) -> None:  # fmt: skip
        """Train a module.

        Args:
            train_dataloaders: yields batches; by default the module's or the data module's.
            val_dataloaders: one loader, or a list of several.
            ckpt_path: the checkpoint to resume from: a file, the folder of a `ModelCheckpoint`,
                `"last"` or `"best"`.

        Raises:
            NonFiniteLossError: a loss is NaN.
            DataError: the loader is empty, or there is no such checkpoint.
        """
        train_dataloaders, datamodule = told_apart(train_dataloaders, datamodule)
        self._attach(model, datamodule, "fit")
        self._guarded(lambda: self._fit(train_dataloaders, val_dataloaders, ckpt_path))

    def validate(
        self, model: Module | None = None, dataloaders: Any = None, ckpt_path: Any = None,
        datamodule: Any = None,
    ) -> list[dict[str, Any]]:  # fmt: skip
        """Run validation; returns a dictionary of metrics for each loader."""
        return self._evaluate("validate", model, dataloaders, ckpt_path, datamodule)

    def test(
        self, model: Module | None = None, dataloaders: Any = None, ckpt_path: Any = None,
        datamodule: Any = None,
    ) -> list[dict[str, Any]]:  # fmt: skip
        """Run a test; returns a dictionary of metrics for each loader."""
        return self._evaluate("test", model, dataloaders, ckpt_path, datamodule)

    def predict(
        self, model: Module | None = None, dataloaders: Any = None, ckpt_path: Any = None,
        datamodule: Any = None,
    ) -> list[Any]:  # fmt: skip
        """The results of `predict_step` for all batches; for several loaders, a list for each."""
        found = self._evaluate("predict", model, dataloaders, ckpt_path, datamodule)
        return found[0] if len(found) == 1 else found


def seed_everything(seed: int) -> int:
    """Seed all random number generators: Weft's, NumPy's, Python's.

    Args:
        seed: an integer.

    Raises:
        ArgumentError: the seed is not an integer.
    """
    given: Any = seed
    if isinstance(given, bool) or not isinstance(given, int | np.integer):
        raise ArgumentError.here(f"seed_everything: expected seed as an integer, got {given!r}")
    seed = int(given)
    manual_seed(seed)
    np.random.seed(seed % 2**32)
    random.seed(seed)
    return seed
