"""Random orders in constant memory: element i of an epoch is `permutation(seed, epoch)[i]`.

A Feistel network permutes all numbers of some bits; results beyond the length are permuted again
until they are in range (cycle walking: Black and Rogaway, "Ciphers with arbitrary finite domains",
2002).
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from weft.host.mix import mix

Array = np.ndarray[Any, Any]
ROUNDS: Final = 6  # four make a Feistel network pseudorandom (Luby and Rackoff, 1988)
_ODD: Final = 0x9E3779B97F4A7C15  # of the golden ratio: no bit pattern repeats
BLOCK: Final = 4096  # places computed at once: 45 ns each, alone 200 us


class Permutation:
    """A permutation of `size` places, in constant memory.

    >>> order = Permutation(10, seed=1, epoch=0)
    >>> sorted(order[i] for i in range(10)) == list(range(10))
    True
    """

    def __init__(self, size: int, seed: int, epoch: int) -> None:
        self.size = size
        bits = max(size - 1, 1).bit_length()
        self._low = bits // 2  # bits of the right half
        self._high = bits - self._low
        self._keys = [np.uint64(mix(seed, epoch, r)) for r in range(ROUNDS)]
        self._block: tuple[int, Array] = -1, np.empty(0, np.int64)

    def __len__(self) -> int:
        return self.size

    def __getitem__(self, place: int) -> int:
        """The element at a place.

        Raises:
            IndexError: the place is out of range.
        """
        if not 0 <= place < self.size:
            raise IndexError(f"permutation: expected 0 <= place < {self.size}, got {place}")
        number, block = self._block
        if number != place // BLOCK:
            number = place // BLOCK
            block = self._walk(np.arange(number * BLOCK, min((number + 1) * BLOCK, self.size)))
            self._block = number, block  # one object, so threads see both values or neither
        return int(block[place - number * BLOCK])

    def take(self, places: Array) -> Array:
        """The elements at several places, which must be in range."""
        if not len(places):
            return places
        number = int(places[0]) // BLOCK
        first, last = number * BLOCK, (number + 1) * BLOCK
        if places.min() >= first and places.max() < last:
            self[first]  # computes the block
            known, block = self._block
            if known == number:
                return block[places - first]
        return self._walk(places)

    def _walk(self, places: Array) -> Array:
        permuted = self._permuted(places.astype(np.uint64))
        beyond = np.flatnonzero(permuted >= self.size)
        while len(beyond):
            permuted[beyond] = self._permuted(permuted[beyond])
            beyond = beyond[permuted[beyond] >= self.size]
        return permuted.astype(np.int64)

    def _permuted(self, x: Array) -> Array:
        """The network: each round changes one half of the bits by a function of the other."""
        low, high = self._low, self._high
        for key in self._keys:
            right = x & np.uint64((1 << low) - 1)
            noise = (right + key) * np.uint64(_ODD)
            noise = (noise ^ (noise >> np.uint64(29))) * np.uint64(0xBF58476D1CE4E5B9)
            left = (x >> np.uint64(low)) ^ (noise >> np.uint64(64 - high))
            x = (right << np.uint64(high)) | left
            low, high = high, low
        return x
