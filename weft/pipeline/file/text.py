"""Lines of text files."""

from __future__ import annotations

from typing import Any

from weft.errors import DataError
from weft.pipeline.file.reader import StreamReader, opened


class Lines(StreamReader):
    """The lines of a file as strings without line ends; its state is a byte offset.

    Raises:
        DataError: while reading, a line is not UTF-8, or the compressed file is damaged.
    """

    def __init__(self, path: str, compression: str = "", encoding: str = "utf-8") -> None:
        self.path = path
        self.encoding = encoding
        self.stream = opened(path, compression)
        self.offset = 0

    def raw(self) -> bytes:
        """The next line with its end; empty at the end of the file."""
        with self.undamaged():
            line = self.stream.readline()
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
