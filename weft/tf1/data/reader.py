"""Readers of queue-based pipelines: `reader.read(names)` gives a key and a value in each run."""

from __future__ import annotations

import threading
from typing import Any

from weft.errors import EndOfDataError
from weft.pipeline.pipeline import Pipeline
from weft.tf1.framework.dtypes import string
from weft.tf1.framework.host import host_op
from weft.tf1.framework.tensor import Tensor

__all__ = ["FixedLengthRecordReader", "TFRecordReader", "TextLineReader", "WholeFileReader"]


class Shared:
    """A pass that runs share; each takes one element."""

    def __init__(self, pipeline: Pipeline, name: str) -> None:
        self.pipeline, self.name = pipeline, name
        self.lock = threading.Lock()
        self.running: Any = None

    def next(self) -> Any:
        """The next element."""
        with self.lock:
            if self.running is None:
                self.running = iter(self.pipeline)
            try:
                return next(self.running)
            except StopIteration:
                raise EndOfDataError(f"{self.name}: the data has ended") from None


class ReaderBase:
    """Reads the files whose names come from a queue."""

    def read(self, queue: Pipeline, name: str | None = None) -> tuple[Tensor, Tensor]:
        """A key, such as `file:3`, and a value; each run takes the next pair."""
        pairs = queue.flat_map(self._pairs)
        kind = type(self).__name__
        take = Shared(pairs, name or kind).next
        key, value = host_op("ReaderRead", (), take, [string] * 2, [()] * 2, name or kind).outputs
        return key, value

    def _pairs(self, path: str) -> Pipeline:
        numbered = self._values(path).enumerate()
        return numbered.map(lambda number, value: (f"{path}:{number}", value))

    def _values(self, path: str) -> Pipeline:
        raise NotImplementedError(type(self).__name__)


class TextLineReader(ReaderBase):
    """Lines of text files."""

    def __init__(self, skip_header_lines: int = 0) -> None:
        self.skip = skip_header_lines

    def _values(self, path: str) -> Pipeline:
        return Pipeline.text_lines([path]).skip(self.skip)


class TFRecordReader(ReaderBase):
    """Records of TFRecord files."""

    def __init__(self, name: str | None = None, options: Any = None) -> None:
        kind = getattr(options, "compression_type", options)
        self.compression = kind if isinstance(kind, str) else ""

    def _values(self, path: str) -> Pipeline:
        return Pipeline.tfrecords([path], self.compression)


class FixedLengthRecordReader(ReaderBase):
    """Fixed-size records."""

    def __init__(self, record_bytes: int, header_bytes: int = 0, footer_bytes: int = 0) -> None:
        self.sizes = record_bytes, header_bytes, footer_bytes

    def _values(self, path: str) -> Pipeline:
        return Pipeline.fixed_length_records([path], *self.sizes)


class WholeFileReader(ReaderBase):
    """Whole files; the key is the name."""

    def _values(self, path: str) -> Pipeline:
        return Pipeline.from_sequence([path]).map(_contents)

    def _pairs(self, path: str) -> Pipeline:
        return self._values(path).map(lambda value: (path, value))


def _contents(path: str) -> bytes:
    with open(path, "rb") as stream:
        return stream.read()
