"""CRC-32C, the checksum of TFRecords, event files and TensorFlow's checkpoints.

It is computed by a native kernel (`weft.runtime.checksum`) if there is one, else by NumPy:

A message is a polynomial over GF(2), its first bit the highest coefficient, and the checksum is its
remainder modulo `POLYNOMIAL`. Two facts make remainders cheap without a loop over bytes:

  * The remainder of a sum is the sum of the remainders, so each byte can be looked up on its own
    in a table for its distance from the end, and the results added (`^`).
  * `FOLD` is a multiple of the polynomial with four terms, all of them at whole words: the words
    at the front of a long message can be added to those 6293, 6677 and 6777 places later, and
    dropped. That is three passes of `^` over a block in cache.

Source: RFC 3720, appendix B.4, for the polynomial and the convention of bits.
"""

from __future__ import annotations

import functools
from typing import Any, Final

import numpy as np

from weft.runtime.checksum import crc_update

POLYNOMIAL: Final = 0x82F63B78  # reflected: the lowest bit is the highest coefficient
FOLD: Final = (6293, 6677, 6777)
"""x^(64 * 6777) + x^(64 * 484) + x^(64 * 100) + 1 is a multiple of the polynomial."""
MASK_DELTA: Final = 0xA282EAD8
ROW: Final = 1024  # bytes looked up by their distance; a power of 2; their table takes 1 MB
ROWS: Final = 64  # rows that are added up at once
WORTHWHILE: Final = 1 << 16  # bytes from which compiling the kernel pays
_BLOCK, _SECOND, _THIRD = FOLD
_ONES: Final = 0xFFFFFFFF


def crc32c(data: Any, value: int = 0) -> int:
    """The CRC-32C of bytes, or of preceding data with checksum `value` and these bytes.

    Args:
        data: anything with a buffer: `bytes`, `memoryview`, a contiguous NumPy array.
        value: the checksum of the preceding data.

    >>> hex(crc32c(b"123456789"))
    '0xe3069283'
    >>> crc32c(b"6789", crc32c(b"12345")) == crc32c(b"123456789")
    True
    """
    content = np.frombuffer(data, np.uint8)
    state = value ^ _ONES
    update = crc_update(POLYNOMIAL, len(content) >= WORTHWHILE)
    return (_update(content, state) if update is None else update(content, state)) ^ _ONES


def _update(content: np.ndarray, state: int) -> int:
    """The state after bytes, by NumPy."""
    if len(content) >= 8 * _THIRD + 8:
        start = len(content) % 8
        state = _short(content[:start], state)
        content = _folded(content[start:], state)
        state = 0
    for start in range(0, len(content), ROWS * ROW):
        state = _short(content[start : start + ROWS * ROW], state)
    return state


def masked(crc: int) -> int:
    """A checksum as it is stored beside its data: rotated by 15 bits, plus a constant.

    >>> hex(masked(0xE3069283))
    '0xc78ab0e5'
    """
    return ((crc >> 15 | crc << 17) + MASK_DELTA) & _ONES


def unmasked(stored: int) -> int:
    """The checksum that was stored as `stored`.

    >>> unmasked(masked(12345))
    12345
    """
    turned = (stored - MASK_DELTA) & _ONES
    return (turned >> 17 | turned << 15) & _ONES


def masked_crc32c(data: Any) -> int:
    """The checksum of bytes as TensorFlow's formats store it."""
    return masked(crc32c(data))


def after_zeros(states: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """Remainders (uint32) after so many zero bytes each."""
    number = 0
    while (left := counts >> number).any():
        moved = _applied(_power(number), states)
        states = np.where(left & 1, moved, states)
        number += 1
    return states


# -- long messages


def _folded(content: np.ndarray, state: int) -> np.ndarray:
    """A message of `FOLD`'s length with the remainder of a longer one, from `state`."""
    words = content.view("<u8")
    carry = np.zeros(_THIRD, np.uint64)  # what is to be added to the following words
    carry[0] = state
    chunk = np.empty(_BLOCK, np.uint64)
    place, last = 0, len(words) - _THIRD
    while place < last:
        size = min(_BLOCK, last - place)
        now = chunk[:size]
        np.bitwise_xor(words[place : place + size], carry[:size], out=now)
        carry[:-size] = carry[size:]
        carry[-size:] = now
        for distance in (_BLOCK, _SECOND):
            at = carry[distance - size : distance]
            np.bitwise_xor(at, now, out=at)
        place += size
    carry ^= words[last:]
    return carry.view(np.uint8)


# -- short messages


def _short(content: np.ndarray, state: int) -> int:
    """The state after up to `ROWS * ROW` bytes."""
    size = len(content)
    if size <= 32:  # NumPy's calls cost as much as so many bytes
        table = _list()
        for byte in content.tolist():
            state = table[(state ^ byte) & 255] ^ state >> 8
        return state
    if size <= ROW:
        places = content + _offsets()[ROW - size :]
        places[:4] ^= np.frombuffer(state.to_bytes(4, "little"), np.uint8)
        return int(np.bitwise_xor.reduce(_places().take(places)))
    rows = -(-size // ROW)
    start = rows * ROW - size
    padded = np.zeros(rows * ROW, np.uint8)  # leading zeros add nothing
    padded[start:] = content
    padded[start : start + 4] ^= np.frombuffer(state.to_bytes(4, "little"), np.uint8)
    looked = _places().take(padded.reshape(rows, ROW) + _offsets())
    sums = np.bitwise_xor.reduce(looked, axis=1)
    return int(np.bitwise_xor.reduce(_applied(_moves()[-rows:], sums)))


def _applied(table: np.ndarray, states: np.ndarray) -> np.ndarray:
    """States advanced by a table: [byte, value], or a table for each state in front."""
    each = () if table.ndim == 2 else (np.arange(len(states)),)
    parts = [table[(*each, i, states >> np.uint32(8 * i) & np.uint32(255))] for i in range(4)]
    return parts[0] ^ parts[1] ^ parts[2] ^ parts[3]


@functools.cache
def _table() -> np.ndarray:
    """The state after a zero byte, by the lowest byte of the state."""
    state = np.arange(256, dtype=np.uint32)
    for _ in range(8):
        state = state >> 1 ^ np.where(state & 1, np.uint32(POLYNOMIAL), np.uint32(0))
    return state


@functools.cache
def _list() -> list[int]:
    return _table().tolist()


def _after_zero(state: np.ndarray) -> np.ndarray:
    return _table()[state & 255] ^ state >> 8


@functools.cache
def _places() -> np.ndarray:
    """The remainder of a byte by its position in a row: at 256 * position + byte."""
    found = np.empty((ROW, 256), np.uint32)
    found[-1] = _table()
    for place in range(ROW - 1, 0, -1):
        found[place - 1] = _after_zero(found[place])
    return found.reshape(-1)


@functools.cache
def _offsets() -> np.ndarray:
    return np.arange(0, 256 * ROW, 256)


@functools.cache
def _power(number: int) -> np.ndarray:
    """Each byte of a state after 2 ** number zero bytes: [byte, value]."""
    if number == 0:
        return _after_zero(_unmoved())
    half = _power(number - 1)
    return _applied(half, half.reshape(-1)).reshape(4, 256)


@functools.cache
def _moves() -> np.ndarray:
    """The bytes of a state after each number of following zero rows: [row, byte, value]."""
    found = np.empty((ROWS, 4, 256), np.uint32)
    found[-1] = _unmoved()
    row_of_zeros = _power(ROW.bit_length() - 1)
    for row in range(ROWS - 1, 0, -1):
        found[row - 1] = _applied(row_of_zeros, found[row].reshape(-1)).reshape(4, 256)
    return found


def _unmoved() -> np.ndarray:
    """Each byte of a state, as a state: [byte, value]."""
    values = np.arange(256, dtype=np.uint32)
    return np.stack([values << np.uint32(8 * i) for i in range(4)])
