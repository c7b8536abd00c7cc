"""Readers of a graph: resources that take names of files from a queue and give records.

Importing this module declares their kinds.
"""

from __future__ import annotations

import gzip
import itertools
import json
import threading
import zlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, BinaryIO, ClassVar, cast

import numpy as np

from weft.errors import ArgumentError, MissingError
from weft.formats.tfrecord import RecordReader
from weft.ops.resource.spec import ResourceSpec
from weft.resource.base import Array, Cancellation, Resource, register

Record = tuple[str, bytes]  # key and value


class GraphReader(Resource):
    """Gives the records of files one after the other; the names come from a queue."""

    family = what = "reader"
    title: ClassVar[str]

    def __init__(self, spec: ResourceSpec) -> None:
        super().__init__(spec)
        self._lock = threading.Lock()
        self._produced = self._finished = self._started = 0
        self._work = b""
        self._records: Iterator[Record] | None = None

    def call(
        self, method: str, inputs: Sequence[Array], options: Mapping[str, Any],
        cancel: Cancellation,
    ) -> list[Array]:  # fmt: skip
        """Read, reset, tell the counts, or save and restore the state."""
        with self._lock:
            cancel.check()
            if method in ("read", "read_up_to"):
                queue = ResourceSpec(*options["queue"])
                count = 1 if method == "read" else int(inputs[0])
                found = self._read(count, queue, cancel)
                keys, values = [_texts(part) for part in zip(*found, strict=True)]
                return [keys, values] if method == "read_up_to" else [keys[0, ...], values[0, ...]]
            return self._other(method, inputs)

    def _other(self, method: str, inputs: Sequence[Array]) -> list[Array]:
        if method == "num_records_produced":
            return [np.array(self._produced, np.int64)]
        if method == "num_work_units_completed":
            return [np.array(self._finished, np.int64)]
        if method == "serialize_state":
            return [_texts([self.saved()])[0, ...]]
        if method not in ("reset", "restore_state"):
            known = "read, read_up_to, num_records_produced, num_work_units_completed, reset"
            raise ArgumentError(f"{self.title}: expected one of {known}, got {method!r}")
        self._produced = self._finished = self._started = 0
        self._work, self._records = b"", None
        if method == "restore_state":
            self.restore(cast(Any, inputs[0][()]))
        return []

    def _read(self, count: int, queue: ResourceSpec, cancel: Cancellation) -> list[Record]:
        """Records of one file, `count` at most; the next file if the last is at its end."""
        if count < 1:
            raise ArgumentError(f"{self.title}: expected to read 1 record or more, got {count}")
        found: list[Record] = []
        while not found:
            if self._records is None:
                self._work = self._next_work(queue, cancel)
                self._records = self.opened(self._work.decode())
                self._started += 1
            found = self._some(count)
            self._produced += len(found)
            if len(found) < count or self.whole:
                self._records, self._finished = None, self._started
        return found

    whole: ClassVar[bool] = False  # whether a file is one record

    def _some(self, count: int) -> list[Record]:
        assert self._records is not None
        try:
            return list(itertools.islice(self._records, count))
        except OSError as error:
            self._records = None
            name = self._work.decode(errors="replace")
            raise MissingError(f"{self.title}: {name}; {error.strerror}") from error

    def _next_work(self, queue: ResourceSpec, cancel: Cancellation) -> bytes:
        element = self.home.call(queue, "dequeue", [], {}, cancel)
        if len(element) != 1:
            raise ArgumentError(f"{self.title}: Expected single component queue")
        if element[0].dtype != object:
            raise ArgumentError(f"{self.title}: Expected queue with single string component")
        if element[0].size != 1:
            raise ArgumentError(f"{self.title}: Expected to dequeue a one-element string tensor")
        return cast(Any, element[0].reshape(())[()])

    def opened(self, path: str) -> Iterator[Record]:
        """The records of a file."""
        raise NotImplementedError

    def saved(self) -> bytes:
        """The state.

        Raises:
            ArgumentError: such readers cannot save theirs.
        """
        raise ArgumentError(f"{self.title}: Reader SerializeState is not implemented")

    def restore(self, state: bytes) -> None:
        """Continue from a saved state."""
        raise ArgumentError(f"{self.title}: Reader RestoreState is not implemented")

    def close(self) -> None:
        """Who waits, waits for the queue."""


def _texts(values: Sequence[str | bytes]) -> Array:
    found = np.empty(len(values), object)
    found[:] = [v.encode() if isinstance(v, str) else v for v in values]
    return found


@register("TextLineReaderV2")
class TextLineReader(GraphReader):
    """Lines without their ends; the key is the file and the number of the line."""

    title = "TextLineReader"

    def opened(self, path: str) -> Iterator[Record]:
        """The lines after the header's."""
        with open(path, "rb") as stream:
            for number, line in enumerate(stream, 1):
                if number > self.spec.option("skip_header_lines", 0):
                    yield f"{path}:{number}", line.removesuffix(b"\n").removesuffix(b"\r")


@register("WholeFileReaderV2")
class WholeFileReader(GraphReader):
    """Whole files; the key is the file."""

    title, whole = "WholeFileReader", True

    def opened(self, path: str) -> Iterator[Record]:
        """The content."""
        with open(path, "rb") as stream:
            yield path, stream.read()


@register("IdentityReaderV2")
class IdentityReader(GraphReader):
    """The names themselves, as key and value."""

    title, whole = "IdentityReader", True

    def opened(self, path: str) -> Iterator[Record]:
        """The name."""
        yield path, self._work

    def saved(self) -> bytes:
        """The counts and the last name."""
        counts = [self._produced, self._finished, self._started]
        return json.dumps([*counts, self._work.decode("latin-1")]).encode()

    def restore(self, state: bytes) -> None:
        """Continue from a saved state."""
        try:
            produced, finished, started, work = json.loads(state)
            counts = [int(produced), int(finished), int(started)]
            if min(counts) < 0 or started > finished:
                raise ValueError
        except (ValueError, TypeError):
            text = f"Could not parse state for IdentityReader '{self.name}': {state!r:.80}"
            raise ArgumentError(text) from None
        self._produced, self._finished, self._started = counts
        self._work = str(work).encode("latin-1")


@register("TFRecordReaderV2")
class TFRecordReader(GraphReader):
    """Records with their checksums verified; the key is the file and the record's offset."""

    title = "TFRecordReader"

    def opened(self, path: str) -> Iterator[Record]:
        """The records."""
        kind: Any = self.spec.option("compression_type", "")
        with RecordReader(path, kind) as reader:
            offset = reader.offset
            for record in reader:
                yield f"{path}:{offset}", record
                offset = reader.offset


@register("FixedLengthRecordReaderV2")
class FixedLengthRecordReader(GraphReader):
    """Records of a fixed size; the key is the file and the record's number."""

    title = "FixedLengthRecordReader"

    def opened(self, path: str) -> Iterator[Record]:
        """The records between header and footer."""
        option = self.spec.option
        size, footer = option("record_bytes"), option("footer_bytes", 0)
        hop = option("hop_bytes", 0) or size
        with open(path, "rb") as stream:
            source = _plain(stream, option("encoding", ""))
            source.read(option("header_bytes", 0))
            ahead = source.read(size + footer)
            number = 0
            while len(ahead) == size + footer:
                yield f"{path}:{number}", ahead[:size]
                number += 1
                source.read(max(hop - len(ahead), 0))
                ahead = ahead[hop:]
                ahead += source.read(size + footer - len(ahead))


def _plain(stream: BinaryIO, encoding: str) -> BinaryIO:
    """What a file holds without its compression."""
    if encoding == "GZIP":
        return cast(BinaryIO, gzip.GzipFile(fileobj=stream))
    return cast(BinaryIO, _Inflated(stream)) if encoding == "ZLIB" else stream


class _Inflated:
    """A stream of zlib's format, read piece by piece."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream, self._inflate = stream, zlib.decompressobj()
        self._buffer = bytearray()

    def read(self, count: int) -> bytes:
        """The next bytes; fewer at the end."""
        while len(self._buffer) < count and (piece := self._stream.read(1 << 16)):
            self._buffer += self._inflate.decompress(piece)
        found = bytes(self._buffer[:count])
        del self._buffer[:count]
        return found
