"""Hooks that write files: checkpoints, summaries, profiles."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from weft.errors import ArgumentError, GraphError
from weft.tf1 import logging
from weft.tf1.framework.collection import GraphKeys
from weft.tf1.framework.default_graph import get_collection
from weft.tf1.framework.graph import fail
from weft.tf1.session.tracing import RunMetadata, RunOptions
from weft.tf1.summary.writer import FileWriterCache
from weft.tf1.train.hook.run_hook import SessionRunArgs, SessionRunContext, SessionRunValues
from weft.tf1.train.hook.step import StepHook
from weft.tf1.train.hook.timer import SecondOrStepTimer

__all__ = ["CheckpointSaverHook", "CheckpointSaverListener", "ProfilerHook", "SummarySaverHook"]

START, CHECKPOINT = 1, 3  # of a session's events


class CheckpointSaverListener:
    """Called around the checkpoints of a `CheckpointSaverHook`."""

    def begin(self) -> None:
        """Before the session is created: add operations here."""

    def before_save(self, session: Any, global_step_value: int) -> None:
        """Before a checkpoint."""

    def after_save(self, session: Any, global_step_value: int) -> bool | None:
        """After a checkpoint; returning `True` asks to stop."""

    def end(self, session: Any, global_step_value: int) -> None:
        """At the end, after the last checkpoint."""


class CheckpointSaverHook(StepHook):
    """Saves a checkpoint at the start, periodically, and at the end.

    Args:
        checkpoint_dir: the folder.
        save_secs, save_steps: how often; exactly one is given.
        saver: by default the scaffold's; else the only one in `GraphKeys.SAVERS`.
        checkpoint_basename: the prefix of the file names, before the step.
        scaffold: provides the saver.
        listeners: are called around each checkpoint.
    """

    def __init__(
        self, checkpoint_dir: str, save_secs: float | None = None, save_steps: int | None = None,
        saver: Any = None, checkpoint_basename: str = "model.ckpt", scaffold: Any = None,
        listeners: Sequence[CheckpointSaverListener] | None = None,
    ) -> None:  # fmt: skip
        if saver is not None and scaffold is not None:
            raise fail(
                ArgumentError, "CheckpointSaverHook: expected a saver or a scaffold, not both"
            )
        self._saver, self._scaffold = saver, scaffold
        self._folder = os.fspath(checkpoint_dir)
        self._path = os.path.join(self._folder, checkpoint_basename)
        self._timer = SecondOrStepTimer(save_secs, save_steps)
        self._listeners = list(listeners or ())

    def begin(self) -> None:
        """Create the folder."""
        super().begin()
        self._writer = FileWriterCache.get(self._folder)
        for listener in self._listeners:
            listener.begin()

    def after_create_session(self, session: Any, coord: Any) -> None:
        """Save at the start of training."""
        step = int(session.run(self._step))
        self._writer.add_graph(session.graph)
        self._save(session, step)
        self._timer.update_last_triggered_step(step)

    def after_run(self, run_context: SessionRunContext, run_values: SessionRunValues) -> None:
        """Save, if due."""
        step = int(run_values.results)
        if self._timer.should_trigger_for_step(step):
            self._timer.update_last_triggered_step(step)
            if self._save(run_context.session, step):
                run_context.request_stop()

    def end(self, session: Any) -> None:
        """Save, if there were steps since the last checkpoint."""
        step = int(session.run(self._step))
        if step != self._timer.last_triggered_step():
            self._save(session, step)
        for listener in self._listeners:
            listener.end(session, step)
        self._writer.flush()

    def _save(self, session: Any, step: int) -> bool:
        """Save; returns whether a listener asks to stop."""
        for listener in self._listeners:
            listener.before_save(session, step)
        logging.info("Saving checkpoints for %d into %s.", step, self._path)
        self._chosen().save(session, self._path, global_step=step)
        self._writer.add_session_log(CHECKPOINT, step)
        return any([listener.after_save(session, step) for listener in self._listeners])

    def _chosen(self) -> Any:
        found = self._saver if self._scaffold is None else self._scaffold.saver
        if found is None:
            savers = get_collection(GraphKeys.SAVERS)
            if len(savers) != 1:
                raise fail(
                    GraphError,
                    f"CheckpointSaverHook: expected one saver in GraphKeys.SAVERS, found "
                    f"{len(savers)}; give the hook a saver or a scaffold",
                )
            found = self._saver = savers[0]
        return found


class SummarySaverHook(StepHook):
    """Writes summaries at the first run, and periodically.

    Args:
        save_steps, save_secs: how often; exactly one is given.
        output_dir: the folder of the event file.
        summary_writer: a writer instead of a folder.
        scaffold: provides the summary; or
        summary_op: a summary, or a list of them.
    """

    def __init__(
        self, save_steps: int | None = None, save_secs: float | None = None,
        output_dir: str | None = None, summary_writer: Any = None, scaffold: Any = None,
        summary_op: Any = None,
    ) -> None:  # fmt: skip
        if (scaffold is None) == (summary_op is None):
            raise fail(ArgumentError, "SummarySaverHook: expected either scaffold or summary_op")
        self._summary, self._scaffold = summary_op, scaffold
        self._writer, self._folder = summary_writer, output_dir
        self._timer = SecondOrStepTimer(save_secs, save_steps)

    def begin(self) -> None:
        """Open the writer."""
        super().begin()
        if self._writer is None and self._folder:
            self._writer = FileWriterCache.get(self._folder)
        self._next: int | None = None

    def before_run(self, run_context: SessionRunContext) -> SessionRunArgs | None:
        """Fetch the summaries, if due."""
        self._due = self._next is None or self._timer.should_trigger_for_step(self._next)
        return SessionRunArgs([self._step, *self._summaries()] if self._due else [self._step])

    def _summaries(self) -> list[Any]:
        found = self._summary if self._scaffold is None else self._scaffold.summary_op
        if found is None:
            return []
        return found if isinstance(found, list) else [found]

    def after_run(self, run_context: SessionRunContext, run_values: SessionRunValues) -> None:
        """Write the summaries."""
        step, *summaries = run_values.results
        if self._writer is not None:
            if self._next is None:
                self._writer.add_session_log(START, step)
            for summary in summaries:
                self._writer.add_summary(summary, step)
        if self._due:
            self._timer.update_last_triggered_step(int(step))
        self._next = int(step) + 1

    def end(self, session: Any) -> None:
        """Flush the file."""
        if self._writer is not None:
            self._writer.flush()


class ProfilerHook(StepHook):
    """Profiles the kernels of a run periodically.

    Writes `timeline-<step>.json` for chrome://tracing, and the times for TensorBoard's graph.

    Args:
        save_steps, save_secs: how often; exactly one is given.
        output_dir: the folder.
        show_dataflow, show_memory: accepted; they have no effect.
    """

    def __init__(
        self, save_steps: int | None = None, save_secs: float | None = None, output_dir: str = "",
        show_dataflow: bool = True, show_memory: bool = False,
    ) -> None:  # fmt: skip
        del show_dataflow, show_memory
        self._folder = Path(output_dir)
        self._timer = SecondOrStepTimer(save_secs, save_steps)
        self._next: int | None = None

    def before_run(self, run_context: SessionRunContext) -> SessionRunArgs | None:
        """Request a profile, if due."""
        self._due = self._next is not None and self._timer.should_trigger_for_step(self._next)
        options = RunOptions(trace_level=RunOptions.FULL_TRACE) if self._due else None
        return SessionRunArgs(self._step, options=options)

    def after_run(self, run_context: SessionRunContext, run_values: SessionRunValues) -> None:
        """Write the profile."""
        step = int(run_values.results)
        if self._due:
            metadata: RunMetadata = run_values.run_metadata
            writer = FileWriterCache.get(self._folder)
            (self._folder / f"timeline-{step}.json").write_text(json.dumps(_trace(metadata)))
            writer.add_run_metadata(metadata, f"step_{step}", step)
        if self._due or self._next is None:  # the first interval counts from the start
            self._timer.update_last_triggered_step(step if self._due else step - 1)
        self._next = step + 1


def _trace(metadata: RunMetadata) -> dict[str, Any]:
    """Times in the format of chrome://tracing."""
    events = [
        {"name": t.name, "ph": "X", "ts": t.start, "dur": t.duration, "pid": 0, "tid": t.thread}
        for t in metadata.times
    ]
    return {"traceEvents": events}
