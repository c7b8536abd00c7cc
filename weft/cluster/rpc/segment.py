"""Memory that this process lends to others of its host: anonymous files, used again and again.

The first page of a segment holds a word for each loan. The lender sets it; the borrower, who maps
the same memory, clears it when its last view of the data is gone. So a return takes no message.
Nothing has a name in the file system, and nothing is left when processes are killed.
"""

from __future__ import annotations

import collections
import fcntl
import itertools
import math
import os
import threading
from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from weft.cluster.rpc.message import Array
from weft.cluster.rpc.pages import LARGE, Mapping
from weft.errors import OutOfMemoryError

PAGE: Final = 4096
LOANS: Final = 56
"""The most loans of a segment at a time; the words before them are its state."""
RETIRED: Final = 0
"""The index of the word that tells borrowers to unmap a segment."""
FIRST_LOAN: Final = 8
_NO_LOANS: Final = bytes(8 * LOANS)
LEAST_BYTES: Final = 1 << 16
OFTEN: Final = 3
"""Memory that is used again so often gets large pages."""
MOST_IDLE_BYTES: Final = 1 << 30
"""How much memory is kept for later; above it, what was not used for longest is freed."""


class Segment:
    """An anonymous file of this process, mapped.

    Attributes:
        number: unique in this process.
        file: its descriptor.
        size: bytes, including the first page.
        words: the first page.
        spoiled: whether a borrower may have it for ever, so that it cannot be used again.
    """

    def __init__(self, number: int, size: int) -> None:
        self.number, self.size = number, size
        self.file = os.memfd_create("weft", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        try:
            os.posix_fallocate(self.file, 0, size)
            fcntl.fcntl(self.file, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW)
            self._mapping = Mapping(self.file, size)
        except OSError:
            os.close(self.file)
            raise
        self.words = self._mapping.words(PAGE)
        self.address = self._mapping.address + PAGE
        self.spoiled = False
        self._uses = 0

    @property
    def room(self) -> int:
        """Bytes of data."""
        return self.size - PAGE

    def use(self) -> None:
        """Note that it is used once more; often used memory has large pages."""
        self._uses += 1
        if self._uses == OFTEN and self.size >= LARGE:
            work = self._mapping.enlarge_pages  # it takes 0.2 to 2 ms for each
            threading.Thread(target=work, name="weft-rpc-pages", daemon=True).start()

    @property
    def lent(self) -> bool:
        """Whether somebody borrows it."""
        return self.words[FIRST_LOAN : FIRST_LOAN + LOANS].tobytes() != _NO_LOANS

    def lend(self, mark: int) -> int:
        """Set a free word; returns its index, -1 if there is none."""
        words = self.words
        for index in range(FIRST_LOAN, FIRST_LOAN + LOANS):
            if not words[index]:
                words[index] = mark
                return index
        return -1

    def retire(self) -> None:
        """Free it here, and tell borrowers to; the system frees it once nobody maps it."""
        self.words[RETIRED] = 1
        os.close(self.file)


class Lease:
    """What keeps a segment in use here: the base of the array of its data."""

    __slots__ = ("__array_interface__", "__weakref__", "_returned", "segment")

    def __init__(self, segment: Segment, returned: collections.deque[Segment], size: int) -> None:
        self.segment, self._returned = segment, returned
        self.__array_interface__ = {
            "shape": (size,), "typestr": "|u1", "data": (segment.address, False), "version": 3,
        }  # fmt: skip

    def __del__(self) -> None:
        self._returned.append(self.segment)  # no lock: the garbage collector runs anywhere


class Pool:
    """The segments of this process."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._numbers = itertools.count()
        self._marks = itertools.count(1)
        self._returned: collections.deque[Segment] = collections.deque()
        self._lent: list[Segment] = []  # without a lease, but with borrowers
        self._idle: list[Segment] = []  # the last was used last

    def allocate(self, shape: Sequence[int], dtype: Any) -> Array:
        """An uninitialized array in a segment of its own.

        Raises:
            OutOfMemoryError: there is no more memory.
        """
        dtype = np.dtype(dtype)
        size = math.prod(shape) * dtype.itemsize
        if not size:
            return np.empty(tuple(shape), dtype)
        with self._lock:
            segment = self._take(size) or self._make(size)
        lease = np.asarray(Lease(segment, self._returned, size))
        return lease.view(dtype).reshape(tuple(shape))

    def lend(self, segment: Segment) -> tuple[int, int]:
        """The index of a new loan of a segment, -1 if it has too many, and its mark."""
        with self._lock:
            mark = next(self._marks)
            return segment.lend(mark), mark

    def collect(self) -> None:
        """Find segments that are free again, and free those that are too many."""
        with self._lock:
            self._collect()

    @property
    def idle_bytes(self) -> int:
        """The bytes of segments that nobody uses."""
        return sum([segment.size for segment in self._idle])

    def _take(self, size: int) -> Segment | None:
        """A free segment that is large enough, but not much larger."""
        self._collect()
        fitting = [s for s in self._idle if size <= s.room <= 2 * max(size, LEAST_BYTES)]
        if not fitting:
            return None
        best = min(reversed(fitting), key=lambda segment: segment.size)
        self._idle.remove(best)
        best.use()
        return best

    def _make(self, size: int) -> Segment:
        step = max(1 << max(size.bit_length() - 3, 0), LEAST_BYTES)
        whole = -(-max(size, 1) // step) * step + PAGE
        try:
            return Segment(next(self._numbers), whole)
        except OSError as error:
            raise OutOfMemoryError(
                f"shared memory: cannot have {whole:,} bytes: {error.strerror}"
            ) from None

    def _collect(self) -> None:
        for _ in range(len(self._returned)):
            self._lent.append(self._returned.popleft())
        still: list[Segment] = []
        for segment in self._lent:
            if segment.spoiled:
                segment.retire()
            elif segment.lent:
                still.append(segment)
            else:
                self._idle.append(segment)
        self._lent = still
        while self._idle and self.idle_bytes > MOST_IDLE_BYTES:
            self._idle.pop(0).retire()


def lease_of(x: Array) -> Lease | None:
    """The lease that keeps an array's memory, if it is in a segment of this process."""
    base: Any = x
    while isinstance(base, np.ndarray):
        base = base.base
    return base if type(base) is Lease else None


class Loans:
    """What one borrower has of this process's segments."""

    def __init__(self) -> None:
        self._pool = pool()
        self._open: list[tuple[Segment, int, int]] = []
        self._lock = threading.Lock()
        self._closed = False

    def add(self, segment: Segment) -> int:
        """Lend a segment; returns the index of the loan, -1 if it has too many."""
        index, mark = self._pool.lend(segment)
        if index >= 0:
            with self._lock:
                if len(self._open) > 64:
                    self._open = [each for each in self._open if _is_open(*each)]
                self._open.append((segment, index, mark))
                if self._closed:
                    segment.spoiled = True
        return index

    def cancel(self, segment: Segment, index: int) -> None:
        """Take back a loan that was not sent."""
        segment.words[index] = 0

    def close(self) -> None:
        """The borrower has gone, or lives on with views of which nothing will be heard."""
        with self._lock:
            self._closed = True
            for each in self._open:
                if _is_open(*each):
                    each[0].spoiled = True
            self._open.clear()
        self._pool.collect()


def _is_open(segment: Segment, index: int, mark: int) -> bool:
    return segment.words[index] == mark


_pools = [Pool()]


def pool() -> Pool:
    """The pool of this process."""
    return _pools[0]


def _forget() -> None:
    """In a forked process: the segments are the parent's."""
    _pools[0] = Pool()


os.register_at_fork(after_in_child=_forget)


def available() -> bool:
    """Whether this system has such memory."""
    try:
        os.close(os.memfd_create("weft", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING))
    except (AttributeError, OSError):
        return False
    return True
