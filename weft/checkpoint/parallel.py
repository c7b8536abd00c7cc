"""Checksums and reading of many arrays by a few threads, which Python's lock does not hold up."""

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
PIECE: Final = 1 << 20  # bytes; they are still in the cache when their checksum is taken
_CRC32: Final = 0xEDB88320
_ONES: Final = 0xFFFFFFFF


def in_threads(work: Callable[[T], R], items: Sequence[T], size: int) -> list[R]:
    """What some work gives for each item, in their order.

    Args:
        size: how many bytes the work is about.

    Raises:
        BaseException: what the work has raised first.
    """
    count = min(MOST_THREADS, os.cpu_count() or 1, len(items))
    if size < FEW_BYTES or count < 2:
        return [work(item) for item in items]
    found: dict[int, R] = {}
    errors: list[BaseException] = []
    turns = iter(range(len(items)))  # one step of it is not divided between threads

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
    """Fill memory from a place of a file; how many bytes were there, and their CRC-32."""
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
    """`zlib.crc32`, by a native kernel where there is one and that is worth it."""
    update = crc_update(_CRC32, len(content) >= PIECE)
    if update is None:
        return zlib.crc32(content, value)
    return update(content, value ^ _ONES) ^ _ONES
