"""A trainer's runs, from the first hook to the last."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from weft import config
from weft.checkpoint import RandomState
from weft.errors import ArgumentError
from weft.serialization import save
from weft.train.arguments import in_order
from weft.train.batches import Batches, Limit, as_loaders, count_of
from weft.train.callbacks.callback import Callback
from weft.train.callbacks.model_checkpoint import ModelCheckpoint
from weft.train.datamodule import DataModule
from weft.train.evaluation_loop import EvaluationLoop
from weft.train.events import Events, defines
from weft.train.fit_loop import FitLoop
from weft.train.interruption import Interruption
from weft.train.journal import Journal
from weft.train.module import Module
from weft.train.optimization import Step
from weft.train.optimizers import Optimizers, optimizers_of
from weft.train.precision import Precision
from weft.train.saving import read, restore, restore_weights, snapshot


def attempt(calls: Iterable[Callable[[], Any]], error: BaseException | None) -> Any:
    """Make all calls, also if one raises; returns the first error, with notes of later ones."""
    for call in calls:
        try:
            call()
        except Exception as found:
            if error is None:
                error = found
            else:
                error.add_note(f"then {type(found).__name__}: {found}")
    return error


def told_apart(loaders: Any, datamodule: Any) -> tuple[Any, Any]:
    """Loaders and data module, of which the second may be given in place of the first."""
    if datamodule is None and (
        isinstance(loaders, DataModule) or hasattr(loaders, "train_dataloader")
    ):
        return None, loaders
    return loaders, datamodule


class Runs(Journal):
    """The part of a trainer that runs: sets up, fits or evaluates, and always tears down.

    Attributes:
        module: the last run module.
        stage: `"fit"`, `"validate"`, `"test"` or `"predict"`.
        fit_loop: the training loop; `None` before the first `fit`.
        evaluates_checkpoint: whether the running evaluation has the weights of a checkpoint.
        events: the listeners of the run.
    """

    precision: Precision
    events: Events
    callbacks: list[Any]
    limits: dict[str, Limit]
    overfit_batches: float | int
    num_sanity_val_steps: int
    deterministic: bool
    default_root_dir: str

    def __init__(self) -> None:
        super().__init__()
        self.should_stop = self.sanity_checking = self.validating = False
        self.interruption = Interruption()
        self.optimization = Optimizers()
        self.module: Any = None
        self.datamodule: Any = None
        self.fit_loop: Any = None
        self.stage = ""
        self.evaluates_checkpoint = False
        self._running = False
        self._step: Step | None = None
        self._train_count: float = 0

    @property
    def log_dir(self) -> str | None:
        """The folder of the first logger that has one."""
        return next((x.log_dir for x in self.loggers if x.log_dir), None)

    @property
    def checkpoint_callback(self) -> Any:
        """The first `ModelCheckpoint`, or `None`."""
        return next((c for c in self.callbacks if isinstance(c, ModelCheckpoint)), None)

    def save_checkpoint(self, filepath: Any, weights_only: bool = False) -> None:
        """Save a checkpoint to a file."""
        path = Path(filepath)
        path.parent.mkdir(parents=True, exist_ok=True)
        save(snapshot(self, weights_only), path)

    # -- all runs

    def _attach(self, model: Any, datamodule: Any, stage: str) -> None:
        if not isinstance(model, Module):
            raise ArgumentError.here(
                f"Trainer.{stage}: expected a weft.train.Module, got {type(model).__name__}; for a "
                f"plain module there is weft.train.fit(model, data, loss=...)"
            )
        self.module, self.datamodule, self.stage = model, datamodule, stage
        model.trainer = self
        own = model.configure_callbacks() or []
        own = list(own) if isinstance(own, list | tuple) else [own]
        kinds = {type(c) for c in own}
        self.callbacks = in_order([c for c in self.callbacks if type(c) not in kinds] + own)
        self.strategy.begin(model)
        for owner in (datamodule, model):
            if owner is not None:
                owner.prepare_data()
        self.events = Events(self, model, self.callbacks, (Callback, Module))

    def _guarded(self, run: Callable[[], Any]) -> Any:
        """Run, and emit the events of exceptions and of the end."""
        deterministic = config.get("deterministic")
        if self.deterministic:
            config.change("deterministic", True)
        self.interruption = Interruption()
        self._running = True
        try:
            self._set_up()
            with self.interruption:
                found = run()
        except BaseException as error:
            self._end_failed(error)
            raise
        finally:
            config.change("deterministic", deterministic)
            self.optimization.count_with(None)
            self.strategy.end()
            self.results, self.validating, self.sanity_checking = None, False, False
            self._running = self.evaluates_checkpoint = False
            self.end_batch()
        self._finish("success")
        return found

    def _runs(self, stage: str) -> bool:
        """Set whether it is running, and which stage."""
        return self._running and self.stage == stage

    def _set_up(self) -> None:
        if self.datamodule is not None:
            self.datamodule.setup(self.stage)
        self.events.tell("setup", self.stage)
        self.module.configure_model()
        self.precision.prepare(self.module)

    def _end_failed(self, error: BaseException) -> None:
        """Tell all listeners, and save the last state, which an error outside of steps leaves."""
        calls = [partial(call, error) for call in self.events.of("on_exception")]
        loop = self.fit_loop
        alone = self.strategy.world_size == 1  # other ranks do not save
        if loop is not None and loop.can_be_saved and alone and isinstance(error, Exception):
            calls.append(partial(self.save_last_state, tolerant=True))
        attempt(calls, error)
        if loop is not None:
            loop.is_running = False
        self._finish("failed", error)

    def _finish(self, status: str, error: BaseException | None = None) -> None:
        """Release everything, also if some of it raises.

        Args:
            error: that of the run, which gets notes of later ones.
        """
        calls = [partial(call, self.stage) for call in self.events.of("teardown")]
        if self.datamodule is not None:
            calls.append(partial(self.datamodule.teardown, self.stage))
        calls += [partial(logger.finalize, status) for logger in self.loggers]
        found = attempt(calls, error)
        if error is None and found is not None:
            raise found

    def save_last_state(self, tolerant: bool = False) -> None:
        """Let each `ModelCheckpoint` save the state, unless it has.

        Args:
            tolerant: whether states of callbacks that cannot be saved are left out.
        """
        for callback in self.callbacks:
            if isinstance(callback, ModelCheckpoint):
                callback.save_last(self, tolerant)

    def _loader(self, given: Any, stage: str) -> Any:
        """The given loaders, or those of the data module or the module."""
        name = {"fit": "train", "validate": "val"}.get(stage, stage) + "_dataloader"
        for owner in (self.datamodule, self.module):
            if given is None and getattr(owner, name, None) is not None:
                given = getattr(owner, name)()
        return given

    # -- training

    def _fit(self, train: Any, val: Any, ckpt_path: Any) -> None:
        loader = self._loader(train, "fit")
        if loader is None:
            raise ArgumentError.here(
                "Trainer.fit: expected train_dataloaders, or a module that defines "
                "train_dataloader, got neither"
            )
        loaders = as_loaders(self._loader(val, "validate"))
        limit = self.limits["validate"]
        if self.overfit_batches:
            loader, limit = self._overfitted(loader), self.overfit_batches
        self._train_count = count_of(loader, self.limits["fit"], "limit_train_batches")
        self._prepare(Batches(loader, self._train_count), loaders, limit)
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

    def _overfitted(self, loader: Any) -> list[Any]:
        """The first batches, the same ones in each epoch."""
        count = count_of(loader, self.overfit_batches, "overfit_batches")
        return [batch for batch, _ in zip(loader, range(int(count)), strict=False)]

    def _prepare(self, batches: Batches, loaders: list[Any], limit: Limit) -> None:
        """Create optimizers, step and loop; a trainer that has run before continues its counts."""
        self.should_stop = False
        configure = self.module.configure_optimizers
        self.optimization = optimizers_of(None if configure is None else configure())
        self.optimization.count_with(self.progress.count)
        self._step = Step(self, self.module, Module)
        validation = None
        if loaders and limit != 0 and defines(self.module, "validation_step", Module):
            validation = EvaluationLoop(self, self.module, "validate", loaders, limit)
        self.fit_loop = FitLoop(self, self.module, self._step, batches, validation)

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
        """Save a checkpoint, print how to resume, and raise KeyboardInterrupt.

        Raises:
            KeyboardInterrupt: always.
        """
        if self.checkpoint_callback is None:
            where = Path(self.log_dir or self.default_root_dir) / "interrupted.safetensors"
            self.save_checkpoint(where)
        else:
            where = self.checkpoint_callback.save_now(self)
        print(
            f"stopped at step {self.progress.global_step}, in epoch {self.progress.epoch}; "
            f"to go on: trainer.fit(model, ..., ckpt_path={str(where)!r})",
            file=sys.stderr,
        )
        raise KeyboardInterrupt

    # -- evaluation

    def _evaluate(
        self, stage: str, model: Any, dataloaders: Any, ckpt_path: Any, datamodule: Any
    ) -> list[Any]:
        model = self.module if model is None else model
        dataloaders, datamodule = told_apart(dataloaders, datamodule)
        self._attach(model, datamodule or self.datamodule, stage)
        return self._guarded(lambda: self._evaluated(stage, dataloaders, ckpt_path))

    def _evaluated(self, stage: str, given: Any, ckpt_path: Any) -> list[Any]:
        self.evaluates_checkpoint = ckpt_path is not None
        if ckpt_path is not None:
            restore_weights(self, self._read(ckpt_path))
        loaders = as_loaders(self._loader(given, stage))
        if not loaders:
            raise ArgumentError.here(f"Trainer.{stage}: expected dataloaders, got none")
        self.validating = stage == "validate"
        loop = EvaluationLoop(self, self.module, stage, loaders, self.limits[stage])
        return loop.run() if any(loop.counts) else []

    def _read(self, path: Any) -> Mapping[str, Any]:
        """The state in a file, in a folder of checkpoints, or of the last or best one."""
        if path not in ("last", "best"):
            return read(path)
        return (self.checkpoint_callback or ModelCheckpoint()).read(self, path)
