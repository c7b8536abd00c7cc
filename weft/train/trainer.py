"""`Trainer`: fits, validates, tests and predicts with a module; Lightning's API."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from weft.errors import StateError
from weft.train.arguments import (
    LIMITS,
    callbacks_of,
    check_bare,
    check_clipping,
    check_interval,
    check_unused,
    epochs_of,
    loggers_of,
    print_figures,
)
from weft.train.attributes import Attributes
from weft.train.batches import Limit, check_limit, whole
from weft.train.callbacks.callback import Callback
from weft.train.loggers import Logger
from weft.train.module import Module
from weft.train.precision import Precision
from weft.train.profilers import Profiler, profiler_of
from weft.train.runs import told_apart
from weft.train.strategy import Strategy, strategy_of

__all__ = ["Trainer"]


class Trainer(Attributes):
    """Runs a `Module`: one loop, whose events callbacks, loggers and the module listen to.

    Args:
        accelerator: `"cpu"` or `"auto"`.
        strategy: how processes cooperate; any of Lightning's names is a single process.
        devices: the number of processes: 1 or `"auto"`.
        num_nodes: the number of machines.
        precision: `"32-true"`, `"bf16-mixed"`, `"16-mixed"`, `"64-true"` or `"bf16-true"`.
        logger: one or several loggers; true, the default, for a `TensorBoardLogger` if TensorBoard
            is installed, else a `CSVLogger`.
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
        val_check_interval: validate after a fraction of an epoch (float), n batches (int), or a
            time, as for `max_time`.
        check_val_every_n_epoch: validate in every n-th epoch; with `None`, an integer
            `val_check_interval` counts batches of all epochs.
        num_sanity_val_steps: batches of validation before training; -1 is all.
        log_every_n_steps: how often loggers get a step's values; 0 is never.
        enable_checkpointing: whether to add a `ModelCheckpoint` if none is given.
        enable_progress_bar: whether to add a `ProgressBar` if none is given.
        enable_model_summary: whether to print a `ModelSummary` before training; by default with a
            progress bar.
        accumulate_grad_batches: accumulate the gradients of this many batches to those of one large
            batch, weighted by batch sizes.
        gradient_clip_val: the maximum norm, or element, of gradients.
        gradient_clip_algorithm: `"norm"` or `"value"`.
        deterministic: whether also half precision and large embedding tables have the same bits
            in a resumed run; see `weft.use_deterministic_algorithms`.
        inference_mode: whether evaluation uses `inference_mode()`, else `no_grad()`.
        benchmark: taken for programs that give it: kernels are not chosen by timing them.
        use_distributed_sampler: taken for programs that give it: there is one process.
        profiler: `"simple"`, `"advanced"` or a `Profiler`; measures hooks and steps.
        detect_anomaly: whether backward passes report where NaN comes from.
        barebones: run without loggers, checkpoints, bars, summaries and the sanity check.
        plugins: none: `None` or an empty list.
        sync_batchnorm: taken for programs that give it: there is one process.
        reload_dataloaders_every_n_epochs: ask the data module or module for loaders again.
        default_root_dir: where the default logger and checkpoints are written.
        enable_autolog_hparams: whether loggers get hyperparameters.
        model_registry: none: `None`.
        stop_on_nan: whether a NaN loss ends the run, with a report of its origin.

    Raises:
        ArgumentError: an argument is out of range.
    """

    def __init__(
        self, *, accelerator: str = "auto", strategy: str | Strategy = "auto",
        devices: Any = "auto", num_nodes: int = 1, precision: str | int | None = None,
        logger: Logger | Sequence[Logger] | bool | None = None,
        callbacks: Callback | list[Callback] | None = None, fast_dev_run: int | bool = False,
        max_epochs: int | None = None, min_epochs: int | None = None, max_steps: int = -1,
        min_steps: int | None = None, max_time: Any = None,
        limit_train_batches: Limit = None, limit_val_batches: Limit = None,
        limit_test_batches: Limit = None, limit_predict_batches: Limit = None,
        overfit_batches: float | int = 0.0, val_check_interval: Any = None,
        check_val_every_n_epoch: int | None = 1, num_sanity_val_steps: int | None = None,
        log_every_n_steps: int | None = None, enable_checkpointing: bool | None = None,
        enable_progress_bar: bool | None = None, enable_model_summary: bool | None = None,
        accumulate_grad_batches: int = 1, gradient_clip_val: float | None = None,
        gradient_clip_algorithm: str | None = None, deterministic: bool | str | None = None,
        benchmark: bool | None = None, inference_mode: bool = True,
        use_distributed_sampler: bool = True, profiler: Profiler | str | None = None,
        detect_anomaly: bool = False, barebones: bool = False, plugins: Any = None,
        sync_batchnorm: bool = False, reload_dataloaders_every_n_epochs: int = 0,
        default_root_dir: str | Path | None = None, enable_autolog_hparams: bool = True,
        model_registry: str | None = None, stop_on_nan: bool = True,
    ) -> None:  # fmt: skip
        super().__init__()
        check_unused(plugins, model_registry)
        if barebones:
            check_bare(logger, enable_checkpointing, enable_progress_bar, profiler)
            logger = enable_checkpointing = enable_progress_bar = False
            num_sanity_val_steps = log_every_n_steps = 0
        self.barebones = barebones
        self.strategy = strategy_of(strategy, devices, accelerator, num_nodes)
        self.precision = Precision("32-true" if precision is None else precision)
        self.profiler = profiler_of(profiler)
        self.detect_anomaly, self.enable_autolog_hparams = detect_anomaly, enable_autolog_hparams
        self.reload_dataloaders_every_n_epochs = whole(
            "reload_dataloaders_every_n_epochs", reload_dataloaders_every_n_epochs, 0
        )
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
        self.val_check_interval = 1.0 if val_check_interval is None else val_check_interval
        self.check_val_every_n_epoch = check_val_every_n_epoch
        sanity = 2 if num_sanity_val_steps is None else num_sanity_val_steps
        self.num_sanity_val_steps = whole("num_sanity_val_steps", sanity, -1)
        every = 50 if log_every_n_steps is None else log_every_n_steps
        self.log_every_n_steps = whole("log_every_n_steps", every, 0)
        self.accumulate_grad_batches = whole("accumulate_grad_batches", accumulate_grad_batches, 1)
        self.gradient_clip_val = gradient_clip_val
        self.gradient_clip_algorithm = gradient_clip_algorithm
        self.deterministic, self.inference_mode = bool(deterministic), inference_mode
        self.default_root_dir = str(default_root_dir or Path.cwd())
        self.stops_on_nan = stop_on_nan
        check_clipping(gradient_clip_val, gradient_clip_algorithm)
        check_interval(self.val_check_interval, check_val_every_n_epoch)
        bar = enable_progress_bar is not False
        summary = bar if enable_model_summary is None else enable_model_summary
        self._create_listeners(
            logger, callbacks, max_time, enable_checkpointing is not False, bar, summary
        )

    def _create_listeners(
        self, logger: Any, callbacks: Any, max_time: Any, checkpointing: bool, progress_bar: bool,
        summary: bool,
    ) -> None:  # fmt: skip
        """Create the loggers and the callbacks."""
        if self.fast_dev_run:
            self._make_short()
            logger = checkpointing = False
        self.loggers = loggers_of(logger, self.default_root_dir)
        shows = self.strategy.is_global_zero
        self.callbacks = callbacks_of(
            callbacks, max_time, checkpointing, progress_bar and shows, summary and shows
        )

    def _make_short(self) -> None:
        """Run `fast_dev_run` batches of everything, once."""
        count = self.fast_dev_run
        self.limits = dict.fromkeys(self.limits, count)
        self.max_steps, self.max_epochs, self.num_sanity_val_steps = count, 1, 0
        self.val_check_interval = 1.0

    def manual_backward(self, loss: Any, *args: Any, **options: Any) -> None:
        """The backward pass of manual optimization; see `Module.manual_backward`."""
        if self._step is None:
            raise StateError.here("manual_backward: expected a call inside of fit()")
        self._step.backward(loss, *args, **options)

    # -- runs

    def fit(
        self, model: Module, train_dataloaders: Any = None, val_dataloaders: Any = None,
        datamodule: Any = None, ckpt_path: Any = None, weights_only: bool | None = None,
    ) -> None:  # fmt: skip
        """Train a module.

        Args:
            train_dataloaders: yields batches; by default the module's or the data module's. Several
                in a list, a dictionary or a `CombinedLoader` give one batch each.
            val_dataloaders: one loader, or several in a list, a dictionary or a `CombinedLoader`.
            datamodule: has the loaders; it may be given in place of the training loader.
            ckpt_path: the checkpoint to resume from: a file, the folder of a `ModelCheckpoint`,
                `"last"` (if there is none, the run begins anew) or `"best"`.
            weights_only: false imports the classes of objects that hooks put in the checkpoint.

        Raises:
            NonFiniteLossError: a loss is NaN.
            DataError: the loader is empty, or there is no such checkpoint.
        """
        train_dataloaders, datamodule = told_apart(train_dataloaders, datamodule)
        self._attach(model, datamodule, "fit")
        self.ckpt_path, self._weights_only = None, weights_only
        self._guarded(lambda: self._fit(train_dataloaders, val_dataloaders, ckpt_path))

    def validate(
        self, model: Module | None = None, dataloaders: Any = None, ckpt_path: Any = None,
        verbose: bool = True, datamodule: Any = None, weights_only: bool | None = None,
    ) -> list[dict[str, Any]]:  # fmt: skip
        """Run validation; returns a dictionary of metrics for each loader.

        Args:
            model: by default the last one, with the weights of the best checkpoint of its run, if
                there is one.
            dataloaders: one loader, or several; by default the data module's or the module's.
            ckpt_path: the checkpoint whose weights are used; as for `fit`.
            verbose: whether the metrics are printed, if there is a progress bar.
            datamodule: has the loaders.
            weights_only: false imports the classes of objects that hooks put in the checkpoint.
        """
        self._weights_only = weights_only
        found = self._evaluate("validate", model, dataloaders, ckpt_path, datamodule)
        self._print(found, "validate", verbose)
        return found

    def test(
        self, model: Module | None = None, dataloaders: Any = None, ckpt_path: Any = None,
        verbose: bool = True, datamodule: Any = None, weights_only: bool | None = None,
    ) -> list[dict[str, Any]]:  # fmt: skip
        """Run a test; arguments and result as for `validate`."""
        self._weights_only = weights_only
        found = self._evaluate("test", model, dataloaders, ckpt_path, datamodule)
        self._print(found, "test", verbose)
        return found

    def predict(
        self, model: Module | None = None, dataloaders: Any = None, datamodule: Any = None,
        return_predictions: bool | None = None, ckpt_path: Any = None,
        weights_only: bool | None = None,
    ) -> Any:  # fmt: skip
        """The results of `predict_step` for all batches; for several loaders, a list for each.

        Args:
            return_predictions: false returns `None`, and keeps no results.
        """
        keeps, self._weights_only = return_predictions is not False, weights_only
        found = self._evaluate("predict", model, dataloaders, ckpt_path, datamodule, keeps)
        if not keeps:
            return None
        return found[0] if len(found) == 1 else found

    def _print(self, found: list[dict[str, Any]], stage: str, verbose: bool) -> None:
        if verbose and self.progress_bar_callback is not None and self.is_global_zero:
            print_figures(found, stage)
