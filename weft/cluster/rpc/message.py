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
MOST_ARRAYS: Final = 1 << 20
_MOST_DIMENSIONS: Final = 64
_MOST_ELEMENTS: Final = 1 << 62
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
    kinds: list[tuple[str, tuple[int, ...]]] = []
    bodies: list[Buffer] = []
    for number, x in enumerate(message.arrays):
        name, body = _body(x, f"{message.kind}: array {number}")
        kinds.append((name, x.shape))
        bodies.append(body)
    return frame(_head(message, kinds), bodies)


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


def _head(message: Message, kinds: Sequence[tuple[str, tuple[int, ...]]]) -> bytes:
    try:
        text = json.dumps([message.kind, message.head, kinds], separators=(",", ":"))
    except (TypeError, ValueError, RecursionError) as error:
        raise DataError(f"{message.kind}: the head is not JSON: {error}") from error
    return text.encode()


def _body(x: Array, what: str) -> tuple[str, Buffer]:
    """The name of an array's type, and its bytes."""
    if x.dtype == object:
        return STRINGS, _strings(x, what)
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


def decode(data: Buffer | Array) -> Message:
    """A message from its bytes, which its arrays share.

    Raises:
        DataError: bytes that are no message, or part of one.
    """
    view = memoryview(cast(Buffer, data)).cast("B")
    size = head_size(view)
    kind, head, kinds = parse_head(bytes(view[HEADER.size : HEADER.size + size]))
    arrays: list[Array] = []
    position = HEADER.size + size
    for name, shape in kinds:
        if name == STRINGS:
            count = math.prod(shape)
            begin = position + (-position % ALIGNMENT if count else 0)
            x, position = _read_strings(view, begin, count, shape)
        else:
            x, position = _read(view, position, name, shape)
        arrays.append(x)
    if position != len(view):
        raise DataError(f"message: expected {position} bytes, got {len(view)}")
    return Message(kind, head, arrays)


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


def parse_head(text: bytes) -> tuple[str, dict[str, Any], list[tuple[str, tuple[int, ...]]]]:
    """The kind and head of a message, and the types and shapes of its arrays, checked.

    Raises:
        DataError: anything else.
    """
    try:
        kind, head, kinds = json.loads(text)
        checked = [_kind(*pair) for pair in kinds]
    except (TypeError, ValueError, RecursionError) as error:
        raise DataError(f"message: malformed head: {str(error)[:200]}") from None
    if not isinstance(kind, str) or not isinstance(head, dict) or len(checked) > MOST_ARRAYS:
        raise DataError("message: malformed head: expected a kind, values, and types of arrays")
    return kind, cast("dict[str, Any]", head), checked


def _kind(name: object, shape: Any) -> tuple[str, tuple[int, ...]]:
    if name != STRINGS and name not in _TYPES:
        raise ValueError(f"unknown type {name!r}")
    if not isinstance(shape, list) or len(cast("list[Any]", shape)) > _MOST_DIMENSIONS:
        raise ValueError(f"expected a shape, got {str(cast('object', shape))[:80]}")
    elements = 1
    for n in cast("list[object]", shape):
        if type(n) is not int or n < 0:
            raise ValueError(f"expected a size, got {str(n)[:80]}")
        elements *= max(n, 1)
    if elements > _MOST_ELEMENTS // 16:
        raise ValueError("an array of too many elements")
    return str(name), tuple(cast("list[int]", shape))


def _read(
    view: memoryview, position: int, name: str, shape: tuple[int, ...]
) -> tuple[Array, int]:  # fmt: skip
    """An array at a position, and the position after it."""
    dtype = _TYPES[name]
    size = math.prod(shape) * dtype.itemsize
    if not size:
        x = np.zeros(shape, dtype)
        x.flags.writeable = False
        return x, position
    begin = position + -position % ALIGNMENT
    if begin + size > len(view):
        raise DataError(f"message: an array of {size} bytes at byte {begin} of {len(view)}")
    x = np.frombuffer(view[begin : begin + size], dtype).reshape(shape)
    x.flags.writeable = False
    return x, begin + size


def _read_strings(
    view: memoryview, begin: int, count: int, shape: tuple[int, ...]
) -> tuple[Array, int]:  # fmt: skip
    """An array of `bytes` objects at a position, and the position after it."""
    out = np.empty(count, object)
    start = begin + 8 * count
    if start > len(view):
        raise DataError(f"message: {count} strings at byte {begin} of {len(view)}")
    lengths = np.frombuffer(view[begin:start], np.uint64)
    if count and (int(lengths.max()) > len(view) or start + int(lengths.sum()) > len(view)):
        raise DataError(f"message: strings at byte {begin} go beyond its {len(view)} bytes")
    for i, length in enumerate(lengths.tolist()):
        out[i] = bytes(view[start : start + length])
        start += length
    result = out.reshape(shape)
    result.flags.writeable = False
    return result, start
