"""`tf.train.MonitoredSession` and its variants."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from typing import Any

from weft.errors import ArgumentError, StateError
from weft.tf1 import logging
from weft.tf1.errors import OutOfRangeError
from weft.tf1.framework.graph import Graph, fail, get_default_graph
from weft.tf1.session.options import ConfigProto
from weft.tf1.session.tracing import RunMetadata, RunOptions
from weft.tf1.train.hook.run_hook import SessionRunHook
from weft.tf1.train.monitored.creator import ChiefSessionCreator, SessionCreator
from weft.tf1.train.monitored.hooked import PREEMPTIONS, HookedSession
from weft.tf1.train.monitored.scaffold import Scaffold

__all__ = ["MonitoredSession", "SingularMonitoredSession"]


class StepContext:
    """The argument of the function of `run_step_fn`.

    Attributes:
        session: the underlying session; its runs call no hooks.
        run_with_hooks: `MonitoredSession.run`.
    """

    def __init__(self, session: Any, run_with_hooks: Callable[..., Any]) -> None:
        self.session, self.run_with_hooks = session, run_with_hooks

    def request_stop(self) -> None:
        """End the function and the loop around it: raises `StopIteration`."""
        raise StopIteration("the step function asked to stop")


class BaseMonitoredSession:
    """A session with hooks, closed by the `with` block around it.

    The end of the data (`OutOfRangeError`) or `StopIteration` ends the block without an error.
    After any other error the session is closed without calling the hooks' `end`.
    """

    StepContext = StepContext

    def __init__(
        self, creator: SessionCreator | None, hooks: Iterable[SessionRunHook] | None,
        recovers: bool, grace: float,
    ) -> None:  # fmt: skip
        self._owner = get_default_graph()
        self._was_finalized = self._owner.finalized
        self._hooks = list(hooks or ())
        for hook in self._hooks:
            hook.begin()
        self._creator, self._grace = creator or ChiefSessionCreator(), grace
        self._recovers, self._closed = recovers, False
        self._hooked: HookedSession | None = self._create()

    def _create(self) -> HookedSession:
        while True:
            try:
                return HookedSession(self._creator.create_session(), self._hooks, self._grace)
            except PREEMPTIONS as error:
                if not self._recovers:
                    raise
                logging.info("The session is made anew: %s", error)

    @property
    def graph(self) -> Graph | None:
        """The graph; `None` once the session is closed."""
        return None if self._hooked is None else self._hooked.session.graph

    def should_stop(self) -> bool:
        """Whether to end the loop: a hook or a thread asked to, or the session is closed."""
        if self._hooked is None:
            return self._closed
        if not self._recovers:
            return self._hooked.should_stop()
        try:
            return self._hooked.should_stop()
        except PREEMPTIONS as error:
            self._drop(error)
            self._hooked = self._create()
            return False
        except Exception:
            return True  # close() raises it

    def run(
        self, fetches: Any, feed_dict: Any = None, options: RunOptions | None = None,
        run_metadata: RunMetadata | None = None,
    ) -> Any:  # fmt: skip
        """Like `Session.run`, with the hooks' fetches in the same step.

        Raises:
            StateError: a stop was requested before, or the session is closed.
        """
        return self._again(lambda hooked: hooked.run(fetches, feed_dict, options, run_metadata))

    def run_step_fn(self, step_fn: Callable[..., Any]) -> Any:
        """Call a function of `step_context`, which can run with or without hooks.

        Raises:
            ArgumentError: the function has other parameters.
            StopIteration: the function asked to stop; the `with` block ends.
        """
        names = [name for name in inspect.signature(step_fn).parameters if name != "self"]
        if names != ["step_context"]:
            raise fail(
                ArgumentError,
                f"run_step_fn: expected a function of step_context, got one of {names}: `step_fn` "
                "may either have one `step_context` argument, or be a method that has",
            )
        return self._again(
            lambda hooked: step_fn(StepContext(hooked.session, _with_defaults(hooked)))
        )

    def _again(self, step: Callable[[HookedSession], Any]) -> Any:
        """A step, repeated in a new session if this one was interrupted."""
        while True:
            if self._closed:
                raise fail(StateError, "run: Session is already closed")
            try:
                if self._hooked is None:
                    self._hooked = self._create()
                return step(self._hooked)
            except PREEMPTIONS as error:
                if not self._recovers:
                    raise
                self._drop(error)

    def _drop(self, error: Exception) -> None:
        logging.info("The session is closed and another made: %s", error)
        hooked, self._hooked = self._hooked, None
        if hooked is not None:
            hooked.close()

    def close(self) -> None:
        """Call the hooks' `end` and close the session.

        Raises:
            StateError: it is closed.
        """
        self._close(call_end=True)

    def _close(self, call_end: bool) -> None:
        if self._closed:
            raise fail(StateError, "close: Session is already closed")
        hooked = self._hooked
        try:
            if call_end and hooked is not None:
                for hook in self._hooks:
                    hook.end(hooked.session)
        finally:
            self._hooked, self._closed = None, True
            if not self._was_finalized:
                self._owner.unfinalize()
            if hooked is not None:
                hooked.close()

    def __enter__(self) -> Any:
        return self

    def __exit__(self, kind: Any, *_: object) -> bool:
        clean = kind is None or issubclass(kind, OutOfRangeError | StopIteration)
        self._close(call_end=clean)
        return clean


def _with_defaults(hooked: HookedSession) -> Callable[..., Any]:
    def run(
        fetches: Any, feed_dict: Any = None, options: Any = None, run_metadata: Any = None
    ) -> Any:
        return hooked.run(fetches, feed_dict, options, run_metadata)

    return run


class MonitoredSession(BaseMonitoredSession):
    """A session with hooks, which is recreated after `AbortedError` and `UnavailableError`.

    Args:
        session_creator: `ChiefSessionCreator()` by default.
        hooks: called in this order.
        stop_grace_period_secs: the seconds that threads have to end when it is closed.
    """

    def __init__(
        self,
        session_creator: SessionCreator | None = None,
        hooks: Iterable[SessionRunHook] | None = None,
        stop_grace_period_secs: float = 120,
    ) -> None:
        super().__init__(session_creator, hooks, True, stop_grace_period_secs)


class SingularMonitoredSession(BaseMonitoredSession):
    """A session with hooks and a usable underlying session, which is never recreated.

    Args:
        hooks, stop_grace_period_secs: as in `MonitoredSession`.
        scaffold, master, config, checkpoint_dir, checkpoint_filename_with_path: as in
            `ChiefSessionCreator`.
    """

    def __init__(
        self, hooks: Iterable[SessionRunHook] | None = None, scaffold: Scaffold | None = None,
        master: str = "", config: ConfigProto | None = None, checkpoint_dir: str | None = None,
        stop_grace_period_secs: float = 120, checkpoint_filename_with_path: str | None = None,
    ) -> None:  # fmt: skip
        creator = ChiefSessionCreator(
            scaffold, master, config, checkpoint_dir, checkpoint_filename_with_path
        )
        super().__init__(creator, hooks, False, stop_grace_period_secs)

    def raw_session(self) -> Any:
        """The underlying session, `None` once it is closed; its runs call no hooks."""
        return None if self._hooked is None else self._hooked.session
