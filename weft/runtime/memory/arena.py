"""One block of memory for all temporaries of a program: mapped once, touched once.

Page faults for a gigabyte take half a second on two processors, so pages are made resident while
programs are still loaded or compiled.
"""

from __future__ import annotations

import contextlib
import mmap
import threading
from typing import Any, Final

import numpy as np

from weft import config
from weft.errors import OutOfMemoryError
from weft.host.memory import available

HUGE: Final = 2 << 20  # a huge page: fewer TLB misses on large arenas
ALONE: Final = 16 << 20  # bytes that are touched in a few milliseconds
MOST_THREADS: Final = 8  # beyond it memory is the limit


class Arena:
    """`size` zeroed bytes, aligned to at least 64 bytes (in fact to a page).

    They are resident once `ready` has returned; do not write to them before. The memory is freed
    with the last reference to the arena or to a view of it.

    Raises:
        OutOfMemoryError: the machine does not have that much.
    """

    def __init__(self, size: int) -> None:
        self.size = size
        mapped = max(size, 1) if size < HUGE else size + HUGE
        refuse_too_much(size)
        try:
            block = mmap.mmap(-1, mapped, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        except (OSError, OverflowError, ValueError):
            raise OutOfMemoryError(no_room("arena", size)) from None
        whole = np.frombuffer(block, np.uint8)
        start = -int(whole.__array_interface__["data"][0]) % HUGE if size >= HUGE else 0
        self.bytes: np.ndarray[Any, Any] = whole[start : start + size]
        self.address = int(whole.__array_interface__["data"][0]) + start
        advise(block)
        self.residence = Residence(block, 0, mapped)

    def ready(self) -> None:
        """Waits until every page is resident, so that no step pays for a page fault."""
        self.residence.wait()

    def view(self, offset: int, dtype: np.dtype[Any], shape: tuple[int, ...]) -> np.ndarray:
        """The array at `offset`, without copying; it keeps the memory alive."""
        return np.ndarray(shape, dtype, self.bytes, offset)


def refuse_too_much(size: int, what: str = "arena") -> None:
    """Raises before the system would end the process.

    Raises:
        OutOfMemoryError: the machine does not have that much.
    """
    left = available()
    if size >= HUGE and left is not None and size > left:
        raise OutOfMemoryError(no_room(what, size))


def no_room(what: str, size: int) -> str:
    """The error for memory of an arena, or of a tensor, that is not available."""
    left = available()
    there = "" if left is None else f", {left:,} available"
    return f"{what}: cannot map {size:,} bytes{there}; a smaller batch needs less"


def advise(block: mmap.mmap, begin: int = 0, size: int | None = None) -> None:
    """Requests huge pages for `size` bytes from a page's start on, or for the whole block."""
    if hasattr(mmap, "MADV_HUGEPAGE"):
        with contextlib.suppress(OSError):  # a kernel without huge pages
            block.madvise(mmap.MADV_HUGEPAGE, begin, len(block) if size is None else size)


class Residence:
    """Makes every page of a part of a block resident; `wait` until it is done.

    Several threads touch the pages: the system zeroes each thread's pages concurrently, while its
    call for a whole range (MADV_POPULATE_WRITE) admits only one thread.
    """

    def __init__(self, block: mmap.mmap, start: int, size: int) -> None:
        pages = np.frombuffer(block, np.uint8)[start : start + size : mmap.PAGESIZE]
        if size < ALONE:
            pages[...] = 0
            self._threads: list[threading.Thread] = []
            return
        parts = np.array_split(pages, min(int(config.get("threads")), MOST_THREADS))
        self._threads = [threading.Thread(target=part.fill, args=(0,)) for part in parts]
        for thread in self._threads:
            thread.start()

    @property
    def is_complete(self) -> bool:
        """Whether no thread touches pages any more."""
        return not any([thread.is_alive() for thread in self._threads])

    def wait(self) -> None:
        """Waits until all pages are resident."""
        for thread in self._threads:
            thread.join()
