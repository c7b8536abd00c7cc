"""Ranks as threads of one process: for a world of one rank, and for tests."""

from __future__ import annotations

import threading
from collections import defaultdict, deque
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from weft.transport.base import Array, Part, Pending, Transport

T = TypeVar("T")
_Box = dict[tuple[int, int, int], deque[Array]]


class _Post:
    """Messages between threads, by sender, receiver and tag."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.boxes: _Box = defaultdict(deque)
        self.notes: dict[int, list[str]] = defaultdict(list)


class _Arriving(Pending):
    def __init__(self, post: _Post, rank: int, tag: int, parts: Sequence[Part]) -> None:
        self._post, self._rank, self._tag = post, rank, tag
        self._parts = list(parts)

    def done(self) -> bool:
        with self._post.lock:
            while self._parts:
                peer, data = self._parts[0]
                box = self._post.boxes[peer, self._rank, self._tag]
                if not box:
                    return False
                data[...] = box.popleft()
                del self._parts[0]
        return True

    def missing(self) -> list[int]:
        return [part.peer for part in self._parts]

    def give_up(self) -> None:
        self._parts.clear()


class LocalTransport(Transport):
    """The transport of one thread: a world of one, unless made by `ranks`."""

    def __init__(self, rank: int = 0, size: int = 1, post: _Post | None = None) -> None:
        super().__init__(rank, size)
        self._post = _Post() if post is None else post

    def start(self, sends: Sequence[Part], receives: Sequence[Part], tag: int) -> Pending:
        """See `Transport.start`; sent data is copied at once."""
        with self._post.lock:
            for peer, data in sends:
                self._post.boxes[self.rank, peer, tag].append(data.copy())
        return _Arriving(self._post, self.rank, tag, receives)

    def source_of(self, tag: int) -> int | None:
        """See `Transport.source_of`."""
        with self._post.lock:
            own = [(peer, box) for (peer, to, t), box in self._post.boxes.items()
                   if (to, t) == (self.rank, tag)]  # fmt: skip
        return next((peer for peer, box in own if box), None)

    def note(self, peer: int, text: str) -> None:
        """See `Transport.note`."""
        with self._post.lock:
            self._post.notes[peer].append(text)

    def notes(self) -> list[str]:
        """See `Transport.notes`."""
        with self._post.lock:
            return self._post.notes.pop(self.rank, [])

    def close(self) -> None:
        """Nothing to close."""


def ranks(size: int) -> list[LocalTransport]:
    """Connected transports for `size` threads."""
    post = _Post()
    return [LocalTransport(rank, size, post) for rank in range(size)]


def in_threads(size: int, work: Callable[[LocalTransport], T]) -> list[T]:
    """Run `work` on each of `size` ranks; returns the results by rank.

    Raises:
        BaseException: the exception of the first rank that failed; the others raise, too.

    Example:
        >>> in_threads(3, lambda transport: transport.rank)
        [0, 1, 2]
    """
    results: dict[int, Any] = {}
    errors: list[BaseException] = []
    transports = ranks(size)

    def run(transport: LocalTransport) -> None:
        try:
            results[transport.rank] = work(transport)
        except BaseException as error:
            errors.append(error)
            for other in transports:
                other.fail(f"rank {transport.rank} failed: {type(error).__name__}: {error}")

    threads = [threading.Thread(target=run, args=(t,), daemon=True) for t in transports]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]
    return [results[rank] for rank in range(size)]
