"""Lines of text files."""

from __future__ import annotations

import gzip
import zlib
from typing import Any, BinaryIO, Final, cast

from weft.errors import ArgumentError, DataError
from weft.pipeline.file.reader import Reader
from weft.pipeline.stage import State

COMPRESSIONS: Final = ("", "GZIP")


class Lines(Reader):
    """The lines of a file as texts without their ends; its state is a byte offset.

    Raises:
        DataError: while reading, a line is no UTF-8, or the compressed file is damaged.
    """

    def __init__(self, path: str, compression: str = "", encoding: str = "utf-8") -> None:
        if compression not in COMPRESSIONS:
            expected = " or ".join(map(repr, COMPRESSIONS))
            raise ArgumentError(f"compression_type: expected {expected}, got {compression!r}")
        self.path = path
        self.encoding = encoding
        opened: Any = gzip.open(path, "rb") if compression else open(path, "rb")  # noqa: SIM115
        self.stream = cast("BinaryIO", opened)
        self.offset = 0

    def raw(self) -> bytes:
        """The next line with its end, nothing at the file's end."""
        try:
            line = self.stream.readline()
        except (EOFError, OSError, zlib.error) as error:
            raise DataError(f"{self.path}: damaged behind byte {self.offset}: {error}") from None
        self.offset += len(line)
        return line

    def __next__(self) -> Any:
        offset = self.offset
        line = self.raw()
        if not line:
            raise StopIteration
        return self.decoded(line.rstrip(b"\r\n") if line.endswith(b"\n") else line, offset)

    def decoded(self, line: bytes, offset: int) -> str:
        """The bytes as text."""
        try:
            return line.decode(self.encoding)
        except UnicodeDecodeError as error:
            where = f"{self.path}, byte {offset + error.start}"
            raise DataError(f"{where}: expected {self.encoding}: {error.reason}") from None

    def state(self) -> State:
        """The byte offset, without compression."""
        return {"offset": self.offset}

    def restore(self, state: State) -> None:
        """Go to a byte offset."""
        self.offset = state["offset"]
        self.stream.seek(self.offset)

    def close(self) -> None:
        """Close the file."""
        stream: BinaryIO | None = getattr(self, "stream", None)
        if stream is not None:
            stream.close()
