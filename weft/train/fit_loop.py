"""The training loop: epochs of batches with validation in between, up to a limit."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from weft.errors import ArgumentError, DataError, UnknownKeyError
from weft.interrupt import Uninterrupted
from weft.ops.base import at_user_line
from weft.train.batches import Batches, tensors
from weft.train.evaluation_loop import EvaluationLoop, received
from weft.train.events import defines
from weft.train.hooks import Hooks
from weft.train.optimization import Step


class FitLoop:
    """Epochs of training.

    Args:
        trainer: its events are emitted; it has limits and progress.
        module: the module to train.
        step: makes the training steps.
        batches: the training data.
        validation: the validation loop, or `None`.
    """

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
        hooks = [f"on_{n}_batch_transfer" for n in ("before", "after")]
        self._moves = trainer.precision.converts or any(
            [defines(module, name, Hooks) for name in hooks]
        )
        self._every = self._validation_interval()
        self._may_validate = validation is not None and self._every != math.inf
        self.at_epoch_end = False
        self._by_step = [s for s in trainer.schedules if s.interval == "step"]
        self._by_epoch = [s for s in trainer.schedules if s.interval == "epoch"]
        self.is_last_batch = False

    def _validation_interval(self) -> float:
        """Batches between validations; infinite: validate when the loader ends."""
        interval, count = self._trainer.val_check_interval, self.batches.most
        if isinstance(interval, int):
            if self._trainer.check_val_every_n_epoch is not None and interval > count:
                raise ArgumentError(
                    f"Trainer: expected val_check_interval up to the {count} batches of an epoch, "
                    f"got {interval}; with check_val_every_n_epoch=None it counts batches of all "
                    f"epochs{at_user_line()}"
                )
            return interval
        if count == math.inf and interval != 1.0:
            raise ArgumentError(
                "Trainer: expected val_check_interval as a number of batches, as the loader has no "
                f"length, got {interval!r}{at_user_line()}"
            )
        return count if interval == 1.0 else max(int(count * interval), 1)

    # -- the run

    def run(self) -> None:
        """Train until a limit is reached or a stop is requested."""
        trainer = self._trainer
        trainer.events.tell("on_train_start")
        while not self._is_done():
            self._epoch()
            if trainer.interruption.came:
                return
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
        if trainer.stops_on_nan:
            self._step.watch.begin()
        trainer.results = trainer.results_of("fit")
        trainer.events.tell("on_train_epoch_start")
        left = False
        if progress.batch < self.batches.most and not self.batches.is_at_end:
            left = self._all_batches()
        if trainer.interruption.came and not self.is_over:
            return
        if not left:
            self._finish_unknown_length()
        self._end_epoch()

    def _all_batches(self) -> bool:
        """Train on the rest of the epoch; returns whether it was left early."""
        progress = self._progress
        for batch in self.batches.epoch(progress.epoch, progress.batch):
            if self._batch(batch) or self._stops_here():
                return True
        if not progress.batch:
            raise DataError(
                f"Trainer.fit: expected batches, got an empty loader: {self.batches.loader!r:.80}"
                f"{at_user_line()}"
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
                return True
        output = self._step(batch, index, is_last)
        closed = self._step.window.is_empty
        progress.batch = index + 1
        progress.total_batches += 1
        if closed:
            progress.windows += 1
            if self._by_step:
                self._step_schedules(self._by_step, progress.windows, False)
                self._step_schedules(self._by_step, progress.windows, True)
        if is_last:
            self._step_schedules(self._by_epoch, progress.epoch + 1, False)
        for call in self._ends:
            call(output, batch, index)
        trainer.end_batch()
        if closed and trainer.loggers and progress.global_step % trainer.log_every_n_steps == 0:
            trainer.write_step()
        if self._may_validate and self._validates(is_last):
            self._validate()
        return False

    def _received(self, batch: Any) -> Any:
        """The batch, converted by the module."""
        return received(self._trainer, self._module, batch, 0)

    # -- between batches

    def _validates(self, is_last: bool) -> bool:
        trainer, progress = self._trainer, self._progress
        if trainer.check_val_every_n_epoch is None:
            return progress.total_batches % self._every == 0
        if (progress.epoch + 1) % trainer.check_val_every_n_epoch:
            return False
        return progress.batch % self._every == 0

    def _validate(self) -> None:
        if self.validation is not None:
            self._trainer.validating = True
            try:
                self.validation.run()
            finally:
                self._trainer.validating = False

    def _finish_unknown_length(self) -> None:
        """The work after the last batch, if only the loader's end revealed that it was the last."""
        if not self.batches.exhausted:
            return
        progress, trainer = self._progress, self._trainer
        if self._step.finish():
            progress.windows += 1
        self._step_schedules(self._by_epoch, progress.epoch + 1, False)
        every = trainer.check_val_every_n_epoch
        if self._every > progress.batch and every is not None and (progress.epoch + 1) % every == 0:
            self._validate()

    @property
    def is_over(self) -> bool:
        """Whether no batch of the epoch is left."""
        return self.batches.exhausted or self._progress.batch >= self.batches.most

    def _end_epoch(self) -> None:
        trainer, progress = self._trainer, self._progress
        if trainer.stops_on_nan:
            self._step.watch.end()
        over = self.is_over or not self._stops_here()
        events = trainer.events
        early, late = events.parts("on_train_epoch_end")
        trainer.publish_train()
        for call in early:
            call()
        trainer.publish_train()
        if over:
            self._step_schedules(self._by_epoch, progress.epoch + 1, True)
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

    def forget_schedules(self) -> None:
        """Skip all schedule steps from now on."""
        self._by_step, self._by_epoch = [], []

    def _step_schedules(self, schedules: list[Any], count: int, by_figure: bool) -> None:
        if not self._module.automatic_optimization:
            return
        for schedule in schedules:
            if schedule.reduce_on_plateau is not by_figure or count % schedule.frequency:
                continue
            figure = self._figure(schedule) if by_figure else None
            if not by_figure or figure is not None:
                self._module.lr_scheduler_step(schedule.scheduler, figure)

    def _figure(self, schedule: Any) -> Any:
        figures = self._trainer.callback_metrics
        if schedule.monitor in figures:
            return figures[schedule.monitor]
        if schedule.strict:
            raise UnknownKeyError(
                f"ReduceLROnPlateau: expected the metric {schedule.monitor!r} to be logged, got "
                f"{sorted(figures)}{at_user_line()}"
            )
        return None

    # -- state

    def state_dict(self) -> dict[str, Any]:
        """Counts, the data position, and this epoch's reductions so far."""
        over = self.at_epoch_end
        return {
            "progress": self._progress.state_dict(over),
            "batches": self.batches.state_dict(over or self.is_over),
            "window": self._step.window.state_dict(),
            "results": {} if over else self._trainer.results_of("fit").state_dict(),
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Resume there."""
        self._progress.load_state_dict(state["progress"])
        self.batches.load_state_dict(state["batches"])
        self._step.window.load_state_dict(state["window"])
        self._trainer.results_of("fit").load_state_dict(state["results"])
