"""Files of `torch.save` before PyTorch 1.6: five pickles, then the bytes of storages.

    a magic number, a version, facts about the machine, the content, the keys of storages in order;
    for each storage the number of its elements, in eight bytes, and its elements

The size of an element is known from the content alone, so the content is read twice: first for its
storages.
"""

from __future__ import annotations

import mmap
from io import BufferedReader
from pathlib import Path
from typing import IO, Any, Final, cast

import numpy as np

from weft.errors import DataError
from weft.formats.atomic_file import open_file
from weft.formats.pytorch.objects import ARRAYS, Arguments, FileObjects, Makers
from weft.formats.pytorch.pickle_reader import Name, Unpicklable, read_pickle

Array = np.ndarray[Any, Any]
MAGIC: Final = b"\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19."
VERSION: Final = 1001
_COUNT: Final = 8  # bytes


def read_old(path: Path, makers: Makers) -> Any:
    """Reads a file of `torch.save` that is not a zip archive.

    Raises:
        DataError: the file is damaged, or holds objects of other classes.
        OSError: there is no such file, or it may not be read.
    """
    with open_file(path) as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as pages:
        pages.seek(len(MAGIC))
        pickles = cast("IO[bytes]", pages)
        survey = _Survey(len(pages))
        version, machine = (read_pickle(pickles, survey, str(path)) for _ in range(2))
        if version != VERSION or not isinstance(machine, dict):
            raise DataError(f"load: {path}: expected version {VERSION}, got {version!r:.80}")
        if cast("dict[str, Any]", machine).get("little_endian") is not True:
            raise DataError(f"load: {path} was written on a machine that is not little-endian")
        begin = pages.tell()
        read_pickle(pickles, survey, str(path))
        keys = read_pickle(pickles, survey, str(path))
        storages = _storages(file, pages.tell(), keys, survey.sizes, path)
        pages.seek(begin)
        objects = FileObjects(makers, lambda key, *_: storages[key])
        return read_pickle(pickles, objects, str(path))


class _Survey(FileObjects):
    """Notes the storages of a file, and makes no tensors.

    Attributes:
        sizes: of storages by key: the number of elements, and the bytes of one.
    """

    def __init__(self, size: int) -> None:
        super().__init__(ARRAYS, self._noted)
        self.sizes: dict[Any, tuple[int, int]] = {}
        self._size = size

    def _noted(self, key: Any, elements: np.dtype[Any] | None, count: int) -> Array:
        width = elements.itemsize if elements else 1
        if count * width > self._size or self.sizes.setdefault(key, (count, width))[1] != width:
            raise Unpicklable(f"a storage of {count} elements in a file of {self._size} bytes")
        return np.broadcast_to(np.uint8(0), count * width)

    def checked(self, whole: Any) -> Any:
        """The content, which is checked when it is read again."""
        return whole

    def call(self, name: Name, arguments: Arguments) -> Any:
        """As in the file itself, without tensors."""
        known = name.module in ("torch._utils", "torch._tensor")
        return None if known else super().call(name, arguments)


def _storages(
    file: BufferedReader, place: int, keys: Any, sizes: dict[Any, tuple[int, int]], path: Path
) -> dict[Any, Array]:
    """The bytes of storages by key."""
    if not isinstance(keys, list) or set(cast("list[Any]", keys)) != set(sizes):
        raise DataError(f"load: {path} is damaged: its storages are not those of its tensors")
    file.seek(place)
    found: dict[Any, Array] = {}
    for key in cast("list[Any]", keys):
        count, width = sizes[key]
        told = int.from_bytes(file.read(_COUNT), "little")
        content = file.read(count * width)
        if told != count or len(content) != count * width:
            raise DataError(f"load: {path} is truncated, or damaged in storage {key!r:.80}")
        found[key] = np.frombuffer(content, np.uint8)
    return found
