"""What a thread has made the default: graphs and sessions in `with` blocks."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from typing import Generic, TypeVar

T = TypeVar("T")


class Defaults(threading.local, Generic[T]):
    """Objects that a thread has made the default, the innermost last."""

    def __init__(self) -> None:
        self.stack: list[T] = []

    @contextlib.contextmanager
    def within(self, thing: T) -> Iterator[T]:
        """Inside, `thing` is the default."""
        self.stack.append(thing)
        try:
            yield thing
        finally:
            self.stack.reverse()
            self.stack.remove(thing)
            self.stack.reverse()
