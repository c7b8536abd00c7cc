"""Hooks that count steps: to stop, to log the speed, to wait.

A hook fetches the global step's variable in the run itself. A fetched variable gives its value at
the end of the step, so no second run is needed.
"""

from __future__ import annotations

import time
from typing import Any

from weft.errors import ArgumentError, GraphError
from weft.tf1 import logging
from weft.tf1.framework.graph import fail
from weft.tf1.summary.proto import Summary
from weft.tf1.summary.writer import FileWriterCache
from weft.tf1.train.hook.run_hook import (
    SessionRunArgs,
    SessionRunContext,
    SessionRunHook,
    SessionRunValues,
)
from weft.tf1.train.hook.timer import SecondOrStepTimer
from weft.tf1.train.learning_rate import get_global_step
from weft.tf1.variable.variable import Variable

__all__ = ["GlobalStepWaiterHook", "StepCounterHook", "StopAtStepHook"]


def needed_global_step(hook: SessionRunHook) -> Variable:
    """The variable of the global step, which the hook requires.

    Raises:
        GraphError: the graph has none.
    """
    found = get_global_step()
    if found is None:
        raise fail(
            GraphError,
            f"{type(hook).__name__}: expected a global step in the graph, found none; call "
            "tf.train.get_or_create_global_step() and give it to minimize()",
        )
    return found


class StepHook(SessionRunHook):
    """A hook that gets the global step after each run."""

    def begin(self) -> None:
        """Find the global step."""
        self._step = needed_global_step(self)

    def before_run(self, run_context: SessionRunContext) -> SessionRunArgs | None:
        """Fetch the global step."""
        return SessionRunArgs(self._step)


class StopAtStepHook(StepHook):
    """Stops after some steps, or at a step.

    Args:
        num_steps: the number of steps from the start of training; exactly one of the two is given.
        last_step: the global step to stop at.
    """

    def __init__(self, num_steps: int | None = None, last_step: int | None = None) -> None:
        if (num_steps is None) == (last_step is None):
            raise fail(
                ArgumentError,
                "StopAtStepHook: expected either num_steps or last_step, "
                f"got num_steps={num_steps} and last_step={last_step}",
            )
        self._num_steps, self._last_step = num_steps, last_step

    def after_create_session(self, session: Any, coord: Any) -> None:
        """Read the first step."""
        if self._last_step is None and self._num_steps is not None:
            self._last_step = int(session.run(self._step)) + self._num_steps

    def after_run(self, run_context: SessionRunContext, run_values: SessionRunValues) -> None:
        """Ask to stop at the last step."""
        if self._last_step is not None and run_values.results >= self._last_step:
            run_context.request_stop()


class StepCounterHook(StepHook):
    """Logs the number of steps per second, and writes it as a summary.

    Args:
        every_n_steps, every_n_secs: how often; exactly one is given.
        output_dir: the folder of the event file.
        summary_writer: a writer instead of a folder.
    """

    def __init__(
        self, every_n_steps: int | None = 100, every_n_secs: float | None = None,
        output_dir: str | None = None, summary_writer: Any = None,
    ) -> None:  # fmt: skip
        self._timer = SecondOrStepTimer(every_n_secs, every_n_steps)
        self._writer, self._folder = summary_writer, output_dir
        self._last: int | None = None

    def begin(self) -> None:
        """Open the writer."""
        super().begin()
        if self._writer is None and self._folder:
            self._writer = FileWriterCache.get(self._folder)
        self._tag = f"{self._step.op.name}/sec"

    def after_run(self, run_context: SessionRunContext, run_values: SessionRunValues) -> None:
        """Log the speed, if due; warn if the step does not change."""
        step = int(run_values.results)
        if self._timer.should_trigger_for_step(step):
            secs, steps = self._timer.update_last_triggered_step(step)
            if secs and steps is not None:
                self._tell(steps / secs, step)
        if step == self._last:
            logging.log_first_n(
                logging.WARN,
                "The global step stays at %s: give tf.train.get_global_step() to "
                "Optimizer.apply_gradients or Optimizer.minimize.", 5, step,
            )  # fmt: skip
        self._last = step

    def _tell(self, speed: float, step: int) -> None:
        if self._writer is not None:
            value = Summary.Value(tag=self._tag, simple_value=speed)
            self._writer.add_summary(Summary(value=[value]), step)
        logging.info("%s: %g", self._tag, speed)


class GlobalStepWaiterHook(StepHook):
    """Lets the first run wait until other threads have advanced the global step.

    Args:
        wait_until_step: the step to wait for.
    """

    def __init__(self, wait_until_step: int) -> None:
        self._until = wait_until_step
        self._waited = wait_until_step <= 0

    def before_run(self, run_context: SessionRunContext) -> SessionRunArgs | None:
        """Wait before the first run."""
        if not self._waited:
            logging.info("Waiting for global step %d before starting training.", self._until)
            while run_context.session.run(self._step) < self._until:
                time.sleep(0.5)
            self._waited = True
