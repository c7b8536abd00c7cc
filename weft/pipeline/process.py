"""Worker processes with results in shared memory; a worker's death is an error, not a hang.

Neither side blocks until the other reads: messages that the socket does not accept at once are
queued in their sender. A worker ends when its channel closes or its parent dies.
"""

from __future__ import annotations

import errno
import io
import os
import pickle
import select
import signal
import socket
import time
import traceback
import weakref
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from multiprocessing import get_context
from multiprocessing.reduction import ForkingPickler
from typing import Any, Final, NamedTuple, NoReturn

from weft.errors import WorkerError
from weft.pipeline.channel import CROWDED, Buffer, Channel, socket_pair, too_many_files

Reduce = Callable[[Any], Any]  # of an object; returns what `__reduce__` does, or NotImplemented
POLL: Final = 2.0  # seconds between checks that the parent is alive


class Work(NamedTuple):
    """A worker process's work: `start(number)` once, which returns the function of tasks."""

    start: Callable[[int], Callable[[Any], Any]]
    reduce: Reduce


class Worker:
    """A process and the channel to it; results come in the order of tasks."""

    def __init__(self, number: int, work: Work, method: str | None) -> None:
        context: Any = get_context(method or "fork")
        self.number = number
        ends: list[socket.socket] = []
        try:
            ends += socket_pair()
            ours, theirs = ends
            self.process = context.Process(
                target=_serve, args=(theirs, ours, number, work), daemon=True
            )
            self.process.start()
        except BaseException as error:
            for end in ends:
                end.close()
            if isinstance(error, OSError) and error.errno in (errno.EMFILE, errno.ENFILE):
                raise WorkerError(too_many_files()) from error
            raise
        theirs.close()
        self.channel = Channel(ours)
        self.tasks: deque[int] = deque()  # numbers of tasks without a result, oldest first
        self.results: deque[list[memoryview]] = deque()
        self.ended = False
        self._end = weakref.finalize(self, _stop, self.process, self.channel, os.getpid())

    def send(self, task: Any, number: int = 0) -> None:
        """Queue a task.

        Raises:
            WorkerError: the worker is dead.
        """
        data = ForkingPickler.dumps(task)
        self.tasks.append(number)
        try:
            self.channel.send([memoryview(data)])
        except ConnectionError:
            self.died()

    def flush(self) -> None:
        """Send queued tasks, as far as the socket accepts them."""
        try:
            self.channel.flush()
        except ConnectionError:
            self.end()

    def fetch(self) -> bool:
        """Read an arrived result, if there is one."""
        try:
            message = self.channel.receive()
        except (EOFError, ConnectionError):
            self.ended = True
            return False
        if message is not None:
            self.results.append(message)
        return message is not None

    def end(self) -> None:
        """Read what an ended process had sent."""
        while self.fetch():
            pass
        self.ended = True

    def take(self) -> tuple[int, Any]:
        """The number of the oldest task and its result, which has arrived.

        Raises:
            Exception: the task's, with the worker's traceback as a note.
        """
        number, (head, *buffers) = self.tasks.popleft(), self.results.popleft()
        failed, result = pickle.loads(head, buffers=buffers)
        if failed:
            _raise(result, self.number, self.process.pid)
        return number, result

    def withdraw(self) -> None:
        """Remove and return the tasks that are not sent yet."""
        for _ in range(len(self.channel.waiting)):
            self.channel.waiting.pop()
            self.tasks.pop()

    def died(self) -> NoReturn:
        """Raise the error of a dead worker."""
        self.process.join(5)
        code = self.process.exitcode
        how = f"exit status {code}"
        if code is not None and code < 0:
            how = f"signal {-code} ({signal.Signals(-code).name})"
        hint = "; was memory short?" if code == -signal.SIGKILL else ""
        raise WorkerError(
            f"data loader: worker {self.number} (process {self.process.pid}) ended by {how}{hint}"
        )

    def close(self) -> None:
        """Stop the process."""
        self._end()


def _stop(process: Any, channel: Channel, owner: int) -> None:
    """Stop a worker; a forked process that collects its parent's garbage leaves it alone."""
    channel.close()
    if os.getpid() != owner:
        return
    process.kill()
    process.join()


def _raise(result: tuple[Any, str, str], number: int, pid: int | None) -> NoReturn:
    error, error_type, text = result
    note = f"raised in worker {number} (process {pid}):\n{text}"
    if error is None:
        raise WorkerError(f"data loader: {error_type} {note}")
    error.add_note(note)
    raise error


def _serve(end: socket.socket, theirs: socket.socket, number: int, work: Work) -> None:
    theirs.close()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent handles Ctrl-C: it closes the channel
    if callable(signal.getsignal(signal.SIGTERM)):  # the parent's, which ends a step, then saves
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    channel = Channel(end)
    run: Callable[[Any], Any] | None = None
    try:
        for data in _arriving(channel):
            try:
                run = run or work.start(number)
                outcome = False, run(pickle.loads(data))
            except Exception as error:
                outcome = True, _described(error)
            _send(channel, outcome, work.reduce)
            del outcome  # the next task may take long to arrive
    except (EOFError, ConnectionError):
        return  # the parent has closed its end


def _arriving(channel: Channel) -> Iterator[memoryview]:
    """The parent's messages, until it has died."""
    parent = os.getppid()
    while True:
        channel.flush()
        if channel.wait(POLL):
            message = channel.receive()
            if message is not None:
                yield message[0]
        elif os.getppid() != parent:
            return


def _described(error: Exception) -> tuple[Any, str, str]:
    text = "".join(traceback.format_exception(error))
    error.__traceback__ = None
    try:
        again: Any = pickle.loads(pickle.dumps(error))
    except Exception:  # exception classes that the parent cannot construct are sent as text
        again = None
    return again, type(error).__name__, text


def _send(channel: Channel, outcome: Any, reduce: Reduce) -> None:
    """Send a result: its pickle, then its arrays."""
    try:
        channel.send(_pickled(outcome, reduce))
    except ConnectionError:
        raise
    except Exception as error:  # a result that cannot be pickled, or no descriptor is left
        if isinstance(error, OSError):
            error = WorkerError(f"{too_many_files()} ({error})")
        channel.send([pickle.dumps((True, _described(error)), protocol=5)])


def _pickled(outcome: Any, reduce: Reduce) -> list[Buffer]:
    buffers: list[pickle.PickleBuffer] = []
    stream = io.BytesIO()

    class Pickler(pickle.Pickler):
        def reducer_override(self, obj: Any) -> Any:
            return reduce(obj)

    Pickler(stream, protocol=5, buffer_callback=buffers.append).dump(outcome)
    return [stream.getbuffer(), *[b.raw() for b in buffers]]


class Pool:
    """Workers that share tasks."""

    def __init__(
        self, count: int, work: Work, method: str | None = None, keep: bool = False
    ) -> None:
        self.keep = keep  # whether an abandoned pass leaves its workers for the next one
        self.workers = [Worker(number, work, method) for number in range(count)]

    def map(
        self, tasks: Iterator[tuple[int, Any]], ahead: int, timeout: float = 0,
        in_order: bool = True,
    ) -> Iterator[tuple[int, Any]]:  # fmt: skip
        """Numbers of tasks and their results; each worker has up to `ahead` queued tasks.

        A task's exception is yielded as a `Failure`, so that the other results can follow.

        Args:
            in_order: whether results are in the order of tasks instead of completion.
        """
        order: deque[Worker] = deque()  # the workers of the tasks without a result
        try:
            while True:
                self._share(tasks, order, ahead * len(self.workers), in_order)
                if not order:
                    return
                worker = self.ready(list(order)[:1] if in_order else self.workers, timeout)
                number = worker.tasks[0]
                try:
                    number, result = worker.take()
                except WorkerError:
                    raise
                except Exception as error:
                    result = Failure(error)
                order.remove(worker)
                yield number, result
        finally:
            if self.keep:
                self.drain()
            elif order:
                self.close()

    def _share(
        self, tasks: Iterator[tuple[int, Any]], order: deque[Worker], most: int, in_order: bool
    ) -> None:
        """Queue tasks for workers in turn or, if results need no order, for the least busy."""
        while len(order) < most:
            number, task = next(tasks, (0, None))
            if task is None:
                return
            if in_order:
                worker = self.workers[number % len(self.workers)]
            else:
                worker = min(self.workers, key=lambda worker: len(worker.tasks))
            worker.send(task, number)
            order.append(worker)

    def ready(self, among: Sequence[Worker], timeout: float = 0) -> Worker:
        """One of these workers that has a result, once one has; all make progress meanwhile.

        Raises:
            WorkerError: one of them died, or there was no result for `timeout` seconds, if not 0.
        """
        limit = time.monotonic() + timeout if timeout else None
        while True:
            for worker in self.workers:
                if worker.channel.waiting and not worker.ended:
                    worker.flush()
            for worker in among:
                if worker.results:
                    return worker
            for worker in among:
                if worker.ended:
                    worker.died()
            if not self._wait(limit):
                who = f"worker {among[0].number} (process {among[0].process.pid})"
                raise WorkerError(late(who, timeout))

    def _wait(self, limit: float | None) -> bool:
        """Wait until a worker has sent something, accepts more or has died, but not after `limit`.

        Returns:
            False after the limit.
        """
        live = [worker for worker in self.workers if not worker.ended]
        poll, ends, fetches = select.poll(), dict[int, Worker](), dict[int, Worker]()
        for worker in live:
            channel, sentinel = worker.channel, worker.process.sentinel
            fetches[channel.end.fileno()], ends[sentinel] = worker, worker
            poll.register(channel.end, channel.interest())
            poll.register(sentinel, select.POLLIN)
        left = POLL if limit is None else max(limit - time.monotonic(), 0)
        crowded = any(worker.channel.crowded for worker in live)
        events = poll.poll(min(left, CROWDED if crowded else left) * 1000)
        for worker in live:
            worker.channel.crowded = False
        for handle, event in events:
            if handle in ends:
                ends[handle].end()
            elif event & ~select.POLLOUT:
                fetches[handle].fetch()
        return bool(events) or limit is None or time.monotonic() < limit

    def drain(self) -> None:
        """Discard pending tasks, so that workers can be reused."""
        limit = time.monotonic() + POLL
        for worker in self.workers:
            worker.withdraw()
        for worker in self.workers:
            while worker.tasks:
                try:
                    self.ready([worker], max(limit - time.monotonic(), 0.01)).take()
                except WorkerError:  # the pool's owner replaces a dead or slow worker
                    self.close()
                    return
                except Exception:  # of a discarded task
                    continue

    @property
    def usable(self) -> bool:
        """Whether all processes are alive."""
        return bool(self.workers) and all(w.process.is_alive() for w in self.workers)

    def close(self) -> None:
        """Stop all processes."""
        for worker in self.workers:
            worker.close()
        self.workers = []


def late(who: str, timeout: float) -> str:
    """The error message for a batch that took too long."""
    text = f"a batch of {who} within {timeout:g} seconds; it may be busy or deadlocked"
    return f"data loader: expected {text}"


class Failure(NamedTuple):
    """The exception that a task raised."""

    error: Exception
