"""Memory that grows while a program runs: the stacks of loops with a condition.

Stacks of one loop have the same number of rows: they are adjacent on a *tape*. Addresses for as
many rows as the machine has memory for are reserved at the beginning, so rows never move; memory
is committed in chunks as the loop continues, and released after the step.
"""

from __future__ import annotations

import mmap
import sys
from collections.abc import Mapping
from typing import Any, Final

import numpy as np

from weft.errors import OutOfMemoryError
from weft.host.memory import LINE, addresses_left, available, capacity
from weft.passes.blueprint import Stack
from weft.runtime.execution import driver
from weft.runtime.memory.arena import HUGE, advise

FIRST: Final = 1 << 18
"""Bytes of the first chunk; each further one doubles the memory, up to MOST."""
MOST: Final = 1 << 28
KEPT: Final = 1 << 26
"""Bytes that stay with a program between steps: page faults take 0.25 s a gigabyte."""
LEAST: Final = 1 << 26
"""If less address space than this is available, none is reserved."""
ADDRESSES: Final = 1 << 37
"""Maximum bytes of addresses of a tape: a process has some 1,000 times as many."""
SHARE: Final = 8
"""Under a limit of addresses a tape reserves one part in so many of those left for all else."""
_NO_RESERVE: Final = 0x4000 if sys.platform == "linux" else 0  # MAP_NORESERVE


class Tapes:
    """All tapes of a program.

    Attributes:
        table: rows and capacity of each, in the driver's format (`%Tape`).
        addresses: address of each stack, by its external's number.
        grown: whether a step has committed more memory than a program keeps.
    """

    def __init__(self, stacks: Mapping[int, Stack]) -> None:
        numbers = {stack.tape for stack in stacks.values()}
        self.table = np.zeros(len(numbers), driver.TAPE)
        self.addresses: dict[int, int] = {}
        self.grown = False
        self._tapes = [
            _Tape({e: s for e, s in stacks.items() if s.tape == i}, self.table[i : i + 1])
            for i in sorted(numbers)
        ]
        for tape in self._tapes:
            self.addresses |= tape.addresses

    def grow(self) -> None:
        """Commits memory for the wanted rows.

        Raises:
            OutOfMemoryError: there is no memory for them.
        """
        for tape in self._tapes:
            self.grown = tape.grow() or self.grown

    def release(self) -> None:
        """Releases memory after a step; stacks are empty then."""
        self.grown = False
        for tape in self._tapes:
            tape.release()

    def array(self, external: int, dtype: Any, row: tuple[int, ...]) -> np.ndarray[Any, Any]:
        """A stack, with all its current rows."""
        tape = next(tape for tape in self._tapes if external in tape.addresses)
        return tape.array(external, dtype, row)

    def resize(self, external: int, rows: int) -> None:
        """Sets the number of rows on the tape of a stack.

        Raises:
            OutOfMemoryError: there is no memory for them.
        """
        tape = next(tape for tape in self._tapes if external in tape.addresses)
        self.grown = tape.resize(rows) or self.grown


class _Tape:
    """Adjacent stacks in one reservation.

    Args:
        row: its entry in the table.
    """

    def __init__(self, stacks: Mapping[int, Stack], row: np.ndarray[Any, Any]) -> None:
        self._row = row
        self._bytes = sum([stack.row for stack in stacks.values()])
        self._loop = next(iter(stacks.values())).loop
        self._block, total = _reserved(len(stacks))
        # A spare line between stacks, so that no two share one.
        self._most = (total - LINE * len(stacks)) // max(1, self._bytes)
        self._memory = np.frombuffer(self._block, np.uint8)
        self.start = int(self._memory.__array_interface__["data"][0])
        self.addresses: dict[int, int] = {}
        self._stacks: list[tuple[int, int]] = []  # offset of each in the block, bytes of a row
        offset = 0
        for external, stack in stacks.items():
            self.addresses[external] = self.start + offset
            self._stacks.append((offset, stack.row))
            offset += -(-self._most * stack.row // LINE) * LINE
        row["room"] = self._first = max(1, min(self._most, FIRST // max(1, self._bytes)))

    def grow(self) -> bool:
        """Commits memory for the wanted rows; returns whether there was too little."""
        wanted, room = int(self._row["rows"][0]), int(self._row["room"][0])
        if wanted <= room:
            return False
        chunk = min(room, max(1, MOST // max(1, self._bytes)))
        more = max(wanted, room + chunk)
        left = available()
        fits = left is None or (more - room) * self._bytes <= left
        if not fits and left is not None:
            more = max(wanted, room + left // 2 // max(1, self._bytes))
            fits = (more - room) * self._bytes <= left
        if not fits or wanted > self._most:
            raise OutOfMemoryError(self._no_room(wanted, room, left))
        self._advise(room, more)
        self._row["room"] = min(more, self._most)
        return True

    def _advise(self, room: int, more: int) -> None:
        """Requests huge pages if rows from `room` to `more` fill some; small stacks have none."""
        for offset, row in self._stacks:
            begin = -(-(offset + room * row) // HUGE) * HUGE
            size = (offset + min(more, self._most) * row) // HUGE * HUGE - begin
            if size > 0:
                advise(self._block, begin, size)

    def _no_room(self, wanted: int, room: int, left: int | None) -> str:
        there = "" if left is None else f", {left:,} more are available"
        return (
            f"while_loop: the values that the gradient saves of {wanted:,} iterations take"
            f" {wanted * self._bytes:,} bytes ({self._bytes:,} each); it has"
            f" {room * self._bytes:,}{there}: {self._loop}; expected a loop that ends sooner:"
            " give it a maximum, or a condition that does not hold for ever"
        )

    def release(self) -> None:
        """Releases memory beyond what a program keeps."""
        room = int(self._row["room"][0])
        kept = max(self._first, KEPT // max(1, self._bytes))
        self._row["rows"] = 0
        if room <= kept:
            return
        for offset, row in self._stacks:
            begin = -(-(offset + kept * row) // mmap.PAGESIZE) * mmap.PAGESIZE
            end = (offset + room * row) // mmap.PAGESIZE * mmap.PAGESIZE
            if begin < end:
                self._block.madvise(mmap.MADV_DONTNEED, begin, end - begin)
        self._row["room"] = kept

    def resize(self, rows: int) -> bool:
        """Sets the number of rows; returns whether there was too little memory."""
        self._row["rows"] = rows
        return self.grow()

    def array(self, external: int, dtype: Any, row: tuple[int, ...]) -> np.ndarray[Any, Any]:
        """A stack, with all its current rows."""
        shape = int(self._row["rows"][0]), *row
        return np.ndarray(shape, dtype, self._memory, self.addresses[external] - self.start)


def _reserved(stacks: int) -> tuple[mmap.mmap, int]:
    """Reserves address space, as near to the machine's memory as possible."""
    left = addresses_left()
    most = ADDRESSES if left is None else max(LEAST, left // SHARE)
    size = min(capacity(), most) + LINE * (stacks + 1)
    while True:
        try:
            flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | _NO_RESERVE
            return mmap.mmap(-1, size, flags=flags), size
        except (OSError, OverflowError, ValueError):
            size //= 2
            if size < LEAST:
                raise OutOfMemoryError(
                    f"while_loop: cannot reserve {size:,} bytes of addresses for what the gradient"
                    " keeps"
                ) from None
