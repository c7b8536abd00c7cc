"""TensorFlow V2 checkpoints: `p.index` and `p.data-00000-of-00001`.

The index is a table: under the empty key a header, under each name the type, shape and place of a
tensor, and the checksum of its bytes. The data files are the bytes, one tensor after the other.
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
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
from weft.formats.tensorflow.slice_key import slice_key
from weft.formats.tensorflow.strings import read_strings
from weft.formats.tensorflow.table import read_table, table_bytes
from weft.ir.dtype import as_dtype

Array = np.ndarray[Any, Any]
INDEX: Final = ".index"
_HEADER: Final = wire.integer(1, 1) + wire.delimited(3, wire.integer(1, 1))
"""One shard, little-endian, written by version 1 of the format."""


def data_name(prefix: str, shard: int, shards: int) -> str:
    """The path of a data file."""
    return f"{prefix}.data-{shard:05}-of-{shards:05}"


def write_bundle(prefix: str, arrays: Mapping[str, Array]) -> None:
    """Writes a checkpoint with one data file, byte by byte as TensorFlow writes it.

    Raises:
        DTypeError: an array of a type that TensorFlow does not have.
        OSError: the folder is missing or full, or may not be written to.
    """
    entries: list[tuple[bytes, bytes]] = []
    content: list[memoryview] = []
    place = 0
    for name in sorted(arrays, key=str.encode):
        array = np.asarray(arrays[name], order="C")
        code = CODE_OF.get(as_dtype(array.dtype).name)
        if code is None or not name:
            raise DTypeError(f"save: {name!r}: expected a named array of numbers")
        raw = array.reshape(-1).view(np.uint8).data
        entry = Entry(code, array.shape, 0, place, array.nbytes, masked(crc32c(raw)))
        entries.append((name.encode(), entry_bytes(entry)))
        content.append(raw)
        place += array.nbytes
    write_file(Path(data_name(prefix, 0, 1)), content)
    write_file(Path(prefix + INDEX), [table_bytes([(b"", _HEADER), *entries])])


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
