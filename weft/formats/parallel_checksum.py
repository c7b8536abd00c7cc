"""Reads and checksums many arrays by a few threads, outside the GIL."""

from __future__ import annotations

import os
import threading
import zlib
from collections.abc import Callable, Sequence
from typing import Any, Final, TypeVar

from weft.runtime.checksum import crc_update

T = TypeVar("T")
R = TypeVar("R")
MOST_THREADS: Final = 4
FEW_BYTES: Final = 1 << 22  # one thread is as fast
PIECE: Final = 1 << 20  # bytes; they are still in cache when their checksum is computed
_CRC32: Final = 0xEDB88320
_ONES: Final = 0xFFFFFFFF


def in_threads(work: Callable[[T], R], items: Sequence[T], size: int) -> list[R]:
    """The results of some work for each item, in order, computed by threads.

    Args:
        size: how many bytes the work processes.

    Raises:
        BaseException: the first error of the work.
    """
    count = min(MOST_THREADS, os.cpu_count() or 1, len(items))
    if size < FEW_BYTES or count < 2:
        return [work(item) for item in items]
    found: dict[int, R] = {}
    errors: list[BaseException] = []
    turns = iter(range(len(items)))  # nested calls are not divided between threads

    def run() -> None:
        try:
            for number in turns:
                if errors:
                    return
                found[number] = work(items[number])
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=run, name="weft-checksums") for _ in range(count - 1)]
    for thread in threads:
        thread.start()
    run()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]
    return [found[number] for number in range(len(items))]


def read_summed(descriptor: int, offset: int, content: Any) -> tuple[int, int]:
    """Fills memory from a position of a file; returns the bytes read and their CRC-32."""
    view = memoryview(content)
    done = checksum = 0
    while done < len(view):
        piece = view[done : done + PIECE]
        got = os.preadv(descriptor, [piece], offset + done)
        if not got:
            break
        checksum = crc32(piece[:got], checksum)
        done += got
    return done, checksum


def crc32(content: Any, value: int = 0) -> int:
    """`zlib.crc32`, by a native kernel if there is one and it pays."""
    update = crc_update(_CRC32, len(content) >= PIECE)
    if update is None:
        return zlib.crc32(content, value)
    return update(content, value ^ _ONES) ^ _ONES
