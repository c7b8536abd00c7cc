"""State that lives from step to step: variables, and the number of runs of each counter."""

from __future__ import annotations

from collections.abc import Iterator, MutableMapping
from typing import Any, Final

import numpy as np

from weft.host.memory import LINE
from weft.runtime.flight import new_lock
from weft.runtime.memory.arena import HUGE
from weft.runtime.memory.budget import UNLIMITED, Budget

Array = np.ndarray[Any, Any]


def aligned(shape: tuple[int, ...], dtype: np.dtype[Any], budget: Budget = UNLIMITED) -> Array:
    """An uninitialized C-contiguous array whose data starts on a cache line, or a huge page.

    NumPy requests huge pages; memory before and after the data is never touched.

    Raises:
        OutOfMemoryError: the budget does not have that much.
    """
    size = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
    alignment = LINE if size < HUGE else HUGE
    if budget.limit is not None:
        budget.refuse_too_much(size, "tensor")
    block = np.empty(size + alignment, np.uint8)
    if budget.limit is not None:
        budget.charge(block, size, "tensor")
    start = -block.__array_interface__["data"][0] % alignment
    return block[start : start + size].view(dtype).reshape(shape)


class State(MutableMapping[str, Array]):
    """Variables by key. Programs write into their memory; reading and writing here copies.

    `version` changes whenever memory moves, so that programs rebind their addresses.

    Args:
        budget: counts the memory that is taken.
    """

    def __init__(self, budget: Budget = UNLIMITED) -> None:
        self.lock: Final = new_lock()  # held while a step runs
        self._arrays: dict[str, Array] = {}
        self._budget: Final = budget
        self.version = 0

    def __contains__(self, key: object) -> bool:
        return key in self._arrays

    def __getitem__(self, key: str) -> Array:
        with self.lock:
            return self._arrays[key].copy()

    def __setitem__(self, key: str, value: Array) -> None:
        array = np.asarray(value)
        with self.lock:
            self.reserve(key, array.shape, array.dtype)[...] = array

    def __delitem__(self, key: str) -> None:
        with self.lock:
            del self._arrays[key]
            self.version += 1

    def __iter__(self) -> Iterator[str]:
        return iter(list(self._arrays))  # other threads may add some meanwhile

    def __len__(self) -> int:
        return len(self._arrays)

    def memory(self, key: str) -> Array:
        """The array that programs read and write, not a copy."""
        return self._arrays[key]

    def reserve(self, key: str, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
        """Memory for a variable; its content is kept if type and shape are the same."""
        old = self._arrays.get(key)
        if old is None or old.shape != shape or old.dtype != dtype:
            old = self._arrays[key] = aligned(shape, dtype, self._budget)
            self.version += 1
        return old
