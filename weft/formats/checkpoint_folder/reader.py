"""Reads checkpoints: which there are, and their content."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from weft.errors import DataError, NewerFormatError
from weft.formats.checkpoint_folder.layout import step_folders
from weft.formats.checkpoint_folder.manifest import Manifest, read_manifest
from weft.formats.safetensors import Stored, read_arrays

Array = np.ndarray[Any, Any]


class Damaged(NamedTuple):
    """A checkpoint that cannot be read, and why."""

    path: Path
    error: DataError


def readable(folder: Path) -> tuple[list[tuple[Path, Manifest]], list[Damaged]]:
    """The readable checkpoints in a folder, oldest save first, and those with a bad manifest.

    Raises:
        NewerFormatError: a later version of Weft wrote one.
    """
    found: list[tuple[Path, Manifest]] = []
    damaged: list[Damaged] = []
    for path in step_folders(folder):
        try:
            found.append((path, read_manifest(path)))
        except NewerFormatError:
            raise
        except DataError as error:
            if path.is_dir():  # else it has just been removed
                damaged.append(Damaged(path, error))
    return sorted(found, key=lambda pair: pair[1].serial), damaged


def read_parts(path: Path, manifest: Manifest) -> list[Stored]:
    """Each rank's data.

    Raises:
        DataError: a file is missing, damaged, or not the one saved.
        OSError: a file may not be read.
    """
    return [read_part(path / name, digest) for name, digest in manifest.files.items()]


def read_part(path: Path, digest: str, mapped: bool = False) -> Stored:
    """A rank's data.

    Args:
        mapped: as for `read_arrays`.

    Raises:
        DataError: the file is missing, damaged, or not the one saved.
        OSError: it may not be read.
    """
    try:
        found = read_arrays(path, mapped)
    except FileNotFoundError:
        raise DataError(f"checkpoint: {path} is missing") from None
    if found.digest != digest:
        raise DataError(f"checkpoint: {path} is not the file that was saved")
    return found
