"""TensorFlow V1 checkpoints: one table with the tensors as messages in it."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any, Final

import numpy as np

from weft.errors import DataError
from weft.formats import wire
from weft.formats.tensorflow.bundle import joined
from weft.formats.tensorflow.message import Entry, Slice, dtype_of, read_shape, read_slice
from weft.formats.tensorflow.table import read_table
from weft.formats.wire import DELIMITED, VARINT, expect

Array = np.ndarray[Any, Any]
_CONTENT: Final = 4
_FLOATS: Final = {5: "<f4", 6: "<f8", 9: "<c8", 12: "<c16"}
"""Fields of a `TensorProto` whose packed numbers have a fixed size."""
_INTEGERS: Final = (7, 10, 11, 13, 16, 17)
"""Those with integers; `half_val`, 13, has the bits of numbers of 16 bits."""
_BITS: Final = 13


class FirstVersion:
    """A checkpoint in one file, which is read entirely.

    Raises:
        DataError: the file is damaged, or of another format.
        OSError: there is no such file, or it may not be read.
    """

    def __init__(self, path: str) -> None:
        self._path = path
        table = read_table(Path(path))
        self.entries: dict[str, Entry] = {}
        self._pieces: dict[str, dict[Slice, Any]] = {}
        self._read_meta(table.pop(b"", b""))
        for raw in table.values():
            self._read_piece(raw)

    def _inner(self, raw: Any, number: int) -> list[Any]:
        """The messages in the fields of one number."""
        found = [f for f in wire.fields(raw, what=self._path) if f.number == number]
        return [expect(field, DELIMITED, self._path) for field in found]

    def _read_meta(self, raw: bytes) -> None:
        metas = self._inner(raw, 1)
        if not metas:
            raise DataError(f"load: {self._path}: expected a checkpoint of TensorFlow's")
        for one in self._inner(metas[-1], 1):
            name, shape, code, slices = "", (), 0, list[Slice]()
            for field in wire.fields(one, what=self._path):
                if field.number == 1:
                    name = wire.text(field, self._path)
                elif field.number == 2:
                    shape = read_shape(expect(field, DELIMITED, self._path), self._path)
                elif field.number == 3:
                    code = expect(field, VARINT, self._path)
                elif field.number == 4:
                    slices.append(read_slice(expect(field, DELIMITED, self._path), self._path))
            self.entries[name] = Entry(code, shape, slices=tuple(slices))

    def _read_piece(self, raw: bytes) -> None:
        for one in self._inner(raw, 2):
            name, piece, data = "", (), b""
            for field in wire.fields(one, what=self._path):
                if field.number == 1:
                    name = wire.text(field, self._path)
                elif field.number == 2:
                    piece = read_slice(expect(field, DELIMITED, self._path), self._path)
                elif field.number == 3:
                    data = expect(field, DELIMITED, self._path)
            self._pieces.setdefault(name, {})[piece] = data

    def read(self, name: str) -> Array:
        """The value of a tensor.

        Raises:
            DataError: it is damaged, or of a type that Weft does not have.
        """
        what, entry = f"{self._path}: {name!r}", self.entries[name]
        dtype = dtype_of(entry.dtype, what).numpy
        pieces: dict[Slice, Array] = {}
        for piece, raw in self._pieces.get(name, {}).items():
            if len(piece) != len(entry.shape):
                raise DataError(f"load: {what}: damaged: a piece of another rank")
            sizes = tuple([n if m < 0 else m for (_, m), n in zip(piece, entry.shape, strict=True)])
            values = _values(raw, dtype, what)
            if values.size != math.prod(sizes):
                raise DataError(f"load: {what}: damaged: {values.size} numbers for {sizes}")
            pieces[piece] = values.reshape(sizes)
        return joined(pieces, entry.shape, dtype, what)


def _values(raw: Any, dtype: np.dtype[Any], what: str) -> Array:
    """The numbers of a `TensorProto`."""
    found: list[Array] = []
    for field in wire.fields(raw, what=what):
        if field.kind != DELIMITED:
            continue
        if field.number in _FLOATS or field.number == _CONTENT:
            kind = np.dtype(_FLOATS.get(field.number, dtype))
            if len(field.value) % kind.itemsize:
                raise DataError(f"load: {what}: damaged: a truncated number")
            found.append(np.frombuffer(field.value, kind).astype(dtype))
        elif field.number in _INTEGERS:
            numbers = wire.unpacked_varints(field.value, field.offset, what)
            bits = field.number == _BITS
            found.append(numbers.astype(np.uint16).view(dtype) if bits else numbers.astype(dtype))
    return np.concatenate(found) if found else np.empty(0, dtype)
