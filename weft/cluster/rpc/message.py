"""Messages, and their form as bytes.

A message is a fixed header, a JSON head, and the raw bytes of its arrays, each at a multiple of
`ALIGNMENT` bytes from the start. Strings are arrays of `bytes` objects: their lengths, then all
bytes. Nothing in a message is executed, and every size is checked before memory is taken.
"""

from __future__ import annotations

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
HEADER: Final = struct.Struct("<4sHxxIxxxxQ")  # magic, version, bytes of the head, of the message
ALIGNMENT: Final = 64
STRINGS: Final = "bytes"
"""The name of the type of arrays of `bytes` objects."""
_MOST_DIMENSIONS: Final = 64
_MOST_ELEMENTS: Final = 1 << 56
_TYPES: Final = {name: dtype.numpy for name, dtype in NAMED.items()}
_NAMES: Final = {dtype: name for name, dtype in _TYPES.items()}
_PADDING: Final = bytes(ALIGNMENT)


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


def encode(message: Message) -> list[Buffer]:
    """The parts of a message's bytes, in order; arrays are not copied.

    Raises:
        DTypeError: an array of another type, or strings that are not `bytes`.
        DataError: a head that JSON cannot represent.
    """
    return frame(*describe(message))


def describe(message: Message) -> tuple[bytes, list[Buffer]]:
    """A message's head with the types and shapes of its arrays, and their bytes; see `encode`."""
    kinds: list[Sequence[object]] = []
    bodies: list[Buffer] = []
    for number, x in enumerate(message.arrays):
        if x.dtype == object:
            body = _strings(x, f"{message.kind}: array {number}")
            kinds.append((STRINGS, x.shape, len(body)))
        else:
            name, body = _body(x, f"{message.kind}: array {number}")
            kinds.append((name, x.shape))
        bodies.append(body)
    return _head(message, kinds), bodies


def frame(head: bytes, bodies: Sequence[Buffer]) -> list[Buffer]:
    """The parts of a message with this head and these bodies of arrays."""
    parts: list[Buffer] = [b"", head]
    position = HEADER.size + len(head)
    for body in bodies:
        if len(body):
            gap = -position % ALIGNMENT
            parts += (_PADDING[:gap], body)
            position += gap + len(body)
    parts[0] = HEADER.pack(MAGIC, PROTOCOL, len(head), position)
    return parts


def size_of(parts: Sequence[Buffer]) -> int:
    """The number of bytes of an encoded message."""
    return sum([len(part) for part in parts])


def _head(message: Message, kinds: Sequence[Sequence[object]]) -> bytes:
    try:
        text = json.dumps([message.kind, message.head, kinds], separators=(",", ":"))
    except (TypeError, ValueError, RecursionError) as error:
        raise DataError(f"{message.kind}: the head is not JSON: {error}") from error
    return text.encode()


def _body(x: Array, what: str) -> tuple[str, Buffer]:
    """The name of an array's type, and its bytes."""
    name = _NAMES.get(x.dtype)
    if name is None:
        known = ", ".join((*_NAMES.values(), STRINGS))
        raise DTypeError(f"{what}: expected one of {known}, got {x.dtype}")
    if not x.size:
        return name, b""
    return name, np.ascontiguousarray(x).reshape(-1).view(np.uint8).data


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
    position = HEADER.size + head_size(view)
    kind, head, kinds = parse_head(bytes(view[HEADER.size : position]))
    bodies: list[Buffer] = []
    for each in kinds:
        if each.size:
            position += -position % ALIGNMENT
        bodies.append(view[position : position + each.size])
        position += each.size
    if position != len(view):
        raise DataError(f"message: expected {position} bytes, got {len(view)}")
    return Message(
        kind, head, [array(each, body) for each, body in zip(kinds, bodies, strict=True)]
    )


def head_size(view: memoryview) -> int:
    """The size of the head that the fixed header states, checked.

    Raises:
        DataError: another format or version, or a size that does not fit.
    """
    if len(view) < HEADER.size:
        raise DataError(f"message: expected {HEADER.size} bytes or more, got {len(view)}")
    magic, version, size, total = HEADER.unpack_from(view)
    if magic != MAGIC:
        raise DataError(f"message: expected to begin with {MAGIC!r}, got {bytes(magic)!r}")
    if version != PROTOCOL:
        raise DataError(f"message: expected version {PROTOCOL}, got {version}")
    if total != len(view) or HEADER.size + size > total:
        raise DataError(
            f"message: of {len(view)} bytes, but its header states {total} and a head of {size}"
        )
    return int(size)


def parse_head(text: bytes) -> tuple[str, dict[str, Any], list[Kind]]:
    """The kind and head of a message, and the types and shapes of its arrays, checked.

    Raises:
        DataError: anything else.
    """
    try:
        kind, head, kinds = json.loads(text)
        checked = [_kind(*each) for each in kinds]
    except (TypeError, ValueError, RecursionError) as error:
        raise DataError(f"message: malformed head: {str(error)[:200]}") from None
    if not isinstance(kind, str) or not isinstance(head, dict):
        raise DataError("message: malformed head: expected a kind, and values by name")
    return kind, cast("dict[str, Any]", head), checked


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
    elif kind.size:
        x = np.frombuffer(body, _TYPES[kind.name]).reshape(kind.shape)
    else:
        x = np.zeros(kind.shape, _TYPES[kind.name])
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
