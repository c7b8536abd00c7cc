"""Skipping of elements that raise errors."""

from __future__ import annotations

import sys
from typing import Any

from weft.pipeline.stage import UNKNOWN, Behind, Context, Cursor, Stage


class IgnoreErrors(Stage):
    """The elements that raise no error.

    Attributes:
        skipped: the number of skipped elements, over all passes.
        last: the last error.
    """

    name = "ignore_errors"

    def __init__(self, source: Stage, tell: bool = False) -> None:
        self.inputs = (source,)
        self.tell = tell
        self.skipped = 0
        self.last: Exception | None = None

    def stream(self, context: Context) -> Cursor:
        """Elements in order."""
        return _IgnoreErrors(self.inputs[0].open(context), self)

    def count(self) -> int:
        """UNKNOWN, as any element may fail."""
        return UNKNOWN


class _IgnoreErrors(Behind):
    def __init__(self, source: Cursor, stage: IgnoreErrors) -> None:
        super().__init__(source)
        self.stage = stage

    def __next__(self) -> Any:
        stage = self.stage
        while True:
            try:
                return next(self.source)
            except StopIteration:
                raise
            except Exception as error:
                stage.skipped += 1
                stage.last = error
                if stage.tell:
                    notes = "; ".join(getattr(error, "__notes__", []))
                    text = f"skipped an element: {type(error).__name__}: {error}"
                    print(f"data: {text}; {notes}" if notes else f"data: {text}", file=sys.stderr)
