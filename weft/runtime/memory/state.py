"""State that lives from step to step: variables, and the number of runs of each counter."""

from __future__ import annotations

import math
from collections.abc import Iterator, MutableMapping
from typing import Any, Final

import numpy as np

from weft.host.memory import LINE
from weft.runtime.flight import new_lock
from weft.runtime.memory.arena import HUGE
from weft.runtime.memory.budget import UNLIMITED, Budget
from weft.runtime.memory.pages import LARGE, Pages, pages

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
        self._pages: dict[str, Pages] = {}  # of those that are large
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
            self._pages.pop(key, None)
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
            old = self._arrays[key] = self._new(key, shape, dtype)
            self.version += 1
        return old

    def _new(self, key: str, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
        size = math.prod(shape) * dtype.itemsize
        self._pages.pop(key, None)
        if size < LARGE or dtype.hasobject:
            return aligned(shape, dtype, self._budget)
        made = self._pages[key] = pages(size, self._budget)
        return made.bytes.view(dtype).reshape(shape)

    def set_zeros(self, key: str, shape: tuple[int, ...], dtype: np.dtype[Any]) -> None:
        """Sets a variable to zeros; a large one then takes no memory."""
        with self.lock:
            array = self.reserve(key, shape, dtype)
            if key in self._pages:
                self._pages[key].clear()
            else:
                array.fill(0)
