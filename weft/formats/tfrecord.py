"""TFRecord files: records of bytes, one after the other, each with two checksums.

    length (8 bytes)   masked CRC-32C of the length (4)   the record   masked CRC-32C of it (4)

Compressed files are such a file in one zlib or gzip stream. TensorBoard event files are TFRecords,
too. A file that ends in the middle of a record is truncated; the reader can skip and count records
with wrong checksums.
"""

from __future__ import annotations

import os
import struct
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final, Literal

import numpy as np

from weft.errors import ArgumentError, ClosedError, DataError
from weft.formats.crc32c import masked_crc32c
from weft.formats.packed import Packed
from weft.formats.record_block import FOOTER, HEAD, HEADER, Block, head_is_right

Compression = Literal["", "GZIP", "ZLIB"]
Broken = Literal["raise", "skip"]
PIECE: Final = 1 << 20  # bytes read at once: a wrong length allocates no more than there is
_NOTHING: Final = np.empty(0, np.uint8)
_COMPRESSIONS: Final = ("", "GZIP", "ZLIB")
_WBITS: Final = {"GZIP": 31, "ZLIB": 15}


def framed(record: Any) -> bytes:
    """A record with its length and checksums, as stored in a file.

    >>> len(framed(b"abc"))
    19
    """
    length = struct.pack("<Q", len(memoryview(record).cast("B")))
    head = length + struct.pack("<I", masked_crc32c(length))
    return b"".join([head, record, struct.pack("<I", masked_crc32c(record))])


class RecordWriter:
    """Writes a TFRecord file, record by record.

    Args:
        path: the file, which is replaced if it exists.
        compression: `""`, `"GZIP"` or `"ZLIB"`.

    Raises:
        ArgumentError: another compression.
        OSError: the file cannot be written.

    >>> import tempfile
    >>> path = tempfile.mktemp()
    >>> with RecordWriter(path) as file:
    ...     file.write(b"one")
    >>> [bytes(record) for record in RecordReader(path)]
    [b'one']
    """

    def __init__(self, path: str | os.PathLike[str], compression: Compression = "") -> None:
        _check("compression", compression, _COMPRESSIONS)
        self._squeeze = zlib.compressobj(wbits=_WBITS[compression]) if compression else None
        self._file = open(path, "wb")  # noqa: SIM115  (closed by close)

    def write(self, record: Any) -> None:
        """Appends a record: `bytes`, or anything with a contiguous buffer.

        Raises:
            ClosedError: the writer is closed.
        """
        if self._file.closed:
            raise ClosedError("TFRecord writer: it is closed: open another")
        raw = framed(record)
        self._file.write(self._squeeze.compress(raw) if self._squeeze else raw)

    def flush(self) -> None:
        """Flushes to the operating system: the data outlives this process."""
        if self._squeeze:
            self._file.write(self._squeeze.flush(zlib.Z_SYNC_FLUSH))
        self._file.flush()

    def close(self) -> None:
        """Writes buffered data and closes the file; a second call does nothing."""
        if self._file.closed:
            return
        try:
            if self._squeeze:
                self._file.write(self._squeeze.flush())
        finally:
            self._file.close()

    def __enter__(self) -> RecordWriter:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class RecordReader:
    """Reads a TFRecord file, record by record, with all checksums verified.

    Args:
        path: the file.
        compression: of the file: `""`, `"GZIP"` or `"ZLIB"`.
        broken: what to do with a damaged record: `"raise"`, or `"skip"` it. If its length is
            damaged or the file is truncated, the rest cannot be found, and skipping ends the file.
        offset: where to begin: the `offset` of another reader.

    Attributes:
        offset: start of the next record, in uncompressed bytes.
        skipped: how many damaged records were skipped.

    Raises:
        DataError: a record is damaged; the message gives the file and the position.
        OSError: the file cannot be read.
    """

    def __init__(
        self, path: str | os.PathLike[str], compression: Compression = "", broken: Broken = "raise",
        offset: int = 0,
    ) -> None:  # fmt: skip
        _check("compression", compression, _COMPRESSIONS)
        _check("broken", broken, ("raise", "skip"))
        self.path = Path(path)
        self.skipped = 0
        self.offset = offset
        self._skip = broken == "skip"
        self._ended = False
        self._error: DataError | None = None
        self._cut = ""  # why no more can be read, if that is not the end of the file
        self._start = offset  # of what is left
        self._left = _NOTHING  # bytes read that no block has yet
        self._block = Block(_NOTHING)
        self._at = 0  # the block's next record
        self._file = open(path, "rb")  # noqa: SIM115  (closed by close)
        self._read_into = _reader(self._file, compression, offset)

    def __iter__(self) -> Iterator[bytes]:
        return self

    def __next__(self) -> bytes:
        while self._at >= self._block.good:
            if not self._refilled():
                raise self._error or StopIteration
        record = self._block.record(self._at)
        self._at += 1
        self.offset += HEADER + len(record) + FOOTER
        return record

    def read(self, count: int) -> Packed:
        """The next `count` records; fewer at the end of the file, or before a damaged one.

        Raises:
            DataError: the next record is damaged.
        """
        parts: list[Packed] = []
        missing = count
        while missing:
            part = self._block.packed(self._at, missing)
            if len(part):
                parts.append(part)
                missing -= len(part)
                self._at += len(part)
                self.offset += len(part.raw)
            elif not self._refilled():
                break
        if self._error is not None and not parts:
            raise self._error
        return Packed.joined(parts) if parts else self._block.packed(self._at, 0)

    def close(self) -> None:
        """Closes the file; nothing more is read from it."""
        self._ended = True
        self._block, self._at = Block(_NOTHING), 0
        self._file.close()

    def __enter__(self) -> RecordReader:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _refilled(self) -> bool:
        """Whether there are more records, which are then in `_block`."""
        while not self._ended:
            try:
                self._load()
            except DataError as error:
                if not self._skip:
                    self._error = error
                    self.close()
                self.skipped += 1
            else:
                return True
        self.close()
        return False

    def _load(self) -> None:
        """Reads a block of records, or raises for a damaged first one and drops it."""
        self.offset = self._start
        buffer = self._longer(self._left, PIECE - len(self._left))
        block = Block(buffer)
        if not len(block.starts) and (len(buffer) or self._cut):
            block = Block(self._completed(buffer))
        self._block, self._at = block, 0
        if block.good or not len(block.starts):
            whole = block.good == len(block.starts)
            self._drop(block.end if whole else int(block.starts[block.good]) - HEADER)
            self._ended = not len(block.starts)
        elif not head_is_right(block.buffer, 0):
            raise self._lost("its length")
        else:
            self._drop(HEADER + int(block.lengths[0]) + FOOTER)
            raise self._damaged("its checksum does not match")

    def _completed(self, buffer: np.ndarray) -> np.ndarray:
        """Reads the rest of a record that is longer than a block."""
        head = buffer[:HEADER]
        if len(head) < HEADER or not head_is_right(head, 0):
            raise self._lost(self._cut or "its length" + self._hint(head.tobytes()))
        length = HEAD.unpack(head.data)[0]
        size = HEADER + length + FOOTER
        found = self._longer(buffer, size - len(buffer))
        if len(found) < size:
            raise self._lost(self._cut or f"the file is truncated in it: expected {length} bytes")
        return found

    def _drop(self, size: int) -> None:
        """Continues after so many bytes of the block."""
        self._left = self._block.buffer[size:]
        self._start += size

    def _longer(self, left: np.ndarray, size: int) -> np.ndarray:
        """These bytes and so many more, or the rest of the file, in a new buffer."""
        parts, front = list[np.ndarray](), left
        try:
            while size > 0:
                count = len(front)
                part = np.empty(count + min(size, PIECE), np.uint8)
                part[:count] = front
                read = self._read_into(part.data[count:])
                parts.append(part[: count + read])
                front, size = _NOTHING, size - read
                if not read:
                    break
        except (zlib.error, EOFError) as error:
            self._cut = f"its compression: {error}"
        return parts[0] if len(parts) == 1 else np.concatenate(parts or [left])

    def _lost(self, why: str) -> DataError:
        """The error for damage after which nothing can be found."""
        self._ended = True
        return self._damaged(why)

    def _damaged(self, why: str) -> DataError:
        return DataError(f"TFRecord: {self.path}: record at byte {self.offset} is damaged: {why}")

    def _hint(self, head: bytes) -> str:
        if self.offset == 0 and head.startswith(b"\x1f\x8b"):
            return " (the file looks compressed: give compression='GZIP')"
        return ""


def _check(name: str, value: str, known: tuple[str, ...]) -> None:
    if value not in known:
        expected = ", ".join(map(repr, known))
        raise ArgumentError(f"TFRecord: {name}: expected one of {expected}, got {value!r}")


def _reader(file: Any, compression: str, offset: int) -> Callable[[memoryview], int]:
    """A function that reads uncompressed bytes from `offset` on, and returns how many."""
    if not compression:
        file.seek(offset)
        return file.readinto
    stream = _Inflated(file, _WBITS[compression])
    while offset:
        piece = stream.read(min(offset, PIECE))
        if not piece:
            break
        offset -= len(piece)
    return stream.read_into


class _Inflated:
    """A compressed stream, inflated piecewise: a bomb takes no more memory than requested."""

    def __init__(self, file: Any, wbits: int) -> None:
        self._file = file
        self._wbits = wbits
        self._stream = zlib.decompressobj(wbits)
        self._left = b""

    def read(self, size: int) -> bytes:
        """Up to `size` bytes; fewer at the end.

        Raises:
            EOFError: the file ends before the stream does.
            zlib.error: the stream is damaged.
        """
        parts: list[bytes] = []
        while size:
            try:
                part = self._more(size)
            except (EOFError, zlib.error):
                if not parts:  # return what is decoded; the next call reports the damage
                    raise
                break
            if part is None:
                break
            size -= len(part)
            parts.append(part)
        return b"".join(parts)

    def read_into(self, memory: memoryview) -> int:
        """Reads as many bytes as the memory holds, and returns how many there were."""
        found = self.read(len(memory))
        memory[: len(found)] = found
        return len(found)

    def _more(self, size: int) -> bytes | None:
        """Some of the next bytes, perhaps none; `None` at the end."""
        data = self._left or self._file.read(PIECE)
        if self._stream.eof:
            if not data:
                return None
            self._stream = zlib.decompressobj(self._wbits)  # concatenated streams
        part = self._stream.decompress(data, size)
        if not data and not part and not self._stream.eof:
            raise EOFError("the stream does not end")
        self._left = self._stream.unused_data or self._stream.unconsumed_tail
        return part
