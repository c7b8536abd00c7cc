"""Monitors of a run: learning rates and throughput."""

from __future__ import annotations

import importlib
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from weft.errors import ArgumentError, ConfigError, StateError
from weft.train.batches import size_of
from weft.train.callbacks.callback import Callback
from weft.train.utilities.throughput import Throughput

__all__ = ["DeviceStatsMonitor", "LearningRateMonitor", "ThroughputMonitor"]


class LearningRateMonitor(Callback):
    """Logs the learning rate of each group: `lr-Adam`, or `lr-Adam/pg1` if there are several.

    A schedule's `name` takes the place of `lr-Adam`.

    They are also in `trainer.callback_metrics`.

    Args:
        logging_interval: `"step"`, `"epoch"`, or `None` for the intervals of the schedules.
        log_momentum: whether momentum (of Adam: the first beta) is logged as well.
        log_weight_decay: whether weight decay is logged as well.
        log_key_prefix: before each name.

    Attributes:
        lrs: all logged values by name.

    Raises:
        ArgumentError: the interval is unknown.
    """

    def __init__(
        self, logging_interval: str | None = None, log_momentum: bool = False,
        log_weight_decay: bool = False, log_key_prefix: str | None = None,
    ) -> None:  # fmt: skip
        if logging_interval not in (None, "step", "epoch"):
            raise ArgumentError.here(
                "LearningRateMonitor: expected logging_interval 'step', 'epoch' or None, got "
                f"{logging_interval!r}"
            )
        self.logging_interval, self._prefix = logging_interval, log_key_prefix or ""
        self.log_momentum, self.log_weight_decay = log_momentum, log_weight_decay
        self.lrs: dict[str, list[float]] = {}

    def rates(self, trainer: Any) -> dict[str, float]:
        """The learning rates by name, and what else is logged of the groups."""
        found: dict[str, float] = {}
        named = {id(s.scheduler.optimizer): s.name for s in trainer.schedules if s.name}
        for optimizer in trainer.optimizers:
            base = named.get(id(optimizer), f"lr-{type(optimizer).__name__}")
            name, number = base, 1
            while name in found or f"{name}/pg1" in found:
                name, number = f"{base}-{number}", number + 1
            groups = optimizer.param_groups
            for i, group in enumerate(groups):
                key = name if len(groups) == 1 else f"{name}/pg{i + 1}"
                found[key] = float(group["lr"])
                if self.log_momentum:
                    betas = group.get("betas", (group.get("momentum", 0.0),))
                    found[f"{key}-momentum"] = float(betas[0])
                if self.log_weight_decay:
                    found[f"{key}-weight_decay"] = float(group.get("weight_decay", 0.0))
        return {f"{self._prefix}{k}": v for k, v in found.items()}

    def on_train_batch_start(
        self, trainer: Any, pl_module: Any, batch: Any, batch_idx: int
    ) -> None:
        """Log the rates of this step."""
        if trainer.logs_at(trainer.progress.windows + 1):
            self._log(trainer, "step")

    def on_train_epoch_start(self, trainer: Any, pl_module: Any) -> None:
        """Log the rates of this epoch."""
        self._log(trainer, "epoch")

    def _log(self, trainer: Any, interval: str) -> None:
        """Log, if rates are logged at this interval: of steps, or of epochs."""
        own = {s.interval for s in trainer.schedules} or {"step", "epoch"}
        if interval in (own if self.logging_interval is None else {self.logging_interval}):
            rates = self.rates(trainer)
            for name, rate in rates.items():
                self.lrs.setdefault(name, []).append(rate)
            trainer.log_rates(rates, trainer.progress.windows)


class DeviceStatsMonitor(Callback):
    """Logs the load of the processor and of memory in percent, and the memory that is used.

    Args:
        cpu_stats: false logs nothing, as there is no other device.

    Raises:
        ConfigError: `psutil`, which measures, is not installed.
        StateError: there is no logger.
    """

    def __init__(self, cpu_stats: bool | None = None) -> None:
        self.cpu_stats = cpu_stats
        self._psutil: Any = None

    def setup(self, trainer: Any, pl_module: Any, stage: str) -> None:
        """Check that there is something to measure with, and to write with."""
        if not trainer.loggers:
            raise StateError.here(
                "DeviceStatsMonitor: expected a logger, got Trainer(logger=False)"
            )
        try:
            self._psutil = importlib.import_module("psutil")
        except ImportError:
            raise ConfigError.here(
                "DeviceStatsMonitor: expected the package psutil, got none; install: pip install "
                "psutil"
            ) from None

    def on_train_batch_start(
        self, trainer: Any, pl_module: Any, batch: Any, batch_idx: int
    ) -> None:
        """Log before a step."""
        self._log(trainer, "on_train_batch_start", trainer.progress.windows + 1)

    def on_train_batch_end(
        self, trainer: Any, pl_module: Any, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        """Log after a step."""
        self._log(trainer, "on_train_batch_end", trainer.progress.windows)

    def _log(self, trainer: Any, event: str, step: int) -> None:
        if self.cpu_stats is False or not trainer.logs_at(step):
            return
        found = {
            "cpu_vm_percent": self._psutil.virtual_memory().percent,
            "cpu_percent": self._psutil.cpu_percent(),
            "cpu_swap_percent": self._psutil.swap_memory().percent,
        }
        for logger in trainer.loggers:
            before = f"{type(self).__name__}.{event}{logger.group_separator}"
            logger.log_metrics({f"{before}{k}": v for k, v in found.items()}, max(step - 1, 0))


class ThroughputMonitor(Callback):
    """Logs totals and rates of each stage: `train/device/batches_per_sec` and its like.

    They are logged when the trainer logs. Rates need a full window; time between batches of another
    stage does not count. A module's `flops_per_batch`, if it has one, gives operations per second.

    Args:
        batch_size_fn: gives a batch's size; by default that of its first tensor.
        length_fn: gives the number of items of a batch, such as its tokens.
        options: `window_size` and `separator` of `Throughput`.
    """

    def __init__(
        self, batch_size_fn: Callable[[Any], int] | None = None,
        length_fn: Callable[[Any], int] | None = None, **options: Any,
    ) -> None:  # fmt: skip
        self.batch_size_fn, self.length_fn = batch_size_fn or size_of, length_fn
        self.options = options
        self._stages: dict[str, _Stage] = {}

    def on_train_start(self, trainer: Any, pl_module: Any) -> None:
        """Begin the training's window."""
        self._begin(trainer, "train")

    def on_validation_start(self, trainer: Any, pl_module: Any) -> None:
        """Begin the validation's window."""
        if not trainer.sanity_checking:
            self._begin(trainer, "validate")

    def on_test_start(self, trainer: Any, pl_module: Any) -> None:
        """Begin the test's window."""
        self._begin(trainer, "test")

    def on_predict_start(self, trainer: Any, pl_module: Any) -> None:
        """Begin the window of predictions."""
        self._begin(trainer, "predict")

    def on_train_batch_end(
        self, trainer: Any, pl_module: Any, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        """Count a batch; log where the trainer does, behind an update."""
        updates = trainer.progress.windows
        logs = trainer.logs_at(updates) and updates != self._stages["train"].logged
        self._count(trainer, pl_module, "train", batch, updates if logs else None)

    def on_validation_batch_end(
        self, trainer: Any, pl_module: Any, outputs: Any, batch: Any, batch_idx: int,
        dataloader_idx: int = 0,
    ) -> None:  # fmt: skip
        """Count a batch."""
        if not trainer.sanity_checking:
            self._evaluated(trainer, pl_module, "validate", batch)

    def on_validation_end(self, trainer: Any, pl_module: Any) -> None:
        """Leave validation out of the training's time."""
        if not trainer.sanity_checking and "train" in self._stages:
            self._stages["train"].begin += time.perf_counter() - self._stages["validate"].begin

    def on_test_batch_end(
        self, trainer: Any, pl_module: Any, outputs: Any, batch: Any, batch_idx: int,
        dataloader_idx: int = 0,
    ) -> None:  # fmt: skip
        """Count a batch."""
        self._evaluated(trainer, pl_module, "test", batch)

    def on_predict_batch_end(
        self, trainer: Any, pl_module: Any, outputs: Any, batch: Any, batch_idx: int,
        dataloader_idx: int = 0,
    ) -> None:  # fmt: skip
        """Count a batch."""
        self._evaluated(trainer, pl_module, "predict", batch)

    def _begin(self, trainer: Any, stage: str) -> None:
        rates = Throughput(world_size=trainer.world_size, **self.options)
        self._stages[stage] = _Stage(rates, time.perf_counter())

    def _evaluated(self, trainer: Any, module: Any, stage: str, batch: Any) -> None:
        done = self._stages[stage].batches + 1
        self._count(trainer, module, stage, batch, done if trainer.logs_at(done) else None)

    def _count(self, trainer: Any, module: Any, stage: str, batch: Any, step: int | None) -> None:
        """Count a batch; with a `step`, counted from 1, log what is known."""
        now = self._stages[stage]
        now.batches += 1
        now.samples += self.batch_size_fn(batch)
        if self.length_fn is not None:
            now.lengths += self.length_fn(batch)
        now.rates.update(
            time=time.perf_counter() - now.begin, batches=now.batches, samples=now.samples,
            lengths=None if self.length_fn is None else now.lengths,
            flops=getattr(module, "flops_per_batch", None),
        )  # fmt: skip
        if step is not None:
            now.logged = step
            separator = now.rates.separator
            found = {f"{stage}{separator}{k}": v for k, v in now.rates.compute().items()}
            for logger in trainer.loggers:
                logger.log_metrics(found, step - 1)


@dataclass
class _Stage:
    """How far a stage of a run is.

    Attributes:
        begin: when it began, by `time.perf_counter`, with pauses left out.
        logged: the step that was logged last.
    """

    rates: Throughput
    begin: float
    batches: int = 0
    samples: int = 0
    lengths: int = 0
    logged: int = 0
