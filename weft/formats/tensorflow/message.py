"""The messages in TensorFlow checkpoints: types, shapes and slices of tensors.

Source: `types.proto`, `tensor_shape.proto`, `tensor_slice.proto`, `tensor_bundle.proto`,
`saved_tensor_slice.proto` of TensorFlow.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from weft.errors import DataError
from weft.formats import wire
from weft.formats.wire import DELIMITED, FIXED32, VARINT, expect, signed
from weft.ir.dtype import NAMED, DType

STRING: Final = 7
CODES: Final = {
    1: "float32", 2: "float64", 3: "int32", 4: "uint8", 5: "int16", 6: "int8", 8: "complex64",
    9: "int64", 10: "bool", 14: "bfloat16", 17: "uint16", 18: "complex128", 19: "float16",
    22: "uint32", 23: "uint64",
}  # fmt: skip
"""`DataType` in TensorFlow; `STRING` is another."""
CODE_OF: Final = {name: code for code, name in CODES.items()}
MOST_DIMENSIONS: Final = 64  # as NumPy has it

Slice = tuple[tuple[int, int], ...]
"""Start and length in each dimension; length -1 for all of it."""


class Entry(NamedTuple):
    """The place of a tensor in a bundle.

    Attributes:
        dtype: TensorFlow's number of the element type.
        shard: number of the data file.
        crc: masked CRC-32C of the bytes.
        slices: the pieces of a partitioned variable, which have entries of their own.
    """

    dtype: int
    shape: tuple[int, ...]
    shard: int = 0
    offset: int = 0
    size: int = 0
    crc: int = 0
    slices: tuple[Slice, ...] = ()


def dtype_of(code: int, what: str) -> DType:
    """The element type of a TensorFlow type number.

    Raises:
        DataError: Weft has no such type.
    """
    if code not in CODES:
        raise DataError(f"load: {what}: expected numbers, got TensorFlow's type {code}")
    return NAMED[CODES[code]]


# -- to bytes


def shape_bytes(shape: tuple[int, ...]) -> bytes:
    """A `TensorShapeProto`."""
    return b"".join([wire.delimited(2, wire.integer(1, n) if n else b"") for n in shape])


def slice_bytes(piece: Slice) -> bytes:
    """A `TensorSliceProto`."""
    extents: list[bytes] = []
    for start, length in piece:
        raw = wire.integer(1, start) if start else b""
        extents.append(wire.delimited(1, raw + (wire.integer(2, length) if length >= 0 else b"")))
    return b"".join(extents)


def entry_bytes(entry: Entry) -> bytes:
    """A `BundleEntryProto`."""
    raw = wire.integer(1, entry.dtype) + wire.delimited(2, shape_bytes(entry.shape))
    for number, value in ((3, entry.shard), (4, entry.offset), (5, entry.size)):
        raw += wire.integer(number, value) if value else b""
    raw += wire.fixed32(6, entry.crc) if entry.crc else b""
    return raw + b"".join([wire.delimited(7, slice_bytes(piece)) for piece in entry.slices])


# -- and back


def read_shape(raw: Any, what: str) -> tuple[int, ...]:
    """The sizes in a `TensorShapeProto`.

    Raises:
        DataError: they are unknown, or too many.
    """
    sizes: list[int] = []
    for field in wire.fields(raw, what=what):
        if field.number == 2:
            dim = expect(field, DELIMITED, what)
            found = [f.value for f in wire.fields(dim, what=what) if f.number == 1]
            sizes.append(signed(found[-1]) if found and type(found[-1]) is int else 0)
        elif field.number == 3:
            raise DataError(f"load: {what}: expected a known shape")
    if len(sizes) > MOST_DIMENSIONS or any([not 0 <= n < 1 << 62 for n in sizes]):
        raise DataError(f"load: {what}: damaged: a shape of sizes {sizes!r:.80}")
    return tuple(sizes)


def read_slice(raw: Any, what: str) -> Slice:
    """A `TensorSliceProto`."""
    extents: list[tuple[int, int]] = []
    for field in wire.fields(raw, what=what):
        if field.number == 1:
            numbers = {1: 0, 2: -1}
            for one in wire.fields(expect(field, DELIMITED, what), what=what):
                numbers[one.number] = signed(expect(one, VARINT, what))
            extents.append((numbers[1], numbers[2]))
    return tuple(extents)


def read_entry(raw: Any, what: str) -> Entry:
    """A `BundleEntryProto`.

    Raises:
        DataError: it is damaged.
    """
    numbers = {1: 0, 3: 0, 4: 0, 5: 0, 6: 0}
    shape: tuple[int, ...] = ()
    slices: list[Slice] = []
    for field in wire.fields(raw, what=what):
        if field.number == 2:
            shape = read_shape(expect(field, DELIMITED, what), what)
        elif field.number == 7:
            slices.append(read_slice(expect(field, DELIMITED, what), what))
        elif field.number in numbers:
            kind = FIXED32 if field.number == 6 else VARINT
            numbers[field.number] = signed(expect(field, kind, what))
    dtype, shard, offset, size, crc = numbers.values()
    return Entry(dtype, shape, shard, offset, size, crc, tuple(slices))
