"""`Trainer`: runs a module: fit, validate, test, predict; with Lightning's names."""

from __future__ import annotations

import random
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from weft import config
from weft.checkpoint import RandomState
from weft.eager.functions.api import manual_seed, save
from weft.errors import ArgumentError, StateError
from weft.ops.base import at_user_line
from weft.train.batches import Batches, Limit, as_loaders, count_of
from weft.train.callbacks.callback import Callback
from weft.train.callbacks.model_checkpoint import ModelCheckpoint
from weft.train.callbacks.progress_bar import ProgressBar
from weft.train.callbacks.timer import Timer
from weft.train.evaluation_loop import EvaluationLoop
from weft.train.events import Events
from weft.train.fit_loop import FitLoop
from weft.train.interruption import Interruption
from weft.train.journal import Journal
from weft.train.loggers import CSVLogger, Logger
from weft.train.module import Module
from weft.train.optimization import Step
from weft.train.optimizers import Optimizers, optimizers_of
from weft.train.precision import Precision
from weft.train.saving import read, restore, restore_weights, snapshot
from weft.train.strategy import Strategy, strategy_of


class Trainer(Journal):
    """Runs a `Module`: one loop, whose events callbacks, loggers and the module listen to.

    Args:
        accelerator: `"cpu"`.
        strategy: processes that take part; `"auto"` is one.
        devices: how many of them.
        num_nodes: how many machines.
        precision: `"32-true"`, `"bf16-mixed"`, `"16-mixed"`, `"64-true"` or `"bf16-true"`.
        logger: loggers, one or several; true for a `CSVLogger`.
        callbacks: listeners, one or several.
        fast_dev_run: run so many batches of everything, 1 if true, and write nothing.
        max_epochs: 1000 unless something else limits the run; -1 is no limit.
        min_epochs: not to stop early before.
        max_steps: updates; -1 is no limit.
        min_steps: not to stop early before.
        max_time: `"DD:HH:MM:SS"`, a `timedelta`, its arguments as a dictionary, or seconds.
        limit_train_batches: a part of an epoch (float) or a number of batches (int).
        limit_val_batches: as of `limit_train_batches`, of each loader.
        limit_test_batches: as of `limit_train_batches`, of each loader.
        limit_predict_batches: as of `limit_train_batches`, of each loader.
        overfit_batches: train and validate on so many batches, always the same.
        val_check_interval: validate after a part of an epoch (float) or so many batches (int).
        check_val_every_n_epoch: validate in every so many epochs; with `None` an integer
            `val_check_interval` counts batches of all epochs.
        num_sanity_val_steps: batches that are validated before training; -1 is all.
        log_every_n_steps: how often loggers get a step's values.
        enable_checkpointing: whether there is a `ModelCheckpoint` if none is given.
        enable_progress_bar: whether there is a `ProgressBar` if none is given.
        accumulate_grad_batches: batches whose gradients are added up to those of one large batch,
            weighted by how many items each has.
        gradient_clip_val: the largest norm, or element, of gradients.
        gradient_clip_algorithm: `"norm"` or `"value"`.
        deterministic: whether a run that goes on gives the bits of one that was not interrupted;
            see `weft.use_deterministic_algorithms`.
        inference_mode: whether evaluation is in `inference_mode()`, else in `no_grad()`.
        default_root_dir: where the default logger and checkpoints write to.
        stop_on_nan: whether a NaN loss ends the run, with a report where it comes from.

    Raises:
        ArgumentError: an argument out of its range.
    """

    def __init__(
        self,
        *,
        accelerator: str = "auto",
        strategy: str | Strategy = "auto",
        devices: Any = "auto",
        num_nodes: int = 1,
        precision: str | int = "32-true",
        logger: Logger | Sequence[Logger] | bool | None = None,
        callbacks: Any = None,
        fast_dev_run: int | bool = False,
        max_epochs: int | None = None,
        min_epochs: int | None = None,
        max_steps: int = -1,
        min_steps: int | None = None,
        max_time: Any = None,
        limit_train_batches: Limit = None,
        limit_val_batches: Limit = None,
        limit_test_batches: Limit = None,
        limit_predict_batches: Limit = None,
        overfit_batches: float | int = 0.0,
        val_check_interval: float | int = 1.0,
        check_val_every_n_epoch: int | None = 1,
        num_sanity_val_steps: int = 2,
        log_every_n_steps: int = 50,
        enable_checkpointing: bool = True,
        enable_progress_bar: bool = True,
        accumulate_grad_batches: int = 1,
        gradient_clip_val: float | None = None,
        gradient_clip_algorithm: str | None = None,
        deterministic: bool = False,
        inference_mode: bool = True,
        default_root_dir: str | Path | None = None,
        stop_on_nan: bool = True,
    ) -> None:
        super().__init__()
        self.strategy = strategy_of(strategy, devices, accelerator, num_nodes)
        self.precision = Precision(precision)
        self.fast_dev_run = int(fast_dev_run)
        self.max_epochs = _epochs(max_epochs, max_steps, max_time)
        self.min_epochs, self.max_steps, self.min_steps = min_epochs, max_steps, min_steps
        self.limits: dict[str, Limit] = {
            "fit": limit_train_batches, "validate": limit_val_batches,
            "test": limit_test_batches, "predict": limit_predict_batches,
        }  # fmt: skip
        self.overfit_batches = overfit_batches
        self.val_check_interval = val_check_interval
        self.check_val_every_n_epoch = check_val_every_n_epoch
        self.num_sanity_val_steps = num_sanity_val_steps
        self.log_every_n_steps = max(log_every_n_steps, 1)
        self.accumulate_grad_batches = accumulate_grad_batches
        self.gradient_clip_val = gradient_clip_val
        self.gradient_clip_algorithm = gradient_clip_algorithm
        self.deterministic, self.inference_mode = deterministic, inference_mode
        self.default_root_dir = str(default_root_dir or Path.cwd())
        self.stops_on_nan = stop_on_nan
        self.should_stop = self.sanity_checking = self.validating = False
        self.interruption = Interruption()
        self.optimization = Optimizers()
        self.module: Any = None
        self.datamodule: Any = None
        self.fit_loop: Any = None
        self.stage = ""
        self._step: Step | None = None
        self._check()
        if self.fast_dev_run:
            self._make_short()
            logger, enable_checkpointing = False, False
        self.loggers = self._loggers(logger)
        self.callbacks = self._callbacks(callbacks, max_time)
        self._add_defaults(enable_checkpointing, enable_progress_bar)

    # -- arguments

    def _check(self) -> None:
        if self.accumulate_grad_batches < 1:
            raise ArgumentError(
                "Trainer: expected accumulate_grad_batches from 1 on, got "
                f"{self.accumulate_grad_batches}{at_user_line()}"
            )
        if self.gradient_clip_algorithm not in (None, "norm", "value"):
            raise ArgumentError(
                "Trainer: expected gradient_clip_algorithm 'norm' or 'value', got "
                f"{self.gradient_clip_algorithm!r}{at_user_line()}"
            )
        interval = self.val_check_interval
        if interval <= 0 or (isinstance(interval, float) and interval > 1):
            raise ArgumentError(
                "Trainer: expected val_check_interval as a part from 0.0 to 1.0 or a number of "
                f"batches, got {interval!r}{at_user_line()}"
            )
        if self.check_val_every_n_epoch is None and not isinstance(interval, int):
            raise ArgumentError(
                "Trainer: expected an integer val_check_interval with check_val_every_n_epoch=None,"
                f" got {interval!r}{at_user_line()}"
            )

    def _make_short(self) -> None:
        count = self.fast_dev_run
        self.limits = dict.fromkeys(self.limits, count)
        self.max_steps, self.max_epochs, self.num_sanity_val_steps = count, 1, 0
        self.val_check_interval = 1.0

    def _loggers(self, given: Any) -> list[Logger]:
        if given is None or given is True:
            return [CSVLogger(self.default_root_dir)]
        if given is False:
            return []
        return list(given) if isinstance(given, list | tuple) else [given]

    def _callbacks(self, given: Any, max_time: Any) -> list[Any]:
        found = [] if given is None else [given] if isinstance(given, Callback) else list(given)
        return found if max_time is None else [*found, Timer(max_time)]

    def _add_defaults(self, checkpoints: bool, bar: bool) -> None:
        """Add what is there unless told otherwise; checkpoints are made last."""
        if bar and self.strategy.is_global_zero and not self._has(ProgressBar):
            self.callbacks.append(ProgressBar())
        if checkpoints and not self._has(ModelCheckpoint):
            self.callbacks.append(ModelCheckpoint())
        self.callbacks.sort(key=lambda c: isinstance(c, ModelCheckpoint))

    def _has(self, kind: type) -> bool:
        return any(isinstance(c, kind) for c in self.callbacks)

    # -- what callbacks and modules ask for

    @property
    def global_step(self) -> int:
        """How many updates were made."""
        return self.progress.global_step

    @property
    def current_epoch(self) -> int:
        """The number of the epoch, from 0."""
        return self.progress.epoch

    @property
    def optimizers(self) -> list[Any]:
        """The optimizers."""
        return self.optimization.optimizers

    @property
    def schedules(self) -> list[Any]:
        """The schedulers, with when they step."""
        return self.optimization.schedules

    @property
    def logger(self) -> Any:
        """The first logger; `None` without one."""
        return self.loggers[0] if self.loggers else None

    @property
    def log_dir(self) -> str | None:
        """The folder of the first logger that has one."""
        return next((x.log_dir for x in self.loggers if x.log_dir), None)

    @property
    def is_last_batch(self) -> bool:
        """Whether the epoch's last batch is being trained on."""
        return self.fit_loop is not None and self.fit_loop.is_last_batch

    @property
    def num_training_batches(self) -> float:
        """Batches of an epoch; infinite where the loader has no length."""
        return 0 if self.fit_loop is None else self.fit_loop.batches.most

    @property
    def estimated_stepping_batches(self) -> float:
        """Updates that the whole run will make; for schedules."""
        windows = -(-self._train_count // self.accumulate_grad_batches)
        total = float("inf") if self.max_epochs == -1 else self.max_epochs * windows
        found = total if self.max_steps == -1 else min(total, self.max_steps)
        return found if found == float("inf") else int(found)

    @property
    def checkpoint_callback(self) -> Any:
        """The first `ModelCheckpoint`; `None` without one."""
        return next((c for c in self.callbacks if isinstance(c, ModelCheckpoint)), None)

    def manual_backward(self, loss: Any, **options: Any) -> None:
        """The backward pass of manual optimization; see `Module.manual_backward`."""
        if self._step is None:
            raise StateError(f"manual_backward: expected a call inside of fit(){at_user_line()}")
        self._step.backward(loss, **options)

    # -- runs

    def fit(
        self,
        model: Module,
        train_dataloaders: Any = None,
        val_dataloaders: Any = None,
        datamodule: Any = None,
        ckpt_path: Any = None,
    ) -> None:
        """Train a module.

        Args:
            train_dataloaders: gives batches; else the module's or the data module's.
            val_dataloaders: one, or a list of several.
            ckpt_path: where to go on from: a file, the folder of a `ModelCheckpoint`, `"last"` or
                `"best"`.

        Raises:
            NonFiniteLossError: a loss is NaN.
            DataError: a loader without batches, or no such checkpoint.
        """
        self._attach(model, datamodule, "fit")
        self._guarded(lambda: self._fit(train_dataloaders, val_dataloaders, ckpt_path))

    def validate(
        self, model: Module | None = None, dataloaders: Any = None, ckpt_path: Any = None,
        datamodule: Any = None,
    ) -> list[dict[str, Any]]:  # fmt: skip
        """Run validation; a dictionary of figures for each loader."""
        return self._evaluate("validate", model, dataloaders, ckpt_path, datamodule)

    def test(
        self, model: Module | None = None, dataloaders: Any = None, ckpt_path: Any = None,
        datamodule: Any = None,
    ) -> list[dict[str, Any]]:  # fmt: skip
        """Run a test; a dictionary of figures for each loader."""
        return self._evaluate("test", model, dataloaders, ckpt_path, datamodule)

    def predict(
        self, model: Module | None = None, dataloaders: Any = None, ckpt_path: Any = None,
        datamodule: Any = None,
    ) -> list[Any]:  # fmt: skip
        """What `predict_step` returns of every batch; of several loaders, a list for each."""
        found = self._evaluate("predict", model, dataloaders, ckpt_path, datamodule)
        return found[0] if len(found) == 1 else found

    def save_checkpoint(self, filepath: Any, weights_only: bool = False) -> None:
        """Write the state of the run to a file."""
        path = Path(filepath)
        path.parent.mkdir(parents=True, exist_ok=True)
        save(snapshot(self, weights_only), path)

    # -- inside

    def _attach(self, model: Any, datamodule: Any, stage: str) -> None:
        if not isinstance(model, Module):
            raise ArgumentError(
                f"Trainer.{stage}: expected a weft.train.Module, got {type(model).__name__}; for a "
                f"plain module there is weft.train.fit(model, data, loss=...){at_user_line()}"
            )
        self.module, self.datamodule, self.stage = model, datamodule, stage
        model.trainer = self
        own = model.configure_callbacks() or []
        own = list(own) if isinstance(own, list | tuple) else [own]
        kinds = {type(c) for c in own}
        self.callbacks = [c for c in self.callbacks if type(c) not in kinds] + own
        self.callbacks.sort(key=lambda c: isinstance(c, ModelCheckpoint))
        self.strategy.begin(model)
        for owner in (datamodule, model):
            if owner is not None:
                owner.prepare_data()
        self.events = Events(self, model, self.callbacks, (Callback, Module))

    def _guarded(self, run: Any) -> Any:
        """Run, and tell of exceptions and of the end."""
        deterministic = config.get("deterministic")
        if self.deterministic:
            config.change("deterministic", True)
        self.interruption = Interruption()
        try:
            self._set_up()
            with self.interruption:
                found = run()
        except BaseException as error:
            self.events.tell("on_exception", error)
            self._finish("failed")
            raise
        finally:
            config.change("deterministic", deterministic)
            self.optimization.count_with(None)
            self.strategy.end()
            self.results, self.validating, self.sanity_checking = None, False, False
            self.end_batch()
        self._finish("success")
        return found

    def _set_up(self) -> None:
        if self.datamodule is not None:
            self.datamodule.setup(self.stage)
        self.events.tell("setup", self.stage)
        self.module.configure_model()
        self.precision.prepare(self.module)

    def _finish(self, status: str) -> None:
        self.events.tell("teardown", self.stage)
        if self.datamodule is not None:
            self.datamodule.teardown(self.stage)
        for logger in self.loggers:
            logger.finalize(status)

    def _loader(self, given: Any, stage: str) -> Any:
        """What was given, or what the data module or the module has."""
        name = {"fit": "train", "validate": "val"}.get(stage, stage) + "_dataloader"
        for owner in (self.datamodule, self.module):
            if given is None and owner is not None:
                given = getattr(owner, name)()
        return given

    def _fit(self, train: Any, val: Any, ckpt_path: Any) -> None:
        loader = self._loader(train, "fit")
        if loader is None:
            raise ArgumentError(
                "Trainer.fit: expected train_dataloaders, or a module that defines "
                f"train_dataloader, got neither{at_user_line()}"
            )
        loaders = as_loaders(self._loader(val, "validate"))
        if self.overfit_batches:
            loader, loaders = self._overfitted(loader, loaders)
        self._train_count = count_of(loader, self.limits["fit"], "limit_train_batches")
        self._prepare(Batches(loader, self._train_count), loaders)
        if ckpt_path is not None:
            restore(self, self._read(ckpt_path))
        self.events.tell("on_fit_start")
        for logger in self.loggers:
            if self.module.hparams:
                logger.log_hyperparams(self.module.hparams)
        if ckpt_path is None:
            self.module.zero_grad()
            self._sanity_check()
        self.fit_loop.run()
        if self.interruption.came:
            self._end_interrupted()
        self.events.tell("on_fit_end")

    def _overfitted(self, loader: Any, loaders: list[Any]) -> tuple[Any, list[Any]]:
        count = count_of(loader, self.overfit_batches, "overfit_batches")
        batches = [batch for batch, _ in zip(loader, range(int(count)), strict=False)]
        return batches, [batches] if loaders else []

    def _prepare(self, batches: Batches, loaders: list[Any]) -> None:
        """Optimizers, the step and the loop; a trainer that has run goes on counting."""
        self.should_stop = False
        self.optimization = optimizers_of(self.module.configure_optimizers())
        self.optimization.count_with(self.progress.count)
        self._step = Step(self, self.module, Module)
        validation = None
        if loaders and self.limits["validate"] != 0 and self._defines("validation_step"):
            limit = self.limits["validate"]
            validation = EvaluationLoop(self, self.module, "validate", loaders, limit)
        self.fit_loop = FitLoop(self, self.module, self._step, batches, validation)

    def _defines(self, name: str) -> bool:
        return getattr(type(self.module), name) is not getattr(Module, name)

    def _sanity_check(self) -> None:
        count, loop = self.num_sanity_val_steps, self.fit_loop.validation
        if not count or loop is None:
            return
        stream = RandomState()
        state = stream.state_dict()
        self.sanity_checking = True
        self.events.tell("on_sanity_check_start")
        loop.run(None if count == -1 else count)
        self.events.tell("on_sanity_check_end")
        self.sanity_checking = False
        stream.load_state_dict(state)

    def _end_interrupted(self) -> None:
        """Save, say how to go on, and have Ctrl-C its effect.

        Raises:
            KeyboardInterrupt: always.
        """
        if self.checkpoint_callback is None:
            where = Path(self.log_dir or self.default_root_dir) / "interrupted.safetensors"
            self.save_checkpoint(where)
        else:
            where = self.checkpoint_callback.save_now(self)
        print(
            f"stopped at step {self.global_step}, in epoch {self.current_epoch}; to go on: "
            f"trainer.fit(model, ..., ckpt_path={str(where)!r})",
            file=sys.stderr,
        )
        raise KeyboardInterrupt

    def _evaluate(
        self, stage: str, model: Any, dataloaders: Any, ckpt_path: Any, datamodule: Any
    ) -> list[Any]:
        model = self.module if model is None else model
        self._attach(model, datamodule or self.datamodule, stage)
        return self._guarded(lambda: self._evaluated(stage, dataloaders, ckpt_path))

    def _evaluated(self, stage: str, given: Any, ckpt_path: Any) -> list[Any]:
        if ckpt_path is not None:
            restore_weights(self, self._read(ckpt_path))
        loaders = as_loaders(self._loader(given, stage))
        if not loaders:
            raise ArgumentError(f"Trainer.{stage}: expected dataloaders, got none{at_user_line()}")
        return EvaluationLoop(self, self.module, stage, loaders, self.limits[stage]).run()

    def _read(self, path: Any) -> Mapping[str, Any]:
        """The state of a file, of a folder of checkpoints, or of the last or best of them."""
        if path not in ("last", "best"):
            return read(path)
        return (self.checkpoint_callback or ModelCheckpoint()).read(self, path)


def _epochs(given: int | None, max_steps: int, max_time: Any) -> int:
    if given is not None:
        return given
    return 1000 if max_steps == -1 and max_time is None else -1


def seed_everything(seed: int) -> int:
    """Begin all streams of random numbers at a seed: Weft's, NumPy's, Python's."""
    manual_seed(seed)
    np.random.seed(seed % 2**32)
    random.seed(seed)
    return seed
