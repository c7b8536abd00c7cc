"""Arrays by name in the safetensors format: no code in the file, everything verified."""

from __future__ import annotations

import contextlib
import mmap
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from io import BufferedReader
from itertools import accumulate
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np

from weft.errors import ArgumentError, DataError, DTypeError
from weft.formats.atomic_file import open_file, write_file
from weft.formats.parallel_checksum import crc32, in_threads, read_summed
from weft.formats.safetensors_header import (
    METADATA,
    Entry,
    damaged,
    digest_of,
    read_header,
    written,
)
from weft.host.memory import LINE
from weft.ir.dtype import DType, as_dtype
from weft.runtime.memory.state import aligned

Array = np.ndarray[Any, Any]
SHARED_BYTES: Final = 1 << 24
"""Arrays that are read into one buffer take at most this much together: eight huge pages."""


def write_arrays(
    path: Path, arrays: Mapping[str, Array], metadata: Mapping[str, str] | None = None
) -> str:
    """Writes arrays atomically: the file is complete, or is not changed.

    Returns:
        A digest of the whole content, which `read_arrays` also returns.

    Raises:
        ArgumentError: an array has the name that the format reserves.
        DTypeError: an array of a type that the format, or Weft, does not have.
        DataError: names and metadata are longer than the format allows.
        OSError: the folder is missing or full, or may not be written to.
    """
    if METADATA in arrays:
        raise ArgumentError(
            f"save: expected other names than {METADATA!r}, which the format reserves"
        )
    # The widest first, so that each is aligned to its element size.
    order = sorted(arrays, key=lambda name: (-arrays[name].dtype.itemsize, name))
    raw: list[memoryview] = []
    entries: dict[str, Entry] = {}
    end = 0
    for name in order:
        # The format only has row-major arrays of little-endian numbers.
        array = np.asarray(arrays[name], order="C")
        dtype = known_dtype(name, array)
        raw.append(array.reshape(-1).view(np.uint8).data)
        entries[name] = Entry(dtype, array.shape, end, end := end + array.nbytes)
    head = written(entries, in_threads(crc32, raw, end), metadata or {})
    write_file(path, [head, *raw])
    return digest_of(head)


def known_dtype(name: str, array: Array) -> DType:
    """The element type of an array to save.

    Raises:
        DTypeError: the format, or Weft, does not have it.
    """
    try:
        return as_dtype(array.dtype)
    except DTypeError:
        raise DTypeError(f"save: {name!r}: expected numbers, got {array.dtype}") from None


class Stored(NamedTuple):
    """The content of a file.

    Attributes:
        digest: what `write_arrays` returned; empty if another library wrote the file.
    """

    arrays: dict[str, Array]
    metadata: dict[str, str]
    digest: str = ""


def read_arrays(path: Path, mapped: bool = False) -> Stored:
    """The arrays of a file, and its metadata without Weft's own entries.

    A file written by Weft is verified by checksums; a file of another library has none, so only its
    header is validated.

    Args:
        mapped: map the file copy-on-write instead of reading it: nobody may change the file in
            place while the arrays are used. Checksums are verified at once, too.

    Raises:
        DataError: the file is not a safetensors file, or damaged.
        OSError: there is no such file, or it may not be read.
    """
    with open_file(path) as file:
        header = read_header(file, os.fstat(file.fileno()).st_size, path)
        first, entries = file.tell(), list(header.entries.values())
        pages = mmap.mmap(file.fileno(), 0, flags=mmap.MAP_PRIVATE) if mapped else None
        if pages is None:
            places = _memories(entries)
        else:
            places = [(pages, first + entry.start) for entry in entries]
        arrays = {
            name: _array(name, entry, path, *place)
            for (name, entry), place in zip(header.entries.items(), places, strict=True)
        }
        contents = [array.reshape(-1).view(np.uint8).data for array in arrays.values()]

        def read(number: int) -> tuple[int, int]:
            content = contents[number]
            if pages is not None:
                return len(content), 0 if header.checksums is None else crc32(content)
            return read_summed(file.fileno(), first + entries[number].start, content)

        size = sum([array.nbytes for array in arrays.values()])
        found = in_threads(read, range(len(contents)), size)
        _check(path, arrays, found, header.checksums)
    widened = {name: _widened(array, entries[i]) for i, (name, array) in enumerate(arrays.items())}
    return Stored(widened, header.metadata, header.digest)


@dataclass(frozen=True)
class ArrayFile:
    """An open file of arrays, which are read and verified one by one.

    Attributes:
        first: where its first array begins.
        sums: the checksum of each array; empty if another library wrote the file.
    """

    path: Path
    file: BufferedReader
    first: int
    entries: Mapping[str, Entry]
    metadata: Mapping[str, str]
    sums: Mapping[str, int]

    def read(self, name: str) -> Array:
        """An array.

        Raises:
            DataError: it is damaged.
            OSError: it may not be read.
        """
        entry = self.entries[name]
        array = np.empty(entry.shape, entry.stored)
        content = array.reshape(-1).view(np.uint8).data
        found = read_summed(self.file.fileno(), self.first + entry.start, content)
        sums = [self.sums[name]] if self.sums else None
        _check(self.path, {name: array}, [found], sums)
        return _widened(array, entry)


@contextlib.contextmanager
def opened_arrays(path: Path, digest: str) -> Iterator[ArrayFile]:
    """Opens a file of arrays for as long as they are needed.

    Args:
        digest: what `write_arrays` has returned.

    Raises:
        DataError: the file is missing, damaged, or not the one saved.
        OSError: it may not be read.
    """
    with contextlib.ExitStack() as stack:
        try:
            file = stack.enter_context(open_file(path))
        except FileNotFoundError:
            raise DataError(f"checkpoint: {path} is missing") from None
        header = read_header(file, os.fstat(file.fileno()).st_size, path)
        if header.digest != digest:
            raise DataError(f"checkpoint: {path} is not the file that was saved")
        sums = dict(zip(header.entries, header.checksums or (), strict=False))
        yield ArrayFile(path, file, file.tell(), header.entries, header.metadata, sums)


def _check(
    path: Path,
    arrays: Mapping[str, Array],
    found: Sequence[tuple[int, int]],
    sums: Sequence[int] | None,
) -> None:
    """Compares the bytes read and the checksums with the header."""
    for number, (name, array) in enumerate(arrays.items()):
        got, checksum = found[number]
        if got != array.nbytes:
            raise damaged(path, f"it is truncated within {name!r}")
        if sums is not None and checksum != sums[number]:
            raise damaged(path, f"the bytes of {name!r} do not match their checksum")


def _memories(entries: Sequence[Entry]) -> list[tuple[Any, int]]:
    """A buffer for each array, and the array's offset in it.

    Small arrays share huge pages, because faulting in other pages takes as long as reading them. A
    buffer is freed when no array in it is referenced, so buffers are small.
    """
    shared: list[list[int]] = []  # sizes
    for entry in entries:
        size = -(-(entry.end - entry.start) // LINE) * LINE
        if shared and sum(shared[-1]) + size <= SHARED_BYTES:
            shared[-1].append(size)
        else:
            shared.append([size])
    found: list[tuple[Any, int]] = []
    for sizes in shared:
        memory = aligned((sum(sizes),), np.dtype(np.uint8))
        for size, end in zip(sizes, accumulate(sizes), strict=True):
            found.append((np.asarray(_Part(memory[end - size : end])), 0))
    return found


class _Part:
    """A part of a buffer as memory of its own, so that its base exposes nothing beside it."""

    def __init__(self, part: Array) -> None:
        self.part = part
        self.__array_interface__ = part.__array_interface__


def _array(name: str, entry: Entry, path: Path, buffer: Any, place: int) -> Array:
    """An array in a buffer, or on mapped pages of the file."""
    try:
        return np.ndarray(entry.shape, entry.stored, buffer, place)
    except ValueError as error:  # impossible dimensions, beside one of 0
        raise damaged(path, f"{name!r}: {error}") from None


def _widened(array: Array, entry: Entry) -> Array:
    """An array whose type Weft has."""
    return array if entry.narrow is None else array.astype(entry.dtype.numpy)
