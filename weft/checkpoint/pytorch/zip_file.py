"""Files of `torch.save`: a zip archive of a pickle and the bytes of the tensors' storages.

archive/data.pkl    the structure; a tensor is a call with a storage, offset, shape and strides
archive/data/0      the bytes of a storage, not compressed
archive/byteorder   "little"
"""

from __future__ import annotations

import errno
import math
import struct
import zipfile
from collections import Counter, OrderedDict
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple, cast

import numpy as np

from weft.checkpoint.file import open_file
from weft.checkpoint.pytorch.pickle_reader import Name, Unpicklable, read_pickle
from weft.errors import DataError
from weft.ir.dtype import NAMED, DType

Array = np.ndarray[Any, Any]
MAGIC: Final = b"PK\x03\x04"
LARGEST_PICKLE: Final = 1 << 28  # bytes
MOST_EXPANDED: Final = 1 << 20  # elements of a tensor with more of them than its storage
MOST_DIMENSIONS: Final = 64  # as NumPy has it
_FAULTS: Final = (
    zipfile.BadZipFile, NotImplementedError, RuntimeError, EOFError, OSError, ValueError,
    struct.error,
)  # fmt: skip
_STORAGES: Final = {
    "Double": "float64", "Float": "float32", "Half": "float16", "BFloat16": "bfloat16",
    "Long": "int64", "Int": "int32", "Short": "int16", "Char": "int8", "Byte": "uint8",
    "Bool": "bool", "ComplexFloat": "complex64", "ComplexDouble": "complex128",
}  # fmt: skip


class Storage(NamedTuple):
    """The bytes under tensors, which are views.

    Attributes:
        dtype: of its elements; `None` if only the tensors know it.
    """

    content: Array
    dtype: DType | None


def read_zip(path: Path, tensor: Callable[[Array], Any]) -> Any:
    """Reads a file of `torch.save`: tensors, numbers and strings in containers.

    Args:
        tensor: converts an array to a tensor; no two arrays share memory.

    Raises:
        DataError: the file is damaged, or holds objects of other classes.
        OSError: there is no such file, or it may not be read.
    """
    with open_file(path) as file:
        try:
            with zipfile.ZipFile(file) as archive:
                return _Reader(archive, path, tensor).read()
        except DataError:
            raise
        except _FAULTS as error:
            if isinstance(error, OSError) and error.errno != errno.EINVAL:  # of a place it names
                raise
            raise DataError(f"load: {path} is damaged, or not a zip file: {error}") from None


class _Reader:
    def __init__(
        self, archive: zipfile.ZipFile, path: Path, tensor: Callable[[Array], Any]
    ) -> None:
        self._archive, self._path, self._tensor = archive, path, tensor
        self._members = {info.filename: info for info in archive.infolist()}
        self._storages: dict[str, Array] = {}
        self._check()

    def _check(self) -> None:
        """Checks that nothing is compressed or stored twice, which bounds the memory needed."""
        infos = self._archive.infolist()
        if any([info.compress_type != zipfile.ZIP_STORED for info in infos]):
            raise self._broken("its members are compressed, which torch.save does not do")
        if sum([info.file_size for info in infos]) > self._path.stat().st_size:
            raise self._broken("its members are larger than the file")

    def _broken(self, why: str) -> DataError:
        return DataError(f"load: {self._path} is not a file of torch.save: {why}")

    def read(self) -> Any:
        names = [name for name in self._members if name.endswith("/data.pkl")]
        if len(names) != 1:
            raise self._broken("it has no data.pkl")
        self._folder = names[0].removesuffix("data.pkl")
        order = self._folder + "byteorder"
        if order in self._members and self._bytes(order) != b"little":
            raise self._broken("it was written on a machine that is not little-endian")
        if self._members[names[0]].file_size > LARGEST_PICKLE:
            raise self._broken("its pickle is too large")
        return read_pickle(self._bytes(names[0]), self._call, self._load, str(self._path))

    def _bytes(self, name: str) -> bytes:
        return self._archive.read(self._members[name])

    # objects of names and persistent ids

    def _load(self, identity: tuple[Any, ...]) -> Storage:
        kind, storage, key, _, count = identity
        if kind != "storage" or type(count) is not int:
            raise Unpicklable(f"a persistent id of {kind!r}")
        member = f"{self._folder}data/{key}"
        if key not in self._storages:
            if member not in self._members:
                raise Unpicklable(f"a storage {key!r} that is not in the file")
            self._storages[key] = np.frombuffer(self._bytes(member), np.uint8)
        content, dtype = self._storages[key], _storage_dtype(storage)
        if count * (dtype.size if dtype else 1) > len(content) or count < 0:
            raise Unpicklable(f"{count} elements in a storage of {len(content)} bytes")
        return Storage(content, dtype)

    def _call(self, name: Name, arguments: tuple[Any, ...]) -> Any:
        known = _CALLS.get(str(name))
        if known is None:
            raise Unpicklable(f"{name}; save its parts, its state_dict() for example")
        return known(self, arguments)

    def _rebuilt(self, arguments: tuple[Any, ...]) -> Any:
        storage, offset, shape, strides = arguments[:4]
        return self._tensor(_array(storage, offset, shape, strides, None))

    def _rebuilt_v3(self, arguments: tuple[Any, ...]) -> Any:
        storage, offset, shape, strides, _, _, dtype = arguments[:7]
        return self._tensor(_array(storage, offset, shape, strides, _dtype_of(dtype)))

    def _rebuilt_of_type(self, arguments: tuple[Any, ...]) -> Any:
        function, _, inner, _ = arguments
        if not isinstance(function, Name) or function.module != "torch._utils":
            raise Unpicklable(f"a tensor made by {function}")
        return self._call(function, inner)


def _first(_: _Reader, arguments: tuple[Any, ...]) -> Any:
    return arguments[0]


def _text_bytes(_: _Reader, arguments: tuple[Any, ...]) -> bytes:
    text, encoding = arguments
    if encoding != "latin1":
        raise Unpicklable(f"text in {encoding!r}")
    return cast("str", text).encode("latin1")


def _plain(make: Callable[..., Any], *kinds: type) -> Callable[[_Reader, tuple[Any, ...]], Any]:
    """A Python container or number of these types."""

    def made(_: _Reader, arguments: tuple[Any, ...]) -> Any:
        if not all([type(argument) in kinds for argument in arguments]):
            raise Unpicklable(f"a {make.__name__} of {arguments!r:.80}")
        return make(*arguments)

    return made


_CALLS: Final[dict[str, Callable[[_Reader, tuple[Any, ...]], Any]]] = {
    "collections.OrderedDict": _plain(OrderedDict, list, dict),
    "collections.Counter": _plain(Counter, dict),
    "torch.Size": _plain(tuple, list, tuple),
    "torch.device": _plain(lambda *given: ":".join(map(str, given)), str, int),
    "_codecs.encode": _text_bytes,
    **{
        f"{module}.{kind.__name__}": _plain(kind, *of)
        for module in ("builtins", "__builtin__")
        for kind, of in ((set, (list,)), (complex, (float,)), (bytearray, (bytes,)))
    },
    "torch._utils._rebuild_tensor": _Reader._rebuilt,  # pyright: ignore[reportPrivateUsage]
    "torch._utils._rebuild_tensor_v2": _Reader._rebuilt,  # pyright: ignore[reportPrivateUsage]
    "torch._utils._rebuild_tensor_v3": _Reader._rebuilt_v3,  # pyright: ignore[reportPrivateUsage]
    "torch._utils._rebuild_parameter": _first,
    "torch._utils._rebuild_parameter_with_state": _first,
    "torch._tensor._rebuild_from_type_v2": _Reader._rebuilt_of_type,  # pyright: ignore[reportPrivateUsage]
}


def _dtype_of(name: Any) -> DType:
    if isinstance(name, Name) and name.module == "torch" and name.name in NAMED:
        return NAMED[name.name]
    raise Unpicklable(f"elements of type {name}")


def _storage_dtype(name: Any) -> DType | None:
    if name == Name("torch.storage", "UntypedStorage"):
        return None
    kind = name.name.removesuffix("Storage") if isinstance(name, Name) else ""
    if kind not in _STORAGES:
        raise Unpicklable(f"a storage of {name}")
    return NAMED[_STORAGES[kind]]


def _array(storage: Any, offset: Any, shape: Any, strides: Any, dtype: DType | None) -> Array:
    """A tensor's elements, in memory of their own."""
    dtype = dtype or (storage.dtype if isinstance(storage, Storage) else None)
    if not isinstance(storage, Storage) or dtype is None:
        raise Unpicklable("a tensor without a storage")
    _check_numbers(offset, shape, strides)
    held = len(storage.content) // dtype.size
    count = math.prod(shape)
    last = offset + sum([(n - 1) * s for n, s in zip(shape, strides, strict=True)])
    if (count and last >= held) or count > max(held, MOST_EXPANDED):
        raise Unpicklable(
            f"a tensor of shape {tuple(shape)} and strides {tuple(strides)} at {offset} in a "
            f"storage of {held} elements"
        )
    if not count:
        return np.empty(shape, dtype.numpy)
    elements = storage.content[: held * dtype.size].view(dtype.numpy)[offset:]
    steps = [s * dtype.size for s in strides]
    view = np.lib.stride_tricks.as_strided(elements, shape, steps, writeable=False)
    return np.array(view, order="C")


def _check_numbers(offset: Any, shape: Any, strides: Any) -> None:
    for numbers in (shape, strides, (offset,)):
        if not isinstance(numbers, Sequence) or len(cast("Any", numbers)) > MOST_DIMENSIONS:
            raise Unpicklable("a tensor with an invalid shape")
        if not all([type(n) is int and 0 <= n < 1 << 62 for n in cast("Any", numbers)]):
            raise Unpicklable(f"a tensor of shape {shape!r:.80}, strides {strides!r:.80}")
