"""An event file, written by its own thread.

Events are written in order; flushed events are in the file whatever happens to the process. An
error of writing is raised by the next call.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import queue
import socket
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from weft.errors import ArgumentError, ClosedError
from weft.formats.event import message
from weft.formats.tfrecord import RecordWriter
from weft.host.garbage_collection import finalize_here

Content = Callable[[], bytes]  # the fields of an event, encoded by the thread
_numbers: Final = itertools.count()


class EventFile:
    """Writes events to a new file in a folder, which is created if missing.

    Args:
        folder: the folder that TensorBoard reads.
        max_queue: how many events may be queued before `add` blocks.
        flush_secs: maximum seconds until an event is in the file.
        suffix: the end of the file's name.

    Attributes:
        folder: the folder of the file.
        path: the file.

    Raises:
        ArgumentError: `max_queue` or `flush_secs` is less than 0.
        OSError: the folder or the file cannot be written.
    """

    def __init__(
        self, folder: str | os.PathLike[str], max_queue: int = 10, flush_secs: float = 120,
        suffix: str = "",
    ) -> None:  # fmt: skip
        if max_queue < 0 or flush_secs < 0:
            raise ArgumentError(
                f"event file: expected max_queue and flush_secs of at least 0, got {max_queue} "
                f"and {flush_secs}"
            )
        self.folder = Path(folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        now = time.time()
        host = socket.gethostname()
        name = f"events.out.tfevents.{int(now):010}.{host}.{os.getpid()}.{next(_numbers)}{suffix}"
        self.path = self.folder / name
        self._thread = _Thread(RecordWriter(self.path), max(max_queue, 1), flush_secs)
        self._close = finalize_here(self, _Thread.finish, self._thread)  # at exit, too
        self.add(message.file_version, wall_time=now)
        self.flush()

    def add(
        self, content: Content, step: int | None = None, wall_time: float | None = None
    ) -> None:
        """Queues an event.

        Args:
            content: returns its fields, called in the thread.
            step: the step of the event.
            wall_time: seconds since 1970; now by default.

        Raises:
            ClosedError: the file is closed.
            OSError: an earlier event could not be written.
        """
        if not self._close.alive:
            raise ClosedError(f"event file: {self.path} is closed: open another")
        self._thread.check()
        now = time.time() if wall_time is None else wall_time
        self._thread.jobs.put(lambda: message.event(now, step, content()))

    def flush(self) -> None:
        """Returns once all queued events are in the file.

        Raises:
            OSError: an event could not be written.
        """
        if self._close.alive:
            done = threading.Event()
            self._thread.jobs.put(done)
            done.wait()
            self._thread.check()

    def close(self) -> None:
        """Writes queued events and closes the file; a second call does nothing.

        Raises:
            OSError: an event could not be written.
        """
        if self._close.alive:
            self._close()
            self._thread.check()


class _Thread(threading.Thread):
    """Encodes and writes queued events. An error is kept, and raised once."""

    def __init__(self, file: RecordWriter, size: int, flush_secs: float) -> None:
        super().__init__(name="weft-events", daemon=True)
        self.jobs: queue.Queue[Any] = queue.Queue(size)
        self._file = file
        self._flush_secs = flush_secs
        self._error: BaseException | None = None
        self.start()

    def check(self) -> None:
        """Raises an error of the thread, once."""
        error, self._error = self._error, None
        if error is not None:
            raise error

    def finish(self) -> None:
        """Writes what is left, and ends; in a child process it does nothing."""
        if self.is_alive():
            self.jobs.put(None)
            self.join()

    def run(self) -> None:
        """Writes until the queue is closed."""
        due = time.monotonic() + self._flush_secs
        job: Any = b""
        while job is not None:
            job = b""
            with contextlib.suppress(queue.Empty):
                job = self.jobs.get(timeout=max(0.0, due - time.monotonic()))
            late = time.monotonic() >= due
            self._attempt(job, late)
            if isinstance(job, threading.Event):
                job.set()
            if late:
                due = time.monotonic() + self._flush_secs
        try:
            self._file.close()
        except Exception as error:
            self._error = error

    def _attempt(self, job: Any, late: bool) -> None:
        try:
            if callable(job):
                self._file.write(job())
            if late or isinstance(job, threading.Event):
                self._file.flush()
        except Exception as error:
            self._error = error
