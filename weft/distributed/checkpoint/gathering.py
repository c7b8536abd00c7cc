"""Whole tensors from the shards of ranks, and rank 0's state on all ranks."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from weft.checkpoint.slices import Slice, own_part, sliced
from weft.collectives.objects import all_gather_object, broadcast_object_list
from weft.collectives.process_group import get_rank, is_initialized
from weft.distributed.tensor.dtensor import DTensor
from weft.eager.tensor.interchange.serialization import array_of, is_tensor, tensor_of
from weft.formats.checkpoint_folder.state import PIECE, SLICE, whole_of
from weft.transport.division import Division, division_of


def whole(value: Any, like: Any) -> Any:
    """Gather a sharded tensor on all ranks; other values are returned unchanged.

    Args:
        like: the parameter of the value, which tells which ranks have the other shards.
    """
    if isinstance(value, DTensor):
        return value.full_tensor()
    division = division_of(like)
    return _gathered(value, division) if division and isinstance(value, Slice) else value


def _gathered(part: Slice, division: Division) -> Any:
    pieces: list[Any] = [{SLICE: [part.shape, part.start], PIECE: part.tensor}]
    for group in division.groups:
        every: list[Any] = [None] * group.size
        all_gather_object(every, pieces, group)
        pieces = [piece for each in every for piece in each]
    return tensor_of(whole_of([{**piece, PIECE: array_of(piece[PIECE])} for piece in pieces]))


def is_first() -> bool:
    """Whether this is rank 0, or the only process."""
    return not is_initialized() or get_rank() == 0


def from_first(state: Mapping[str, Any], keep: Callable[[str, Any], Any]) -> dict[str, Any]:
    """Broadcast rank 0's entries, one by one.

    Args:
        keep: returns the part of an entry that this rank keeps.

    Raises:
        DistributedError: there is no process group.
    """
    box: list[Any] = [list(state) if is_first() else None]
    broadcast_object_list(box)
    received: dict[str, Any] = {}
    for key in box[0]:
        box = [state[key] if is_first() else None]
        broadcast_object_list(box)
        received[key] = keep(key, box[0])
    return received


def kept_part(value: Any, like: Any) -> Any:
    """A copy of this rank's shard of a whole tensor; other values are returned unchanged."""
    if isinstance(value, Mapping):
        return {key: kept_part(one, like) for key, one in value.items()}
    part = own_part(value, like)
    return sliced(part.clone(), like) if is_tensor(value) and part is not value else value
