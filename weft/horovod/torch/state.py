"""Broadcasts of initial state: parameters, an optimizer's state, objects."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, cast

import weft.distributed as dist
from weft.eager.functions.api import Tensor
from weft.horovod.process_set import ProcessSet, global_process_set
from weft.optim.optimizer import Optimizer


def broadcast_parameters(
    params: Any, root_rank: int, process_set: ProcessSet = global_process_set
) -> None:
    """Broadcast one rank's state dict or named parameters to all ranks, in place.

    Args:
        params: a state dict, or pairs of a name and a tensor.
        root_rank: the rank in the job that sends.
        process_set: the ranks that take part.
    """
    pairs = params.items() if isinstance(params, Mapping) else params
    for _, tensor in cast("Iterable[tuple[str, Any]]", pairs):
        if isinstance(tensor, Tensor):
            dist.broadcast(tensor, root_rank, process_set.group)


def broadcast_object(
    obj: Any, root_rank: int = 0, name: str | None = None,
    process_set: ProcessSet = global_process_set,
) -> Any:  # fmt: skip
    """Broadcast one rank's nested structure of tensors, numbers and strings.

    Args:
        obj: what is sent; other ranks' are ignored.
        root_rank: the rank in the job that sends.
        name: ignored.
        process_set: the ranks that take part.
    """
    objects = [obj]
    dist.broadcast_object_list(objects, root_rank, process_set.group)
    return objects[0]


def allgather_object(
    obj: Any, name: str | None = None, process_set: ProcessSet = global_process_set
) -> list[Any]:
    """Gather all ranks' nested structures.

    Args:
        obj: this rank's object.
        name: ignored.
        process_set: the ranks that take part.
    """
    every: list[Any] = [None] * process_set.size()
    dist.all_gather_object(every, obj, process_set.group)
    return every


def broadcast_optimizer_state(
    optimizer: Optimizer, root_rank: int, model: Any = None,
    process_set: ProcessSet = global_process_set,
) -> None:  # fmt: skip
    """Broadcast one rank's optimizer state to all ranks, in place.

    Args:
        optimizer: the optimizer.
        root_rank: the rank in the job that sends.
        model: ignored.
        process_set: the ranks that take part.
    """
    state = broadcast_object(optimizer.state_dict(), root_rank, process_set=process_set)
    optimizer.load_state_dict(state)


__all__ = [
    "allgather_object", "broadcast_object", "broadcast_optimizer_state", "broadcast_parameters",
]  # fmt: skip
