"""String tensors in a checkpoint: their lengths as varints, a checksum of these, their bytes.

In the checksums the lengths are 4 bytes each, or 8 if necessary.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from weft.errors import DataError
from weft.formats.crc32c import crc32c, masked
from weft.formats.wire import unpacked_varints

Array = np.ndarray[Any, Any]


def read_strings(raw: Array, shape: tuple[int, ...], checksum: int, what: str) -> Array:
    """An array of `bytes`.

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
