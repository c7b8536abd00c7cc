"""Hooks on values: log them, check for NaN, feed them, or compute them at the end."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np

from weft.errors import ArgumentError, WeftError
from weft.tf1 import logging
from weft.tf1.errors import OutOfRangeError
from weft.tf1.framework.graph import fail, get_default_graph
from weft.tf1.train.hook.run_hook import (
    SessionRunArgs,
    SessionRunContext,
    SessionRunHook,
    SessionRunValues,
)
from weft.tf1.train.hook.timer import NeverTimer, SecondOrStepTimer

__all__ = [
    "FeedFnHook", "FinalOpsHook", "LoggingTensorHook", "NanLossDuringTrainingError",
    "NanTensorHook",
]  # fmt: skip


def _element(given: Any) -> Any:
    """A tensor, or the one with a name; an operation's name stands for its only output."""
    graph = get_default_graph()
    if not isinstance(given, str):
        if getattr(given, "graph", None) is not graph:
            text = f"LoggingTensorHook: expected tensors of the default graph, got {given!r}"
            raise fail(ArgumentError, text)
        return given
    if ":" in given:
        return graph.as_graph_element(given)
    outputs = graph.get_operation_by_name(given).outputs
    if len(outputs) != 1:
        text = f"LoggingTensorHook: {given!r} has {len(outputs)} outputs; name one, as '{given}:0'"
        raise fail(ArgumentError, text)
    return outputs[0]


class LoggingTensorHook(SessionRunHook):
    """Logs values of tensors at level `INFO`: `tf.logging.set_verbosity(tf.logging.INFO)`.

    Args:
        tensors: a dict from labels to tensors or their names, or a list of these.
        every_n_iter: log at every n-th run of this session.
        every_n_secs: log every n seconds instead.
        at_end: log at the end, too; alone, only then.
        formatter: makes the text from a dict of values.

    Raises:
        ArgumentError: both or none of the intervals are given, or one is below 1.
    """

    def __init__(
        self, tensors: Mapping[str, Any] | Iterable[Any], every_n_iter: int | None = None,
        every_n_secs: float | None = None, at_end: bool = False,
        formatter: Callable[[dict[Any, Any]], str] | None = None,
    ) -> None:  # fmt: skip
        never = at_end and every_n_iter is None and every_n_secs is None
        if not never and (every_n_iter is None) == (every_n_secs is None):
            raise fail(
                ArgumentError,
                "LoggingTensorHook: expected at_end, or one of every_n_iter and every_n_secs, "
                f"got every_n_iter={every_n_iter} and every_n_secs={every_n_secs}",
            )
        if every_n_iter is not None and every_n_iter <= 0:
            text = f"LoggingTensorHook: expected every_n_iter above 0, got {every_n_iter}"
            raise fail(ArgumentError, text)
        named = isinstance(tensors, Mapping)
        self._tensors: dict[Any, Any] = dict(tensors) if named else {t: t for t in tensors}
        self._tags: list[Any] = sorted(self._tensors) if named else list(self._tensors)
        self._formatter, self._at_end = formatter, at_end
        self._timer = NeverTimer() if never else SecondOrStepTimer(every_n_secs, every_n_iter)

    def begin(self) -> None:
        """Look up names."""
        self._timer.reset()
        self._runs = 0
        self._fetches = {tag: _element(tensor) for tag, tensor in self._tensors.items()}

    def before_run(self, run_context: SessionRunContext) -> SessionRunArgs | None:
        """Fetch the tensors, if due."""
        self._due = self._timer.should_trigger_for_step(self._runs)
        return SessionRunArgs(self._fetches) if self._due else None

    def after_run(self, run_context: SessionRunContext, run_values: SessionRunValues) -> None:
        """Log the values."""
        if self._due:
            self._write(run_values.results)
        self._runs += 1

    def end(self, session: Any) -> None:
        """Log at the end, if requested."""
        if self._at_end:
            self._write(session.run(self._fetches))

    def _write(self, values: dict[Any, Any]) -> None:
        secs, _ = self._timer.update_last_triggered_step(self._runs)
        with np.printoptions(suppress=True):
            if self._formatter:
                logging.info(self._formatter(values))
                return
            text = ", ".join([f"{tag} = {values[tag]!s}" for tag in self._tags])
        logging.info("%s", text if secs is None else f"{text} ({secs:.3f} sec)")


class NanLossDuringTrainingError(WeftError, RuntimeError):
    """The loss became NaN."""

    def __init__(self) -> None:
        super().__init__("NaN loss during training.")


class NanTensorHook(SessionRunHook):
    """Stops training if the loss is NaN.

    Args:
        loss_tensor: the loss, a scalar.
        fail_on_nan_loss: raise `NanLossDuringTrainingError`; otherwise, ask to stop.
    """

    def __init__(self, loss_tensor: Any, fail_on_nan_loss: bool = True) -> None:
        self._loss, self._fail = loss_tensor, fail_on_nan_loss

    def before_run(self, run_context: SessionRunContext) -> SessionRunArgs | None:
        """Fetch the loss."""
        return SessionRunArgs(self._loss)

    def after_run(self, run_context: SessionRunContext, run_values: SessionRunValues) -> None:
        """Check the loss."""
        if not np.isnan(run_values.results):
            return
        logging.log(
            logging.ERROR if self._fail else logging.WARN, "Model diverged with loss = NaN."
        )
        if self._fail:
            raise NanLossDuringTrainingError
        run_context.request_stop()


class FeedFnHook(SessionRunHook):
    """Feeds each run with the result of a function: a dict from tensors to values.

    Args:
        feed_fn: called before each run.
    """

    def __init__(self, feed_fn: Callable[[], Mapping[Any, Any]]) -> None:
        self.feed_fn = feed_fn

    def before_run(self, run_context: SessionRunContext) -> SessionRunArgs | None:
        """Call the function."""
        return SessionRunArgs(None, self.feed_fn())


class FinalOpsHook(SessionRunHook):
    """Runs tensors or operations at the end.

    Attributes:
        final_ops_values: their results.

    Args:
        final_ops: nested fetches.
        final_ops_feed_dict: what is fed to that run.
    """

    def __init__(self, final_ops: Any, final_ops_feed_dict: Any = None) -> None:
        self._fetches, self._feeds = final_ops, final_ops_feed_dict
        self.final_ops_values: Any = None

    def end(self, session: Any) -> None:
        """Run them."""
        if self._fetches is None:
            return
        try:
            self.final_ops_values = session.run(self._fetches, self._feeds)
        except (OutOfRangeError, StopIteration):
            logging.warn("FinalOpsHook: the final operations read data, whose end was reached.")
            raise
