"""`tf.train.Supervisor`: threads save while a plain session runs; predates monitored sessions."""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from weft.documentation import Reads
from weft.errors import GraphError, StateError
from weft.tf1 import logging
from weft.tf1.errors import AbortedError
from weft.tf1.framework.graph import Graph, fail, get_default_graph
from weft.tf1.session.options import ConfigProto
from weft.tf1.session.session import Session
from weft.tf1.summary.proto import Summary
from weft.tf1.summary.writer import FileWriter
from weft.tf1.train.coordinator import Coordinator
from weft.tf1.train.learning_rate import get_global_step
from weft.tf1.train.monitored.scaffold import Scaffold
from weft.tf1.train.monitored.session_manager import SessionManager
from weft.tf1.train.queue_runner import start_queue_runners
from weft.tf1.variable.variable_list import global_variables

__all__ = ["Supervisor", "basic_train_loop"]

_DEFAULT: Any = 0


class Supervisor:
    """Restores or initializes a session; threads save checkpoints and summaries meanwhile.

    The graph is then finalized. Threads save when the session starts and periodically, but not at
    the end: for that, a program calls `sv.saver.save(session, sv.save_path,
    global_step=sv.global_step)`.

    Args:
        graph: the default graph by default.
        init_op, init_feed_dict, init_fn, ready_op, ready_for_local_init_op, local_init_op: as in
            `Scaffold`, but `init_fn` takes only the session.
        is_chief: initializes and saves.
        logdir: the folder of checkpoints and summaries; without it, nothing is saved.
        summary_op: by default all summaries of the graph; `None` writes none.
        saver: by default for all global variables; `None` saves and restores nothing.
        global_step: the graph's by default.
        save_summaries_secs, save_model_secs: how often to save; 0 never.
        recovery_wait_secs: the longest wait between two looks whether a chief is ready.
        stop_grace_secs: the seconds that threads have to end.
        checkpoint_basename: the prefix of checkpoint names, before the step.
        session_manager: makes the sessions; by default one with these operations.
        summary_writer: by default a new one; `None` writes nothing.
        local_init_run_options: options of the run of `local_init_op`.
    """

    USE_DEFAULT = _DEFAULT

    def __init__(
        self, graph: Graph | None = None, ready_op: Any = _DEFAULT,
        ready_for_local_init_op: Any = _DEFAULT, is_chief: bool = True, init_op: Any = _DEFAULT,
        init_feed_dict: Any = None, local_init_op: Any = _DEFAULT,
        logdir: str | os.PathLike[str] | None = None, summary_op: Any = _DEFAULT,
        saver: Any = _DEFAULT, global_step: Any = _DEFAULT, save_summaries_secs: float = 120,
        save_model_secs: float = 600, recovery_wait_secs: float = 30, stop_grace_secs: float = 120,
        checkpoint_basename: str = "model.ckpt", session_manager: SessionManager | None = None,
        summary_writer: Any = _DEFAULT, init_fn: Callable[[Any], Any] | None = None,
        local_init_run_options: Any = None,
    ) -> None:  # fmt: skip
        self._graph = graph or get_default_graph()
        self._scaffold = Scaffold(
            init_op=_given(init_op), init_feed_dict=init_feed_dict,
            init_fn=None if init_fn is None else lambda _, session: init_fn(session),
            ready_op=_given(ready_op), ready_for_local_init_op=_given(ready_for_local_init_op),
            local_init_op=_given(local_init_op), summary_op=_given(summary_op), saver=_given(saver),
        )  # fmt: skip
        with self._graph.as_default():
            if not is_chief:
                _check_devices(global_variables())
            self._scaffold.finalize()
        self.session_manager = session_manager or SessionManager(
            self.local_init_op, self.ready_op, self.ready_for_local_init_op, self._graph,
            recovery_wait_secs, local_init_run_options,
        )  # fmt: skip
        self.is_chief, self.coord, self._grace = is_chief, Coordinator(), stop_grace_secs
        self.saver: Any = None if saver is None else self._scaffold.saver
        self.summary_op: Any = None if summary_op is None else self._scaffold.summary_op
        found = get_global_step(self._graph) if global_step is _DEFAULT else global_step
        self.global_step: Any = found
        self.save_summaries_secs, self.save_model_secs = save_summaries_secs, save_model_secs
        self._folder = os.fspath(logdir) if logdir else None
        self.save_path: Any = (
            os.path.join(self._folder, checkpoint_basename) if self._folder else None
        )
        self.summary_writer: Any = summary_writer
        if summary_writer is _DEFAULT:
            writes = self._folder is not None and is_chief
            self.summary_writer = FileWriter(str(self._folder)) if writes else None

    init_op = Reads[Any]("_scaffold.init_op", "Initializes the variables.")
    init_feed_dict = Reads[Any]("_scaffold.init_feed_dict", "Feeds of `init_op`.")
    ready_op = Reads[Any]("_scaffold.ready_op", "Gives the names of uninitialized variables.")
    ready_for_local_init_op = Reads[Any](
        "_scaffold.ready_for_local_init_op", "Gives those of the inputs of `local_init_op`."
    )
    local_init_op = Reads[Any](
        "_scaffold.local_init_op", "Initializes what checkpoints do not contain."
    )

    def prepare_or_wait_for_session(
        self, master: str = "", config: ConfigProto | None = None,
        wait_for_checkpoint: bool = False, max_wait_secs: float = 7200,
        start_standard_services: bool = True,
    ) -> Session:  # fmt: skip
        """A session with initialized variables, beside which the threads run.

        Args:
            master: the target of the session: a server, or "" for this process.
            config: options of the session.
            wait_for_checkpoint: whether a chief waits until there is a checkpoint.
            max_wait_secs: how long to wait for it, or for the chief.
            start_standard_services: whether a chief starts the threads that save.

        Raises:
            DeadlineExceededError: the chief was not ready in time.
        """
        self.coord.clear_stop()
        if self.is_chief:
            session = self.session_manager.prepare_session(
                master, self.init_op, self.saver, None if self.saver is None else self._folder,
                None, wait_for_checkpoint, max_wait_secs, config, self.init_feed_dict,
                self._scaffold.init_fn,
            )  # fmt: skip
        else:
            session = self.session_manager.wait_for_session(master, config, max_wait_secs)
        if self.is_chief and self.summary_writer is not None:
            self.summary_writer.add_graph(self._graph)
        if start_standard_services:
            if self.is_chief:
                self.start_standard_services(session)
            self.start_queue_runners(session)
        return session

    @contextlib.contextmanager
    def managed_session(
        self, master: str = "", config: ConfigProto | None = None,
        start_standard_services: bool = True, close_summary_writer: bool = True,
    ) -> Iterator[Session]:  # fmt: skip
        """A session in a `with` block; the end of the data ends the block without an error."""
        session = None
        try:
            session = self.prepare_or_wait_for_session(
                master, config, start_standard_services=start_standard_services
            )
            yield session
        except Exception as error:  # stop() raises it
            self.request_stop(error)
        finally:
            try:
                self.stop(close_summary_writer=close_summary_writer)
            finally:
                if session is not None:
                    session.close()

    def start_standard_services(self, sess: Session) -> list[threading.Thread]:
        """Start the threads that save; none without a folder.

        Args:
            sess: whose variables are saved.

        Raises:
            StateError: this is not the chief, which writes.
        """
        if not self.is_chief:
            text = "Only chief supervisor can start standard services"
            raise fail(StateError, f"start_standard_services: {text}")
        found: list[threading.Thread] = []
        if self._folder is None:
            return found
        if self.save_summaries_secs and self.summary_writer is not None:
            if self.summary_op is not None:
                found.append(self.loop(self.save_summaries_secs, self._summarize, (sess,)))
            if self.global_step is not None:
                found.append(self.loop(self.save_summaries_secs, self._speed(sess)))
        if self.save_model_secs and self.saver is not None:
            found.append(self.loop(self.save_model_secs, self._save, (sess,)))
        return found

    def _save(self, session: Session) -> None:
        logging.info("Saving checkpoint to path %s", self.save_path)
        self.saver.save(session, self.save_path, global_step=self.global_step)

    def _summarize(self, session: Session) -> None:
        fetches = [self.summary_op, *([] if self.global_step is None else [self.global_step])]
        self.summary_writer.add_summary(*session.run(fetches))

    def _speed(self, session: Session) -> Callable[[], None]:
        """Writes the number of steps per second since the last call."""
        before = [time.time(), int(session.run(self.global_step))]

        def write() -> None:
            now, step = time.time(), int(session.run(self.global_step))
            speed = (step - before[1]) / max(now - before[0], 1e-9)
            before[:] = now, step
            value = Summary.Value(tag=f"{self.global_step.op.name}/sec", simple_value=speed)
            self.summary_writer.add_summary(Summary(value=[value]), step)

        return write

    def start_queue_runners(self, sess: Session, queue_runners: Any = None) -> Any:
        """Start the threads that fill the graph's queues.

        Args:
            sess: runs what is put into them.
            queue_runners: the runners; those of the graph by default.
        """
        if queue_runners is None:
            return start_queue_runners(sess, self.coord)
        return [t for r in queue_runners for t in r.create_threads(sess, self.coord, True, True)]

    def loop(
        self, timer_interval_secs: float | None, target: Callable[..., Any],
        args: Sequence[Any] | None = None, kwargs: Mapping[str, Any] | None = None,
    ) -> threading.Thread:  # fmt: skip
        """Start a thread that calls a function now and periodically until the stop."""

        def work() -> None:
            with self.coord.stop_on_exception():
                target(*(args or ()), **(kwargs or {}))
                while not self.coord.wait_for_stop(timer_interval_secs or 0):
                    target(*(args or ()), **(kwargs or {}))

        thread = threading.Thread(target=work, daemon=True, name="supervisor")
        self.coord.register_thread(thread)
        thread.start()
        return thread

    def summary_computed(self, sess: Session, summary: Any, global_step: Any = None) -> None:
        """Write a summary that the program computed.

        Raises:
            StateError: the supervisor writes none.
        """
        if self.summary_writer is None:
            text = "Writing a summary requires a summary writer: give a logdir or summary_writer"
            raise fail(StateError, f"summary_computed: {text}")
        if global_step is None and self.global_step is not None:
            global_step = sess.run(self.global_step)
        self.summary_writer.add_summary(summary, global_step)

    def should_stop(self) -> bool:
        """Whether a stop was requested."""
        return self.coord.should_stop()

    def request_stop(self, ex: Any = None) -> None:
        """Ask all threads to stop, because of an exception if one is given."""
        self.coord.request_stop(ex)

    def wait_for_stop(self) -> None:
        """Wait for a stop request."""
        self.coord.wait_for_stop()

    def stop_on_exception(self) -> contextlib.AbstractContextManager[None]:
        """A context in which an exception asks all threads to stop."""
        return self.coord.stop_on_exception()

    def stop(
        self,
        threads: Sequence[threading.Thread] | None = None,
        close_summary_writer: bool = True,
        ignore_live_threads: bool = False,
    ) -> None:
        """End the threads; raises the exception of the stop request."""
        self.coord.request_stop()
        try:
            self.coord.join(threads, self._grace, ignore_live_threads)
        finally:
            if close_summary_writer and self.summary_writer is not None:
                self.summary_writer.close()


def _check_devices(variables: Sequence[Any]) -> None:
    """Without a device each worker would have variables of its own, which no chief initializes."""
    found = [v.name for v in variables if not v.device]
    if found:
        text = f"When using replicas, all Variables must have their device set: {found}"
        raise fail(GraphError, f"Supervisor: {text}; see tf.train.replica_device_setter")


def _given(part: Any) -> Any:
    return None if part is _DEFAULT else part


def basic_train_loop(
    supervisor: Supervisor, train_step_fn: Callable[..., Any], args: Sequence[Any] | None = None,
    kwargs: Mapping[str, Any] | None = None, master: str = "",
) -> None:  # fmt: skip
    """Call `train_step_fn(session, *args, **kwargs)` until a stop is requested.

    After an `AbortedError` it continues with a new session.

    Args:
        supervisor: makes the sessions and decides when to stop.
        train_step_fn: makes a step.
        args: its positional arguments.
        kwargs: its keyword arguments.
        master: as for `Session`.
    """
    while True:
        try:
            with supervisor.managed_session(master) as session:
                while not supervisor.should_stop():
                    train_step_fn(session, *(args or ()), **(kwargs or {}))
            return
        except AbortedError as error:
            logging.info("The session is made anew: %s", error)
