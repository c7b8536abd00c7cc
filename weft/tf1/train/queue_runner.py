"""Threads that fill queues of the graph."""

from __future__ import annotations

import contextlib
import threading
import weakref
from collections.abc import Sequence
from typing import Any

from weft.documentation import Reads
from weft.errors import ArgumentError, DTypeError, GraphError
from weft.tf1.data_flow.queue_base import QueueBase
from weft.tf1.errors import OpError, OutOfRangeError
from weft.tf1.framework.collection import GraphKeys
from weft.tf1.framework.graph import fail, get_default_graph
from weft.tf1.framework.tensor import HOOKS, Operation
from weft.tf1.session.base import BaseSession
from weft.tf1.train.coordinator import Coordinator

__all__ = ["QueueRunner", "add_queue_runner", "start_queue_runners"]


class QueueRunner:
    """Threads that each run an enqueue operation again and again; the last one closes the queue.

    Args:
        queue: the queue that they fill.
        enqueue_ops: an operation for each thread.
        close_op: closes the queue when all threads have come to the end of their data.
        cancel_op: closes it when the coordinator stops, and cancels the enqueues that wait.
        queue_closed_exception_types: the errors that mean the end of the data;
            `OutOfRangeError` by default.

    Raises:
        ArgumentError: there is no queue or no operation.
        DTypeError: an exception type is none of TensorFlow's errors.
    """

    def __init__(
        self, queue: QueueBase | None = None, enqueue_ops: Sequence[Any] | None = None,
        close_op: Operation | None = None, cancel_op: Operation | None = None,
        queue_closed_exception_types: tuple[type[Exception], ...] | None = None,
    ) -> None:  # fmt: skip
        if queue is None or not enqueue_ops:
            raise fail(ArgumentError, "QueueRunner: Must provide queue and enqueue_ops.")
        kinds = queue_closed_exception_types
        if kinds is not None and not _are_errors(kinds):
            text = "queue_closed_exception_types, when provided, must be a tuple of tf.error types"
            raise fail(DTypeError, f"QueueRunner: {text}, but saw: {kinds!r}")
        self._queue, self._ops = queue, list(enqueue_ops)
        self._close_op = queue.close() if close_op is None else close_op
        self._cancel_op = queue.close(True) if cancel_op is None else cancel_op
        self._ends: tuple[type[Exception], ...] = kinds or (OutOfRangeError,)
        self._lock = threading.Lock()
        self._running: weakref.WeakKeyDictionary[Any, int] = weakref.WeakKeyDictionary()
        self._errors: list[Exception] = []

    queue = Reads[QueueBase]("_queue", "The queue that the threads fill.")
    enqueue_ops = Reads[list[Any]]("_ops", "The operations, one for each thread.")
    close_op = Reads[Operation]("_close_op", "Closes the queue at the end of the data.")
    cancel_op = Reads[Operation]("_cancel_op", "Closes the queue when the coordinator stops.")
    queue_closed_exception_types = Reads[tuple[type[Exception], ...]](
        "_ends", "The errors that mean the end of the data."
    )
    exceptions_raised = Reads[list[Exception]](
        "_errors", "The exceptions of threads without a coordinator."
    )
    name = Reads[str]("_queue.name", "The name of the queue.")

    def create_threads(
        self, sess: Any, coord: Coordinator | None = None, daemon: bool = False,
        start: bool = False,
    ) -> list[threading.Thread]:  # fmt: skip
        """The threads, and one that closes the queue when the coordinator stops.

        None, if those of an earlier call with this session are still running.

        Args:
            sess: runs the operations.
            coord: stops the threads, and learns of their exceptions.
            daemon: whether the program may end while they run.
            start: whether to start them.
        """
        with self._lock:
            if self._running.get(sess, 0) > 0:
                return []
            self._running[sess] = len(self._ops)
            self._errors = []
        own: Any = None if coord is None else sess.child()
        work: list[tuple[Any, Any, str]] = [
            (self._fill, (sess, own, op, coord), op.name) for op in self._ops
        ]
        if coord is not None:
            work.append((self._close_on_stop, (sess, own, coord), "close_on_stop"))
        prefix = f"QueueRunnerThread-{self.name}"
        made = [
            threading.Thread(target=f, args=args, name=f"{prefix}-{name}", daemon=daemon)
            for f, args, name in work
        ]
        for thread in made:
            if coord is not None:
                coord.register_thread(thread)
            if start:
                thread.start()
        return made

    def _fill(self, sess: Any, own: Any, op: Any, coord: Coordinator | None) -> None:
        ended = False
        try:
            enqueue = (sess if own is None else own).make_callable(op)
            while coord is None or not coord.should_stop():
                enqueue()
        except self._ends:
            ended = True
        except Exception as error:
            if coord is None:
                self._errors.append(error)
                raise
            coord.request_stop(error)
        finally:
            self._leave(sess, ended)

    def _leave(self, sess: Any, ended: bool) -> None:
        """A thread ends; the last one closes the queue if it came to the end of its data."""
        with self._lock:
            self._running[sess] -= 1
            last = self._running[sess] == 0
        if ended and last:
            _run_quietly(sess, self._close_op)

    def _close_on_stop(self, sess: Any, own: Any, coord: Coordinator) -> None:
        """Closes the queue, and ends the waits of the threads for what they would put into it."""
        coord.wait_for_stop()
        _run_quietly(sess, self._cancel_op)
        own.give_up()


def _run_quietly(sess: Any, op: Operation) -> None:
    """Close a queue; one that was closed already, or a session that was, says so and is right."""
    with contextlib.suppress(Exception):
        sess.run(op)


def _are_errors(kinds: Any) -> bool:
    return (
        isinstance(kinds, tuple)
        and len(kinds) > 0  # pyright: ignore[reportUnknownArgumentType]
        and all(isinstance(k, type) and issubclass(k, OpError) for k in kinds)  # pyright: ignore
    )


def add_queue_runner(qr: QueueRunner, collection: str = GraphKeys.QUEUE_RUNNERS) -> None:
    """Register it for `start_queue_runners`.

    Args:
        qr: the runner.
        collection: the collection it is added to.
    """
    get_default_graph().add_to_collection(collection, qr)


def start_queue_runners(
    sess: Any = None, coord: Coordinator | None = None, daemon: bool = True, start: bool = True,
    collection: str = GraphKeys.QUEUE_RUNNERS,
) -> list[threading.Thread]:  # fmt: skip
    """Start the threads that fill the graph's queues.

    Args:
        sess: runs the operations; the default session by default. A monitored session has started
            them already.
        coord: stops the threads, and learns of their errors.
        daemon: whether the program may end while they run.
        start: whether to start the threads, or only to make them.
        collection: where the runners are registered.

    Raises:
        GraphError: there is no session.
        DTypeError: it is something else.
    """
    session: Any = sess or HOOKS.default_session()
    if session is None:
        raise GraphError("start_queue_runners: expected a session, given or as default")
    if not isinstance(session, BaseSession):
        if type(session).__name__ in ("MonitoredSession", "SingularMonitoredSession"):
            return []
        raise fail(DTypeError, f"sess must be a `tf.Session` object, got {type(session).__name__}")
    runners: list[QueueRunner] = session.graph.get_collection(collection)
    return [t for r in runners for t in r.create_threads(session, coord, daemon, start)]
