"""A hash of numbers, for draws that follow from a seed and a count."""

from __future__ import annotations

from typing import Final

_WORD: Final = (1 << 64) - 1
_ODD: Final = 0x9E3779B97F4A7C15


def mix(*words: int) -> int:
    """A 64-bit hash: each bit of the words changes all of it.

    Source: the finalizer of Steele et al., "Fast splittable pseudorandom number generators", 2014.

    >>> mix(1, 2) == mix(1, 2), mix(1, 2) == mix(2, 1)
    (True, False)
    """
    z = 0
    for word in words:
        z = (z * 3 + (word & _WORD) + _ODD) & _WORD
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & _WORD
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & _WORD
        z ^= z >> 31
    return z
