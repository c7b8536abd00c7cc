"""Memory of large variables: every page is zero, and takes no memory, until it is written."""

from __future__ import annotations

import abc
import contextlib
import mmap
import os
import sys
import weakref
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from weft import config
from weft.errors import ConfigError, OutOfMemoryError
from weft.host.deferred import Deferred
from weft.runtime.flight import LEAF, new_lock
from weft.runtime.memory.arena import HUGE, advise
from weft.runtime.memory.budget import UNLIMITED, Budget

if TYPE_CHECKING:
    import tempfile
else:  # few processes make such a file
    tempfile = Deferred("tempfile")

LARGE: Final = 256 << 20
"""Bytes from which on pages are given back instead of overwritten with zeros."""
_GIVES_BACK: Final = sys.platform == "linux"
"""Elsewhere a page may keep its content when it is given back."""


class Pages(abc.ABC):
    """Zeros, of which only the pages that are touched take memory.

    Attributes:
        bytes: the memory, aligned to a page.
    """

    bytes: np.ndarray[Any, Any]

    @abc.abstractmethod
    def _give_back(self) -> None:
        """Gives all pages back to the system.

        Raises:
            OSError: it does not take them.
        """

    def clear(self) -> None:
        """Makes everything zero again, without touching a page if the system permits it."""
        if _GIVES_BACK:
            with contextlib.suppress(OSError):
                self._give_back()
                return
        self.bytes.fill(0)


class MemoryPages(Pages):
    """Huge pages of memory.

    Raises:
        OutOfMemoryError: the machine, or the budget, has less.
    """

    def __init__(self, size: int, budget: Budget = UNLIMITED) -> None:
        budget.refuse_too_much(size, "tensor")
        try:
            flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
            self._block = mmap.mmap(-1, size + HUGE, flags=flags)
        except (OSError, OverflowError, ValueError):
            raise OutOfMemoryError(
                f"variable: cannot map {size:,} bytes of memory; WEFT_VARIABLE_FOLDER=FOLDER puts "
                f"large variables into files"
            ) from None
        whole = np.frombuffer(self._block, np.uint8)
        budget.charge(whole, size, "tensor")
        advise(self._block)
        start = -int(whole.__array_interface__["data"][0]) % HUGE
        self.bytes = whole[start : start + size]

    def _give_back(self) -> None:
        self._block.madvise(mmap.MADV_DONTNEED)


class FilePages(Pages):
    """Small pages of a file without a name, which the system writes out when memory is scarce.

    A forked process shares them.

    Args:
        size: in bytes.
        folder: where the file is.

    Raises:
        OutOfMemoryError: the disk does not have room for this file and the others in full. Without
            the check, a page that has no room would end the process.
        ConfigError: the folder takes no file.
    """

    def __init__(self, size: int, folder: str) -> None:
        try:
            with tempfile.TemporaryFile(dir=folder) as file:
                _refuse_full(folder, size)
                file.truncate(size)
                self._block = mmap.mmap(file.fileno(), size)
                self._file = os.dup(file.fileno())
        except OSError as error:
            raise ConfigError(f"WEFT_VARIABLE_FOLDER: {folder}: {error.strerror}") from None
        weakref.finalize(self, os.close, self._file).atexit = False
        self._block.madvise(mmap.MADV_RANDOM)  # else a row brings its neighbours along
        self.bytes = np.frombuffer(self._block, np.uint8)
        with _guard:
            _files.add(self)

    def _give_back(self) -> None:
        self._block.madvise(mmap.MADV_REMOVE)

    def to_come(self, disk: int) -> int:
        """Bytes that the file may still take of a disk, given its number."""
        status = os.fstat(self._file)
        return max(0, status.st_size - 512 * status.st_blocks) if status.st_dev == disk else 0


_files: Final[weakref.WeakSet[FilePages]] = weakref.WeakSet()
_guard: Final = new_lock(LEAF)


def _refuse_full(folder: str, size: int) -> None:
    status, disk = os.statvfs(folder), os.stat(folder).st_dev
    with _guard:
        promised = sum([pages.to_come(disk) for pages in _files])
    free = status.f_bavail * status.f_frsize
    if size + promised > free:
        raise OutOfMemoryError(
            f"WEFT_VARIABLE_FOLDER: {folder} has {free:,} bytes left, of which other variables may "
            f"take {promised:,}; expected room for {size:,}"
        )


def pages(size: int, budget: Budget = UNLIMITED) -> Pages:
    """Zeros in a file if `WEFT_VARIABLE_FOLDER` names a folder, else in memory.

    Args:
        size: in bytes.
        budget: counts those in memory.
    """
    folder = str(config.get("variable_folder"))
    return FilePages(size, folder) if folder else MemoryPages(size, budget)
