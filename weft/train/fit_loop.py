"""The training loop: epochs of batches with validation in between, up to a limit."""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Mapping
from typing import Any

from weft.errors import ArgumentError, DataError, UnknownKeyError
from weft.host.interrupt import Uninterrupted
from weft.ir.node import at_user_line
from weft.ops.warning import warn
from weft.train.batches import Batches, is_number, tensors
from weft.train.evaluation_loop import EvaluationLoop, received
from weft.train.optimization import Step
from weft.train.optimizers import Schedule
from weft.train.progress import seconds_of


def _of_trainer(name: str) -> Any:
    """A setting of the trainer, read and set through its loop."""

    def get(loop: FitLoop) -> Any:
        return getattr(loop._trainer, name)  # pyright: ignore[reportPrivateUsage]

    def change(loop: FitLoop, value: Any) -> None:
        setattr(loop._trainer, name, value)  # pyright: ignore[reportPrivateUsage]

    return property(get, change, doc=f"The trainer's `{name}`.")


class FitLoop:
    """Epochs of training.

    Args:
        trainer: its events are emitted; it has limits and progress.
        module: the module to train.
        step: makes the training steps.
        batches: the training data.
        validation: the validation loop, or `None`.
    """

    __slots__ = (
        "_by_epoch",
        "_by_step",
        "_clock",
        "_ends",
        "_every",
        "_first",
        "_is_resumed",
        "_may_validate",
        "_module",
        "_moves",
        "_progress",
        "_seconds",
        "_starts",
        "_step",
        "_trainer",
        "_validated",
        "at_epoch_end",
        "batches",
        "is_consistent",
        "is_last_batch",
        "is_running",
        "validates_next",
        "validation",
        "validations",
    )  # fmt: skip

    max_epochs = _of_trainer("max_epochs")
    min_epochs = _of_trainer("min_epochs")
    max_steps = _of_trainer("max_steps")
    min_steps = _of_trainer("min_steps")

    def __init__(
        self, trainer: Any, module: Any, step: Step, batches: Batches,
        validation: EvaluationLoop | None,
    ) -> None:  # fmt: skip
        self._trainer, self._module, self._step = trainer, module, step
        self.batches, self.validation = batches, validation
        self._progress = trainer.progress
        events = trainer.events
        self._starts = events.of("on_train_batch_start")
        self._ends = events.of("on_train_batch_end")
        self._moves = trainer.precision.converts or bool(trainer.transfers)
        self._every = self._validation_interval()
        self._may_validate = validation is not None and self._every != math.inf
        self.at_epoch_end = False
        self._by_step: list[Schedule] = [s for s in trainer.schedules if s.interval == "step"]
        self._by_epoch: list[Schedule] = [s for s in trainer.schedules if s.interval == "epoch"]
        self.is_last_batch = False
        self.validates_next = False  # whether validation follows the running batch
        self.is_running = False
        self.is_consistent = True  # whether weights and counts are those of the same step
        self.validations = 0
        self._validated = -1  # batches before the last validation
        self._is_resumed = False
        self._first = trainer.progress.total_batches

    @property
    def awaits_metrics(self) -> bool:
        """Whether metrics may still come: no step was made yet, or no validation has run."""
        return not self.has_trained or (self.validation is not None and not self.validations)

    @property
    def validates_each_epoch(self) -> bool:
        """Whether the end of an epoch is right after a validation, or there are none."""
        if self.validation is None:
            return True
        whole = self._every in (self.batches.most, math.inf)
        return whole and self._trainer.check_val_every_n_epoch == 1

    @property
    def has_trained(self) -> bool:
        """Whether this run made a step."""
        return self._progress.total_batches > self._first

    @property
    def can_be_saved(self) -> bool:
        """Whether a run that was stopped by an error has a state to go on from."""
        return self.is_running and self.is_consistent and self.has_trained

    def _validation_interval(self) -> float:
        """Batches between validations; infinite: validate when the loader ends."""
        interval, count = self._trainer.val_check_interval, self.batches.most
        self._clock = time.monotonic()
        self._seconds = None if is_number(interval) else seconds_of(interval)
        if self._seconds is not None:
            return 1
        if isinstance(interval, int):
            if self._trainer.check_val_every_n_epoch is not None and interval > count:
                raise ArgumentError.here(
                    f"Trainer: expected val_check_interval up to the {count} batches of an epoch, "
                    f"got {interval}; with check_val_every_n_epoch=None it counts batches of all "
                    f"epochs"
                )
            return interval
        if count == math.inf and interval != 1.0:
            raise ArgumentError.here(
                "Trainer: expected val_check_interval as a number of batches, as the loader has no "
                f"length, got {interval!r}"
            )
        return count if interval == 1.0 else max(int(count * interval), 1)

    # -- the run

    def run(self) -> None:
        """Train until a limit is reached or a stop is requested."""
        trainer = self._trainer
        self.is_running = True
        trainer.events.tell("on_train_start")
        while not self._is_done():
            self._epoch()
            if trainer.interruption.came:
                return
        if self.has_trained:
            trainer.save_last_state()  # before callbacks replace the weights by averages
        self.is_running = False
        trainer.events.tell("on_train_end")

    def _is_done(self) -> bool:
        trainer, progress = self._trainer, self._progress
        if self.batches.most == 0 or self._has_enough_steps():
            return True
        if trainer.max_epochs != -1 and progress.epoch >= trainer.max_epochs:
            return True
        return trainer.should_stop and self._may_stop()

    def _has_enough_steps(self) -> bool:
        most = self._trainer.max_steps
        return most != -1 and self._progress.global_step >= most

    def _may_stop(self) -> bool:
        """Whether the minimum of epochs and steps is reached."""
        trainer, progress = self._trainer, self._progress
        return (
            progress.epoch >= (trainer.min_epochs or 0)
            and progress.global_step >= (trainer.min_steps or 0)
        )  # fmt: skip

    def _stops_here(self) -> bool:
        """Whether to leave the epoch now; checked at each step."""
        trainer = self._trainer
        return (
            trainer.interruption.came
            or -1 != trainer.max_steps <= self._progress.global_step
            or (trainer.should_stop and self._may_stop())
        )

    def _epoch(self) -> None:
        trainer, progress = self._trainer, self._progress
        trainer.results = trainer.results_of("fit")
        trainer.reload_loaders()
        trainer.events.tell("on_train_epoch_start")
        self._step.begin_epoch()
        left, ended = False, self.batches.has_ended()
        self._catch_up(ended)
        if progress.batch < self.batches.most and not ended:
            left = self._all_batches()
        if trainer.interruption.came and not self.is_over:
            return
        if not (left or ended):
            self._finish_unknown_length()
        self._end_epoch()

    def _catch_up(self, ended: bool) -> None:
        """What follows the last batch, if a resumed run was saved before it."""
        progress, resumed = self._progress, self._is_resumed
        self._is_resumed = False
        if not (resumed and progress.batch):
            return
        due = self._validates_after_end() if ended else self._may_validate and self._validates()
        if due and self._validated != progress.total_batches:
            self._validate()
        if self._step.window.is_empty:
            self._step_by_figures(self._by_step, progress.windows)

    def _all_batches(self) -> bool:
        """Train on the rest of the epoch; returns whether it was left early."""
        progress = self._progress
        for batch in self.batches.epoch(progress.epoch, progress.batch):
            if self._batch(batch):
                return True
            if self._stops_here():
                return self._trainer.interruption.came or not self.batches.ends_here()
        if not progress.batch:
            raise DataError.here(
                f"Trainer.fit: expected batches, got an empty loader: {self.batches.loader!r:.80}"
            )
        return False

    def _batch(self, batch: Any) -> bool:
        """Train on a batch; returns whether a hook ends the epoch."""
        trainer, progress, index = self._trainer, self._progress, self._progress.batch
        self.is_last_batch = is_last = index + 1 >= self.batches.most
        batch = self._received(batch) if self._moves else tensors(batch)
        trainer.begin_batch(batch)
        for call in self._starts:
            if call(batch, index) == -1:
                self._step_schedules(self._by_epoch, progress.epoch + 1)
                return True
        self.is_consistent = False
        before = progress.global_step
        output = self._step(batch, index, is_last)
        closed = self._step.window.is_empty
        progress.batch = index + 1
        progress.total_batches += 1
        if closed:
            progress.windows += 1
        if progress.global_step != before:
            progress.updated = progress.total_batches
        self.is_consistent = True
        if closed and self._by_step:
            self._step_schedules(self._by_step, progress.windows)
        if is_last:
            self._step_schedules(self._by_epoch, progress.epoch + 1)
        self._after_batch(output, batch, closed)
        return False

    def _after_batch(self, output: Any, batch: Any, closed: bool) -> None:
        trainer, progress = self._trainer, self._progress
        self.validates_next = self._may_validate and self._validates()
        if self._ends:
            outputs = _outputs(output)
            for call in self._ends:
                call(outputs, batch, progress.batch - 1)
        trainer.end_batch()
        if closed and trainer.loggers and trainer.logs_at(progress.windows):
            trainer.write_step()
        if self.validates_next or self._validates_before_stop():
            self._validate()
        if closed and self._by_step:
            self._step_by_figures(self._by_step, progress.windows)

    def replace_batches(self, batches: Batches) -> None:
        """Train on other batches from the next epoch on."""
        self.batches = batches
        self._every = self._validation_interval()

    def repeat_steps(self) -> None:
        """Call `training_step` for the batches of an epoch, without updates and logging."""
        trainer = self._trainer
        results, trainer.results = trainer.results, None
        most = None if self.batches.most == math.inf else int(self.batches.most)
        for index, batch in enumerate(itertools.islice(self.batches.loader, most)):
            with trainer.precision.forward():
                self._step.forward(self._received(batch) if self._moves else tensors(batch), index)
        trainer.results = results

    def _received(self, batch: Any) -> Any:
        """The batch, converted by the module."""
        return received(self._trainer, self._module, batch, 0)

    # -- between batches

    def _validates(self) -> bool:
        trainer, progress = self._trainer, self._progress
        if trainer.check_val_every_n_epoch is None:
            return progress.total_batches % self._every == 0
        if (progress.epoch + 1) % trainer.check_val_every_n_epoch:
            return False
        if self._seconds is not None:
            return time.monotonic() - self._clock >= self._seconds
        return progress.batch % self._every == 0

    def _validates_before_stop(self) -> bool:
        """Whether validation follows because a stop was requested within the epoch."""
        trainer, every = self._trainer, self._trainer.check_val_every_n_epoch
        if not (trainer.should_stop and self.validation is not None and self._may_stop()):
            return False
        return every is None or (self._progress.epoch + 1) % every == 0

    def _validate(self) -> None:
        if self.validation is not None:
            self._trainer.validating = True
            try:
                self.validation.run()
            finally:
                self._trainer.validating = False
                self._clock = time.monotonic()

    def note_validation(self) -> None:
        """Count a validation, whose metrics are known now."""
        self.validations += 1
        self._validated = self._progress.total_batches

    def _finish_unknown_length(self) -> None:
        """The work after the last batch, if only the loader's end revealed that it was the last."""
        if not self.batches.exhausted:
            return
        progress = self._progress
        if self._step.finish():
            progress.windows += 1
            self._step_schedules(self._by_step, progress.windows)
            self._step_by_figures(self._by_step, progress.windows)
        self._step_schedules(self._by_epoch, progress.epoch + 1)
        if self._validates_after_end():
            self._validate()

    def _validates_after_end(self) -> bool:
        """Whether validation follows the end of a loader, as no batch was known to be the last."""
        every, progress = self._trainer.check_val_every_n_epoch, self._progress
        due = every is not None and (progress.epoch + 1) % every == 0
        return due and self._every > progress.batch

    @property
    def is_over(self) -> bool:
        """Whether no batch of the epoch is left."""
        return self.batches.exhausted or self._progress.batch >= self.batches.most

    def _end_epoch(self) -> None:
        trainer, progress = self._trainer, self._progress
        if trainer.stops_on_nan:
            self.is_consistent = False  # a report puts weights back
            self._step.watch.end()
            self.is_consistent = True
        over = self.is_over or not self._stops_here()
        events = trainer.events
        early, late = events.parts("on_train_epoch_end")
        trainer.publish_train()
        for call in early:
            call()
        trainer.publish_train()
        if over:
            self._step_by_figures(self._by_epoch, progress.epoch + 1)
            self._check_figures()
        self.at_epoch_end = over
        for call in late:
            call()
        trainer.write_epoch()
        if over:
            trainer.results.reset()
            with Uninterrupted():
                progress.next_epoch()
        self.at_epoch_end = False

    # -- schedules

    def replace_schedules(self, scheduler: Any) -> None:
        """Step only this scheduler from now on, after each epoch."""
        self._by_step, self._by_epoch = [], [Schedule(scheduler)]

    def _step_schedules(self, schedules: list[Schedule], count: int) -> None:
        """Step the schedulers that need no metric, after `count` intervals."""
        for schedule in schedules:
            if not schedule.reduce_on_plateau:
                self._step_schedule(schedule, count, None)

    def _step_by_figures(self, schedules: list[Schedule], count: int) -> None:
        """Step the schedulers that monitor a metric; after steps, only if it has a new value."""
        trainer = self._trainer
        for schedule in schedules:
            name = schedule.monitor or ""
            if not schedule.reduce_on_plateau or name not in (figures := trainer.callback_metrics):
                continue
            stamp = trainer.stamp_of(name)
            is_new = schedule.interval == "epoch" or stamp != schedule.seen
            if is_new and self._step_schedule(schedule, count, figures[name]):
                schedule.seen = stamp

    def _step_schedule(self, schedule: Schedule, count: int, figure: Any) -> bool:
        due = self._module.automatic_optimization and count % schedule.frequency == 0
        if due:
            self._module.lr_scheduler_step(schedule.scheduler, figure)
        return due

    def _check_figures(self) -> None:
        """Require the metrics of schedulers, once those of an epoch are known."""
        figures = self._trainer.callback_metrics
        for schedule in (*self._by_epoch, *self._by_step):
            if not schedule.reduce_on_plateau or schedule.monitor in figures:
                continue
            text = (
                f"ReduceLROnPlateau: expected the metric {schedule.monitor!r} to be logged, got "
                f"{sorted(figures)}{at_user_line()}"
            )
            if schedule.strict and not self.awaits_metrics:
                raise UnknownKeyError(text)
            warn(text)

    # -- state

    def state_dict(self) -> dict[str, Any]:
        """Counts, the data position, and this epoch's reductions so far."""
        over = self.at_epoch_end
        return {
            "progress": self._progress.state_dict(over),
            "batches": self.batches.state_dict(over or self.is_over, over),
            "window": self._step.window.state_dict(),
            "results": {} if over else self._trainer.results_of("fit").state_dict(),
            "figures": self._trainer.figures_state(),
            "validated": self._validated,
            "validations": self.validations,
            "seen": [s.seen for s in self._trainer.schedules],
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Resume there."""
        self._progress.load_state_dict(state["progress"])
        self.batches.load_state_dict(state["batches"])
        self._step.window.load_state_dict(state["window"])
        results = self._trainer.results_of("fit")
        results.load_state_dict(state["results"], self._trainer.strategy)
        if "figures" in state:  # absent in files of earlier versions
            self._trainer.load_figures_state(state["figures"])
            self._validated, self.validations = int(state["validated"]), int(state["validations"])
            for schedule, seen in zip(self._trainer.schedules, state["seen"], strict=True):
                schedule.seen = int(seen)
            self._is_resumed = True


def _outputs(output: Any) -> dict[str, Any]:
    """What hooks get of a step: a dictionary, with the loss if there is one."""
    if output is None:
        return {}
    return output if isinstance(output, dict) else {"loss": output}
