"""Cursors over one file."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, BinaryIO, Final, cast

from weft.errors import ArgumentError, DataError
from weft.pipeline.stage import Cursor, State

COMPRESSIONS: Final = ("", "GZIP")


def opened(path: str, compression: str = "") -> BinaryIO:
    """A file's bytes, decompressed."""
    if compression not in COMPRESSIONS:
        expected = " or ".join(map(repr, COMPRESSIONS))
        raise ArgumentError(f"compression_type: expected {expected}, got {compression!r}")
    found: Any = gzip.open(path, "rb") if compression else open(path, "rb")  # noqa: SIM115
    return cast("BinaryIO", found)


class Reader(Cursor):
    """Closes its file when it is garbage-collected."""

    def __del__(self) -> None:
        self.close()  # also safe if the file was never opened


class StreamReader(Reader):
    """Reads a byte stream; its state is a byte offset (before compression)."""

    stream: BinaryIO
    path: str
    offset: int

    @contextmanager
    def undamaged(self) -> Iterator[None]:
        """What is read inside comes from a file whose compressed bytes are whole."""
        try:
            yield
        except (EOFError, OSError, zlib.error) as error:
            raise DataError(f"{self.path}: damaged after byte {self.offset}: {error}") from None

    def state(self) -> State:
        """The offset of the next element."""
        return {"offset": self.offset}

    def restore(self, state: State) -> None:
        """Go to an offset."""
        self.offset = state["offset"]
        self.stream.seek(self.offset)

    def close(self) -> None:
        """Close the file."""
        stream: BinaryIO | None = getattr(self, "stream", None)
        if stream is not None:
            stream.close()
