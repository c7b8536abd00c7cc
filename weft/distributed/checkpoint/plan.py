"""Which rank saves what: ranks exchange inventories, and the lowest with a shard saves it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from weft.checkpoint.slices import PerRank, Slice
from weft.distributed.checkpoint.flat import LEFT, as_piece, is_inner, leaves, nodes, replaced
from weft.distributed.checkpoint.metadata import (
    BytesStorageMetadata,
    ChunkStorageMetadata,
    Metadata,
    TensorProperties,
    TensorStorageMetadata,
)
from weft.eager.tensor.interchange.serialization import is_tensor
from weft.errors import CheckpointError
from weft.formats.safetensors import known_dtype
from weft.ir.dtype import NAMED
from weft.ir.shape import show

Told = Sequence[Any]  # of a node: [kind], or ["tensor", dtype, shape, start, sizes]
Inventory = Mapping[str, Told]
_TENSOR: Final = "tensor"
_VALUE: Final = "value"


class Plan(NamedTuple):
    """How ranks save a state together.

    Attributes:
        savers: the rank that saves a shard, by path, offsets and sizes (empty for other values).
        cut: the paths of sharded tensors.
        metadata: of the whole checkpoint.
    """

    savers: dict[tuple[str, tuple[int, ...], tuple[int, ...]], int]
    cut: set[str]
    metadata: Metadata


def pieces_of(state: Any) -> Any:
    """A copy of a state with a `Slice` for each `DTensor`.

    Raises:
        TreeError: two leaves have the same path.
        ArgumentError: a `DTensor` of partial sums.
        DTypeError: an object with a state of its own below the top.
    """
    leaves(state)
    return replaced(state, as_piece)


def inventory(state: Any) -> dict[str, Told]:
    """The parts of a state that a rank has, as JSON.

    Raises:
        DTypeError: an array whose type cannot be saved.
    """
    return {path: _told(path, item) for path, item in nodes(state)}


def _told(path: str, x: Any) -> Told:
    if isinstance(x, Slice):
        return [_TENSOR, _dtype(path, x.tensor), x.shape, x.start, tuple(x.tensor.shape)]
    if is_tensor(x):
        return [_TENSOR, _dtype(path, x), tuple(x.shape), (0,) * len(x.shape), tuple(x.shape)]
    if isinstance(x, PerRank):
        return ["value of each rank"]
    if is_inner(x):
        return ["dict" if isinstance(x, Mapping) else type(x).__name__]
    return [_VALUE]


def _dtype(path: str, x: Any) -> str:
    return known_dtype(path, x).name


def plan_of(inventories: Sequence[Inventory]) -> Plan:
    """The plan of ranks with these inventories.

    Raises:
        CheckpointError: ranks have different values at a path, or shards are missing.
    """
    plan = Plan({}, set(), Metadata({}))
    for path in dict.fromkeys([path for one in inventories for path in one]):
        by_rank = {rank: one[path] for rank, one in enumerate(inventories) if path in one}
        _check_alike(path, by_rank)
        node_type, *rest = next(iter(by_rank.values()))
        if node_type == _TENSOR:
            _plan_tensor(plan, path, rest[0], tuple(rest[1]), by_rank)
        elif node_type == _VALUE:
            plan.savers[path, (), ()] = next(iter(by_rank))
            plan.metadata.state_dict_metadata[path] = BytesStorageMetadata()
    return plan


def _check_alike(path: str, by_rank: Mapping[int, Told]) -> None:
    texts = {rank: _text(told) for rank, told in by_rank.items()}
    first = next(iter(texts))
    for rank, text in texts.items():
        if text != texts[first]:
            raise CheckpointError(
                f"save: {path!r}: expected the same on all ranks, got {texts[first]} on rank "
                f"{first} and {text} on rank {rank}"
            )


def _text(told: Told) -> str:
    return f"{told[1]}{show(tuple(told[2]))}" if told[0] == _TENSOR else f"a {told[0]}"


def _plan_tensor(
    plan: Plan, path: str, dtype: str, shape: tuple[int, ...], by_rank: Mapping[int, Told]
) -> None:
    pieces: dict[tuple[tuple[int, ...], tuple[int, ...]], int] = {}
    for rank, (*_, start, sizes) in by_rank.items():
        pieces.setdefault((tuple(start), tuple(sizes)), rank)
    total, there = math.prod(shape), sum([math.prod(sizes) for _, sizes in pieces])
    if there < total:
        raise CheckpointError(
            f"save: {path!r}: expected pieces of all {total} elements of {show(shape)}, got {there}"
        )
    if any([sizes != shape for _, sizes in pieces]):
        plan.cut.add(path)
    plan.savers.update({(path, *piece): rank for piece, rank in pieces.items()})
    chunks = [ChunkStorageMetadata(*piece) for piece in pieces]
    plan.metadata.state_dict_metadata[path] = TensorStorageMetadata(
        TensorProperties(NAMED[dtype]), shape, chunks
    )


def metadata_of(inventories: Sequence[Inventory]) -> Metadata:
    """The metadata of stored states, in which `None` may replace what another rank has saved.

    Raises:
        CheckpointError: ranks have different values at a path, or shards are missing.
    """
    there = {path for one in inventories for path, told in one.items() if told[0] != _VALUE}
    present = [
        {path: told for path, told in one.items() if told[0] != _VALUE or path not in there}
        for one in inventories
    ]
    return plan_of(present).metadata


def own_share(state: Any, plan: Plan, rank: int) -> Any:
    """The part of a state that a rank saves: shards as `Slice`s, without other ranks' values."""

    def chosen(path: str, x: Any) -> Any:
        if isinstance(x, PerRank):
            return x
        node_type, *rest = _told(path, x)
        start, sizes = (tuple(rest[2]), tuple(rest[3])) if node_type == _TENSOR else ((), ())
        if plan.savers[path, start, sizes] != rank:
            return LEFT
        if path not in plan.cut:
            return x.tensor if isinstance(x, Slice) else x
        return x if isinstance(x, Slice) else Slice(x, sizes, start)

    return replaced(state, chosen)
