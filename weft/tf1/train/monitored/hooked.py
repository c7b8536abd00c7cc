"""A session with hooks and threads; each step is one program."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from typing import Any

from weft.errors import FeedError, StateError
from weft.tf1 import logging
from weft.tf1.errors import AbortedError, UnavailableError
from weft.tf1.framework.graph import fail
from weft.tf1.session.tracing import RunMetadata, RunOptions
from weft.tf1.train.coordinator import Coordinator
from weft.tf1.train.hook.run_hook import (
    SessionRunArgs,
    SessionRunContext,
    SessionRunHook,
    SessionRunValues,
)
from weft.tf1.train.queue_runner import start_queue_runners

PREEMPTIONS = (AbortedError, UnavailableError)


class FedTwiceError(FeedError, RuntimeError):
    """Two hooks, or a hook and the program, feed one tensor; a `RuntimeError` as in TensorFlow."""


class HookedSession:
    """Runs the fetches of the program and its hooks as one step.

    Args:
        session: the underlying session, with initialized variables.
        hooks: called in this order.
        grace: the seconds that threads have to end.
    """

    def __init__(self, session: Any, hooks: Sequence[SessionRunHook], grace: float) -> None:
        self.session, self._hooks, self._grace = session, hooks, grace
        self.coord = Coordinator(clean_stop_exception_types=[])
        self._stop = False
        self._steps: Any = session
        try:
            start_queue_runners(session, self.coord)
            for hook in hooks:
                hook.after_create_session(session, self.coord)
            if self.coord.has_threads:  # of the graph's queue runners, or of hooks
                self._watch()
        except BaseException:
            self.close()
            raise

    def _watch(self) -> None:
        """Have an interruption of a thread end a step too that waits for what it would bring."""
        self._steps = self.session.child()

        def watch() -> None:
            self.coord.wait_for_stop()
            try:
                self.coord.raise_requested_exception()
            except PREEMPTIONS:
                self._steps.give_up()
            except Exception:
                return  # its queue is closed, which ends the step

        thread = threading.Thread(target=watch, name="interrupted-steps", daemon=True)
        self.coord.register_thread(thread)
        thread.start()

    def should_stop(self) -> bool:
        """Whether a hook or a thread asked to stop; raises a thread's exception."""
        self.coord.raise_requested_exception()
        return self._stop or self.coord.should_stop()

    def run(self, fetches: Any, feed_dict: Any, options: Any, run_metadata: Any) -> Any:
        """The values of `fetches`, as `Session.run` gives them.

        Raises:
            StateError: a stop was requested.
            FeedError: a tensor is fed twice.
        """
        try:
            return self._step(fetches, feed_dict, options, run_metadata)
        except PREEMPTIONS:
            raise
        except Exception as error:
            self._raise_preemption(error)
            raise

    def _raise_preemption(self, error: Exception) -> None:
        """A preemption reported by a thread explains an error of the step."""
        try:
            self.coord.raise_requested_exception()
        except PREEMPTIONS as preemption:
            raise preemption from error
        except Exception:
            return  # close() raises it

    def _step(self, fetches: Any, feed_dict: Any, options: Any, run_metadata: Any) -> Any:
        if self._stop:  # a stop that a thread asked for is told by should_stop() and close()
            raise fail(StateError, "run: expected a session that goes on, got one that should stop")
        context = SessionRunContext(SessionRunArgs(fetches, feed_dict), self.session)
        asked = [hook.before_run(context) for hook in self._hooks]
        feeds = _merged_feeds(feed_dict, [a.feed_dict for a in asked if a and a.feed_dict])
        options = _merged_options(options, [a.options for a in asked if a and a.options])
        metadata = RunMetadata() if run_metadata is None else run_metadata
        extra = [a.fetches for a in asked if a and a.fetches is not None]
        found = self._steps.run([fetches, *extra], feeds, options, metadata)
        rest = iter(found[1:])
        for hook, args in zip(self._hooks, asked, strict=True):
            results = next(rest) if args and args.fetches is not None else None
            hook.after_run(context, SessionRunValues(results, options, metadata))
        self._stop = self._stop or context.stop_requested
        return found[0]

    def close(self) -> None:
        """End the threads and close the session; raises the exception of a stop request."""
        self.coord.request_stop()
        try:
            self.coord.join(stop_grace_period_secs=self._grace, ignore_live_threads=True)
        except PREEMPTIONS as error:
            logging.error("A thread was interrupted while the session was closed: %s", error)
        finally:
            self.session.close()


def _merged_feeds(given: Mapping[Any, Any] | None, asked: Sequence[Mapping[Any, Any]]) -> Any:
    if not asked:
        return given
    feeds = dict(given or {})
    for more in asked:
        twice = [key for key in more if key in feeds]
        if twice:
            user = any([key in (given or ()) for key in twice])
            whom = "a SessionRunHook and user" if user else "two hooks"
            text = f"Same tensor is fed by {whom}: a hook feeds {twice} again"
            raise fail(FedTwiceError, f"run: {text}")
        feeds.update(more)
    return feeds


def _merged_options(given: Any, asked: Sequence[Any]) -> Any:
    """The combined options of a run: the highest trace level."""
    every: list[Any] = [o for o in (given, *asked) if o is not None]
    return max(every, key=lambda o: o.trace_level) if every else RunOptions()
