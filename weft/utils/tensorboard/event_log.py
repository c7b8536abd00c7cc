"""The event files of a run, and the thread that writes them."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Sequence
from typing import Any, Self

from weft.formats.event import message
from weft.formats.event.file import EventFile
from weft.utils.tensorboard.value import number_of


class EventLog:
    """The event files of a run, with a thread that encodes and writes; see `SummaryWriter`."""

    def __init__(
        self, log_dir: str | os.PathLike[str] | None = None, comment: str = "",
        purge_step: int | None = None, max_queue: int = 10, flush_secs: float = 120,
        filename_suffix: str = "",
    ) -> None:  # fmt: skip
        if not log_dir:
            now = time.strftime("%b%d_%H-%M-%S")
            log_dir = os.path.join("runs", f"{now}_{socket.gethostname()}{comment}")
        self.log_dir = os.fspath(log_dir)
        self.purge_step = purge_step
        self._options: Any = (max_queue, flush_secs, filename_suffix)
        self._file: EventFile | None = None
        self._others: dict[str, Any] = {}  # writers of other runs, by folder
        self._open()
        if purge_step is not None:
            self._add_fields(lambda: message.session_field(message.START), purge_step, None)

    def _open(self) -> EventFile:
        """The event file; a new one after `close`."""
        if self._file is None:
            self._file = EventFile(self.log_dir, *self._options)
        return self._file

    def _add_fields(self, content: Any, step: Any, walltime: float | None) -> None:
        number = None if step is None else int(number_of("global_step", step))
        self._open().add(content, number, walltime)

    def add_values(
        self, values: Sequence[bytes], global_step: Any = None, walltime: float | None = None
    ) -> None:
        """Add encoded summary values (`weft.formats.event`)."""
        kept = list(values)
        self._add(lambda: kept, global_step, walltime)

    def _add(self, value: Any, step: Any, walltime: float | None) -> None:
        """Queue functions that encode a value, or several."""

        def content() -> bytes:
            found = value()
            values = found if isinstance(found, list) else [found]
            return message.summary_field(message.summary(*values))

        self._add_fields(content, step, walltime)

    def add_fields(self, content: bytes, global_step: Any = None) -> None:
        """Add an event with encoded fields (`weft.formats.event`)."""
        self._add_fields(lambda: content, global_step, None)

    def _other(self, folder: str) -> Any:
        """The writer of another run, which is flushed and closed with this one."""
        if folder not in self._others:
            self._others[folder] = type(self)(folder, filename_suffix=self._options[2])
        return self._others[folder]

    def get_logdir(self) -> str:
        """The folder."""
        return self.log_dir

    def flush(self) -> None:
        """Wait until everything added is in the files.

        Raises:
            OSError: something could not be written.
        """
        if self._file is not None:
            self._file.flush()
        for writer in self._others.values():
            writer.flush()

    def close(self) -> None:
        """Write the remaining events and close the files; the next event opens another one.

        Raises:
            OSError: something could not be written.
        """
        file, self._file = self._file, None
        if file is not None:
            file.close()
        for writer in self._others.values():
            writer.close()
        self._others.clear()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
