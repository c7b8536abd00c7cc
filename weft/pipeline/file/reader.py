"""A cursor over one file."""

from __future__ import annotations

from weft.pipeline.stage import Cursor


class Reader(Cursor):
    """Closes its file when nobody refers to it any more."""

    def __del__(self) -> None:
        self.close()  # it may never have been opened
