"""Arrays by name, in the safetensors format: no code in the file, and nothing taken on trust.

The format: eight bytes with the length of a header; the header, JSON, with element type, shape and
place of each array, and texts under `__metadata__`; the arrays' bytes, row-major, one after the
other. The metadata also carry a CRC-32 of each array, which the format lacks.
"""

from __future__ import annotations

import json
import math
import zlib
from collections.abc import Mapping
from io import BufferedReader
from pathlib import Path
from typing import Any, Final, NamedTuple, cast

import numpy as np

from weft.checkpoint.file import write_file
from weft.errors import DataError, DTypeError
from weft.ir.dtype import DTYPES, DType, as_dtype, bfloat16, bool_

Array = np.ndarray[Any, Any]
CHECKSUMS: Final = "weft.crc32"
LONGEST_HEADER: Final = 100_000_000  # bytes, as the format's own library has it
ALIGNMENT: Final = 8


def _format_name(dtype: DType) -> str:
    if dtype is bool_:
        return "BOOL"
    if dtype is bfloat16:
        return "BF16"
    return f"{dtype.kind.upper()}{8 * dtype.size}"


_BY_FORMAT: Final = {_format_name(d): d for d in DTYPES.values() if d.kind in "biuf"}


def write_arrays(
    path: Path, arrays: Mapping[str, Array], metadata: Mapping[str, str] | None = None
) -> None:
    """Write arrays; the file is complete, or is not changed.

    Raises:
        DTypeError: an array of a type that the format, or Weft, does not have.
        OSError: the folder is missing or full, or may not be written to.
    """
    # The widest first, so that each begins at a multiple of its element's size.
    order = sorted(arrays, key=lambda name: (-arrays[name].dtype.itemsize, name))
    raw: dict[str, Any] = {}
    header: dict[str, Any] = {}
    end = 0
    for name in order:
        # The format knows row-major arrays of little-endian numbers only.
        array = np.asarray(arrays[name], order="C")
        dtype = _known_dtype(name, array)
        raw[name] = array.reshape(-1).view(np.uint8).data
        places = [end, end := end + array.nbytes]
        header[name] = {
            "dtype": _format_name(dtype), "shape": list(array.shape), "data_offsets": places
        }  # fmt: skip
    sums = json.dumps({name: zlib.crc32(data) for name, data in raw.items()})
    header = {"__metadata__": {**(metadata or {}), CHECKSUMS: sums}, **header}
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % ALIGNMENT)
    write_file(path, [len(text).to_bytes(8, "little"), text, *raw.values()])


def _known_dtype(name: str, array: Array) -> DType:
    try:
        return as_dtype(array.dtype)
    except DTypeError:
        raise DTypeError(f"save: {name!r}: expected numbers, got {array.dtype}") from None


class Stored(NamedTuple):
    """What a file holds."""

    arrays: dict[str, Array]
    metadata: dict[str, str]


class _Entry(NamedTuple):
    """Where an array is, from the end of the header."""

    dtype: DType
    shape: tuple[int, ...]
    start: int
    end: int


def read_arrays(path: Path) -> Stored:
    """The arrays of a file, and its metadata without what this module adds.

    Raises:
        DataError: the file is no safetensors file, or damaged.
        OSError: there is no such file, or it may not be read.
    """
    with path.open("rb") as file:
        size = path.stat().st_size
        entries, metadata = _header(file, size, path)
        first = file.tell()
        sums = _sums(metadata.pop(CHECKSUMS, "{}"), path)
        arrays: dict[str, Array] = {}
        for name, entry in entries.items():
            file.seek(first + entry.start)
            array = _empty(name, entry, path)
            content = array.reshape(-1).view(np.uint8).data
            if file.readinto(content) != array.nbytes:
                raise _damaged(path, f"it ends within {name!r}")
            if name in sums and zlib.crc32(content) != sums[name]:
                raise _damaged(path, f"the bytes of {name!r} are not those saved")
            arrays[name] = array
    return Stored(arrays, metadata)


def _empty(name: str, entry: _Entry, path: Path) -> Array:
    try:
        return np.empty(entry.shape, entry.dtype.numpy)
    except ValueError as error:  # dimensions that no array has, beside one of 0
        raise _damaged(path, f"{name!r}: {error}") from None


def _damaged(path: Path, why: str) -> DataError:
    return DataError(f"load: {path} is damaged, or no safetensors file: {why}")


def _header(
    file: BufferedReader, size: int, path: Path
) -> tuple[dict[str, _Entry], dict[str, str]]:
    length = int.from_bytes(file.read(8), "little")
    if size < 8 or length > min(size - 8, LONGEST_HEADER):
        raise _damaged(path, f"a header of {length} bytes in a file of {size}")
    try:
        header = json.loads(file.read(length))
    except (ValueError, RecursionError) as error:
        raise _damaged(path, f"its header: {error}") from None
    if not isinstance(header, dict):
        raise _damaged(path, "its header is no object")
    header = cast("dict[str, Any]", header)
    told: Any = header.pop("__metadata__", {})
    if not isinstance(told, dict) or not all([isinstance(v, str) for v in told.values()]):
        raise _damaged(path, "its metadata are no texts")
    entries = {name: _entry(name, given, path) for name, given in header.items()}
    _check_places(entries, size - 8 - length, path)
    return entries, told


def _entry(name: str, given: Any, path: Path) -> _Entry:
    try:
        kind = str(given["dtype"])
        shape = tuple(given["shape"])
        start, end = given["data_offsets"]
    except (TypeError, KeyError, ValueError):
        raise _damaged(path, f"what it says of {name!r}") from None
    numbers = (*shape, start, end)
    if not all([type(n) is int and n >= 0 for n in numbers]):
        raise _damaged(path, f"what it says of {name!r}")
    dtype = _BY_FORMAT.get(kind)
    if dtype is None:
        expected = ", ".join(_BY_FORMAT)
        raise DataError(f"load: {path}: expected {name!r} of {expected}, got {kind}")
    if end - start != math.prod(shape) * dtype.size:
        raise _damaged(path, f"{name!r} takes {end - start} bytes for {kind} of shape {shape}")
    return _Entry(dtype, shape, start, end)


def _check_places(entries: Mapping[str, _Entry], size: int, path: Path) -> None:
    """The arrays fill the rest of the file, without gaps and without sharing bytes."""
    end = 0
    for name, entry in sorted(entries.items(), key=lambda item: item[1][2:]):
        if entry.start != end:
            raise _damaged(path, f"{name!r} begins at {entry.start}, not {end}")
        end = entry.end
    if end != size:
        raise _damaged(path, f"expected {end} bytes of arrays, got {size}")


def _sums(text: str, path: Path) -> dict[str, int]:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise _damaged(path, "its checksums")
    return found
