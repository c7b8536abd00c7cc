"""TFRecord files, and files of fixed-size records."""

from __future__ import annotations

from typing import Any, Final

from weft.errors import ArgumentError, DataError
from weft.formats.tfrecord import RecordReader
from weft.pipeline.file.reader import Reader, StreamReader, opened
from weft.pipeline.stage import State

__all__ = ["Chunks", "Records"]

_PIECE: Final = 1 << 20


class Records(Reader):
    """The records of a TFRecord file as bytes, checksums verified; its state is a byte offset.

    Raises:
        DataError: while reading, a record is damaged; the message names the file and the byte.
    """

    def __init__(self, path: str, compression: str = "") -> None:
        self.path = path
        self.compression: Any = compression
        self.reader = RecordReader(path, self.compression)

    def __next__(self) -> bytes:
        return next(self.reader)

    def gather(self, count: int) -> tuple[Any, int]:
        """Records as an object array."""
        records = self.reader.read(count)
        return records.array(), len(records)

    def packed(self, count: int) -> tuple[Any, int]:
        """Encoded records, as they are in the file."""
        records = self.reader.read(count)
        return records, len(records)

    def state(self) -> State:
        """The offset of the next record."""
        return {"offset": self.reader.offset}

    def restore(self, state: State) -> None:
        """Go to a record's offset."""
        self.reader.close()
        self.reader = RecordReader(self.path, self.compression, offset=state["offset"])

    def close(self) -> None:
        """Close the file."""
        reader: RecordReader | None = getattr(self, "reader", None)
        if reader is not None:
            reader.close()


class Chunks(StreamReader):
    """Records of a fixed size, between a header and a footer; its state is a byte offset.

    Raises:
        DataError: while reading, the last record is incomplete, or the compressed file is damaged.
    """

    def __init__(
        self, path: str, size: int, header: int = 0, footer: int = 0, compression: str = ""
    ) -> None:
        if size < 1:
            raise ArgumentError(f"record_bytes: expected 1 or more, got {size}")
        self.path, self.size = path, size
        self.stream = opened(path, compression)
        self.offset = header
        with self.undamaged():
            while compression and self.stream.read(_PIECE):
                pass  # how long it is, decompressing tells
            self.end = (self.stream.tell() if compression else self.stream.seek(0, 2)) - footer
            self.stream.seek(header)

    def __next__(self) -> bytes:
        if self.offset >= self.end:
            raise StopIteration
        start, self.offset = self.offset, self.offset + self.size
        if self.offset > self.end:
            text = f"a record of {self.size} bytes, but {self.end - start} are left"
            raise DataError(f"{self.path}, byte {start}: expected {text}")
        return self.stream.read(self.size)
