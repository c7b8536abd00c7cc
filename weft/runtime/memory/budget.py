"""How much memory a device may take for tensors and programs, and how much it has taken."""

from __future__ import annotations

import weakref
from typing import Any, Final

from weft.errors import OutOfMemoryError
from weft.runtime.flight import LEAF, new_lock


class Budget:
    """Counts the bytes of a device.

    Args:
        device: its name, for messages.
        limit: bytes that it may take; `None`: what the machine has, without counting.

    >>> budget = Budget("CPU:1", 100)
    >>> budget.take(70, "x")
    >>> budget.take(70, "y")
    Traceback (most recent call last):
        ...
    weft.errors.OutOfMemoryError: y: CPU:1 cannot take 70 bytes: 70 of its 100 are taken
    """

    def __init__(self, device: str, limit: int | None) -> None:
        self.device: Final = device
        self.limit: Final = limit
        self.taken = 0
        self._guard = new_lock(LEAF)  # a finalizer may run while this thread holds it

    def take(self, size: int, what: str) -> None:
        """Counts `size` bytes more.

        Raises:
            OutOfMemoryError: that is more than the limit.
        """
        if self.limit is None:
            return
        with self._guard:
            self.refuse_too_much(size, what)
            self.taken += size

    def refuse_too_much(self, size: int, what: str) -> None:
        """Raises where `take` would.

        Raises:
            OutOfMemoryError: that is more than the limit.
        """
        if self.limit is not None and self.taken + size > self.limit:
            raise OutOfMemoryError(
                f"{what}: {self.device} cannot take {size:,} bytes: "
                f"{self.taken:,} of its {self.limit:,} are taken"
            )

    def give(self, size: int) -> None:
        """Counts `size` bytes less."""
        if self.limit is not None:
            with self._guard:
                self.taken -= size

    def charge(self, owner: Any, size: int, what: str) -> None:
        """Counts `size` bytes for as long as their owner lives.

        Raises:
            OutOfMemoryError: that is more than the limit.
        """
        if self.limit is not None:
            self.take(size, what)
            weakref.finalize(owner, self.give, size).atexit = False


UNLIMITED: Final = Budget("CPU:0", None)
"""Of the first device: the system tells when memory ends."""
