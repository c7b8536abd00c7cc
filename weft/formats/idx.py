"""The IDX format, in which MNIST is published (LeCun, Cortes, Burges: "The MNIST database")."""

from __future__ import annotations

import gzip
import math
import struct
from pathlib import Path
from typing import Any

import numpy as np

from weft.errors import DataError

_TYPES = {8: ">u1", 9: ">i1", 11: ">i2", 12: ">i4", 13: ">f4", 14: ">f8"}


def read_idx(path: str | Path) -> np.ndarray[Any, Any]:
    """The array in an IDX file, plain or gzip, in this machine's byte order.

    Args:
        path: the file.

    Raises:
        DataError: the file is damaged or not an IDX file.

    >>> from weft.datasets import digits
    >>> read_idx(digits.IMAGES).shape
    (1797, 8, 8)
    """
    try:
        data = Path(path).read_bytes()
        if data[:2] == b"\x1f\x8b":
            data = gzip.decompress(data)
    except (EOFError, gzip.BadGzipFile) as error:
        raise DataError(f"{path}: expected a gzip file, but it is damaged: {error}") from None
    if len(data) < 4 or data[:2] != b"\0\0" or data[2] not in _TYPES:
        raise DataError(f"{path}: expected an IDX file, got one that begins with {data[:4]!r}")
    rank, start = data[3], 4 + 4 * data[3]
    if len(data) < start:
        raise DataError(f"{path}: expected {rank} dimensions, but the file ends before them")
    shape = struct.unpack(f">{rank}I", data[4:start])
    kind = np.dtype(_TYPES[data[2]])
    expected = math.prod(shape) * kind.itemsize
    if len(data) - start != expected:
        raise DataError(
            f"{path}: expected {expected:,} bytes of data for shape {shape}, "
            f"got {len(data) - start:,}"
        )
    array = np.frombuffer(data, kind, offset=start).reshape(shape)
    return array.astype(kind.newbyteorder("="))
