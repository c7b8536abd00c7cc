"""What callbacks and modules read of a trainer: counts, loaders, callbacks, its place."""

from __future__ import annotations

import contextlib
from typing import Any

from weft.documentation import Reads
from weft.errors import StateError
from weft.train.arguments import LIMITS
from weft.train.batches import Limit, check_limit
from weft.train.callbacks.early_stopping import EarlyStopping
from weft.train.callbacks.model_checkpoint import Checkpoint
from weft.train.callbacks.progress_bar import ProgressBar
from weft.train.runs import Runs
from weft.train.states import RunningStage, State, TrainerFn, TrainerStatus
from weft.train.strategy import CPUAccelerator


def _limit(stage: str) -> Any:
    """The limit of a stage's batches, as a setting of the trainer."""

    def get(trainer: Attributes) -> Limit:
        return trainer.limits[stage]

    def change(trainer: Attributes, value: Limit) -> None:
        check_limit(value, LIMITS[stage])
        trainer.limits[stage] = value

    return property(get, change, doc=f"The constructor's `{LIMITS[stage]}`.")


def _only_given(name: str) -> Any:
    """An argument of the constructor that cannot be changed later."""

    def change(trainer: Attributes, value: Any) -> None:
        raise StateError.here(
            f"Trainer.{name}: expected it as an argument of Trainer(...), which alone reads it, "
            f"got {value!r} later"
        )

    return property(None, change)


class Attributes(Runs):
    """The part of a trainer that can be read."""

    log_every_n_steps: int
    max_epochs: int
    max_steps: int
    accumulate_grad_batches: int

    # -- settings

    limit_train_batches = _limit("fit")
    limit_val_batches = _limit("validate")
    limit_test_batches = _limit("test")
    limit_predict_batches = _limit("predict")
    enable_checkpointing = _only_given("enable_checkpointing")
    enable_progress_bar = _only_given("enable_progress_bar")
    max_time = _only_given("max_time")
    devices = _only_given("devices")

    @property
    def stop_on_nan(self) -> bool:
        """Whether a NaN loss ends the run."""
        return self.stops_on_nan

    @stop_on_nan.setter
    def stop_on_nan(self, value: bool) -> None:
        self.stops_on_nan = value

    # -- properties for callbacks and modules

    def logs_at(self, step: int) -> bool:
        """Whether loggers get the values of this batch with an update, counted from 1."""
        every = self.log_every_n_steps
        return every > 0 and step % every == 0

    global_step = Reads[int]("progress.global_step", "The number of updates so far.")
    current_epoch = Reads[int]("progress.epoch", "The index of the epoch.")
    optimizers = Reads[list[Any]]("optimization.optimizers", "The optimizers.")
    schedules = Reads[list[Any]]("optimization.schedules", "The schedulers, with their intervals.")

    @property
    def logger(self) -> Any:
        """The first logger, or `None`."""
        return self.loggers[0] if self.loggers else None

    model = Reads[Any]("module", "The running module, or the last one; also `lightning_module`.")

    lightning_module = model

    @property
    def accelerator(self) -> CPUAccelerator:
        """The processor."""
        return CPUAccelerator()

    @property
    def num_nodes(self) -> int:
        """The number of machines of one process."""
        return 1

    @property
    def num_devices(self) -> int:
        """The number of devices of this process."""
        return 1

    @property
    def device_ids(self) -> list[int]:
        """The numbers of the devices of this process."""
        return [0]

    @property
    def training(self) -> bool:
        """Whether training batches are running: not between runs, and not during validation."""
        return self._runs("fit") and not (self.validating or self.sanity_checking)

    @property
    def testing(self) -> bool:
        """Whether a test is running."""
        return self._runs("test")

    @property
    def evaluating(self) -> bool:
        """Whether a validation or a test is running."""
        return self.validating or self.sanity_checking or self.testing

    @property
    def predicting(self) -> bool:
        """Whether predictions are running."""
        return self._runs("predict")

    interrupted = Reads[bool]("interruption.came", "Whether Ctrl-C was pressed in this run.")

    @property
    def state(self) -> State:
        """The run as it is now."""
        on = {
            RunningStage.SANITY_CHECKING: self.sanity_checking,
            RunningStage.VALIDATING: self.validating, RunningStage.TRAINING: self.training,
            RunningStage.TESTING: self.testing, RunningStage.PREDICTING: self.predicting,
        }  # fmt: skip
        fn = TrainerFn(self.stage) if self.stage else ""
        return State(fn, TrainerStatus(self.status), next((s for s in on if on[s]), None))

    scaler = Reads[Any]("precision.scaler", 'The loss scaler of `"16-mixed"`, or `None`.')
    local_rank = Reads[int]("strategy.local_rank", "The rank of this process on its machine.")
    node_rank = Reads[int]("strategy.node_rank", "The rank of the machine.")
    global_rank = Reads[int]("strategy.rank", "The rank of this process.")
    world_size = Reads[int]("strategy.world_size", "The number of processes.")

    def print(self, *args: Any, **kwargs: Any) -> None:
        """`print`, on rank 0 only."""
        if self.is_global_zero:
            print(*args, **kwargs)

    lr_scheduler_configs = Reads[list[Any]]("schedules", "The schedulers, with their intervals.")

    @property
    def checkpoint_callbacks(self) -> list[Any]:
        """Every `ModelCheckpoint`, and others of its base class."""
        return [c for c in self.callbacks if isinstance(c, Checkpoint)]

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

    def _evaluation(self, stage: str) -> Any:
        """The loop of a stage that ran last, or `None`."""
        inner = None if self.fit_loop is None else self.fit_loop.validation
        own = self.evaluation
        if own is not None and own.stage == stage:
            return own
        return inner if stage == "validate" else None

    def _loaders_of(self, stage: str) -> Any:
        loop = self._evaluation(stage)
        if loop is None:
            return None
        return loop.loaders[0] if len(loop.loaders) == 1 else loop.loaders

    def _counts_of(self, stage: str) -> list[float]:
        loop = self._evaluation(stage)
        return [] if loop is None else loop.counts

    @property
    def val_dataloaders(self) -> Any:
        """The validation loader, or a list of several; `None` before a run with one."""
        return self._loaders_of("validate")

    @property
    def test_dataloaders(self) -> Any:
        """The test loader, or a list of several; `None` before a test."""
        return self._loaders_of("test")

    @property
    def predict_dataloaders(self) -> Any:
        """The loader of predictions, or a list of several; `None` before a run."""
        return self._loaders_of("predict")

    @property
    def predict_loop(self) -> Any:
        """The loop of the last predictions, with `predictions`; `None` before it."""
        return self._evaluation("predict")

    @property
    def num_val_batches(self) -> list[float]:
        """The number of batches of each validation loader."""
        return self._counts_of("validate")

    @property
    def num_test_batches(self) -> list[float]:
        """The number of batches of each test loader."""
        return self._counts_of("test")

    @property
    def num_predict_batches(self) -> list[float]:
        """The number of batches of each loader of predictions."""
        return self._counts_of("predict")

    @property
    def num_sanity_val_batches(self) -> list[float]:
        """The number of batches of each validation loader in the sanity check."""
        most = self.num_sanity_val_steps
        return [n if most == -1 else min(n, most) for n in self.num_val_batches]

    @property
    def enable_validation(self) -> bool:
        """Whether `fit` validates."""
        return self.fit_loop is not None and self.fit_loop.validation is not None

    def init_module(self, empty_init: bool | None = None) -> contextlib.AbstractContextManager[Any]:
        """A block in which a module is created; parameters are where they will be used anyway."""
        return contextlib.nullcontext()

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
