"""Queues between reading threads and the training run."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Sequence
from typing import Any

from weft.errors import GraphError
from weft.host.mix import mix
from weft.tf1.errors import FailedPreconditionError, OutOfRangeError
from weft.tf1.framework.graph import get_default_graph
from weft.tf1.framework.tensor import HOOKS
from weft.tf1.train.coordinator import Coordinator

__all__ = ["QueueRunner", "add_queue_runner", "start_queue_runners"]

RUNNERS = "queue_runners"


class Queue:
    """A bounded queue of elements; a shuffling one keeps a minimum to choose from.

    Args:
        seed: of a shuffling one.
        steady: it chooses from that minimum only, not from all elements that are there, so that
            the choice does not depend on how fast it is filled.
    """

    def __init__(
        self, capacity: int, keep: int = 0, seed: int | None = None, steady: bool = False
    ) -> None:
        self.capacity, self.keep, self.seed, self.steady = capacity, keep, seed, steady
        self.elements: list[Any] = []
        self.changed = threading.Condition()
        self.closed = False
        self.fed = False  # whether any thread has started to fill it
        self.draws = itertools.count(1)

    def put(self, elements: Sequence[Any]) -> bool:
        """Add elements when there is room; returns whether the queue was open."""
        for element in elements:
            with self.changed:
                while len(self.elements) >= self.capacity and not self.closed:
                    self.changed.wait()
                if self.closed:
                    return False
                self.elements.append(element)
                self.changed.notify_all()
        return True

    def take(self, count: int, smaller: bool) -> list[Any]:
        """The next elements; waits for them.

        Raises:
            OutOfRangeError: the queue is closed and has too few.
            FailedPreconditionError: no thread fills it.
        """
        with self.changed:
            if not self.fed:
                text = "nobody fills the queue; call tf.train.start_queue_runners before"
                raise FailedPreconditionError(None, None, f"batch: {text}")
            while len(self.elements) < count + self.keep and not self.closed:
                self.changed.wait()
            if len(self.elements) < count and not (smaller and self.elements):
                text = f"the queue is closed and has {len(self.elements)} of {count} elements"
                raise OutOfRangeError(None, None, f"batch: {text}")
            found = self._drawn(min(count, len(self.elements)))
            self.changed.notify_all()
        return found

    def _drawn(self, count: int) -> list[Any]:
        return [self._one(self.keep + left) for left in reversed(range(1, count + 1))]

    def _one(self, least: int) -> Any:
        """The next element, where at least `least` are there unless the queue is closed."""
        if self.seed is None:
            return self.elements.pop(0)
        size = len(self.elements)
        size = min(least, size) if self.steady else size
        place, end = mix(self.seed, next(self.draws)) % size, size - 1
        last = self.elements.pop(end)
        if place == end:
            return last
        found, self.elements[place] = self.elements[place], last
        return found

    def close(self, cancel: bool = False) -> None:
        """Accept no more elements; with `cancel`, also return none."""
        with self.changed:
            self.closed = True
            if cancel:
                self.elements.clear()
            self.changed.notify_all()


class QueueRunner:
    """Threads that repeatedly run tensors and put their values into a queue.

    Args:
        queue: what the values are put into.
        fetches: the tensors.
        count: the number of threads.
        many: whether a run gives rows, of which each is an element.
    """

    def __init__(self, queue: Queue, fetches: Any, count: int = 1, many: bool = False) -> None:
        self.queue, self.fetches, self.count, self.many = queue, fetches, count, many

    def create_threads(
        self, sess: Any, coord: Coordinator | None, daemon: bool = True, start: bool = False
    ) -> list[threading.Thread]:
        """The threads, and one that closes the queue when the coordinator stops."""
        self.left = self.count
        self.lock = threading.Lock()
        self.queue.fed = True
        made = [
            threading.Thread(target=self._fill, args=(sess, coord), daemon=daemon, name="enqueue")
            for _ in range(self.count)
        ]
        if coord is not None:
            closer = threading.Thread(target=self._close, args=(coord,), daemon=True, name="close")
            made.append(closer)
            for thread in made:
                coord.register_thread(thread)
        for thread in made if start else []:
            thread.start()
        return made

    def _fill(self, sess: Any, coord: Coordinator | None) -> None:
        try:
            while coord is None or not coord.should_stop():
                values = sess.run(self.fetches)
                rows = list(zip(*values, strict=True)) if self.many else [tuple(values)]
                if not self.queue.put(rows):
                    break
        except OutOfRangeError:
            pass  # the end of the data: close the queue for its readers
        except Exception as error:
            if coord is None:
                raise
            coord.request_stop(error)
        finally:
            with self.lock:
                self.left -= 1
                last = self.left == 0
            if last:
                self.queue.close()

    def _close(self, coord: Coordinator) -> None:
        while not coord.wait_for_stop(0.05):
            if self.left == 0:
                return
        self.queue.close(cancel=True)


def add_queue_runner(qr: QueueRunner, collection: str = RUNNERS) -> None:
    """Register it for `start_queue_runners`.

    Args:
        qr: the runner.
        collection: the collection it is added to.
    """
    get_default_graph().add_to_collection(collection, qr)


def start_queue_runners(
    sess: Any = None, coord: Coordinator | None = None, daemon: bool = True, start: bool = True,
    collection: str = RUNNERS,
) -> list[threading.Thread]:  # fmt: skip
    """Start the threads that fill the graph's queues.

    Args:
        sess: runs the tensors; the default session by default.
        coord: stops the threads, and learns of their errors.
        daemon: whether the program may end while they run.
        start: whether to start the threads, or only to make them.
        collection: where the runners are registered.

    Raises:
        GraphError: there is no session.
    """
    session: Any = sess or HOOKS.default_session()
    if session is None:
        raise GraphError("start_queue_runners: expected a session, given or as default")
    runners: list[QueueRunner] = session.graph.get_collection(collection)
    return [t for r in runners for t in r.create_threads(session, coord, daemon, start)]
