"""`save` and `load`: tensors in a safetensors file, by name or in nested dicts and lists."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import IO, Any, Final, TypeGuard, cast

import numpy as np

from weft.eager.record.pending.lazy import Array
from weft.eager.tensor.handle import Handle
from weft.eager.tensor.interchange.serialization import array_of, is_tensor, tensor_of
from weft.eager.tensor.tensor import Tensor
from weft.eager.tensor.view.memory_format import memory_format, strided
from weft.errors import ArgumentError, DTypeError
from weft.formats.atomic_file import open_file
from weft.formats.checkpoint_folder.state import nested
from weft.formats.nested_arrays import TREE, parts
from weft.formats.pytorch import old_file, zip_file
from weft.formats.pytorch.objects import Makers
from weft.formats.pytorch.storage import Sparse
from weft.formats.safetensors import read_arrays, write_arrays
from weft.formats.safetensors_header import METADATA
from weft.formats.saved_object import SAVED, Folding, Unfolding, name_of
from weft.nn.parameter import Parameter
from weft.ops.refusal import guard
from weft.sparse import SparseTensor, sparse_csr_tensor

__all__ = [
    "add_safe_globals", "clear_safe_globals", "get_safe_globals", "load", "safe_globals", "save",
]  # fmt: skip


def save(obj: Any, path: str | os.PathLike[str] | IO[bytes]) -> None:
    """Write tensors to a safetensors file, atomically.

    A dict of tensors becomes a file that other libraries read by the same names. Dicts, lists and
    tuples may be nested and hold numbers, strings, booleans and `None` as well. `requires_grad` is
    not saved.

    Objects of classes that can be imported, such as whole modules, are saved as the class's name
    and the object's state; parameters that are shared stay shared. `load` needs
    `weights_only=False` for them, as in PyTorch.

    A link is followed. A replaced file passes on its permissions, and its owner if the system
    allows. To an open binary file, or `io.BytesIO`, the bytes are appended.

    Raises:
        DTypeError: it contains something else, such as a lambda, which the error names.
        TreeError: a dict or list contains itself.
        FileError: the path is a folder, a device or a pipe.
        OSError: the folder is missing or not writable, or the disk is full.

    Example:
        >>> import tempfile, weft as wf
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     wf.save({"w": wf.ones(2), "epoch": 3}, folder + "/model.safetensors")
        ...     wf.load(folder + "/model.safetensors")
        {'w': tensor([1., 1.]), 'epoch': 3}
    """
    if _is_open(path):
        with _temporary() as where:
            save(obj, where)
            with where.open("rb") as file:
                shutil.copyfileobj(file, path)
        return
    target = Path(cast(Any, path))
    if isinstance(obj, Mapping) and all([_is_named(k, v) for k, v in obj.items()]):
        write_arrays(target, {k: array_of(v) for k, v in obj.items()})
        return
    write_arrays(target, *taken_apart(obj))


def taken_apart(obj: Any) -> tuple[dict[str, Array], dict[str, str]]:
    """A structure's arrays by name, and a file's metadata with all the rest of it."""
    arrays: dict[str, Array] = {}
    more: dict[str, str] = {}
    try:
        tree = list(parts(obj, is_tensor, array_of, arrays))
    except DTypeError:  # there are objects
        arrays.clear()
        more = {SAVED: "objects"}
        tree = list(parts(obj, is_tensor, array_of, arrays, Folding(is_tensor, _folded)))
    return arrays, {TREE: json.dumps(tree, separators=(",", ":")), **more}


def _folded(x: Any) -> dict[str, Any] | None:
    """The parts of a parameter, which is more than its values; `None` for other tensors."""
    if not isinstance(x, Parameter):
        return None
    return {"data": x.detach(), "requires_grad": x.requires_grad}


def add_safe_globals(safe_globals: Iterable[Any]) -> None:
    """Allow classes and functions in files that are loaded with `weights_only=True`."""
    _SAFE.update({name_of(each): each for each in safe_globals})


def clear_safe_globals() -> None:
    """Forget what `add_safe_globals` has allowed."""
    _SAFE.clear()


@contextlib.contextmanager
def safe_globals(safe_globals: Iterable[Any]) -> Iterator[None]:
    """A block in which `add_safe_globals` allows more."""
    before = dict(_SAFE)
    add_safe_globals(safe_globals)
    try:
        yield
    finally:
        _SAFE.clear()
        _SAFE.update(before)


def get_safe_globals() -> list[Any]:
    """What `add_safe_globals` has allowed."""
    return list(_SAFE.values())


_SAFE: Final[dict[str, Any]] = {}


def _is_open(path: str | os.PathLike[str] | IO[bytes]) -> TypeGuard[IO[bytes]]:
    """Whether an argument is an open file, and no path."""
    return hasattr(path, "read") or hasattr(path, "write")


@contextlib.contextmanager
def _temporary() -> Iterator[Path]:
    """A path for what an open file has, or is to have: formats are written and read by path."""
    with tempfile.TemporaryDirectory(prefix="weft-") as folder:
        yield Path(folder, "file")


def _is_named(key: Any, value: Any) -> bool:
    return isinstance(key, str) and key != METADATA and isinstance(value, Handle | np.ndarray)


def load(
    path: str | os.PathLike[str] | IO[bytes], map_location: Any = None, *,
    weights_only: bool = True, mmap: bool = False,
) -> Any:  # fmt: skip
    """Load a file of `save` or `torch.save`, or the tensors by name of any safetensors file.

    The pickle in PyTorch's files is parsed and not executed: tensors, numbers, strings and NumPy
    arrays in containers are supported, other objects raise an error that names them. Sparse
    matrices become sparse tensors by rows, quantized tensors the float32 numbers that they stand
    for, and float8 numbers float32.

    Args:
        path: the file; or an open binary file, which is read to its end.
        map_location: taken for programs that give one: there is one device.
        weights_only: whether to refuse objects of classes, such as whole modules, that
            `add_safe_globals` has not allowed. Otherwise their modules are imported, and their
            state is set: only load files that you trust. Files of `torch.save` give none.
        mmap: map tensors of a safetensors file copy-on-write instead of reading them. The file must
            not be changed in place while they are used; replacing it, as `save` does, is safe.
            Checksums are verified all the same.

    Raises:
        ArgumentError: `mmap` of a file that `torch.save` has written, or of an open file.
        DataError: the file is damaged, has another format, or holds objects of other classes.
        OSError: there is no such file, or it may not be read.
    """
    del map_location
    if _is_open(path):
        if mmap:
            raise ArgumentError(f"load: mmap=True: expected a path, got {type(path).__name__}")
        with _temporary() as where:
            with where.open("wb") as file:
                shutil.copyfileobj(path, file)
            return load(where, weights_only=weights_only)
    where = Path(cast(Any, path))
    with open_file(where) as file:
        begin = file.read(len(old_file.MAGIC))
    of_torch = begin.startswith((zip_file.MAGIC, old_file.MAGIC))
    if not of_torch:
        read = read_arrays(where, mmap)
        found = nested(read, where, tensor_of)
        if SAVED not in read.metadata:
            return found
        return Unfolding(where, _SAFE if weights_only else None, Parameter)(found)
    if mmap:
        text = "expected a safetensors file, got one of torch.save: load it without mmap=True"
        raise ArgumentError(f"load: {where}: mmap=True: {text}")
    reader = old_file.read_old if begin == old_file.MAGIC else zip_file.read_zip
    return reader(where, _MAKERS)


def _tensor(array: Array, requires_grad: bool) -> Tensor:
    return tensor_of(array).requires_grad_(requires_grad)


def _sparse(matrix: Sparse) -> SparseTensor:
    indptr, indices, data = map(tensor_of, matrix[:3])
    return sparse_csr_tensor(indptr, indices, data, matrix.shape)


_MAKERS: Final = Makers(
    _tensor, Parameter, _sparse,
    {f"torch.{value.name}": value for value in (strided, *memory_format)},
)  # fmt: skip


guard(globals())
