"""The header of a file of arrays: the file's content, and digests that cover all of it.

The format is safetensors: eight bytes with the length of a header; the header, JSON, with element
type, shape and place of each array, and strings under `__metadata__`; the arrays' bytes. Two of the
strings are Weft's, and add what the format lacks:

    weft.sha256   of the length and the header, with zeros in place of this very digest
    weft.crc32    of each array in the header's order, eight hexadecimal digits each

They cover every byte of the file. Three marks show that a file must have them, so that damage to
one does not hide itself: the digest comes first in the header, the checksums come last in the
metadata, and an array's entry begins with its shape, as in no other library's files.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Mapping, Sequence
from io import BufferedReader
from pathlib import Path
from typing import Any, Final, NamedTuple, cast

import ml_dtypes
import numpy as np

from weft.errors import DataError
from weft.formats.recognition import recognized
from weft.ir.dtype import NAMED, DType, bfloat16, bool_, float32

METADATA: Final = "__metadata__"
DIGEST: Final = "weft.sha256"
CHECKSUMS: Final = "weft.crc32"
LONGEST_HEADER: Final = 100_000_000  # bytes, as the format's own library allows
MOST_DIMENSIONS: Final = 64  # as NumPy has it
MOST_DIGITS: Final = 19  # of 2 ** 63
LENGTH: Final = 8
ALIGNMENT: Final = 8
_BEGIN: Final = f'{{"{METADATA}":{{"{DIGEST}":"'.encode()
_BLANK: Final = "0" * 64
_OWN: Final = "weft."
_FIRST: Final = "shape"


def _format_name(dtype: DType) -> str:
    if dtype is bool_:
        return "BOOL"
    if dtype is bfloat16:
        return "BF16"
    return f"{dtype.kind.upper()}{8 * dtype.size}"


_BY_FORMAT: Final = {_format_name(d): d for d in NAMED.values()}
_NARROW: Final = {
    "F8_E4M3": np.dtype(ml_dtypes.float8_e4m3fn), "F8_E5M2": np.dtype(ml_dtypes.float8_e5m2),
    "F8_E4M3FNUZ": np.dtype(ml_dtypes.float8_e4m3fnuz),
    "F8_E5M2FNUZ": np.dtype(ml_dtypes.float8_e5m2fnuz),
    "F8_E8M0": np.dtype(ml_dtypes.float8_e8m0fnu),
}  # fmt: skip
"""Types that become float32, which holds their numbers exactly."""


class Entry(NamedTuple):
    """The place of an array, relative to the end of the header.

    Attributes:
        narrow: the type of its elements in the file, if Weft has no such type.
    """

    dtype: DType
    shape: tuple[int, ...]
    start: int
    end: int
    narrow: np.dtype[Any] | None = None

    @property
    def stored(self) -> np.dtype[Any]:
        """The type of its elements in the file."""
        return self.dtype.numpy if self.narrow is None else self.narrow


class Header(NamedTuple):
    """The file's description of its content.

    Attributes:
        checksums: of the arrays, in order; `None` if another library wrote the file.
        metadata: without this module's entries.
        digest: of header and checksums, so of the whole file; empty if there is none.
    """

    entries: dict[str, Entry]
    checksums: list[int] | None
    metadata: dict[str, str]
    digest: str = ""


# -- to bytes


def written(
    entries: Mapping[str, Entry], checksums: Sequence[int], metadata: Mapping[str, str]
) -> bytes:
    """The length and the header.

    Raises:
        DataError: the header is too large for the format.
    """
    sums = "".join([f"{checksum:08x}" for checksum in checksums])
    fields: dict[str, Any] = {METADATA: {DIGEST: _BLANK, **metadata, CHECKSUMS: sums}}
    for name, entry in entries.items():
        fields[name] = {
            _FIRST: entry.shape, "dtype": _format_name(entry.dtype),
            "data_offsets": (entry.start, entry.end),
        }  # fmt: skip
    text = json.dumps(fields, separators=(",", ":")).encode()
    text += b" " * (-len(text) % ALIGNMENT)
    if len(text) > LONGEST_HEADER:
        raise DataError(
            f"save: names and structure take {len(text)} bytes: expected {LONGEST_HEADER} at most"
        )
    raw = len(text).to_bytes(LENGTH, "little") + text
    start = LENGTH + len(_BEGIN)
    return raw[:start] + _digest(raw).encode() + raw[start + len(_BLANK) :]


def digest_of(raw: bytes) -> str:
    """The digest stored in a header."""
    start = LENGTH + len(_BEGIN)
    return raw[start : start + len(_BLANK)].decode("ascii")


def _digest(raw: bytes) -> str:
    """The digest of length and header, ignoring the stored digest."""
    start = LENGTH + len(_BEGIN)
    blank = raw[:start], _BLANK.encode(), raw[start + len(_BLANK) :]
    return hashlib.sha256(b"".join(blank)).hexdigest()


# -- and back


def read_header(file: BufferedReader, size: int, path: Path) -> Header:
    """Reads the header of a file of `size` bytes, up to its end.

    Raises:
        DataError: the file is not a safetensors file, or damaged.
    """
    raw = file.read(LENGTH)
    length = int.from_bytes(raw, "little")
    bounded = size >= LENGTH and length <= min(size - LENGTH, LONGEST_HEADER)
    text = file.read(length) if bounded else b""
    if not text.startswith(b"{"):
        kind = recognized(file, size)
        if kind:
            raise DataError(f"load: {path} is {kind}")
        raise damaged(path, "its header is not an object" if size else "empty")
    raw += text
    sealed = raw.startswith(_BEGIN, LENGTH)
    start = LENGTH + len(_BEGIN)
    if sealed and _digest(raw).encode() != raw[start : start + len(_BLANK)]:
        raise damaged(path, "its header does not match its digest")
    fields = _fields(raw[LENGTH:], path)
    metadata = _metadata(fields.pop(METADATA, {}), path)
    entries = {name: _entry(name, given, path) for name, given in fields.items()}
    _check_places(entries, size - len(raw), path)
    ours = sealed or any([key.startswith(_OWN) for key in metadata])
    ours = ours or any([next(iter(given)) == _FIRST for given in fields.values()])
    checksums = _checksums(metadata, sealed, len(entries), path) if ours else None
    return Header(entries, checksums, metadata, digest_of(raw) if sealed else "")


def damaged(path: Path, why: str) -> DataError:
    """The error for a file with invalid content."""
    return DataError(f"load: {path} is damaged, or not a safetensors file: {why}")


def _fields(text: bytes, path: Path) -> dict[str, Any]:
    try:
        found = json.loads(text, object_pairs_hook=_unique, parse_int=_bounded)
    except (ValueError, RecursionError) as error:
        raise damaged(path, f"its header: {error}") from None
    if not isinstance(found, dict):
        raise damaged(path, "its header is not an object")
    return cast("dict[str, Any]", found)


def _unique(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a duplicate name")
    return found


def _bounded(digits: str) -> int:
    """An integer of limited size; parsing millions of digits would take hours."""
    if len(digits) > MOST_DIGITS:
        raise ValueError(f"a number of {len(digits)} digits")
    return int(digits)


def _metadata(found: Any, path: Path) -> dict[str, str]:
    if not isinstance(found, dict):
        raise damaged(path, "its metadata are not strings")
    texts = cast("dict[str, Any]", found)
    if not all([isinstance(text, str) for text in texts.values()]):
        raise damaged(path, "its metadata are not strings")
    return texts


def _checksums(metadata: dict[str, str], sealed: bool, count: int, path: Path) -> list[int]:
    """Takes Weft's checksums out of the metadata."""
    sums = metadata.pop(CHECKSUMS, "")
    if not sealed or not re.fullmatch(rf"[0-9a-f]{{{8 * count}}}", sums):
        raise damaged(path, "Weft wrote it, but its checksums are gone")
    del metadata[DIGEST]
    return [int(sums[8 * i : 8 * i + 8], 16) for i in range(count)]


def _entry(name: str, given: Any, path: Path) -> Entry:
    try:
        kind, shape = given["dtype"], tuple(given["shape"])
        start, end = given["data_offsets"]
    except (TypeError, KeyError, ValueError):
        raise damaged(path, f"its entry for {name!r}") from None
    numbers = (*shape[:MOST_DIMENSIONS], start, end)
    if not isinstance(kind, str) or not all([type(n) is int and n >= 0 for n in numbers]):
        raise damaged(path, f"its entry for {name!r}")
    narrow = _NARROW.get(kind)
    dtype = float32 if narrow else _BY_FORMAT.get(kind)
    if dtype is None:
        expected = ", ".join([*_BY_FORMAT, *_NARROW])
        raise DataError(f"load: {path}: expected {name!r} of {expected}, got {kind}")
    if len(shape) > MOST_DIMENSIONS:
        raise damaged(path, f"{name!r} has {len(shape)} dimensions")
    entry = Entry(dtype, shape, start, end, narrow)
    if end - start != math.prod(shape) * entry.stored.itemsize:
        raise damaged(path, f"{name!r} takes {end - start} bytes for {kind} of shape {shape}")
    return entry


def _check_places(entries: Mapping[str, Entry], size: int, path: Path) -> None:
    """Checks that the arrays fill the rest of the file without gaps or overlaps."""
    end = 0
    for name, entry in sorted(entries.items(), key=lambda item: item[1][2:]):
        if entry.start != end:
            raise damaged(path, f"{name!r} begins at {entry.start}, not {end}")
        end = entry.end
    if end != size:
        raise damaged(path, f"expected {end} bytes of arrays, got {size}")
