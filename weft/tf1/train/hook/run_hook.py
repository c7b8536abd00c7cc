"""`tf.train.SessionRunHook`, and what a session and its hooks tell each other."""

from __future__ import annotations

from typing import Any, NamedTuple


class SessionRunArgs(NamedTuple):
    """What a hook adds to a run, or what the program gave to it.

    Attributes:
        fetches: as `session.run` takes them; a hook gets their values in `after_run`.
        feed_dict: values for tensors that neither the program nor another hook feeds.
        options: a `tf.RunOptions`.
    """

    fetches: Any
    feed_dict: Any = None
    options: Any = None


class SessionRunValues(NamedTuple):
    """What a run gave: the values of the hook's fetches, its options and its times."""

    results: Any
    options: Any
    run_metadata: Any


class SessionRunContext:
    """The run that is under way.

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
        """Whether a hook asked to stop."""
        return self._stop

    def request_stop(self) -> None:
        """Have `should_stop()` of the session be true from now on."""
        self._stop = True


class SessionRunHook:
    """What is called around the runs of a `MonitoredSession`; override what is needed.

    The order: `begin`, `after_create_session`, then `before_run` and `after_run` of each run, and
    `end`. A session that is made anew after an `AbortedError` calls `after_create_session` again.
    """

    def begin(self) -> None:
        """Called once, before the session is made: the place to add operations."""

    def after_create_session(self, session: Any, coord: Any) -> None:
        """Called when variables have their values and the graph takes no more operations."""

    def before_run(self, run_context: SessionRunContext) -> SessionRunArgs | None:
        """Called before each run; what it returns is run in the same step."""

    def after_run(self, run_context: SessionRunContext, run_values: SessionRunValues) -> None:
        """Called after each run that raised no error."""

    def end(self, session: Any) -> None:
        """Called before the session is closed, unless an error other than the end of data did."""
