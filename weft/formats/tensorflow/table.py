"""Sorted tables of keys and values, in TensorFlow's variant of LevelDB's format.

A file is blocks and a footer. A block is entries, the offsets of every sixteenth of them, and the
number of offsets; then a byte for its compression (0: none) and a masked CRC-32C. An entry is three
varints (bytes shared with the key before, own bytes of the key, bytes of the value), the rest of
the key, the value. The last block is the index: a separator key after each block, and the block's
position. The footer has the position of the index.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final, NamedTuple

from weft.errors import DataError
from weft.formats.atomic_file import open_file
from weft.formats.crc32c import masked_crc32c
from weft.formats.wire import varint

MAGIC: Final = 0xDB4775248B80FB57
FOOTER: Final = 48  # bytes
BLOCK: Final = 262_144  # bytes, as TensorFlow's tables have them
INTERVAL: Final = 16  # entries from one full key to the next
LARGEST: Final = 1 << 30  # bytes of a table
_TRAILER: Final = 5
_LONGEST_VARINT: Final = 5

Items = Iterable[tuple[bytes, bytes]]


class _Handle(NamedTuple):
    """The position of a block."""

    offset: int
    size: int

    def raw(self) -> bytes:
        return varint(self.offset) + varint(self.size)


# -- to bytes


def table_bytes(items: Items) -> bytes:
    """A table of these keys and values, which are sorted by key."""
    out = bytearray()
    index: list[tuple[bytes, bytes]] = []
    block, last, handle = _Block(), b"", None
    for key, value in items:
        if handle is not None:
            index.append((_separator(last, key), handle.raw()))
            handle = None
        block.add(key, value)
        last = key
        if block.size() >= BLOCK:
            handle, block = _flushed(out, block), _Block()
    if block.count:
        handle = _flushed(out, block)
    if handle is not None:
        index.append((_successor(last), handle.raw()))
    meta = _flushed(out, _Block())
    whole = _Block(interval=1)
    for key, value in index:
        whole.add(key, value)
    handles = meta.raw() + _flushed(out, whole).raw()
    out += handles.ljust(FOOTER - 8, b"\0") + struct.pack("<Q", MAGIC)
    return bytes(out)


class _Block:
    def __init__(self, interval: int = INTERVAL) -> None:
        self.raw, self.places, self.count = bytearray(), [0], 0
        self._last, self._interval = b"", interval

    def size(self) -> int:
        return len(self.raw) + 4 * len(self.places) + 4

    def add(self, key: bytes, value: bytes) -> None:
        shared = 0
        if self.count and self.count % self._interval == 0:
            self.places.append(len(self.raw))
        elif self.count:
            shared = _shared(self._last, key)
        self.raw += varint(shared) + varint(len(key) - shared) + varint(len(value))
        self.raw += key[shared:] + value
        self._last = key
        self.count += 1


def _flushed(out: bytearray, block: _Block) -> _Handle:
    raw = bytes(block.raw) + struct.pack(
        f"<{len(block.places) + 1}I", *block.places, len(block.places)
    )
    handle = _Handle(len(out), len(raw))
    out += raw + b"\0" + struct.pack("<I", masked_crc32c(raw + b"\0"))
    return handle


def _shared(a: bytes, b: bytes) -> int:
    count = 0
    for one, other in zip(a, b, strict=False):
        if one != other:
            break
        count += 1
    return count


def _separator(last: bytes, first: bytes) -> bytes:
    """A short key from a block's last key on, and before the first of the next."""
    count = _shared(last, first)
    if count < min(len(last), len(first)) and last[count] + 1 < first[count]:
        return last[:count] + bytes([last[count] + 1])
    return last


def _successor(key: bytes) -> bytes:
    """A short key not before this one."""
    for place, byte in enumerate(key):
        if byte != 255:
            return key[:place] + bytes([byte + 1])
    return key


# -- and back


def read_table(path: Path) -> dict[bytes, bytes]:
    """All keys and values of a table.

    Raises:
        DataError: the file is damaged, of another format, or compressed.
        OSError: there is no such file, or it may not be read.
    """
    with open_file(path) as file:
        raw = file.read(LARGEST + 1)
    if len(raw) > LARGEST or len(raw) < FOOTER or raw[-8:] != struct.pack("<Q", MAGIC):
        raise DataError(f"load: {path} is damaged, or not a TensorFlow table")
    return _Table(raw, path).items()


class _Table:
    def __init__(self, raw: bytes, path: Path) -> None:
        self._raw, self._path = raw, path

    def items(self) -> dict[bytes, bytes]:
        try:
            footer = self._raw[-FOOTER:-8]
            _, place = _handle(footer, 0)
            index, _ = _handle(footer, place)
            found: dict[bytes, bytes] = {}
            read = 0
            for _, value in self._entries(index):
                handle, _ = _handle(value, 0)
                read += handle.size
                if read > len(self._raw):
                    raise ValueError("blocks that overlap")
                found.update(self._entries(handle))
        except (ValueError, LookupError, struct.error) as error:
            raise DataError(f"load: {self._path} is damaged: {error}") from None
        return found

    def _entries(self, handle: _Handle) -> Iterator[tuple[bytes, bytes]]:
        block = self._block(handle)
        (count,) = struct.unpack("<I", block[-4:])
        end = len(block) - 4 - 4 * count
        place, key = 0, b""
        while place < end:
            shared, place = _varint(block, place)
            own, place = _varint(block, place)
            size, place = _varint(block, place)
            if shared > len(key) or place + own + size > end:
                raise ValueError("an entry beyond the end of its block")
            key = key[:shared] + block[place : place + own]
            yield key, block[place + own : (place := place + own + size)]

    def _block(self, handle: _Handle) -> bytes:
        end = handle.offset + handle.size
        if end + _TRAILER > len(self._raw):
            raise ValueError("a block beyond the end of the file")
        block, kind = self._raw[handle.offset : end], self._raw[end]
        (checksum,) = struct.unpack("<I", self._raw[end + 1 : end + _TRAILER])
        if masked_crc32c(block + bytes([kind])) != checksum:
            raise ValueError("a block that does not match its checksum")
        if kind != 0:
            raise ValueError(f"a block with compression {kind}, expected none")
        return block


def _handle(raw: bytes, place: int) -> tuple[_Handle, int]:
    offset, place = _varint(raw, place)
    size, place = _varint(raw, place)
    return _Handle(offset, size), place


def _varint(raw: bytes, place: int) -> tuple[int, int]:
    value = 0
    for number in range(_LONGEST_VARINT):
        byte = raw[place + number]
        value |= (byte & 127) << 7 * number
        if byte < 128:
            return value, place + number + 1
    raise ValueError("an unterminated varint")
