"""`tf.train.SessionRunHook`, and what hooks and session pass to each other."""

from __future__ import annotations

from typing import Any, NamedTuple

__all__ = ["SessionRunArgs", "SessionRunContext", "SessionRunHook", "SessionRunValues"]


class SessionRunArgs(NamedTuple):
    """A hook's additions to a run, or the program's own arguments.

    Attributes:
        fetches: as `session.run` takes them; a hook gets their values in `after_run`.
        feed_dict: values for tensors that neither the program nor another hook feeds.
        options: a `tf.RunOptions`.
    """

    fetches: Any
    feed_dict: Any = None
    options: Any = None


class SessionRunValues(NamedTuple):
    """The results of a run: the values of the hook's fetches, its options and metadata.

    Attributes:
        results: the values, nested as the fetches.
        options: the run's `RunOptions`.
        run_metadata: its `RunMetadata`.
    """

    results: Any
    options: Any
    run_metadata: Any


class SessionRunContext:
    """The current run.

    Attributes:
        original_args: the `SessionRunArgs` of the program.
        session: the `tf.Session` below; its runs call no hooks.
    """

    def __init__(self, original_args: SessionRunArgs, session: Any) -> None:
        self.original_args = original_args
        self.session = session
        self._stop = False

    @property
    def stop_requested(self) -> bool:
        """Whether a stop was requested."""
        return self._stop

    def request_stop(self) -> None:
        """Make `should_stop()` of the session true."""
        self._stop = True


class SessionRunHook:
    """Called around the runs of a `MonitoredSession`; override the methods needed.

    The order: `begin`, `after_create_session`, then `before_run` and `after_run` of each run, and
        `end`. A session that is recreated after an `AbortedError` calls `after_create_session`
        again.
    """

    def begin(self) -> None:
        """Called once, before the session is created: add operations here."""

    def after_create_session(self, session: Any, coord: Any) -> None:
        """Called when variables are initialized and the graph is finalized."""

    def before_run(self, run_context: SessionRunContext) -> SessionRunArgs | None:
        """Called before each run; the returned fetches are part of the same step."""

    def after_run(self, run_context: SessionRunContext, run_values: SessionRunValues) -> None:
        """Called after each successful run."""

    def end(self, session: Any) -> None:
        """Called before the session is closed, at the data's end too, but after no other error."""
