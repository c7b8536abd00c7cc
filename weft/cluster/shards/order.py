"""The order of an epoch's shards."""

from __future__ import annotations

import numpy as np


def order_of(count: int, seed: int | None, epoch: int) -> list[int]:
    """The numbers 0 to count - 1: shuffled by the seed and the epoch, or as they are.

    They are sorted by a hash, so that the order is the same with every version of NumPy.

    >>> order_of(3, None, 7), sorted(order_of(3, 0, 7))
    ([0, 1, 2], [0, 1, 2])
    """
    if seed is None:
        return list(range(count))
    start = _mixed(_mixed(np.array([seed % (1 << 64)], np.uint64)) ^ np.uint64(epoch))
    keys = _mixed(start + np.arange(1, count + 1, dtype=np.uint64))
    return np.argsort(keys, kind="stable").tolist()


def _mixed(
    x: np.ndarray[tuple[int], np.dtype[np.uint64]],
) -> np.ndarray[tuple[int], np.dtype[np.uint64]]:
    """SplitMix64's finalizer (Steele, Lea and Flood, 2014)."""
    x = (x + np.uint64(0x9E3779B97F4A7C15)).astype(np.uint64)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))
