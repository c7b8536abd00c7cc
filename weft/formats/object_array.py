"""Reads arrays of lists from NumPy's archives, in which they are pickles; imports nothing else."""

from __future__ import annotations

import pickle
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any, Final

import numpy as np

from weft.errors import DataError

_NAMES: Final = (
    ("numpy.core.multiarray", "_reconstruct"), ("numpy._core.multiarray", "_reconstruct"),
    ("numpy", "ndarray"), ("numpy", "dtype"), ("_codecs", "encode"),
)  # fmt: skip
"""What makes an array of an archive."""


class _Lists(pickle.Unpickler):
    """Refuses the names of all other classes and functions."""

    def find_class(self, module_name: str, global_name: str, /) -> Any:
        """One of the functions that make arrays."""
        if (module_name, global_name) not in _NAMES:
            raise pickle.UnpicklingError(f"{module_name}.{global_name}")
        return super().find_class(module_name, global_name)


def read_archive(path: str) -> dict[str, Any]:
    """The arrays of an `.npz` file, among them arrays of lists.

    Raises:
        DataError: the file is damaged, or has more than numbers, texts and lists.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            return {Path(name).stem: _array(archive.open, name) for name in archive.namelist()}
    except (OSError, ValueError, EOFError, zipfile.BadZipFile, pickle.UnpicklingError) as error:
        raise DataError(f"{path}: expected arrays and lists: {error}") from None


def _array(opened: Callable[[str], IO[bytes]], name: str) -> Any:
    with opened(name) as file:
        version = np.lib.format.read_magic(file)
        header = np.lib.format.read_array_header_1_0 if version == (1, 0) \
            else np.lib.format.read_array_header_2_0  # fmt: skip
        if header(file)[2].hasobject:
            return _Lists(file).load()
    with opened(name) as file:
        return np.lib.format.read_array(file, allow_pickle=False)
