"""`FileSystemWriter` and `FileSystemReader`: the folder of a checkpoint, and its contents."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import numpy as np

from weft.checkpoint.slices import PerRank, Slice
from weft.distributed.checkpoint.metadata import Metadata
from weft.distributed.checkpoint.plan import inventory, metadata_of
from weft.distributed.checkpoint.stored import joined, stored
from weft.errors import ArgumentError, DataError
from weft.formats.checkpoint_folder.layout import MANIFEST, step_folders
from weft.formats.checkpoint_folder.manifest import Manifest, read_manifest
from weft.formats.checkpoint_folder.reader import readable
from weft.formats.checkpoint_folder.state import PIECE, RANK, SLICE, Joining, merged, stored_state
from weft.formats.nested_arrays import TREE, built
from weft.formats.safetensors import opened_arrays

__all__ = ["FileSystemReader", "FileSystemWriter"]

Where = str | os.PathLike[str]
_OF_PYTORCH: Final = ".metadata"


class _Storage:
    """The folder of a checkpoint."""

    def __init__(self, path: Where) -> None:
        self.path = Path(path)

    @property
    def checkpoint_id(self) -> Path:
        """The folder."""
        return self.path

    def reset(self, checkpoint_id: Where | None = None) -> None:
        """Use another folder.

        Args:
            checkpoint_id: the folder.
        """
        if checkpoint_id:
            self.path = Path(checkpoint_id)

    @classmethod
    def validate_checkpoint_id(cls, checkpoint_id: Where) -> bool:
        """Whether a path may be that of a checkpoint: not an address of remote storage.

        Args:
            checkpoint_id: the path.
        """
        return "://" not in os.fspath(checkpoint_id)


class FileSystemWriter(_Storage):
    """The folder that `save` writes.

    Args:
        path: the folder; created if it does not exist.
        single_file_per_rank, sync_files: have no effect: each rank writes one file and syncs it.
        thread_count, per_thread_copy_ahead, cache_staged_state_dict: have no effect.
        overwrite: whether an older checkpoint there is replaced; if not, `save` raises an error.
    """

    def __init__(
        self, path: Where, single_file_per_rank: bool = True, sync_files: bool = True,
        thread_count: int = 1, per_thread_copy_ahead: int = 10_000_000,
        cache_staged_state_dict: bool = False, overwrite: bool = True,
    ) -> None:  # fmt: skip
        super().__init__(path)
        self.overwrite = overwrite


class FileSystemReader(_Storage):
    """The folder that `load` reads: of `save`, of a `Checkpointer`, or one of its checkpoints.

    Args:
        path: the folder.
    """

    def read_metadata(self) -> Metadata:
        """The contents of the checkpoint, from the headers of its files.

        Raises:
            DataError: there is no checkpoint, or it is damaged.

        Example:
            >>> import tempfile, weft as wf, weft.distributed.checkpoint as dcp
            >>> with tempfile.TemporaryDirectory() as folder:
            ...     _ = dcp.save({"w": wf.ones(2, 3)}, checkpoint_id=folder)
            ...     metadata = dcp.FileSystemReader(folder).read_metadata()
            >>> metadata.state_dict_metadata["w"].size
            (2, 3)
        """
        path, manifest = checkpoint_at(self.path)
        states = [_outline(path / name, digest) for name, digest in manifest.files.items()]
        return metadata_of([inventory(state) for state in states])


def folder_of(
    name: str, checkpoint_id: Where | None, storage: _Storage | None, storage_class: type[_Storage]
) -> Path:
    """The folder that `checkpoint_id`, or else a reader or writer, names.

    Raises:
        ArgumentError: neither is given, or it is not a folder.
    """
    if storage is not None and not isinstance(storage, storage_class):
        raise ArgumentError.here(
            f"{name}: expected a {storage_class.__name__}, got a {type(storage).__name__}; "
            f"checkpoints are in folders"
        )
    if storage is not None:
        storage.reset(checkpoint_id)
        checkpoint_id = storage.path
    if not checkpoint_id:
        raise ArgumentError.here(
            f"{name}: expected checkpoint_id, the path of a folder, or a {storage_class.__name__}"
        )
    if not storage_class.validate_checkpoint_id(checkpoint_id):
        raise ArgumentError.here(
            f"{name}: expected the path of a folder, got {os.fspath(checkpoint_id)!r}; save to a "
            f"folder and copy it"
        )
    return Path(checkpoint_id)


def checkpoint_at(path: Path) -> tuple[Path, Manifest]:
    """The checkpoint in a folder, the latest of several, or the folder itself.

    Raises:
        DataError: there is none, or it is damaged.
    """
    if (path / MANIFEST).exists() and path in step_folders(path.parent):
        return path, read_manifest(path)
    folders, damaged = readable(path)
    if folders:
        return folders[-1]
    reason = "which does not exist"
    if (path / _OF_PYTORCH).exists():
        reason = (
            "which PyTorch has written; convert it by PyTorch's dcp_to_torch_save and Weft's "
            "torch_save_to_dcp"
        )
    elif damaged:
        reason = "; ".join([str(one.error) for one in damaged])
    elif path.exists():
        reason = "which has none" if path.is_dir() else "which is a file"
    raise DataError(f"load: expected a folder with a checkpoint, got {path}, {reason}")


@contextlib.contextmanager
def opened_checkpoint(path: Path, rank: int = 0, ranks: int = 1) -> Iterator[tuple[Any, Path]]:
    """The state in a folder, with a `Stored` for each tensor, and the checkpoint's own folder.

    Args:
        rank: the rank, of `ranks`, whose `PerRank` values are read.

    Raises:
        DataError: there is no checkpoint, or it is damaged.
        OSError: it may not be read.
    """
    where, manifest = checkpoint_at(path)
    with contextlib.ExitStack() as stack:
        states: list[Any] = []
        for name, digest in manifest.files.items():
            file = stack.enter_context(opened_arrays(where / name, digest))
            states.append(stored_state(file))
        joining = Joining(rank if ranks == len(states) else None, stored, joined)
        yield merged(where, states, joining), where


def _outline(path: Path, digest: str) -> Any:
    """A rank's state with arrays that have types and shapes but no memory."""
    with opened_arrays(path, digest) as file:
        arrays = {
            name: np.broadcast_to(np.zeros((), entry.dtype.numpy), entry.shape)
            for name, entry in file.entries.items()
        }
    return _sliced(built(json.loads(file.metadata[TREE]), arrays))


def _sliced(state: Any) -> Any:
    """A stored structure with its encoded `Slice` and `PerRank` values decoded."""
    if isinstance(state, Mapping):
        if SLICE in state:
            shape, start = state[SLICE]
            return Slice(state[PIECE], tuple(shape), tuple(start))
        if RANK in state:
            return PerRank(None)
        return {key: _sliced(one) for key, one in state.items()}
    return type(state)(map(_sliced, state)) if isinstance(state, list | tuple) else state
