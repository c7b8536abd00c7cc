"""A checkpoint in whichever format its path has: names, types, shapes, values."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, Final, Protocol

import numpy as np

from weft.formats.safetensors import read_arrays
from weft.formats.tensorflow.bundle import INDEX, Bundle
from weft.formats.tensorflow.first_version import FirstVersion
from weft.formats.tensorflow.message import CODE_OF, Entry
from weft.ir.dtype import as_dtype

Array = np.ndarray[Any, Any]
SUFFIX: Final = ".safetensors"
_DATA: Final = r"\.data-\d{5}-of-\d{5}"


class Store(Protocol):
    """A checkpoint that can be read."""

    @property
    def entries(self) -> dict[str, Entry]:
        """Types and shapes by name."""
        ...

    def read(self, name: str) -> Array:
        """The value of a tensor.

        Raises:
            DataError: it is damaged.
        """
        ...


class SafetensorsStore:
    """A checkpoint in Weft's own format."""

    def __init__(self, path: Path) -> None:
        self._arrays = read_arrays(path).arrays
        self.entries = {
            name: Entry(CODE_OF[as_dtype(array.dtype).name], array.shape)
            for name, array in self._arrays.items()
        }

    def read(self, name: str) -> Array:
        """The value of a tensor."""
        return self._arrays[name]


def open_store(prefix: str) -> Store | None:
    """The checkpoint of this path, or `None`.

    Raises:
        DataError: it is damaged.
        OSError: it may not be read.
    """
    if Path(prefix + SUFFIX).is_file():
        return SafetensorsStore(Path(prefix + SUFFIX))
    if Path(prefix + INDEX).is_file():
        return Bundle(prefix)
    if Path(prefix).is_file():
        return FirstVersion(prefix)
    return None


def store_exists(prefix: str) -> bool:
    """Whether there is a checkpoint of this path."""
    return any([Path(prefix + end).is_file() for end in (SUFFIX, INDEX, "")])


def remove_store(prefix: str, but: str = "") -> None:
    """Removes the files of a checkpoint, starting with the one that identifies it.

    Args:
        but: the suffix, `SUFFIX` or `INDEX`, of the format to keep.

    Raises:
        OSError: a file cannot be removed.
    """
    for suffix in (SUFFIX, INDEX):
        if suffix != but:
            Path(prefix + suffix).unlink(missing_ok=True)
    if but != INDEX:
        place = Path(prefix)
        data = re.compile(re.escape(place.name) + _DATA)
        for path in place.parent.iterdir():
            if data.fullmatch(path.name):
                path.unlink(missing_ok=True)
