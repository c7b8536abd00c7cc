"""`save` and `async_save`: a state dict of all ranks in a folder."""

from __future__ import annotations

import enum
import json
import warnings
from collections.abc import Mapping
from concurrent.futures import Future
from functools import partial
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np

from weft.checkpoint.restoring import has_state
from weft.checkpoint.slices import unfolding
from weft.distributed.checkpoint.api import together
from weft.distributed.checkpoint.default_planner import DefaultSavePlanner
from weft.distributed.checkpoint.filesystem import FileSystemWriter, Where, folder_of
from weft.distributed.checkpoint.metadata import Metadata
from weft.distributed.checkpoint.options import check_planner, group_of, pending, refuse
from weft.distributed.checkpoint.plan import inventory, own_share, pieces_of, plan_of
from weft.eager.tensor.interchange.serialization import array_of, is_tensor
from weft.errors import FileError
from weft.formats.checkpoint_folder.layout import step_folders
from weft.formats.checkpoint_folder.snapshot import Snapshot
from weft.formats.checkpoint_folder.writer import FolderWriter, Place, Policy
from weft.formats.nested_arrays import parts
from weft.transport.group import TIMEOUT_SECONDS, Group

__all__ = ["async_save", "save", "save_state_dict"]

Array = np.ndarray[Any, Any]
_ALL: Final = Policy(keep=None, best=None, largest=False, top=None)
_STEP: Final = 0
_copies: Final = Snapshot()


class AsyncCheckpointerType(enum.Enum):
    """Where `async_save` writes."""

    THREAD = "thread"
    PROCESS = "process"


def save(
    state_dict: Mapping[str, Any], *, checkpoint_id: Where | None = None,
    storage_writer: FileSystemWriter | None = None, planner: DefaultSavePlanner | None = None,
    process_group: Group | None = None, no_dist: bool = False, use_collectives: bool = True,
) -> Metadata:  # fmt: skip
    """Save a state dict of all ranks, which call it together, to a folder.

    Each rank writes its shards of `Slice`s and `DTensor`s. Of replicated values, the lowest rank's
    is written. Keys may exist on some ranks only. The checkpoint is complete when this returns, and
    replaces the folder's previous one.

    Args:
        state_dict: tensors, arrays, numbers, strings and `None`, in nested dicts and lists, and
            `Stateful` objects at the top level.
        checkpoint_id: the folder.
        storage_writer: names the folder instead of `checkpoint_id`.
        planner: accepted; its options have no effect.
        process_group: the ranks; by default all.
        no_dist: whether this process saves alone, as it does without a process group.
        use_collectives: must be True.

    Returns:
        The names, types, shapes and shards of the saved values.

    Raises:
        CheckpointException: a rank could not save; on all ranks.
        ArgumentError: no folder is given, or an option is not supported.

    Example:
        >>> import tempfile, weft as wf, weft.distributed.checkpoint as dcp
        >>> model = wf.nn.Linear(2, 1)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     metadata = dcp.save({"model": model, "step": 7}, checkpoint_id=folder)
        >>> list(metadata.state_dict_metadata)
        ['model.weight', 'model.bias', 'step']
    """
    refuse("save", "use_collectives", use_collectives, True)
    group = group_of("save", process_group, no_dist)
    begun = _begin("save", state_dict, checkpoint_id, storage_writer, planner, group)
    try:
        together(begun.group, "save", begun.write)
    finally:
        begun.writer.close()
    return begun.metadata


def async_save(
    state_dict: Mapping[str, Any], *, checkpoint_id: Where | None = None,
    storage_writer: FileSystemWriter | None = None, planner: DefaultSavePlanner | None = None,
    process_group: Group | None = None,
    async_checkpointer_type: AsyncCheckpointerType = AsyncCheckpointerType.THREAD,
    async_stager: None = None, no_dist: bool = False, use_collectives: bool = True,
) -> Future[Metadata]:  # fmt: skip
    """Save as `save` does, in the background.

    Arrays are copied before this returns, into memory that the next call reuses; a low-priority
    thread writes them. The next `save`, `load` or `async_save` waits until it is done.

    Args:
        state_dict, checkpoint_id, storage_writer, planner: see `save`.
        process_group, no_dist, use_collectives: see `save`.
        async_checkpointer_type: must be `THREAD`.
        async_stager: must be `None`.

    Returns:
        A future whose `result()` is what `save` returns, or raises what it would raise.

    Raises:
        CheckpointException: a rank has values that cannot be saved; on all ranks.
        ArgumentError: no folder is given, or an option is not supported.

    Example:
        >>> import tempfile, weft as wf, weft.distributed.checkpoint as dcp
        >>> x = wf.ones(2)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     future = dcp.async_save({"x": x}, checkpoint_id=folder)
        ...     _ = x.zero_()
        ...     _ = future.result()
        ...     dcp.load({"x": x}, checkpoint_id=folder)
        >>> x.tolist()
        [1.0, 1.0]
    """
    refuse("async_save", "use_collectives", use_collectives, True)
    refuse("async_save", "async_stager", async_stager, None)
    thread = AsyncCheckpointerType.THREAD
    refuse("async_save", "async_checkpointer_type", async_checkpointer_type, thread)
    group = group_of("async_save", process_group, no_dist)
    begun = _begin("async_save", state_dict, checkpoint_id, storage_writer, planner, group)
    try:
        copies, _ = together(begun.group, "async_save", lambda: _copies.take(begun.arrays))
        future: Future[Metadata] = Future()
        pending.start(partial(_write, begun._replace(arrays=copies), future))
    except BaseException:
        begun.writer.close()
        raise
    return future


def save_state_dict(
    state_dict: Mapping[str, Any], storage_writer: FileSystemWriter,
    process_group: Group | None = None, coordinator_rank: int = 0, no_dist: bool = False,
    planner: DefaultSavePlanner | None = None,
) -> Metadata:  # fmt: skip
    """`save` under its deprecated name.

    Args:
        state_dict, storage_writer, process_group, no_dist, planner: see `save`.
        coordinator_rank: has no effect.
    """
    warnings.warn("save_state_dict is deprecated; use save", FutureWarning, stacklevel=2)
    return save(
        state_dict, storage_writer=storage_writer, planner=planner, process_group=process_group,
        no_dist=no_dist,
    )  # fmt: skip


class _Begun(NamedTuple):
    """A planned save: what this rank writes, and the open folder."""

    group: Group | None
    writer: FolderWriter
    arrays: dict[str, Array]
    tree: str
    metadata: Metadata

    def write(self) -> None:
        self.writer.write(_STEP, self.arrays, self.tree, {})


def _begin(
    name: str, state_dict: Mapping[str, Any], checkpoint_id: Where | None,
    storage_writer: FileSystemWriter | None, planner: DefaultSavePlanner | None,
    group: Group | None,
) -> _Begun:  # fmt: skip
    """Agree with the other ranks on who saves what, and open the folder."""
    check_planner(name, planner, DefaultSavePlanner)
    folder = folder_of(name, checkpoint_id, storage_writer, FileSystemWriter)
    pending.wait()
    state, told = together(group, name, lambda: pieces_of(_state_of(state_dict)), inventory)
    plan, _ = together(None, name, lambda: plan_of(told))  # the same on all ranks
    rank, ranks = (0, 1) if group is None else (group.index, group.size)
    timeout = TIMEOUT_SECONDS if group is None else group.timeout
    writer = FolderWriter(folder, _ALL, Place(rank, ranks, timeout))
    replaces = storage_writer is None or storage_writer.overwrite

    def opened() -> tuple[dict[str, Array], str]:
        written: dict[str, Array] = {}
        share = own_share(state, plan, rank)
        tree = list(parts(share, is_tensor, array_of, written, unfolding(0, has_state)))
        _open(writer, folder, replaces)
        return written, json.dumps(tree, separators=(",", ":"))

    try:
        (arrays, tree), _ = together(group, name, opened)
    except BaseException:
        writer.close()
        raise
    return _Begun(group, writer, arrays, tree, plan.metadata)


def _state_of(state_dict: Mapping[str, Any]) -> dict[str, Any]:
    return {key: x.state_dict() if has_state(x) else x for key, x in state_dict.items()}


def _open(writer: FolderWriter, folder: Path, replaces: bool) -> None:
    if not replaces and step_folders(folder):
        raise FileError(
            f"save: {folder} has a checkpoint, and overwrite=False: save to another folder"
        )
    writer.open()


def _write(begun: _Begun, future: Future[Metadata]) -> None:
    """Write in the background, where ranks report errors by files."""
    try:
        together(None, "async_save", begun.write)
    except BaseException as error:
        begun.writer.close()
        future.set_exception(error)
    else:
        begun.writer.close()
        future.set_result(begun.metadata)
