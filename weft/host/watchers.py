"""Those who look at what happens, as long as they look."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import TypeVar

T = TypeVar("T")


class Watchers(list[Callable[[T], object]]):
    """Functions that are told what happens, in any thread; empty while nobody looks.

    >>> numbers = Watchers[int]()
    >>> with numbers.watch() as seen:
    ...     numbers.tell(3)
    >>> numbers.tell(4)
    >>> seen
    [3]
    """

    def tell(self, what: T) -> None:
        """Tell all of them."""
        for watcher in list(self):
            watcher(what)

    @contextlib.contextmanager
    def watch(self) -> Iterator[list[T]]:
        """A block in which what happens is recorded into the list."""
        seen: list[T] = []
        watcher = seen.append
        self.append(watcher)
        try:
            yield seen
        finally:
            self.remove(watcher)
