"""Protocol buffers' wire format: fields written, and messages parsed within their bounds.

A message is a run of fields; a field is a key (number and kind), then a variable-length integer,
four or eight bytes, or a length and so many bytes: a string, an array of numbers, or a nested
message. The meaning of fields is documented with each format, e.g. `weft.formats.example`.

Source: the encoding guide of Protocol Buffers. Groups, which are deprecated, are rejected.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

import numpy as np

from weft.errors import ArgumentError, DataError

VARINT: Final = 0
FIXED64: Final = 1
DELIMITED: Final = 2
FIXED32: Final = 5
LONGEST_VARINT: Final = 10  # bytes: 64 bits, seven each
LARGEST_NUMBER: Final = (1 << 29) - 1
_WORD: Final = (1 << 64) - 1


class Field(NamedTuple):
    """A field of a message.

    Attributes:
        number: number of the field.
        kind: `VARINT`, `FIXED64`, `DELIMITED` or `FIXED32`.
        value: an unsigned integer, or the bytes of a delimited field.
        offset: start of the value, relative to the outermost message.
    """

    number: int
    kind: int
    value: Any
    offset: int


# -- to bytes


def varint(value: int) -> bytes:
    """An integer, seven bits per byte, lowest first; a negative one takes ten bytes.

    Raises:
        ArgumentError: it has more than 64 bits.

    >>> varint(300).hex(), len(varint(-1))
    ('ac02', 10)
    """
    if not -(1 << 63) <= value <= _WORD:
        raise ArgumentError(f"varint: expected an integer of 64 bits, got {value}")
    value &= _WORD
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)


def integer(number: int, value: int) -> bytes:
    """A field with an integer, enumeration or boolean.

    >>> integer(1, 150).hex()
    '089601'
    """
    return varint(number << 3 | VARINT) + varint(value)


def delimited(number: int, content: bytes | bytearray | memoryview | str) -> bytes:
    """A field with bytes, a string or a message.

    >>> delimited(2, "testing").hex()
    '120774657374696e67'
    """
    raw = content.encode() if isinstance(content, str) else bytes(content)
    return varint(number << 3 | DELIMITED) + varint(len(raw)) + raw


def float32(number: int, value: float) -> bytes:
    """A field with a 32-bit float; a number that is too large becomes infinite."""
    with np.errstate(over="ignore"):
        return varint(number << 3 | FIXED32) + np.float32(value).astype("<f4").tobytes()


def float64(number: int, value: float) -> bytes:
    """A field with a 64-bit float."""
    return varint(number << 3 | FIXED64) + struct.pack("<d", value)


def fixed32(number: int, value: int) -> bytes:
    """A field with an integer in four bytes."""
    return varint(number << 3 | FIXED32) + struct.pack("<I", value)


def fixed64(number: int, value: int) -> bytes:
    """A field with an integer in eight bytes."""
    return varint(number << 3 | FIXED64) + struct.pack("<Q", value)


def packed(number: int, values: Any) -> bytes:
    """A field with an array: floats in four or eight bytes each, integers as varints.

    >>> packed(4, [3, 270, 86942]).hex()
    '2206038e029ea705'
    """
    array = np.asarray(values).reshape(-1)
    if array.dtype.kind == "f":
        return delimited(number, array.astype("<f4" if array.dtype.itemsize < 8 else "<f8").data)
    return delimited(number, varints(array))


def varints(values: np.ndarray) -> bytes:
    """Integers as varints, one after the other; negative ones take ten bytes each."""
    unsigned = values.astype(np.int64) if values.dtype.kind != "u" else values
    left = unsigned.astype(np.uint64)
    if not len(left) or left.max() < 128:
        return left.astype(np.uint8).tobytes()
    shifts = np.arange(0, 7 * LONGEST_VARINT, 7, dtype=np.uint64)
    parts = left[:, None] >> shifts
    present = parts != 0
    present[:, 0] = True
    digits = (parts & np.uint64(127)).astype(np.uint8)
    digits[:, :-1] |= present[:, 1:].view(np.uint8) << 7
    return digits[present].tobytes()


# -- and back


def fields(data: Any, offset: int = 0, what: str = "message") -> Iterator[Field]:
    """The fields of a message, in their order.

    Args:
        data: the message's bytes; delimited values are views of them.
        offset: position of these bytes, for errors and for the fields' offsets.
        what: description of the message, for errors.

    Raises:
        DataError: the bytes are not a message; the error gives the position.

    >>> [(f.number, bytes(f.value)) for f in fields(delimited(2, "testing"))]
    [(2, b'testing')]
    """
    view = memoryview(data)
    place, end = 0, len(view)
    while place < end:
        key, at = _varint(view, place, offset, what)
        number, kind = key >> 3, key & 7
        if not 0 < number <= LARGEST_NUMBER:
            raise broken(what, offset + place, f"a field numbered {number}")
        if kind == VARINT:
            value, place = _varint(view, at, offset, what)
        elif kind == DELIMITED:
            size, at = _varint(view, at, offset, what)
            value, place = _piece(view, at, size, offset, what), at + size
        elif kind in (FIXED32, FIXED64):
            size = 4 if kind == FIXED32 else 8
            value = int.from_bytes(_piece(view, at, size, offset, what), "little")
            place = at + size
        else:
            raise broken(what, offset + place, f"a field of kind {kind}")
        yield Field(number, kind, value, offset + at)


def broken(what: str, offset: int, why: str) -> DataError:
    """The error for bytes that are not a message."""
    return DataError(f"{what}: damaged at byte {offset}: {why}")


def _varint(view: memoryview, place: int, offset: int, what: str) -> tuple[int, int]:
    """An integer, and the offset after it."""
    value = shift = 0
    for at in range(place, min(place + LONGEST_VARINT, len(view))):
        byte = view[at]
        value |= (byte & 127) << shift
        if byte < 128:
            if value > _WORD:
                break
            return value, at + 1
        shift += 7
    raise broken(what, offset + place, "a truncated integer, or one of over 64 bits")


def _piece(view: memoryview, at: int, size: int, offset: int, what: str) -> memoryview:
    if size > len(view) - at:
        left = len(view) - at
        raise broken(what, offset + at, f"expected {size} bytes, got {left}")
    return view[at : at + size]


def expect(field: Field, kind: int, what: str) -> Any:
    """The value of a field that must be of one kind.

    Raises:
        DataError: it is of another kind.
    """
    if field.kind != kind:
        why = f"field {field.number}: expected kind {kind}, got {field.kind}"
        raise broken(what, field.offset, why)
    return field.value


def text(field: Field, what: str) -> str:
    """The string in a field.

    Raises:
        DataError: the field does not hold bytes, or they are not UTF-8.
    """
    try:
        return str(expect(field, DELIMITED, what), "utf-8")
    except UnicodeDecodeError:
        raise broken(what, field.offset, f"field {field.number} is not UTF-8 text") from None


def signed(value: int) -> int:
    """The signed integer that was written as `value`.

    >>> signed((1 << 64) - 5)
    -5
    """
    return value - (1 << 64) if value >> 63 else value


def number(field: Field, what: str) -> float:
    """The number in a field of four or eight bytes."""
    if field.kind == FIXED64:
        return struct.unpack("<d", struct.pack("<Q", field.value))[0]
    return struct.unpack("<f", struct.pack("<I", expect(field, FIXED32, what)))[0]


def unpacked_varints(data: Any, offset: int = 0, what: str = "message") -> np.ndarray:
    """Consecutive varints, as int64.

    Raises:
        DataError: one is truncated, or has over 64 bits.
    """
    raw = np.frombuffer(data, np.uint8)
    if not len(raw) or raw.max() < 128:
        return raw.astype(np.int64)
    ends = np.flatnonzero(raw < 128)
    if not len(ends) or ends[-1] != len(raw) - 1:
        raise broken(what, offset + len(raw) - 1, "a truncated integer")
    starts = np.concatenate([[0], ends[:-1] + 1])
    sizes = ends - starts + 1
    wrong = (sizes > LONGEST_VARINT) | ((sizes == LONGEST_VARINT) & (raw[ends] > 1))
    if wrong.any():
        raise broken(what, offset + int(starts[wrong.argmax()]), "an integer of over 64 bits")
    shifts = 7 * (np.arange(len(raw)) - np.repeat(starts, sizes))
    parts = (raw & 127).astype(np.uint64) << shifts.astype(np.uint64)
    return np.bitwise_or.reduceat(parts, starts).view(np.int64)
