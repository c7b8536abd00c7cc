"""TFRecord files: records of bytes, one after the other, each with two checksums.

    length (8 bytes)   masked CRC-32C of the length (4)   the record   masked CRC-32C of it (4)

Compressed files are such a file in one zlib or gzip stream. Event files of TensorBoard are
TFRecords, too. A file that ends in the middle of a record has lost its end; a record whose checksum
is wrong is passed over where the reader is told to, and counted.
"""

from __future__ import annotations

import os
import struct
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final, Literal

from weft.errors import ArgumentError, ClosedError, DataError
from weft.formats.crc32c import masked_crc32c

Compression = Literal["", "GZIP", "ZLIB"]
Broken = Literal["raise", "skip"]
HEADER: Final = 12
FOOTER: Final = 4
PIECE: Final = 1 << 20  # bytes read at once: a length that is wrong allocates no more than is there
_COMPRESSIONS: Final = ("", "GZIP", "ZLIB")
_WBITS: Final = {"GZIP": 31, "ZLIB": 15}
_HEAD: Final = struct.Struct("<QI")
_FOOT: Final = struct.Struct("<I")


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
        self._file = open(path, "rb")  # noqa: SIM115  (closed by close)
        self._read = _reader(self._file, compression, offset)

    def __iter__(self) -> Iterator[bytes]:
        return self

    def __next__(self) -> bytes:
        while not self._ended:
            try:
                return self._next()
            except DataError:
                if not self._skip:
                    self.close()
                    raise
                self.skipped += 1
        self.close()
        raise StopIteration

    def close(self) -> None:
        """Close the file; nothing more is read from it."""
        self._ended = True
        self._file.close()

    def __enter__(self) -> RecordReader:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _next(self) -> bytes:
        """The next record. Whether more can follow a damaged one is in `_ended`."""
        head = self._take(HEADER)
        if not head:
            self.close()
            raise StopIteration
        self._ended = True
        length, checksum = _HEAD.unpack(head) if len(head) == HEADER else (0, 0)
        if len(head) < HEADER or masked_crc32c(head[:8]) != checksum:
            raise self._damaged("its length" + self._hint(head))
        record = self._take(length)
        foot = self._take(FOOTER)
        if len(record) < length or len(foot) < FOOTER:
            raise self._damaged(f"the file ends within it: expected {length} bytes")
        self._ended = False
        if masked_crc32c(record) != _FOOT.unpack(foot)[0]:
            error = self._damaged("its checksum is another one")
            self.offset += HEADER + length + FOOTER
            raise error
        self.offset += HEADER + length + FOOTER
        return record

    def _take(self, size: int) -> bytes:
        """So many bytes, or what is left of the file."""
        try:
            parts = [self._read(min(size, PIECE))]
            size -= len(parts[0])
            while size and parts[-1]:
                parts.append(self._read(min(size, PIECE)))
                size -= len(parts[-1])
        except (zlib.error, EOFError) as error:
            self._ended = True
            raise self._damaged(f"its compression: {error}") from None
        return parts[0] if len(parts) == 1 else b"".join(parts)

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
            data = self._left or self._file.read(PIECE)
            if self._stream.eof:
                if not data:
                    break
                self._stream = zlib.decompressobj(self._wbits)  # one stream behind the other
            part = self._stream.decompress(data, size)
            if not data and not part and not self._stream.eof:
                raise EOFError("the stream does not end")
            self._left = self._stream.unused_data or self._stream.unconsumed_tail
            size -= len(part)
            parts.append(part)
        return b"".join(parts)
