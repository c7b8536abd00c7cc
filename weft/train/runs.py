"""A trainer's runs, from the first hook to the last."""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from weft import config
from weft.checkpoint import RandomState
from weft.documentation import Reads
from weft.eager.tensor.autograd.anomaly import is_anomaly_enabled, set_detect_anomaly
from weft.errors import ArgumentError, DataError
from weft.ops.warning import warn
from weft.serialization import save
from weft.train.arguments import in_order
from weft.train.batches import Batches, Limit, count_of
from weft.train.callbacks.callback import Callback
from weft.train.callbacks.model_checkpoint import ModelCheckpoint
from weft.train.combined_loader import evaluation_loaders, train_loader
from weft.train.datamodule import Data, DataModule
from weft.train.evaluation_loop import EvaluationLoop
from weft.train.events import Events, defines
from weft.train.fit_loop import FitLoop
from weft.train.interruption import Interruption, SIGTERMException
from weft.train.journal import Journal
from weft.train.module import Module
from weft.train.optimization import Step
from weft.train.optimizers import Optimizers, optimizers_of
from weft.train.precision import Precision
from weft.train.profilers import Profiler
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
        ckpt_path: the checkpoint of the last run, as it was given.
        given_loaders: the training loaders that `fit` was given, or `None`.
        evaluation: the running or last evaluation loop outside of `fit`.
        transfers: the hooks of batches that are defined, by name.
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
    reload_dataloaders_every_n_epochs: int
    detect_anomaly: bool
    enable_autolog_hparams: bool
    profiler: Profiler
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
        self.evaluation: Any = None
        self.given_loaders: Any = None
        self.transfers: dict[str, Callable[..., Any]] = {}
        self.ckpt_path: Any = None
        self._weights_only: bool | None = None  # of the checkpoint that is read
        self.status = "initializing"
        self.stage = ""
        self.evaluates_checkpoint = False
        self._running = False
        self._step: Step | None = None
        self._train_count: float = 0

    @property
    def log_dir(self) -> str | None:
        """The folder of the first logger, of a service its `save_dir`; without, of the run."""
        if not self.loggers:
            return str(self.default_root_dir)
        return self.loggers[0].log_dir or self.loggers[0].save_dir

    @property
    def checkpoint_callback(self) -> Any:
        """The first `ModelCheckpoint`, or `None`."""
        return next((c for c in self.callbacks if isinstance(c, ModelCheckpoint)), None)

    def save_checkpoint(
        self, filepath: Any, weights_only: bool | None = None, storage_options: Any = None
    ) -> None:
        """Save a checkpoint to a file.

        Args:
            weights_only: whether what only resuming needs is left out.
            storage_options: of plugins, of which there are none: `None`.

        Raises:
            ArgumentError: storage options; or no run has begun.
        """
        if storage_options is not None:
            raise ArgumentError.here(
                f"save_checkpoint: expected storage_options=None, got {storage_options!r}"
            )
        if self.module is None:
            raise ArgumentError.here("save_checkpoint: expected a run before it, got none")
        path = Path(filepath)
        path.parent.mkdir(parents=True, exist_ok=True)
        if self.is_global_zero:
            save(snapshot(self, bool(weights_only) or self.fit_loop is None), path)
        self.strategy.barrier("save_checkpoint")

    is_global_zero = Reads[bool](
        "strategy.is_global_zero", "Whether this process writes files and prints."
    )
    received_sigterm = Reads[bool]("interruption.terminates", "Whether SIGTERM came in this run.")

    # -- all runs

    def _attach(self, model: Any, datamodule: Any, stage: str) -> None:
        if not isinstance(model, Module):
            raise ArgumentError.here(
                f"Trainer.{stage}: expected a weft.train.Module, got {type(model).__name__}; for a "
                f"plain module there is weft.train.fit(model, data, loss=...)"
            )
        self.module, self.datamodule, self.stage = model, datamodule, stage
        model.trainer = self
        if datamodule is not None:
            datamodule.trainer = self
        self.transfers = self._transfers(model, datamodule)
        own = model.configure_callbacks() or []
        own = list(own) if isinstance(own, list | tuple) else [own]
        kinds = {type(c) for c in own}
        self.callbacks = in_order([c for c in self.callbacks if type(c) not in kinds] + own)
        self.strategy.begin(model)
        for owner in (datamodule, model):
            if owner is not None:
                owner.prepare_data()
        self.events = Events(self, model, self.callbacks, (Callback, Module), self.profiler)

    def _transfers(self, *owners: Any) -> dict[str, Callable[..., Any]]:
        """The hooks of batches that the module or the data module defines; the last one's win."""
        names = [f"on_{n}_batch_transfer" for n in ("before", "after")]
        return {
            name: getattr(owner, name)
            for name in (*names, "transfer_batch_to_device")
            for owner in owners
            if owner is not None and hasattr(owner, name) and defines(owner, name, Data)
        }

    def _guarded(self, run: Callable[[], Any]) -> Any:
        """Run, and emit the events of exceptions and of the end."""
        deterministic = config.get("deterministic")
        if self.deterministic:
            config.change("deterministic", True)
        self.interruption = Interruption()
        self._running, self.status = True, "running"
        self.in_fit = self.stage == "fit"
        try:
            with set_detect_anomaly(self.detect_anomaly or is_anomaly_enabled()):
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
            self._running = self.evaluates_checkpoint = self.in_fit = False
            self.end_batch()
        self.status = "finished"
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
        self.status = "interrupted"
        calls = [partial(call, error) for call in self.events.of("on_exception")]
        if hasattr(self.datamodule, "on_exception"):
            calls.append(partial(self.datamodule.on_exception, error))
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
        calls.append(partial(self.profiler.teardown, self.stage))
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
                callback.keep_last(self, tolerant)

    def _loader(self, given: Any, stage: str) -> Any:
        """The given loaders, or those of the data module or the module."""
        name = {"fit": "train", "validate": "val"}.get(stage, stage) + "_dataloader"
        for owner in (self.datamodule, self.module):
            if given is None and getattr(owner, name, None) is not None:
                given = getattr(owner, name)()
        return given

    # -- training

    def _fit(self, train: Any, val: Any, ckpt_path: Any) -> None:
        self.given_loaders = train
        loader = train_loader(self._loader(train, "fit"))
        if loader is None:
            raise ArgumentError.here(
                "Trainer.fit: expected train_dataloaders, or a module that defines "
                "train_dataloader, got neither"
            )
        loaders = evaluation_loaders(self._loader(val, "validate"))
        limit = self.limits["validate"]
        if self.overfit_batches:
            loader, limit = self._overfitted(loader), self.overfit_batches
        self._train_count = count_of(loader, self.limits["fit"], "limit_train_batches")
        self._prepare(Batches(loader, self._train_count), loaders, limit)
        state = None if ckpt_path is None else self._read_to_go_on(ckpt_path)
        if state is not None:
            restore(self, state)
        self.events.tell("on_fit_start")
        self._log_hyperparameters()
        if state is None:
            self.module.zero_grad()
            self._sanity_check()
        self.fit_loop.run()
        if self.interruption.came:
            self._end_interrupted()
        self.events.tell("on_fit_end")

    def _log_hyperparameters(self) -> None:
        """Give loggers the hyperparameters, and the graph of the module's example input."""
        owners = [x for x in (self.datamodule, self.module) if getattr(x, "logs_hparams", False)]
        found = {k: v for x in owners for k, v in x.hparams.items()}
        found = found if self.enable_autolog_hparams else {}
        for logger in self.loggers:
            if found:
                logger.log_hyperparams(found)
            logger.log_graph(self.module)
            logger.save()

    def reload_loaders(self) -> None:
        """Ask the data module or the module for new loaders, if it is time for that."""
        every = self.reload_dataloaders_every_n_epochs
        due = every and self.progress.epoch and self.progress.epoch % every == 0
        if due and not self.progress.batch and self.given_loaders is None:
            self.load_anew()

    def load_anew(self) -> None:
        """Train on batches of a new loader of the data module or the module."""
        if not self.overfit_batches:
            loader = train_loader(self._loader(None, "fit"))
            self._train_count = count_of(loader, self.limits["fit"], "limit_train_batches")
            self.fit_loop.replace_batches(Batches(loader, self._train_count))

    def _overfitted(self, loader: Any) -> list[Any]:
        """The first batches, the same ones in each epoch."""
        count = count_of(loader, self.overfit_batches, "overfit_batches")
        return [batch for batch, _ in zip(loader, range(int(count)), strict=False)]

    def _prepare(self, batches: Batches, loaders: list[Any], limit: Limit) -> None:
        """Create optimizers, step and loop; a trainer that has run before continues its counts."""
        self.should_stop = False
        configure = self.module.configure_optimizers
        if configure is not None and not defines(self.module, "configure_optimizers", Module):
            raise ArgumentError.here(
                f"fit: expected configure_optimizers in {type(self.module).__name__}, which has "
                "none; let it return None to train without an optimizer"
            )
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
            KeyboardInterrupt: after Ctrl-C.
            SIGTERMException: after SIGTERM.
        """
        if self.checkpoint_callback is None:
            where = Path(self.log_dir or self.default_root_dir) / "interrupted.ckpt"
            self.save_checkpoint(where)
        else:
            where = self.checkpoint_callback.save_now(self)
        print(
            f"stopped at step {self.progress.global_step}, in epoch {self.progress.epoch}; "
            f"to go on: trainer.fit(model, ..., ckpt_path={str(where)!r})",
            file=sys.stderr,
        )
        if self.interruption.terminates:
            raise SIGTERMException(128 + signal.SIGTERM)
        raise KeyboardInterrupt

    # -- evaluation

    def _evaluate(
        self, stage: str, model: Any, dataloaders: Any, ckpt_path: Any, datamodule: Any,
        keeps: bool = True,
    ) -> list[Any]:  # fmt: skip
        given = model
        model = self.module if model is None else model
        if model is None:
            raise ArgumentError.here(f"Trainer.{stage}: expected a model, as none was run before")
        dataloaders, datamodule = told_apart(dataloaders, datamodule)
        self._attach(model, datamodule or self.datamodule, stage)
        if given is None and ckpt_path is None and self.fit_loop is not None:
            ckpt_path = self._best()
        return self._guarded(lambda: self._evaluated(stage, dataloaders, ckpt_path, keeps))

    def _best(self) -> Any:
        """`"best"`, if this run has a checkpoint: what is evaluated without a model."""
        callback = self.checkpoint_callback
        return "best" if callback is not None and callback.best_model_path else None

    def _evaluated(self, stage: str, given: Any, ckpt_path: Any, keeps: bool) -> list[Any]:
        self.evaluates_checkpoint = ckpt_path is not None
        if ckpt_path is not None:
            restore_weights(self, self._read(ckpt_path))
        loaders = evaluation_loaders(self._loader(given, stage))
        if not loaders:
            raise ArgumentError.here(f"Trainer.{stage}: expected dataloaders, got none")
        self.validating = stage == "validate"
        loop = EvaluationLoop(self, self.module, stage, loaders, self.limits[stage])
        writers = [getattr(c, "keeps_predictions", False) for c in self.callbacks]
        loop.keeps, self.evaluation = stage == "predict" and (keeps or any(writers)), loop
        found = loop.run() if any(loop.counts) else []
        if self.interruption.came:
            self.interruption.end()
            raise (
                SIGTERMException(128 + signal.SIGTERM)
                if self.received_sigterm
                else (KeyboardInterrupt())
            )
        return found

    def _read_to_go_on(self, path: Any) -> Mapping[str, Any] | None:
        """The state to go on from; without a last one the run begins anew, with a warning."""
        try:
            return self._read(path)
        except DataError as error:
            if path != "last":
                raise
            warn(f"Trainer.fit: ckpt_path='last': {error}; the run begins anew")
            self.ckpt_path = None
            return None

    def _read(self, path: Any) -> Mapping[str, Any]:
        """The state in a file, in a folder of checkpoints, or of the last or best one."""
        self.ckpt_path = path
        if path not in ("last", "best"):
            return read(path, self._weights_only)
        where = (self.checkpoint_callback or ModelCheckpoint()).find(self, path)
        self.ckpt_path = str(where)
        return read(where, self._weights_only)
