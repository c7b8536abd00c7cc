"""Elements encoded as bytes without pickle: the structure as JSON, then the arrays as .npy."""

from __future__ import annotations

import io
import json
from typing import Any

import numpy as np

from weft.errors import DataError, DTypeError
from weft.pipeline.structure import rebuilt

_PLAIN = (str, int, float, bool, type(None))


def encode(element: Any) -> bytes:
    """The bytes of an element of arrays, numbers, strings and bytes.

    Raises:
        DTypeError: the element contains something else.

    >>> decode(encode({"a": np.arange(2), "b": ("x", b"y", 1)}))
    {'a': array([0, 1]), 'b': ('x', b'y', 1)}
    """
    arrays = io.BytesIO()
    head = json.dumps(_described(element, arrays)).encode()
    return len(head).to_bytes(4, "little") + head + arrays.getvalue()


def _described(x: Any, arrays: io.BytesIO) -> Any:
    if isinstance(x, tuple):
        return ["tuple", *[_described(part, arrays) for part in x]]
    if isinstance(x, dict):
        return ["dict", *[[key, _described(part, arrays)] for key, part in x.items()]]
    if isinstance(x, bytes):
        return ["bytes", x.hex()]
    if type(x) in _PLAIN:
        return ["plain", x]
    if isinstance(x, np.ndarray) and x.dtype == object:
        return ["objects", list(x.shape), *[_described(part, arrays) for part in x.ravel()]]
    if isinstance(x, np.ndarray | np.generic) and x.dtype.kind in "biufc":
        np.lib.format.write_array(arrays, np.asarray(x), allow_pickle=False)
        return ["array"] if isinstance(x, np.ndarray) else ["scalar"]
    raise DTypeError(
        f"cache: expected arrays, numbers, strings or bytes in an element, got {type(x).__name__}; "
        "a cache in memory keeps anything"
    )


def decode(data: bytes) -> Any:
    """The element that was encoded.

    Raises:
        DataError: the bytes are damaged.
    """
    try:
        length = int.from_bytes(data[:4], "little")
        head = json.loads(data[4 : 4 + length])
        return _built(head, io.BytesIO(data[4 + length :]))
    except (ValueError, IndexError, KeyError, TypeError) as error:
        raise DataError(f"cache: a damaged element: {error}") from error


def _built(head: Any, arrays: io.BytesIO) -> Any:
    node_type, *rest = head
    if node_type == "tuple":
        return rebuilt((), [_built(part, arrays) for part in rest])
    if node_type == "dict":
        return {key: _built(part, arrays) for key, part in rest}
    if node_type == "bytes":
        return bytes.fromhex(rest[0])
    if node_type == "plain":
        return rest[0]
    if node_type == "objects":
        out = np.empty(int(np.prod(rest[0])), object)
        out[:] = [_built(part, arrays) for part in rest[1:]]
        return out.reshape(rest[0])
    array = np.lib.format.read_array(arrays, allow_pickle=False)
    return array if node_type == "array" else array[()]
