"""`load`: a checkpoint into the tensors and objects of a state dict."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from weft.checkpoint.restoring import (
    MISMATCH,
    MISSING,
    Fault,
    has_state,
    kind_of,
    load_into,
    mismatches,
)
from weft.checkpoint.slices import PerRank, Slice
from weft.collectives.elements import compute_pending
from weft.distributed.checkpoint.api import together
from weft.distributed.checkpoint.default_planner import DefaultLoadPlanner
from weft.distributed.checkpoint.filesystem import (
    FileSystemReader,
    Where,
    folder_of,
    opened_checkpoint,
)
from weft.distributed.checkpoint.flat import is_inner, leaves, nodes, put, replaced
from weft.distributed.checkpoint.options import check_planner, group_of, pending
from weft.distributed.checkpoint.plan import pieces_of
from weft.distributed.checkpoint.stored import Stored
from weft.eager.tensor.interchange.serialization import is_tensor, tensor_of
from weft.errors import CheckpointError
from weft.formats.checkpoint_folder.state import ABSENT
from weft.ir.shape import show
from weft.optim.optimizer import Optimizer
from weft.transport.division import division_of
from weft.transport.group import Group

__all__ = ["load", "load_state_dict"]


def load(
    state_dict: dict[str, Any], *, checkpoint_id: Where | None = None,
    storage_reader: FileSystemReader | None = None, planner: DefaultLoadPlanner | None = None,
    process_group: Group | None = None, no_dist: bool = False,
) -> None:  # fmt: skip
    """Load a checkpoint into a state dict, in place, on any number of ranks.

    Tensors are filled: whole ones and the shards of `Slice`s and `DTensor`s, however they were
    sharded when saved; values are converted to their types. Numbers, strings and other values are
    replaced in the dict. `Stateful` objects load their filled `state_dict`. Keys that the dict does
    not have are not loaded. A rank reads the arrays that overlap its shards, one by one. If a rank
    cannot load, all raise. Names and shapes are checked before anything changes; a damaged array is
    detected when it is read.

    Args:
        state_dict: as passed to `save`; only paths must match, not nesting.
        checkpoint_id: the folder: of `save`, of a `Checkpointer`, or one of its checkpoints.
        storage_reader: names the folder instead of `checkpoint_id`.
        planner: `DefaultLoadPlanner(allow_partial_load=True)` skips keys that are not saved.
        process_group: the ranks that load together; by default all.
        no_dist: whether this process loads alone, as it does without a process group.

    Raises:
        CheckpointException: there is no checkpoint, it is damaged, keys are missing, or shapes
            differ; on all ranks.
        ArgumentError: no folder is given, or an option is not supported.

    Example:
        >>> import tempfile, weft as wf, weft.distributed.checkpoint as dcp
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     _ = dcp.save({"x": wf.ones(2), "step": 7}, checkpoint_id=folder)
        ...     state = {"x": wf.zeros(2), "step": 0}
        ...     dcp.load(state, checkpoint_id=folder)
        >>> state
        {'x': tensor([1., 1.]), 'step': 7}
    """
    check_planner("load", planner, DefaultLoadPlanner)
    folder = folder_of("load", checkpoint_id, storage_reader, FileSystemReader)
    group = group_of("load", process_group, no_dist)
    partial = planner is not None and planner.allow_partial_load
    pending.wait()
    with contextlib.ExitStack() as files:
        request, _ = together(
            group, "load", lambda: _found(files, state_dict, folder, group, partial)
        )
        together(group, "load", lambda: _fill(state_dict, request))


def load_state_dict(
    state_dict: dict[str, Any], storage_reader: FileSystemReader,
    process_group: Group | None = None, coordinator_rank: int = 0, no_dist: bool = False,
    planner: DefaultLoadPlanner | None = None,
) -> None:  # fmt: skip
    """`load` under its deprecated name.

    Args:
        state_dict, storage_reader, process_group, no_dist, planner: see `load`.
        coordinator_rank: has no effect.
    """
    warnings.warn("load_state_dict is deprecated; use load", FutureWarning, stacklevel=2)
    load(
        state_dict, storage_reader=storage_reader, planner=planner, process_group=process_group,
        no_dist=no_dist,
    )  # fmt: skip


class _Found(NamedTuple):
    """What to load.

    Attributes:
        state: by the keys of the state dict, without optimizers.
        targets: the leaves that the checkpoint has, by path, with a `Slice` for each `DTensor`.
            Optimizers are leaves: their state does not exist before the first step.
        saved: the checkpoint's value for each.
    """

    state: dict[str, Any]
    targets: dict[str, Any]
    saved: dict[str, Any]


def _found(
    files: contextlib.ExitStack, state_dict: dict[str, Any], folder: Path, group: Group | None,
    partial: bool,
) -> _Found:  # fmt: skip
    """Open the checkpoint's files, and compare them with the state dict."""
    rank, ranks = (0, 1) if group is None else (group.index, group.size)
    keys = sorted(state_dict, key=str)  # all ranks call objects' methods in the same order
    optimizers = {str(k): state_dict[k] for k in keys if isinstance(state_dict[k], Optimizer)}
    state = {
        key: state_dict[key].state_dict() if has_state(state_dict[key]) else state_dict[key]
        for key in keys
        if not isinstance(state_dict[key], Optimizer)
    }
    whole, where = files.enter_context(opened_checkpoint(folder, rank, ranks))
    leaves(whole)
    saved, targets = dict(nodes(whole)), {**leaves(pieces_of(state)), **optimizers}
    there = {path for path, x in targets.items() if _is_there(path, x, saved)}
    faults = [Fault(MISSING, path) for path in targets if path not in there and not partial]
    targets = {path: x for path, x in targets.items() if path in there}
    faults += _mismatched(targets, saved)
    if faults:
        raise CheckpointError(mismatches(where, faults, "load"))
    return _Found(state, targets, saved)


def _is_state(value: Any) -> bool:
    return isinstance(value, Mapping) and {"state", "param_groups"} <= set(value)


def _loads_itself(x: Any) -> bool:
    return isinstance(x, Optimizer | PerRank)


def _is_there(path: str, into: Any, saved: dict[str, Any]) -> bool:
    return path in saved and (_loads_itself(into) or not is_inner(saved[path]))


def _mismatched(targets: dict[str, Any], saved: dict[str, Any]) -> Iterator[Fault]:
    for path, into in targets.items():
        stored = saved[path]
        if _loads_itself(into):
            if isinstance(into, Optimizer) and not _is_state(stored):
                yield Fault(MISMATCH, f"{path}: expected an optimizer's state, got {_kind(stored)}")
            continue
        tensor = into.tensor if isinstance(into, Slice) else into
        shape = tuple(into.shape) if isinstance(into, Slice) or is_tensor(into) else None
        got = stored.shape if isinstance(stored, Stored) else None
        if shape != got or stored is ABSENT:
            expected = kind_of(tensor) if tensor is into else f"a piece of shape {shape}"
            yield Fault(MISMATCH, f"{path}: expected {expected}, got {_kind(stored)}")


def _kind(value: Any) -> str:
    """A description of a checkpoint's value, for error messages."""
    return f"{value.dtype}{show(value.shape)}" if isinstance(value, Stored) else kind_of(value)


def _read(saved: Any, like: Any = None) -> Any:
    """A checkpoint's value, with whole tensors, or a `Slice` if `like` is a shard."""
    if is_inner(saved):
        return replaced(saved, lambda _, x: _read(x, like))
    if not isinstance(saved, Stored):
        return saved
    division = division_of(like)
    if division is None or saved.shape != division.shape:
        return tensor_of(saved.whole())
    part = saved.part(division.start, tuple(like.shape))
    return Slice(tensor_of(part), division.shape, division.start)


def _read_optimizer(saved: Any, optimizer: Optimizer) -> Any:
    """The state that an optimizer loads, with its shards for sharded parameters."""
    groups = saved["param_groups"]
    params = [p for group in optimizer.param_groups for p in group["params"]]
    numbers = [number for group in groups for number in group["params"]]
    likes = dict(zip(numbers, params, strict=False))  # `load_state_dict` compares the numbers
    state = {number: _read(x, likes.get(number)) for number, x in saved["state"].items()}
    return {"state": state, "param_groups": _read(groups)}


def _fill(state_dict: dict[str, Any], request: _Found) -> None:
    values: dict[str, Any] = {}
    for path, into in request.targets.items():
        saved = request.saved[path]
        if isinstance(into, Optimizer):
            into.load_state_dict(_read_optimizer(saved, into))
        elif isinstance(into, PerRank):
            load_into(into, _read(saved))
        elif isinstance(into, Slice):
            sizes = tuple(into.tensor.shape)
            load_into(into.tensor, tensor_of(saved.part(tuple(into.start), sizes)))
        elif isinstance(into, np.generic):
            values[path] = saved.whole()[()]
        elif is_tensor(into):
            load_into(into, tensor_of(saved.whole()))
        else:
            values[path] = saved
    put(request.state, values)
    compute_pending()
    for key, state in request.state.items():
        if has_state(state_dict[key]):
            state_dict[key].load_state_dict(state)
        else:
            state_dict[key] = state
