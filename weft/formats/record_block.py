"""Blocks of complete records, with their checksums verified together.

A message followed by its remainder has the remainder 0, and so has a sequence of such messages. So
the masked checksums of a block are converted to that form in place, and one remainder of the whole
block verifies them all, as reliably as one CRC-32C of the block. Only if that fails are the records
checked one by one.
"""

from __future__ import annotations

import functools
import struct
from typing import Final

import numpy as np

from weft.formats.crc32c import MASK_DELTA, after_zeros, crc32c, masked_crc32c
from weft.formats.packed import Packed

HEADER: Final = 12
FOOTER: Final = 4
HEAD: Final = struct.Struct("<QI")
_ONES: Final = 0xFFFFFFFF
FEW: Final = 16  # records of equal length: fewer are not worth searching for
MANY: Final = 128  # records before searching again


class Block:
    """The complete records at the front of a buffer.

    Args:
        buffer: bytes of a file from the start of a record on; checksums in it are overwritten.

    Attributes:
        starts: offsets of the records, after their headers.
        lengths: of the records.
        end: the end of the last complete record.
        good: how many records at the front are undamaged.
    """

    def __init__(self, buffer: np.ndarray) -> None:
        self.buffer = buffer
        self.starts, self.lengths = _bounds(buffer)
        many = len(self.starts)
        self.end = int(self.starts[-1] + self.lengths[-1]) + FOOTER if many else 0
        self.good = self._good() if many else 0

    def packed(self, first: int, count: int) -> Packed:
        """`count` of the undamaged records from `first` on, or as many as there are."""
        chosen = slice(first, min(first + count, self.good))
        starts, lengths = self.starts[chosen], self.lengths[chosen]
        if not len(starts):
            return Packed(self.buffer[:0], starts, lengths)
        begin, end = int(starts[0]) - HEADER, int(starts[-1] + lengths[-1]) + FOOTER
        return Packed(self.buffer[begin:end], starts - begin, lengths)

    def record(self, number: int) -> bytes:
        """One of the undamaged records."""
        start = self.starts[number]
        return self.buffer[start : start + self.lengths[number]].tobytes()

    def _good(self) -> int:
        raw, ends = self.buffer[: self.end], self.starts + self.lengths
        words = np.ndarray(len(raw) - 3, "<u4", raw, strides=1)  # at every byte
        heads, feet = self.starts - FOOTER, ends
        kept = words[heads], words[feet]
        words[heads] = _as_remainders(kept[0], _of_one_length(8))
        words[feet] = _as_remainders(kept[1], _of_zeros(self.lengths))
        if crc32c(raw, _ONES) == _ONES:
            return len(ends)
        words[heads], words[feet] = kept
        for number, (start, end) in enumerate(
            zip(self.starts.tolist(), ends.tolist(), strict=True)
        ):
            if not head_is_right(raw, start - HEADER):
                return number
            if masked_crc32c(raw[start:end]) != words[end]:
                return number
        return len(ends)


def head_is_right(buffer: np.ndarray, place: int) -> bool:
    """Whether the length of the record at `place` matches its checksum."""
    return masked_crc32c(buffer[place : place + 8]) == HEAD.unpack_from(buffer.data, place)[1]


def _bounds(buffer: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Offsets and lengths of the complete records."""
    starts, lengths = list[np.ndarray](), list[np.ndarray]()
    place, count = 0, 1
    while count:
        count, length = _alike(buffer, place)
        if count < FEW:
            found = _one_by_one(buffer, place)
        else:
            stride = HEADER + length + FOOTER
            found = place + HEADER + stride * np.arange(count), np.full(count, length)
        starts.append(found[0])
        lengths.append(found[1])
        count = len(found[0])
        if count:
            place = int(found[0][-1] + found[1][-1]) + FOOTER
    return np.concatenate(starts), np.concatenate(lengths)


def _alike(buffer: np.ndarray, place: int) -> tuple[int, int]:
    """How many records from `place` on have the same length, and the length."""
    size = len(buffer) - place
    length = HEAD.unpack_from(buffer.data, place)[0] if size >= HEADER else size
    stride = HEADER + length + FOOTER
    most = size // stride
    if not most:
        return 0, 0
    same = np.ndarray(most, "<u8", buffer.data, place, stride) == length
    return most if same.all() else int(same.argmin()), length


def _one_by_one(buffer: np.ndarray, place: int) -> tuple[np.ndarray, np.ndarray]:
    """The next records, up to `MANY`."""
    starts: list[int] = []
    lengths: list[int] = []
    raw, size, unpack = buffer.data, len(buffer), HEAD.unpack_from
    while place + HEADER <= size and len(starts) < MANY:
        length = unpack(raw, place)[0]
        end = place + HEADER + length + FOOTER
        if end > size:
            break
        starts.append(place + HEADER)
        lengths.append(length)
        place = end
    return np.array(starts, np.int64), np.array(lengths, np.int64)


def _as_remainders(stored: np.ndarray, zeros: np.ndarray | int) -> np.ndarray:
    """Masked checksums converted to remainders of their data."""
    turned = stored - np.uint32(MASK_DELTA)
    crc = turned >> np.uint32(17) | turned << np.uint32(15)
    return crc ^ np.uint32(_ONES) ^ np.asarray(zeros, np.uint32)


def _of_zeros(lengths: np.ndarray) -> np.ndarray | int:
    """The checksum's initial state after so many zero bytes."""
    different, places = np.unique(lengths, return_inverse=True)
    if len(different) > FEW:
        return after_zeros(np.full(len(different), _ONES, np.uint32), different)[places]
    return np.array([_of_one_length(length) for length in different.tolist()])[places]


@functools.lru_cache(64)
def _of_one_length(length: int) -> int:
    return int(after_zeros(np.array([_ONES], np.uint32), np.array([length]))[0])
