"""TensorFlow V2 checkpoints: `p.index` and `p.data-00000-of-00001`.

The index is a table: under the empty key a header, under each name the type, shape and place of a
tensor, and the checksum of its bytes. The data files are the bytes, one tensor after the other.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np

from weft.errors import DataError, DTypeError
from weft.formats import wire
from weft.formats.atomic_file import open_file, write_file
from weft.formats.crc32c import crc32c, masked
from weft.formats.tensorflow.message import (
    CODE_OF,
    STRING,
    Entry,
    Slice,
    dtype_of,
    entry_bytes,
    read_entry,
)
from weft.formats.tensorflow.table import read_table, table_bytes
from weft.formats.wire import unpacked_varints
from weft.ir.dtype import as_dtype

Array = np.ndarray[Any, Any]
INDEX: Final = ".index"
_VERSION: Final = wire.delimited(3, wire.integer(1, 1))
"""Little-endian, written by version 1 of the format; before it, the number of data files."""


def data_name(prefix: str, shard: int, shards: int) -> str:
    """The path of a data file."""
    return f"{prefix}.data-{shard:05}-of-{shards:05}"


@dataclass(frozen=True)
class Pieces:
    """An array that is written in pieces, as that of a partitioned variable.

    Args:
        shape: of the whole array.
        parts: places and values of the pieces.
    """

    shape: tuple[int, ...]
    parts: tuple[tuple[Slice, Array], ...]

    def joined(self) -> Array:
        """The whole array.

        Raises:
            DataError: the pieces do not fill it exactly.
        """
        dtype = self.parts[0][1].dtype
        return joined(dict(self.parts), self.shape, dtype, "pieces")


def write_bundle(
    prefix: str, arrays: Mapping[str, Array | Pieces],
    shard_of: Callable[[str, int], int] = lambda name, piece: 0, shards: int = 1,
) -> None:  # fmt: skip
    """Writes a checkpoint, byte by byte as TensorFlow writes it.

    Args:
        prefix: the path, without the endings of the files.
        arrays: by name.
        shard_of: the data file of an array or of one of its pieces.
        shards: the number of data files.

    Raises:
        DTypeError: an array of a type that TensorFlow does not have.
        OSError: the folder is missing or full, or may not be written to.
    """
    entries: dict[bytes, bytes] = {b"": wire.integer(1, shards) + _VERSION}
    content: list[list[memoryview]] = [[] for _ in range(shards)]

    def add(key: bytes, name: str, array: Array, shard: int) -> None:
        place = sum([raw.nbytes for raw in content[shard]])
        raw = array.reshape(-1).view(np.uint8).data
        code = _code(name, array)
        entry = Entry(code, array.shape, shard, place, array.nbytes, masked(crc32c(raw)))
        entries[key] = entry_bytes(entry)
        content[shard].append(raw)

    for name in sorted(arrays, key=str.encode):
        given = arrays[name]
        if not isinstance(given, Pieces):
            add(name.encode(), name, np.asarray(given, order="C"), shard_of(name, 0))
            continue
        places = tuple([place for place, _ in given.parts])
        whole = Entry(_code(name, given.parts[0][1]), given.shape, slices=places)
        entries[name.encode()] = entry_bytes(whole)
        for index, (place, piece) in enumerate(given.parts):
            array = np.asarray(piece, order="C")
            add(slice_key(name, place), name, array, shard_of(name, index))
    for shard, raws in enumerate(content):
        write_file(Path(data_name(prefix, shard, shards)), raws)
    write_file(Path(prefix + INDEX), [table_bytes(sorted(entries.items()))])


def _code(name: str, array: Array) -> int:
    code = CODE_OF.get(as_dtype(array.dtype).name)
    if code is None or not name:
        raise DTypeError(f"save: {name!r}: expected a named array of numbers")
    return code


class Bundle:
    """An existing checkpoint: names, types and shapes; values on demand.

    Raises:
        DataError: the index is damaged.
        OSError: there is no index, or it may not be read.
    """

    def __init__(self, prefix: str) -> None:
        self._prefix = prefix
        table = read_table(Path(prefix + INDEX))
        self._shards = self._header(table.pop(b"", b""))
        self._table = table
        whole = {k: v for k, v in table.items() if not k.startswith(b"\0")}
        self.entries = {k.decode("utf-8", "replace"): self._entry(k, v) for k, v in whole.items()}

    def _header(self, raw: bytes) -> int:
        found = {f.number: f.value for f in wire.fields(raw, what=self._prefix)}
        if not raw or found.get(2, 0) != 0 or type(found.get(1)) is not int:
            raise DataError(f"load: {self._prefix}: expected a little-endian checkpoint")
        return found[1]

    def _entry(self, key: bytes, raw: bytes) -> Entry:
        return read_entry(raw, f"{self._prefix}: {key[:200]!r}")

    def read(self, name: str) -> Array:
        """The value of a tensor; strings are an array of `bytes`.

        Raises:
            DataError: its bytes are missing, damaged, or of a type that Weft does not have.
            OSError: a data file is missing, or may not be read.
        """
        entry = self.entries[name]
        if entry.slices:
            return self._joined(name, entry)
        what = f"{self._prefix}: {name!r}"
        if entry.dtype == STRING:
            return read_strings(self._bytes(entry, what), entry.shape, entry.crc, what)
        dtype = dtype_of(entry.dtype, what)
        raw = self._bytes(entry, what)
        if math.prod(entry.shape) * dtype.size != len(raw):
            raise DataError(f"load: {what}: damaged: {len(raw)} bytes for shape {entry.shape}")
        if masked(crc32c(raw)) != entry.crc:
            raise DataError(f"load: {what}: damaged: its bytes do not match their checksum")
        return raw.view(dtype.numpy).reshape(entry.shape)

    def _bytes(self, entry: Entry, what: str) -> Array:
        path = Path(data_name(self._prefix, entry.shard, self._shards))
        with open_file(path) as file:
            size = os.fstat(file.fileno()).st_size
            if not 0 <= entry.offset <= entry.offset + entry.size <= size:
                raise DataError(f"load: {what}: damaged: {path} ends before it")
            file.seek(entry.offset)
            raw = np.empty(entry.size, np.uint8)
            if file.readinto(raw.data) != entry.size:
                raise DataError(f"load: {what}: damaged: {path} ends within it")
        return raw

    def _joined(self, name: str, entry: Entry) -> Array:
        """Assembles a partitioned variable."""
        what = f"{self._prefix}: {name!r}"
        pieces = dict[Slice, Array]()
        for piece in entry.slices:
            key = slice_key(name, piece)
            if key not in self._table:
                raise DataError(f"load: {what}: damaged: it has no piece {piece}")
            inner = self._entry(key, self._table[key])
            self.entries[f"{name} {piece}"] = inner
            try:
                pieces[piece] = self.read(f"{name} {piece}")
            finally:
                del self.entries[f"{name} {piece}"]
        return joined(pieces, entry.shape, dtype_of(entry.dtype, what).numpy, what)


def joined(pieces: Mapping[Slice, Array], shape: tuple[int, ...], dtype: Any, what: str) -> Array:
    """Assembles an array from its pieces.

    Raises:
        DataError: they do not fill it exactly.
    """
    if sum([piece.size for piece in pieces.values()]) != math.prod(shape):
        raise DataError(f"load: {what}: damaged: its pieces do not fill {shape}")
    whole = np.empty(shape, dtype)
    for place, piece in pieces.items():
        if len(place) != len(shape):
            raise DataError(f"load: {what}: damaged: a piece of another rank")
        spans = [(s, n if m < 0 else s + m) for (s, m), n in zip(place, shape, strict=True)]
        room = whole[(*[slice(a, b) for a, b in spans], ...)]
        if room.shape != piece.shape or any([not 0 <= a <= b for a, b in spans]):
            raise DataError(f"load: {what}: damaged: a piece of shape {piece.shape} at {place}")
        room[...] = piece
    return whole


_MOST: Final = 10  # bytes of a number with its header


def slice_key(name: str, piece: Slice) -> bytes:
    """The key of a piece of a partitioned variable: bytes in an order-preserving encoding.

    Source: `OrderedCode` in TensorFlow (`core/lib/strings/ordered_code.h`).
    """
    parts = [_unsigned(0), _text(name), _unsigned(len(piece))]
    for start, length in piece:
        parts += [_signed(start), _signed(length)]
    return b"".join(parts)


def _text(text: str) -> bytes:
    return text.encode().replace(b"\0", b"\0\xff") + b"\0\1"  # UTF-8 has no byte 255


def _unsigned(value: int) -> bytes:
    raw = value.to_bytes((value.bit_length() + 7) // 8, "big")
    return bytes([len(raw)]) + raw


def _signed(value: int) -> bytes:
    """As many leading ones (zeros for a negative number) as there are bytes, then its bits."""
    bits = (~value if value < 0 else value).bit_length()
    size = next(n for n in range(1, _MOST + 1) if bits < 7 * n)
    header = ((1 << size) - 1) << 7 * size
    return ((value ^ header) & (1 << 8 * size) - 1).to_bytes(size, "big")


def read_strings(raw: Array, shape: tuple[int, ...], checksum: int, what: str) -> Array:
    """An array of `bytes`, from their lengths as varints, a checksum of these, and their bytes.

    In the checksums the lengths are 4 bytes each, or 8 if necessary.

    Raises:
        DataError: it is damaged.
    """
    count = math.prod(shape)
    if count > len(raw):
        raise DataError(f"load: {what}: damaged: {count} texts in {len(raw)} bytes")
    ends = np.flatnonzero(raw < 128)[:count]
    start = int(ends[-1]) + 1 if count and len(ends) else 0
    lengths = unpacked_varints(raw[:start].data, what=what)
    body = raw[start + 4 :]
    if len(lengths) != count or (lengths < 0).any() or int(lengths.sum()) != len(body):
        raise DataError(f"load: {what}: damaged: the lengths of its texts")
    sizes = b"".join([int(n).to_bytes(4 if n < 1 << 32 else 8, "little") for n in lengths])
    told = raw[start : start + 4].tobytes()
    if masked(crc32c(sizes)) != int.from_bytes(told, "little"):
        raise DataError(f"load: {what}: damaged: the lengths of its texts")
    if masked(crc32c(body, crc32c(sizes + told))) != checksum:
        raise DataError(f"load: {what}: damaged: its bytes do not match their checksum")
    found = np.empty(count, object)
    stops = np.cumsum(lengths)
    for number, (stop, length) in enumerate(zip(stops.tolist(), lengths.tolist(), strict=True)):
        found[number] = body[stop - length : stop].tobytes()
    return found.reshape(shape)
