"""Mutations of a file's bytes, as by bad disks, broken copies and malice."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

Random = np.random.Generator
LONGEST = 64  # bytes of a changed range


def mutated(random: Random, data: bytes, front: int) -> tuple[bytes, str]:
    """Mutated bytes and a description; half of the changes are in the first `front` bytes."""
    while True:
        change = CHANGES[int(random.integers(len(CHANGES)))]
        end = front if random.random() < 0.5 else len(data)
        place = int(random.integers(max(end, 1)))
        made = change(random, data, place)
        if made != data:
            return made, f"{change.__name__[1:]} at {place} of {len(data)}"


def _length(random: Random) -> int:
    return int(random.integers(1, LONGEST))


def _bit_flipped(random: Random, data: bytes, at: int) -> bytes:
    changed = data[at : at + 1]
    return data[:at] + bytes(b ^ (1 << int(random.integers(8))) for b in changed) + data[at + 1 :]


def _byte_changed(random: Random, data: bytes, at: int) -> bytes:
    return data[:at] + random.bytes(1) + data[at + 1 :]


def _digit_changed(random: Random, data: bytes, at: int) -> bytes:
    """Changes the next digit."""
    for place in range(at, min(at + 200, len(data))):
        if data[place : place + 1].isdigit():
            return data[:place] + str(int(random.integers(10))).encode() + data[place + 1 :]
    return data


def _truncated(random: Random, data: bytes, at: int) -> bytes:
    return data[:at]


def _inserted(random: Random, data: bytes, at: int) -> bytes:
    return data[:at] + random.bytes(_length(random)) + data[at:]


def _deleted(random: Random, data: bytes, at: int) -> bytes:
    return data[:at] + data[at + _length(random) :]


def _overwritten(random: Random, data: bytes, at: int) -> bytes:
    length = _length(random)
    return data[:at] + random.bytes(length) + data[at + length :]


def _zeroed(random: Random, data: bytes, at: int) -> bytes:
    piece = data[at : at + 8 * _length(random)]
    return data[:at] + bytes(len(piece)) + data[at + len(piece) :]


def _swapped(random: Random, data: bytes, at: int) -> bytes:
    """Swaps two ranges of the same length."""
    length = min(_length(random), len(data) // 2)
    other = int(random.integers(max(len(data) - length, 1)))
    first, second = min(at, other), max(at, other)
    second = max(second, first + length)
    a, b = data[first : first + length], data[second : second + length]
    end = second + len(b)
    return data[:first] + b + data[first + length : second] + a + data[end:]


def _repeated(random: Random, data: bytes, at: int) -> bytes:
    piece = data[at : at + _length(random)]
    return data[:at] + piece + data[at:]


def _appended(random: Random, data: bytes, at: int) -> bytes:
    return data + random.bytes(_length(random))


def _emptied(random: Random, data: bytes, at: int) -> bytes:
    return b""


Change = Callable[[Random, bytes, int], bytes]
CHANGES: tuple[Change, ...] = (
    *(_bit_flipped, _bit_flipped, _bit_flipped, _byte_changed, _byte_changed, _digit_changed) * 2,
    _truncated, _truncated, _inserted, _deleted, _overwritten, _zeroed, _swapped, _swapped,
    _repeated, _appended, _emptied,
)  # fmt: skip
