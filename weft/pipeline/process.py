"""Worker processes with results in shared memory; a worker's death is an error, not a hang.

A result's pickle and its arrays are written to anonymous memory, whose descriptor is sent: there is
no name that could be left behind. A worker ends when its pipe closes or its parent dies.
"""

from __future__ import annotations

import io
import mmap
import os
import pickle
import signal
import time
import traceback
import weakref
from collections import deque
from collections.abc import Callable, Iterator
from multiprocessing import connection, get_context, reduction
from typing import Any, Final, NamedTuple, NoReturn

from weft.errors import WorkerError

Reduce = Callable[[Any], Any]  # of an object to what `__reduce__` gives, or NotImplemented
INLINE: Final = 1024  # bytes sent through the pipe itself: it holds so many without a reader
ALIGNMENT: Final = 64
POLL: Final = 2.0  # seconds between checks that the parent is alive


class Work(NamedTuple):
    """A worker process's work: `start(number)` once, which returns the function of tasks."""

    start: Callable[[int], Callable[[Any], Any]]
    reduce: Reduce


class Worker:
    """A process and its pipe; results come in the order of tasks."""

    def __init__(self, number: int, work: Work, method: str | None) -> None:
        context: Any = get_context(method or "fork")
        self.number = number
        self.pipe, theirs = context.Pipe()
        self.process = context.Process(
            target=_serve, args=(theirs, self.pipe, number, work), daemon=True
        )
        self.process.start()
        theirs.close()
        self._end = weakref.finalize(self, _stop, self.process, self.pipe)

    def send(self, task: Any) -> None:
        """Send a task to the worker.

        Raises:
            WorkerError: it is dead.
        """
        try:
            self.pipe.send(task)
        except OSError:
            self._died()

    def receive(self, timeout: float = 0) -> Any:
        """The result of the oldest task without one.

        Raises:
            WorkerError: the worker died, or there was no result for `timeout` seconds, if not 0.
            Exception: what the task raised, with the worker's traceback as a note.
        """
        ready = connection.wait([self.pipe, self.process.sentinel], timeout or None)
        if not ready:
            raise WorkerError(
                f"data loader: expected a batch of worker {self.number} (process "
                f"{self.process.pid}) within {timeout:g} seconds; it may be busy or deadlocked"
            )
        if self.pipe not in ready and not self.pipe.poll():
            self._died()
        try:
            failed, result = _unpacked(self.pipe)
        except (EOFError, OSError):
            self._died()
        if failed:
            _raise(result, self.number, self.process.pid)
        return result

    def _died(self) -> NoReturn:
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


def _stop(process: Any, pipe: Any) -> None:
    pipe.close()
    process.terminate()
    process.join(5)
    if process.is_alive():
        process.kill()
        process.join()


def _raise(result: tuple[Any, str, str], number: int, pid: int | None) -> NoReturn:
    error, kind, text = result
    note = f"raised in worker {number} (process {pid}):\n{text}"
    if error is None:
        raise WorkerError(f"data loader: {kind} {note}")
    error.add_note(note)
    raise error


def _serve(pipe: Any, theirs: Any, number: int, work: Work) -> None:
    theirs.close()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent handles Ctrl-C: it closes the pipe
    parent = os.getppid()
    run: Callable[[Any], Any] | None = None
    try:
        while True:
            while not pipe.poll(POLL):
                if os.getppid() != parent:
                    return
            task = pipe.recv()
            try:
                run = run or work.start(number)
                outcome = False, run(task)
            except Exception as error:
                outcome = True, _described(error)
            _packed(pipe, outcome, work.reduce)
    except (EOFError, BrokenPipeError, ConnectionResetError):
        return  # the parent has closed its end


def _described(error: Exception) -> tuple[Any, str, str]:
    text = "".join(traceback.format_exception(error))
    error.__traceback__ = None
    try:
        again: Any = pickle.loads(pickle.dumps(error))
    except Exception:  # exception classes that the parent cannot construct are sent as text
        again = None
    return again, type(error).__name__, text


def _packed(pipe: Any, outcome: Any, reduce: Reduce) -> None:
    """Send a result: a header with the sizes of its parts, then the parts or their memory."""
    buffers: list[pickle.PickleBuffer] = []
    stream = io.BytesIO()
    try:
        _pickler(stream, buffers, reduce).dump(outcome)
    except Exception as error:  # a result that cannot be pickled
        stream, buffers = io.BytesIO(), []
        pickle.dump((True, _described(error)), stream, protocol=5)
    parts = [stream.getbuffer(), *[b.raw() for b in buffers]]
    sizes = [len(part) for part in parts]
    inline = sum(sizes) <= INLINE
    pipe.send((inline, sizes))
    if inline:
        pipe.send_bytes(b"".join(parts))
        return
    memory = os.memfd_create("weft-batch", os.MFD_CLOEXEC)
    try:
        starts, total = _starts(sizes)
        os.ftruncate(memory, total)
        with mmap.mmap(memory, total) as mapped:
            for start, part in zip(starts, parts, strict=True):
                mapped[start : start + len(part)] = part
        reduction.send_handle(pipe, memory, None)
    finally:
        os.close(memory)


def _pickler(stream: io.BytesIO, buffers: list[pickle.PickleBuffer], reduce: Reduce) -> Any:
    class Pickler(pickle.Pickler):
        def reducer_override(self, obj: Any) -> Any:
            return reduce(obj)

    return Pickler(stream, protocol=5, buffer_callback=buffers.append)


def _starts(sizes: list[int]) -> tuple[list[int], int]:
    starts, total = list[int](), 0
    for size in sizes:
        starts.append(total)
        total += -(-size // ALIGNMENT) * ALIGNMENT
    return starts, total


def _unpacked(pipe: Any) -> Any:
    """A result whose arrays lie in shared memory, which is freed with the last of them."""
    inline, sizes = pipe.recv()
    starts, total = _starts(sizes)
    if inline:
        data, parts, at = memoryview(bytearray(pipe.recv_bytes())), list[memoryview](), 0
        for size in sizes:
            parts.append(data[at : at + size])
            at += size
    else:
        memory = reduction.recv_handle(pipe)
        try:
            shared = memoryview(mmap.mmap(memory, total))
        finally:
            os.close(memory)
        parts = [shared[s : s + n] for s, n in zip(starts, sizes, strict=True)]
    return pickle.loads(parts[0], buffers=parts[1:])


class Pool:
    """Workers that take tasks in turn."""

    def __init__(
        self, count: int, work: Work, method: str | None = None, keep: bool = False
    ) -> None:
        self.keep = keep  # whether an abandoned pass leaves its workers for the next one
        self.workers = [Worker(number, work, method) for number in range(count)]

    def map(self, tasks: Iterator[Any], ahead: int, timeout: float = 0) -> Iterator[Any]:
        """Results of tasks in order; each worker has up to `ahead` queued tasks.

        A task's exception is yielded as a `Failure`, so that the others can still come.
        """
        waiting: deque[Worker] = deque()
        turn, ended = 0, False
        try:
            while True:
                while not ended and len(waiting) < ahead * len(self.workers):
                    try:
                        task = next(tasks)
                    except StopIteration:
                        ended = True
                        break
                    worker = self.workers[turn % len(self.workers)]
                    turn += 1
                    worker.send(task)
                    waiting.append(worker)
                if not waiting:
                    return
                try:
                    result = waiting[0].receive(timeout)
                except WorkerError:
                    raise
                except Exception as error:
                    result = Failure(error)
                waiting.popleft()
                yield result
        finally:
            if self.keep:
                self.drain(waiting)
            elif waiting:
                self.close()

    def drain(self, waiting: deque[Worker]) -> None:
        """Receive the results that nobody needs, so that workers can be reused."""
        limit = time.monotonic() + POLL
        for worker in waiting:
            try:
                worker.receive(max(limit - time.monotonic(), 0.01))
            except Exception:  # the pool's owner replaces a dead or slow worker
                self.close()
                return

    @property
    def usable(self) -> bool:
        """Whether all processes are alive."""
        return bool(self.workers) and all(w.process.is_alive() for w in self.workers)

    def close(self) -> None:
        """Stop all processes."""
        for worker in self.workers:
            worker.close()
        self.workers = []


class Failure(NamedTuple):
    """The exception that a task raised."""

    error: Exception
