"""`tf.summary.FileWriter`: summaries, graphs and other events in a file."""

from __future__ import annotations

import os
from typing import Any, ClassVar

from weft.formats.event import graph as drawing
from weft.formats.event import message
from weft.formats.event.file import EventFile
from weft.tf1.framework.graph import Graph
from weft.tf1.summary.graph import graph_nodes
from weft.tf1.summary.proto import Event


class FileWriter:
    """Writes an event file to a folder; a thread does the writing.

    Args:
        logdir: the folder, which is made where it is missing.
        graph: is added, where it is given.
        max_queue: how many events may wait before a method does.
        flush_secs: how long an event may wait before it is in the file.
        graph_def: the bytes of a `GraphDef`, added likewise.
        filename_suffix: the end of the file's name.
        session: there for old programs; events always go to a file.

    Raises:
        OSError: the folder cannot be written; every method raises it where an event could not be.
    """

    def __init__(
        self,
        logdir: str | os.PathLike[str],
        graph: Graph | None = None,
        max_queue: int = 10,
        flush_secs: float = 120,
        graph_def: bytes | None = None,
        filename_suffix: str | None = None,
        session: Any = None,
    ) -> None:
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
        """Add a summary: a `tf.Summary`, or the bytes that a session gave."""
        raw = summary if isinstance(summary, bytes) else summary.SerializeToString()
        self._open().add(lambda: message.summary_field(raw), _step(global_step))

    def add_graph(
        self, graph: Graph | bytes, global_step: Any = None, graph_def: bytes | None = None
    ) -> None:
        """Add a graph, as it is now."""
        given = graph_def if graph_def is not None else graph
        raw = given if isinstance(given, bytes) else drawing.graph_def(graph_nodes(given))
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
        """Return once everything added is in the file."""
        self._file.flush()

    def close(self) -> None:
        """Write what is left and close the file; the next event opens another."""
        self._closed = True
        self._file.close()

    def reopen(self) -> None:
        """Open another file, where this one is closed."""
        self._open()

    def __enter__(self) -> FileWriter:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _step(global_step: Any) -> int | None:
    return None if global_step is None else int(global_step)


class FileWriterCache:
    """A writer for each folder."""

    _writers: ClassVar[dict[str, FileWriter]] = {}

    @staticmethod
    def get(logdir: str | os.PathLike[str]) -> FileWriter:
        """The folder's writer, made at first."""
        name = os.fspath(logdir)
        writers = FileWriterCache._writers
        if name not in writers:
            writers[name] = FileWriter(name)
        return writers[name]

    @staticmethod
    def clear() -> None:
        """Close and forget all of them."""
        for writer in FileWriterCache._writers.values():
            writer.close()
        FileWriterCache._writers.clear()
