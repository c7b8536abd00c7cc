"""Cursors over one file."""

from __future__ import annotations

from typing import BinaryIO

from weft.pipeline.stage import Cursor, State


class Reader(Cursor):
    """Closes its file when it is garbage-collected."""

    def __del__(self) -> None:
        self.close()  # also safe if the file was never opened


class StreamReader(Reader):
    """Reads a byte stream; its state is a byte offset (before compression)."""

    stream: BinaryIO
    offset: int

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
