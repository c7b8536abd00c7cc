"""An event file, written by a thread of its own.

What was handed over is written in order; what was flushed is in the file whatever happens to the
process. An event that cannot be written is told at the next call.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import queue
import socket
import threading
import time
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from weft.errors import ArgumentError, ClosedError
from weft.formats.event import message
from weft.formats.tfrecord import RecordWriter

Content = Callable[[], bytes]  # the fields of an event, encoded by the thread
_numbers: Final = itertools.count()


class EventFile:
    """Writes events to a new file in a folder, which is made where it is missing.

    Args:
        folder: where TensorBoard looks.
        max_queue: how many events may wait before `add` does.
        flush_secs: how long an event may wait before it is in the file.
        suffix: the end of the file's name.

    Attributes:
        folder: where the file is.
        path: the file.

    Raises:
        ArgumentError: `max_queue` or `flush_secs` is less than 0.
        OSError: the folder or the file cannot be written.
    """

    def __init__(
        self,
        folder: str | os.PathLike[str],
        max_queue: int = 10,
        flush_secs: float = 120,
        suffix: str = "",
    ) -> None:
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
        self._close = weakref.finalize(self, _Thread.finish, self._thread)  # at exit, too
        self.add(message.file_version, wall_time=now)
        self.flush()

    def add(
        self, content: Content, step: int | None = None, wall_time: float | None = None
    ) -> None:
        """Hand over an event.

        Args:
            content: gives its fields, in the thread.
            step: at which it happened.
            wall_time: when, in seconds since 1970; now, without it.

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
        """Return once everything handed over is in the file.

        Raises:
            OSError: an event could not be written.
        """
        if self._close.alive:
            done = threading.Event()
            self._thread.jobs.put(done)
            done.wait()
            self._thread.check()

    def close(self) -> None:
        """Write what is left and close the file; again, it does nothing.

        Raises:
            OSError: an event could not be written.
        """
        if self._close.alive:
            self._close()
            self._thread.check()


class _Thread(threading.Thread):
    """Encodes and writes what is handed over. An error is kept, and told once."""

    def __init__(self, file: RecordWriter, size: int, flush_secs: float) -> None:
        super().__init__(name="weft-events", daemon=True)
        self.jobs: queue.Queue[Any] = queue.Queue(size)
        self._file = file
        self._flush_secs = flush_secs
        self._error: BaseException | None = None
        self.start()

    def check(self) -> None:
        """Raise what went wrong, once."""
        error, self._error = self._error, None
        if error is not None:
            raise error

    def finish(self) -> None:
        """Write what is left, and end; in a child process there is nothing to do."""
        if self.is_alive():
            self.jobs.put(None)
            self.join()

    def run(self) -> None:
        """Write until there is nothing more to come."""
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
