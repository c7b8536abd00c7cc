"""`tf.summary.FileWriter`: writes summaries, graphs and other events to a file."""

from __future__ import annotations

import os
from typing import Any, ClassVar

from weft.formats.event import message
from weft.formats.event.file import EventFile
from weft.tf1.framework.graph import Graph
from weft.tf1.framework.graph_def import GraphDef
from weft.tf1.summary.proto import Event

__all__ = ["FileWriter", "FileWriterCache"]


class FileWriter:
    """Writes an event file to a folder, in a thread.

    Args:
        logdir: the folder, created if needed.
        graph: a graph to add.
        max_queue: the number of queued events at which a method waits.
        flush_secs: the maximum time until an event is in the file.
        graph_def: a `GraphDef` to add, or its bytes.
        filename_suffix: the suffix of the file's name.
        session: accepted for old programs; events always go to a file.

    Raises:
        OSError: the folder cannot be written; later methods raise it if an event could not be.
    """

    def __init__(
        self, logdir: str | os.PathLike[str], graph: Graph | None = None, max_queue: int = 10,
        flush_secs: float = 120, graph_def: GraphDef | bytes | None = None,
        filename_suffix: str | None = None, session: Any = None,
    ) -> None:  # fmt: skip
        self._logdir = os.fspath(logdir)
        self._options: Any = (max_queue, flush_secs, filename_suffix or "")
        self._file = EventFile(self._logdir, *self._options)
        self._closed = False
        self._open()
        if graph is not None:
            self.add_graph(graph)
        elif graph_def is not None:
            self.add_graph(graph_def)

    def _open(self) -> EventFile:
        if self._closed:
            self._file, self._closed = EventFile(self._logdir, *self._options), False
        return self._file

    def get_logdir(self) -> str:
        """The folder."""
        return self._logdir

    def add_summary(self, summary: Any, global_step: Any = None) -> None:
        """Add a summary: a `tf.Summary`, or the bytes from a session."""
        raw = summary if isinstance(summary, bytes) else summary.SerializeToString()
        self._open().add(lambda: message.summary_field(raw), _step(global_step))

    def add_graph(
        self, graph: Graph | GraphDef | bytes, global_step: Any = None,
        graph_def: GraphDef | bytes | None = None,
    ) -> None:  # fmt: skip
        """Add a graph in its current state."""
        given = graph_def if graph_def is not None else graph
        given = given.as_graph_def() if isinstance(given, Graph) else given
        raw = given if isinstance(given, bytes) else given.drawn()
        self._open().add(lambda: message.graph_field(raw), _step(global_step))

    def add_run_metadata(self, run_metadata: Any, tag: str, global_step: Any = None) -> None:
        """Add the times of a step under a name: the bytes of a `RunMetadata`, or such an object."""
        raw = run_metadata
        raw = raw if isinstance(raw, bytes) else raw.SerializeToString()
        self._open().add(lambda: message.run_metadata_field(tag, raw), _step(global_step))

    def add_session_log(self, status: int, global_step: Any = None) -> None:
        """Add the start (1) or the end (2) of a session, or a checkpoint (3)."""
        self._open().add(lambda: message.session_field(status), _step(global_step))

    def add_event(self, event: Event) -> None:
        """Add an event with its own time and step."""
        content = b"".join(event.encoded())
        self._open().add(lambda: content, event.step, event.wall_time)

    def flush(self) -> None:
        """Wait until everything added is in the file."""
        self._file.flush()

    def close(self) -> None:
        """Write the remaining events and close the file; the next event opens another one."""
        self._closed = True
        self._file.close()

    def reopen(self) -> None:
        """Open another file, if this one is closed."""
        self._open()

    def __enter__(self) -> FileWriter:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _step(global_step: Any) -> int | None:
    return None if global_step is None else int(global_step)


class FileWriterCache:
    """A cache of writers by folder."""

    _writers: ClassVar[dict[str, FileWriter]] = {}

    @staticmethod
    def get(logdir: str | os.PathLike[str]) -> FileWriter:
        """The folder's writer, created on first use."""
        name = os.fspath(logdir)
        writers = FileWriterCache._writers
        if name not in writers:
            writers[name] = FileWriter(name)
        return writers[name]

    @staticmethod
    def clear() -> None:
        """Close and remove all of them."""
        for writer in FileWriterCache._writers.values():
            writer.close()
        FileWriterCache._writers.clear()
