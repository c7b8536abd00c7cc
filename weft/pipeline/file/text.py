"""Lines of text files."""

from __future__ import annotations

import gzip
import zlib
from typing import Any, BinaryIO, Final, cast

from weft.errors import ArgumentError, DataError
from weft.pipeline.file.reader import StreamReader

COMPRESSIONS: Final = ("", "GZIP")


class Lines(StreamReader):
    """The lines of a file as strings without line ends; its state is a byte offset.

    Raises:
        DataError: while reading, a line is not UTF-8, or the compressed file is damaged.
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
        """The next line with its end; empty at the end of the file."""
        try:
            line = self.stream.readline()
        except (EOFError, OSError, zlib.error) as error:
            raise DataError(f"{self.path}: damaged after byte {self.offset}: {error}") from None
        self.offset += len(line)
        return line

    def __next__(self) -> Any:
        offset = self.offset
        line = self.raw()
        if not line:
            raise StopIteration
        return self.decoded(line.rstrip(b"\r\n") if line.endswith(b"\n") else line, offset)

    def decoded(self, line: bytes, offset: int) -> str:
        """The bytes as a string."""
        try:
            return line.decode(self.encoding)
        except UnicodeDecodeError as error:
            where = f"{self.path}, byte {offset + error.start}"
            raise DataError(f"{where}: expected {self.encoding}: {error.reason}") from None
