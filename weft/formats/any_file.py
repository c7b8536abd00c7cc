"""Arrays by name, from any kind of checkpoint file or folder."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple, cast

import numpy as np

from weft.errors import ArgumentError, DataError
from weft.formats.atomic_file import open_file
from weft.formats.checkpoint_folder.layout import MANIFEST, step_folders
from weft.formats.checkpoint_folder.manifest import read_manifest
from weft.formats.checkpoint_folder.reader import readable
from weft.formats.checkpoint_folder.state import nested, read_state
from weft.formats.pytorch import old_file, zip_file
from weft.formats.pytorch.objects import ARRAYS
from weft.formats.safetensors import read_arrays, write_arrays
from weft.formats.tensorflow.bundle import INDEX, write_bundle
from weft.formats.tensorflow.store import open_store

Array = np.ndarray[Any, Any]
MOST_NAMES: Final = 1_000_000  # if parts of a pickle occur in many places, each place counts
_DATA: Final = re.compile(r"\.(index|data-\d{5}-of-\d{5})$")


class Content(NamedTuple):
    """The content of a file or folder.

    Attributes:
        format: a description of the format.
        arrays: by name; names of nested parts are joined by dots.
        values: numbers, strings and the like, as Python writes them.
    """

    format: str
    arrays: dict[str, Array]
    values: dict[str, str]


def read_any(path: Path) -> Content:
    """Reads a checkpoint's folder, the latest checkpoint of a folder, or a file.

    Files are safetensors, files of `torch.save`, or TensorFlow checkpoints, given by their
    prefix or by one of their files.

    Raises:
        DataError: it is damaged, or of none of these formats.
        OSError: there is no such file, or it may not be read.
    """
    if path.is_dir():
        return _read_folder(path)
    prefix = _DATA.sub("", str(path))
    if not path.exists() or prefix != str(path):
        return _read_store(prefix)
    with open_file(path) as file:
        begin = file.read(len(old_file.MAGIC))
    if begin.startswith(zip_file.MAGIC):
        return _content("PyTorch's zip file", zip_file.read_zip(path, ARRAYS))
    if begin == old_file.MAGIC:
        return _content("PyTorch's old file", old_file.read_old(path, ARRAYS))
    if begin[:1] == b"\0" and path.suffix != ".safetensors":  # a table's first key shares no prefix
        return _read_store(prefix)
    state = nested(read_arrays(path), path, lambda array: array)
    return _content("safetensors", state)


def _read_folder(path: Path) -> Content:
    if not (path / MANIFEST).exists():
        folders = [folder for folder, _ in readable(path)[0]]
        if not folders:
            damaged = f": {len(step_folders(path))} are damaged" if step_folders(path) else ""
            raise DataError(f"checkpoint: {path} has no checkpoints{damaged}")
        path = folders[-1]
    state = read_state(path, read_manifest(path), lambda array: array)
    return _content(f"checkpoint {path.name}", state)


def _read_store(prefix: str) -> Content:
    store = open_store(prefix)
    if store is None:
        raise DataError(f"checkpoint: there is no {prefix}, nor {prefix}{INDEX}")
    values = {name: store.read(name) for name in store.entries}
    return _content("TensorFlow's checkpoint", values)


def _content(kind: str, state: Any) -> Content:
    found = Content(kind, {}, {})
    waiting: list[tuple[str, Any]] = [("", state)]
    for _ in range(MOST_NAMES):
        if not waiting:
            return found
        name, item = waiting.pop()
        before = f"{name}." if name else ""
        if isinstance(item, Mapping):
            entries = cast("Mapping[Any, Any]", item).items()
            waiting += reversed([(f"{before}{key}", one) for key, one in entries])
        elif isinstance(item, list | tuple):
            items = cast("list[Any]", item)
            waiting += reversed([(f"{before}{i}", one) for i, one in enumerate(items)])
        elif isinstance(item, np.ndarray) and item.dtype != object:
            found.arrays[name] = item
        else:
            values = cast("Any", item)
            found.values[name] = repr(values.tolist() if isinstance(item, np.ndarray) else values)
    raise DataError(f"checkpoint: {kind} with more than {MOST_NAMES} parts")


def write_any(target: Path, arrays: Mapping[str, Array]) -> None:
    """Writes arrays as safetensors, or as a TensorFlow checkpoint if the path ends in `.index`.

    Raises:
        ArgumentError: the path ends otherwise.
        OSError: the folder is missing or full, or may not be written to.
    """
    if target.suffix == ".safetensors":
        write_arrays(target, arrays)
    elif target.suffix == INDEX:
        write_bundle(str(target).removesuffix(INDEX), arrays)
    else:
        raise ArgumentError(
            f"convert: expected a target that ends in .safetensors or {INDEX}, got {target}"
        )
