"""Blocks of whole records, their checksums verified together.

A message followed by its remainder has the remainder 0, and so has a run of such messages. So the
masked checksums of a block are put into that form where they stand, and one remainder of the whole
block tells whether all are right: as surely as one CRC-32C of the block would. Only where it does
not come out are the records looked at one by one.
"""

from __future__ import annotations

import functools
import struct
from typing import Final

import numpy as np

from weft.formats.crc32c import MASK_DELTA, after_zeros, crc32c, masked_crc32c

HEADER: Final = 12
FOOTER: Final = 4
HEAD: Final = struct.Struct("<QI")
FOOT: Final = struct.Struct("<I")
_ONES: Final = 0xFFFFFFFF
_WORD: Final = np.arange(4)


class Block:
    """The whole records at the front of a buffer.

    Args:
        buffer: bytes of a file from the start of a record on; its checksums are overwritten.

    Attributes:
        starts: where the records begin, behind their headers.
        lengths: of the records.
        end: where what follows the last whole record begins.
        good: how many records at the front are undamaged.
    """

    def __init__(self, buffer: bytearray) -> None:
        self.buffer = buffer
        self.starts, self.lengths, self.end = _bounds(buffer)
        self.good = self._good()

    def records(self) -> list[bytes]:
        """The undamaged records at the front."""
        view = memoryview(self.buffer)
        chosen = zip(self.starts[: self.good], self.lengths[: self.good], strict=True)
        return [bytes(view[start : start + length]) for start, length in chosen]

    def _good(self) -> int:
        if not self.starts:
            return 0
        raw = np.frombuffer(self.buffer, np.uint8, self.end)
        starts, lengths = np.array(self.starts), np.array(self.lengths)
        heads, feet = (starts - FOOTER)[:, None] + _WORD, (starts + lengths)[:, None] + _WORD
        kept = raw[heads], raw[feet]
        raw[heads] = _as_remainders(kept[0], _of_zeros(np.array([8])))
        raw[feet] = _as_remainders(kept[1], _of_zeros(lengths))
        if crc32c(raw, _ONES) == _ONES:
            return len(starts)
        raw[heads], raw[feet] = kept
        for number, start in enumerate(self.starts):
            end = start + self.lengths[number]
            if not head_is_right(self.buffer, start - HEADER):
                return number
            if masked_crc32c(raw[start:end]) != FOOT.unpack_from(self.buffer, end)[0]:
                return number
        return len(starts)


def head_is_right(buffer: bytes | bytearray, place: int) -> bool:
    """Whether the length of the record at `place` has its checksum."""
    return masked_crc32c(buffer[place : place + 8]) == HEAD.unpack_from(buffer, place)[1]


def _bounds(buffer: bytearray) -> tuple[list[int], list[int], int]:
    starts: list[int] = []
    lengths: list[int] = []
    place, size = 0, len(buffer)
    unpack = HEAD.unpack_from
    while place + HEADER <= size:
        length = unpack(buffer, place)[0]
        end = place + HEADER + length + FOOTER
        if end > size:
            break
        starts.append(place + HEADER)
        lengths.append(length)
        place = end
    return starts, lengths, place


def _as_remainders(stored: np.ndarray, zeros: np.ndarray) -> np.ndarray:
    """Masked checksums, four bytes each, as the remainders of what they are of."""
    turned = stored.view("<u4")[:, 0] - np.uint32(MASK_DELTA)
    crc = turned >> np.uint32(17) | turned << np.uint32(15)
    return (crc ^ np.uint32(_ONES) ^ zeros).astype("<u4")[:, None].view(np.uint8)


def _of_zeros(lengths: np.ndarray) -> np.ndarray:
    """What the checksum's first state becomes over so many bytes."""
    if (lengths == lengths[0]).all():
        return np.array([_of_one_length(int(lengths[0]))], np.uint32)
    return after_zeros(np.full(len(lengths), _ONES, np.uint32), lengths)


@functools.lru_cache(64)
def _of_one_length(length: int) -> int:
    return int(after_zeros(np.array([_ONES], np.uint32), np.array([length]))[0])
