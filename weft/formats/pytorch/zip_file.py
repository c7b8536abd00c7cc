"""Files of `torch.save` since PyTorch 1.6: a zip archive of a pickle and the bytes of storages.

archive/data.pkl    the structure; a tensor is a call with a storage, offset, shape and strides
archive/data/0      the bytes of a storage, not compressed
archive/byteorder   "little"
"""

from __future__ import annotations

import errno
import struct
import zipfile
from pathlib import Path
from typing import Any, Final

import numpy as np

from weft.errors import DataError
from weft.formats.atomic_file import open_file
from weft.formats.pytorch.objects import FileObjects, Makers
from weft.formats.pytorch.pickle_reader import Unpicklable, read_pickle

Array = np.ndarray[Any, Any]
MAGIC: Final = b"PK\x03\x04"
LARGEST_PICKLE: Final = 1 << 28  # bytes
_FAULTS: Final = (
    zipfile.BadZipFile, NotImplementedError, RuntimeError, EOFError, OSError, ValueError,
    struct.error,
)  # fmt: skip
_OTHERS: Final = (
    ("/constants.pkl", "an archive of torch.jit.save: load it in PyTorch, and save its "
     "state_dict()"),
    ("/archive_format", "an archive of torch.export: save the module's state_dict() in PyTorch"),
    (".npy", "NumPy's .npz: expected a file of torch.save; use numpy.load"),
    ("model.weights.h5", "Keras 3's .keras: expected a file of torch.save"),
)  # fmt: skip


def read_zip(path: Path, makers: Makers) -> Any:
    """Reads a file of `torch.save`: tensors, numbers and strings in containers.

    Raises:
        DataError: the file is damaged, or holds objects of other classes.
        OSError: there is no such file, or it may not be read.
    """
    with open_file(path) as file:
        try:
            with zipfile.ZipFile(file) as archive:
                return _Archive(archive, path).read(makers)
        except DataError:
            raise
        except _FAULTS as error:
            if isinstance(error, OSError) and error.errno != errno.EINVAL:  # of a place it names
                raise
            raise DataError(f"load: {path} is damaged, or not a zip file: {error}") from None


class _Archive:
    def __init__(self, archive: zipfile.ZipFile, path: Path) -> None:
        self._archive, self._path = archive, path
        self._members = {info.filename: info for info in archive.infolist()}
        self._storages: dict[str, Array] = {}
        self._check()

    def _check(self) -> None:
        """Checks that nothing is compressed or stored twice, which bounds the memory needed."""
        for end, kind in _OTHERS:
            if any([name.endswith(end) for name in self._members]):
                raise DataError(f"load: {self._path} is {kind}")
        infos = self._archive.infolist()
        if any([info.compress_type != zipfile.ZIP_STORED for info in infos]):
            raise self._broken("its members are compressed, which torch.save does not do")
        if sum([info.file_size for info in infos]) > self._path.stat().st_size:
            raise self._broken("its members are larger than the file")

    def _broken(self, why: str) -> DataError:
        return DataError(f"load: {self._path} is not a file of torch.save: {why}")

    def read(self, makers: Makers) -> Any:
        names = [name for name in self._members if name.endswith("/data.pkl")]
        if len(names) != 1:
            raise self._broken("it has no data.pkl")
        self._folder = names[0].removesuffix("data.pkl")
        order = self._folder + "byteorder"
        if order in self._members and self._bytes(order) != b"little":
            raise self._broken("it was written on a machine that is not little-endian")
        if self._members[names[0]].file_size > LARGEST_PICKLE:
            raise self._broken("its pickle is too large")
        objects = FileObjects(makers, self._storage)
        return read_pickle(self._bytes(names[0]), objects, str(self._path))

    def _bytes(self, name: str) -> bytes:
        return self._archive.read(self._members[name])

    def _storage(self, key: Any, elements: Any, count: int) -> Array:
        member = f"{self._folder}data/{key}"
        if key not in self._storages:
            if member not in self._members:
                raise Unpicklable(f"a storage {key!r} that is not in the file")
            self._storages[key] = np.frombuffer(self._bytes(member), np.uint8)
        return self._storages[key]
