"""TFRecord files: records of bytes, one after the other, each with two checksums.

    length (8 bytes)   masked CRC-32C of the length (4)   the record   masked CRC-32C of it (4)

Compressed files are such a file in one zlib or gzip stream. Event files of TensorBoard are
TFRecords, too. A file that ends in the middle of a record has lost its end; a record whose checksum
is wrong is passed over where the reader is told to, and counted.
"""

from __future__ import annotations

import itertools
import os
import struct
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final, Literal

from weft.errors import ArgumentError, ClosedError, DataError
from weft.formats.crc32c import masked_crc32c
from weft.formats.record_block import FOOTER, HEAD, HEADER, Block, head_is_right

Compression = Literal["", "GZIP", "ZLIB"]
Broken = Literal["raise", "skip"]
PIECE: Final = 1 << 20  # bytes read at once: a length that is wrong allocates no more than is there
_COMPRESSIONS: Final = ("", "GZIP", "ZLIB")
_WBITS: Final = {"GZIP": 31, "ZLIB": 15}


def framed(record: Any) -> bytes:
    """A record with its length and checksums, as it stands in a file.

    >>> len(framed(b"abc"))
    19
    """
    length = struct.pack("<Q", len(memoryview(record).cast("B")))
    head = length + struct.pack("<I", masked_crc32c(length))
    return b"".join([head, record, struct.pack("<I", masked_crc32c(record))])


class RecordWriter:
    """Writes a TFRecord file, record by record.

    Args:
        path: the file, which is replaced if there is one.
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
        """Append a record: `bytes`, or anything with a contiguous buffer.

        Raises:
            ClosedError: the writer is closed.
        """
        if self._file.closed:
            raise ClosedError("TFRecord writer: it is closed: open another")
        raw = framed(record)
        self._file.write(self._squeeze.compress(raw) if self._squeeze else raw)

    def flush(self) -> None:
        """Hand what was written to the system: it outlives this process."""
        if self._squeeze:
            self._file.write(self._squeeze.flush(zlib.Z_SYNC_FLUSH))
        self._file.flush()

    def close(self) -> None:
        """Write what is left and close the file; again, it does nothing."""
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
        compression: as it was written: `""`, `"GZIP"` or `"ZLIB"`.
        broken: what to do with a record that is damaged: `"raise"`, or `"skip"` it. Where its
            length is damaged or the file ends within it, nothing after it can be found, and
            skipping it ends the file.
        offset: where to begin: the `offset` of a reader that stopped.

    Attributes:
        offset: where the next record begins, in bytes without compression.
        skipped: how many damaged records were passed over.

    Raises:
        DataError: a record is damaged; it names the file and the byte.
        OSError: the file cannot be read.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        compression: Compression = "",
        broken: Broken = "raise",
        offset: int = 0,
    ) -> None:
        _check("compression", compression, _COMPRESSIONS)
        _check("broken", broken, ("raise", "skip"))
        self.path = Path(path)
        self.skipped = 0
        self.offset = offset
        self._skip = broken == "skip"
        self._ended = False
        self._error: DataError | None = None
        self._cut = ""  # why no more can be read, where that is not the end of the file
        self._start = offset  # of the buffer
        self._buffer = bytearray()
        self._records: Iterator[bytes] = iter(())
        self._file = open(path, "rb")  # noqa: SIM115  (closed by close)
        self._read = _reader(self._file, compression, offset)

    def __iter__(self) -> Iterator[bytes]:
        return self

    def __next__(self) -> bytes:
        for record in self._records:
            self.offset += HEADER + len(record) + FOOTER
            return record
        found = self.read(1)
        if not found:
            raise StopIteration
        return found[0]

    def read(self, count: int) -> list[bytes]:
        """The next `count` records; fewer at the end of the file, or before a damaged one.

        Raises:
            DataError: the next record is damaged.
        """
        found: list[bytes] = []
        while len(found) < count:
            more = list(itertools.islice(self._records, count - len(found)))
            if more:
                found += more
                self.offset += sum(map(len, more)) + (HEADER + FOOTER) * len(more)
            elif not self._refilled():
                break
        if self._error is not None and not found:
            raise self._error
        return found

    def close(self) -> None:
        """Close the file; nothing more is read from it."""
        self._ended = True
        self._records = iter(())
        self._file.close()

    def __enter__(self) -> RecordReader:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _refilled(self) -> bool:
        """Whether there are more records; they are in `_records` then."""
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
        """Read a block of records, or raise what is wrong with the first one and drop it."""
        self.offset = self._start
        more = self._take(PIECE - len(self._buffer))
        self._buffer += more
        block = Block(self._buffer)
        if not block.starts and (self._buffer or self._cut):
            self._complete()
            block = Block(self._buffer)
        self._records = iter(block.records())
        if block.good or not block.starts:
            whole = block.good == len(block.starts)
            self._drop(block.end if whole else block.starts[block.good] - HEADER)
            self._ended = not block.starts
        elif not head_is_right(self._buffer, 0):
            raise self._lost("its length")
        else:
            self._drop(HEADER + block.lengths[0] + FOOTER)
            raise self._damaged("its checksum is another one")

    def _complete(self) -> None:
        """Read the rest of a record that is longer than a block."""
        head = self._buffer[:HEADER]
        if len(head) < HEADER or not head_is_right(head, 0):
            raise self._lost(self._cut or "its length" + self._hint(head))
        length = HEAD.unpack(head)[0]
        missing = HEADER + length + FOOTER - len(self._buffer)
        more = self._take(missing)
        if len(more) < missing:
            raise self._lost(self._cut or f"the file ends within it: expected {length} bytes")
        self._buffer += more

    def _drop(self, size: int) -> None:
        del self._buffer[:size]
        self._start += size

    def _take(self, size: int) -> bytes:
        """So many bytes, or what is left of the file."""
        parts: list[bytes] = []
        try:
            while size > 0:
                parts.append(self._read(min(size, PIECE)))
                size -= len(parts[-1])
                if not parts[-1]:
                    break
        except (zlib.error, EOFError) as error:
            self._cut = f"its compression: {error}"
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def _lost(self, why: str) -> DataError:
        """The error for damage behind which nothing can be found."""
        self._ended = True
        return self._damaged(why)

    def _damaged(self, why: str) -> DataError:
        return DataError(f"TFRecord: {self.path}: record at byte {self.offset} is damaged: {why}")

    def _hint(self, head: bytes | bytearray) -> str:
        if self.offset == 0 and head.startswith(b"\x1f\x8b"):
            return " (the file looks compressed: give compression='GZIP')"
        return ""


def _check(name: str, value: str, known: tuple[str, ...]) -> None:
    if value not in known:
        expected = ", ".join(map(repr, known))
        raise ArgumentError(f"TFRecord: {name}: expected one of {expected}, got {value!r}")


def _reader(file: Any, compression: str, offset: int) -> Callable[[int], bytes]:
    """What reads bytes without compression, from `offset` on."""
    if not compression:
        file.seek(offset)
        return file.read
    read = _Inflated(file, _WBITS[compression]).read
    while offset:
        piece = read(min(offset, PIECE))
        if not piece:
            break
        offset -= len(piece)
    return read


class _Inflated:
    """A compressed stream, read piece by piece: a bomb takes no more memory than is asked for."""

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
                if not parts:  # with what there is, the damage is met at the next call
                    raise
                break
            if part is None:
                break
            size -= len(part)
            parts.append(part)
        return b"".join(parts)

    def _more(self, size: int) -> bytes | None:
        """Some of the next bytes, perhaps none; `None` at the end."""
        data = self._left or self._file.read(PIECE)
        if self._stream.eof:
            if not data:
                return None
            self._stream = zlib.decompressobj(self._wbits)  # one stream behind the other
        part = self._stream.decompress(data, size)
        if not data and not part and not self._stream.eof:
            raise EOFError("the stream does not end")
        self._left = self._stream.unused_data or self._stream.unconsumed_tail
        return part
