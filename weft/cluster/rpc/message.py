"""Messages, and their form as bytes.

A message is a fixed header, a JSON head, and the raw bytes of its arrays, each at a multiple of
`ALIGNMENT` bytes from the start. Strings are arrays of `bytes` objects: their lengths, then all
bytes. Nothing in a message is executed, and every size is checked before memory is taken.
"""

from __future__ import annotations

import functools
import json
import math
import struct
from collections.abc import Sequence
from typing import Any, Final, NamedTuple, TypeAlias, cast

import numpy as np
import numpy.typing as npt

from weft.cluster.rpc.options import PROTOCOL
from weft.errors import DataError, DTypeError
from weft.ir.dtype import NAMED

Array: TypeAlias = npt.NDArray[Any]
Buffer: TypeAlias = bytes | memoryview

MAGIC: Final = b"WEFT"
# Magic, version, bytes of the head, bytes of the kinds of arrays, bytes of the message
HEADER: Final = struct.Struct("<4sHxxIIQ")
ALIGNMENT: Final = 64
STRINGS: Final = "bytes"
"""The name of the type of arrays of `bytes` objects."""
_MOST_DIMENSIONS: Final = 64
_MOST_ELEMENTS: Final = 1 << 56
_TYPES: Final = {name: dtype.numpy for name, dtype in NAMED.items()}
_NAMES: Final = {dtype: name for name, dtype in _TYPES.items()}
_PADDING: Final = bytes(ALIGNMENT)
_SMALL_BYTES: Final = 1 << 10
"""Copying so little is faster than making views."""
_MOST_KEPT: Final = 1000
_kinds_texts: dict[object, bytes] = {}  # by types and shapes; a step sends the same each time
_encoder: Final = json.JSONEncoder(separators=(",", ":"))


class Message(NamedTuple):
    """What processes send each other.

    Attributes:
        kind: what it asks for, or answers.
        head: values that JSON can represent.
        arrays: arrays of Weft's types, or of `bytes` objects; received ones are read-only.
    """

    kind: str
    head: dict[str, Any] = {}  # noqa: RUF012 - no message changes its head
    arrays: Sequence[Array] = ()


class Described(NamedTuple):
    """A message in parts.

    Attributes:
        head: its kind and head in JSON.
        kinds: the types and shapes of its arrays in JSON.
        bodies: their bytes.
    """

    head: bytes
    kinds: bytes
    bodies: list[Buffer]

    @property
    def size(self) -> int:
        """Bytes in all, without the header and padding."""
        return len(self.head) + len(self.kinds) + size_of(self.bodies)


def encode(message: Message) -> list[Buffer]:
    """The parts of a message's bytes, in order; arrays are not copied.

    Raises:
        DTypeError: an array of another type, or strings that are not `bytes`.
        DataError: a head that JSON cannot represent.
    """
    return frame(describe(message))


def describe(message: Message) -> Described:
    """A message in parts; see `encode`."""
    arrays = message.arrays
    bodies = [_body(x, message, i) for i, x in enumerate(arrays)]
    key = tuple([(x.dtype, x.shape) for x in arrays])
    kinds = _kinds_texts.get(key)
    if kinds is None:
        pairs = zip(arrays, bodies, strict=True)
        kinds = json.dumps([_described(x, body) for x, body in pairs]).encode()
        if not any([x.dtype == object for x in arrays]):  # their sizes do not follow
            if len(_kinds_texts) >= _MOST_KEPT:
                _kinds_texts.clear()
            _kinds_texts[key] = kinds
    return Described(_head(message), kinds, bodies)


def frame(parts: Described) -> list[Buffer]:
    """The bytes of a message, in order."""
    out: list[Buffer] = [b"", parts.head, parts.kinds]
    position = HEADER.size + len(parts.head) + len(parts.kinds)
    for body in parts.bodies:
        if len(body):
            gap = -position % ALIGNMENT
            out += (_PADDING[:gap], body)
            position += gap + len(body)
    out[0] = HEADER.pack(MAGIC, PROTOCOL, len(parts.head), len(parts.kinds), position)
    return out


def size_of(parts: Sequence[Buffer]) -> int:
    """The number of bytes of an encoded message."""
    return sum([len(part) for part in parts])


def _head(message: Message) -> bytes:
    try:
        return _encoder.encode([message.kind, message.head]).encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise DataError(f"{message.kind}: the head is not JSON: {error}") from error


def _described(x: Array, body: Buffer) -> tuple[object, ...]:
    """An array's type and shape, as JSON has them; of strings also their bytes."""
    return (STRINGS, x.shape, len(body)) if x.dtype == object else (_NAMES[x.dtype], x.shape)


def _body(x: Array, message: Message, number: int) -> Buffer:
    """An array's bytes."""
    if x.dtype not in _NAMES:
        what = f"{message.kind}: array {number}"
        if x.dtype == object:
            return _strings(x, what)
        known = ", ".join((*_NAMES.values(), STRINGS))
        raise DTypeError(f"{what}: expected one of {known}, got {x.dtype}")
    if x.nbytes <= _SMALL_BYTES:
        return x.tobytes()
    return np.ascontiguousarray(x).reshape(-1).view(np.uint8).data


def _strings(x: Array, what: str) -> bytes:
    flat = cast("list[object]", x.reshape(-1).tolist())
    for item in flat:
        if not isinstance(item, bytes):
            raise DTypeError(
                f"{what}: expected bytes objects, got {type(item).__name__}; encode strings first"
            )
    items = cast("list[bytes]", flat)
    return b"".join((np.array([len(item) for item in items], np.uint64).tobytes(), *items))


# -- decoding


class Kind(NamedTuple):
    """The type and shape of an array, and how many bytes it has."""

    name: str
    shape: tuple[int, ...]
    size: int


def decode(data: Buffer | Array) -> Message:
    """A message from its bytes, which its arrays share.

    Raises:
        DataError: bytes that are no message, or part of one.
    """
    view = memoryview(cast(Buffer, data)).cast("B")
    head, kinds = _sizes(view)
    position = HEADER.size + head
    text, described = bytes(view[HEADER.size : position]), bytes(view[position : position + kinds])
    position += kinds
    bodies: list[Buffer] = []
    types = parse_kinds(described)
    for each in types:
        if each.size:
            position += -position % ALIGNMENT
        bodies.append(view[position : position + each.size])
        position += each.size
    if position != len(view):
        raise DataError(f"message: expected {position} bytes, got {len(view)}")
    arrays = [array(each, body) for each, body in zip(types, bodies, strict=True)]
    return Message(*parse_head(text), arrays)


def _sizes(view: memoryview) -> tuple[int, int]:
    """The sizes of the head and of the kinds of arrays, which the header states."""
    if len(view) < HEADER.size:
        raise DataError(f"message: expected {HEADER.size} bytes or more, got {len(view)}")
    magic, version, head, kinds, total = HEADER.unpack_from(view)
    if magic != MAGIC:
        raise DataError(f"message: expected to begin with {MAGIC!r}, got {bytes(magic)!r}")
    if version != PROTOCOL:
        raise DataError(f"message: expected version {PROTOCOL}, got {version}")
    if total != len(view) or HEADER.size + head + kinds > total:
        raise DataError(
            f"message: of {len(view)} bytes, but its header states {total} and heads of {head} "
            f"and {kinds}"
        )
    return int(head), int(kinds)


def parse_head(text: bytes) -> tuple[str, dict[str, Any]]:
    """The kind and head of a message.

    Raises:
        DataError: anything else.
    """
    try:
        kind, head = json.loads(text)
    except (TypeError, ValueError, RecursionError) as error:
        raise _malformed(error) from None
    if not isinstance(kind, str) or not isinstance(head, dict):
        raise DataError("message: malformed head: expected a kind, and values by name")
    return kind, cast("dict[str, Any]", head)


@functools.lru_cache(_MOST_KEPT)
def parse_kinds(text: bytes) -> tuple[Kind, ...]:
    """The types and shapes of a message's arrays.

    Raises:
        DataError: anything else.
    """
    try:
        return tuple([_kind(*each) for each in json.loads(text)])
    except (TypeError, ValueError, RecursionError) as error:
        raise _malformed(error) from None


def _malformed(error: Exception) -> DataError:
    return DataError(f"message: malformed head: {str(error)[:200]}")


def _kind(name: object, shape: Any, size: object = 0) -> Kind:
    if name != STRINGS and name not in _TYPES:
        raise ValueError(f"unknown type {name!r}")
    if not isinstance(shape, list) or len(cast("list[Any]", shape)) > _MOST_DIMENSIONS:
        raise ValueError(f"expected a shape, got {str(cast('object', shape))[:80]}")
    dimensions = cast("list[object]", shape)
    if not all([_is_size(n) for n in dimensions]):
        raise ValueError(f"expected sizes, got {str(dimensions)[:80]}")
    sizes = tuple(cast("list[int]", dimensions))
    if math.prod([max(n, 1) for n in sizes]) > _MOST_ELEMENTS:
        raise ValueError("an array of too many elements")
    count = math.prod(sizes)
    if name != STRINGS:
        return Kind(str(name), sizes, count * _TYPES[str(name)].itemsize)
    if not _is_size(size) or cast(int, size) < 8 * count:
        raise ValueError("strings of an impossible size")
    return Kind(STRINGS, sizes, cast(int, size))


def _is_size(n: object) -> bool:
    return type(n) is int and 0 <= n <= _MOST_ELEMENTS


def array(kind: Kind, body: Buffer) -> Array:
    """An array of this kind that shares these bytes, read-only.

    Raises:
        DataError: too few bytes, or strings whose lengths do not fit.
    """
    if len(body) != kind.size:
        raise DataError(f"message: expected an array of {kind.size} bytes, got {len(body)}")
    if kind.name == STRINGS:
        x = _read_strings(memoryview(body), math.prod(kind.shape)).reshape(kind.shape)
    elif not kind.size:
        x = np.zeros(kind.shape, _TYPES[kind.name])
    else:
        x = np.frombuffer(body, _TYPES[kind.name])
        if len(kind.shape) != 1:
            x = x.reshape(kind.shape)
    if x.flags.writeable:
        x.flags.writeable = False
    return x


def _read_strings(view: memoryview, count: int) -> Array:
    """A vector of `bytes` objects: their lengths, then all bytes."""
    out = np.empty(count, object)
    position = 8 * count
    lengths = np.frombuffer(view[:position], np.uint64).tolist()
    if position + sum(lengths) != len(view):
        raise DataError(f"message: the lengths of {count} strings do not fit {len(view)} bytes")
    for i, length in enumerate(lengths):
        out[i] = bytes(view[position : position + length])
        position += length
    return out
