"""Redistribution from one placement to another, with gradients, by recorded collectives.

All ranks compute one loss. The gradient of a shard is sharded; that of a replica or of a partial
sum is replicated.
"""

from __future__ import annotations

from typing import Any

from weft.collectives.recorded import await_result
from weft.distributed.tensor.placement import Partial, Placement, Replicate, Shard
from weft.eager.record.pending.state import trace
from weft.eager.tensor.dispatch import call, lazy_of, record, wrap
from weft.errors import ArgumentError, ShapeError
from weft.ops.communication.shard import part_of, rows_of
from weft.ops.declaration import REGISTRY
from weft.transport.group import Group


def redistribute(
    x: Any, source: Placement, target: Placement, group: Group, size: int | None = None
) -> Any:
    """A local tensor in another placement; the same tensor if the placements are equal.

    Args:
        size: of the whole tensor along the dimension that is or becomes sharded, if it may not be
            divisible; by default all shards are equal.

    Raises:
        ShapeError: a size that is not divisible by the number of ranks.
        ArgumentError: a replica or shard to partial sums, which is not supported.
    """
    match source, target:
        case _ if source == target or _same_dim(x, source, target):
            return x
        case Shard(), Replicate():
            return _joined(x, source.dim, "join_parts", group, size)
        case Replicate(), Shard():
            return _own_part(x, target.dim, "own_part", group, size)
        case Shard(), Shard():
            whole = redistribute(x, source, Replicate(), group)
            return redistribute(whole, Replicate(), target, group)
        case Partial(), Replicate():
            return _call("sum_partial", x, group)
        case Partial(), Shard():
            return _own_part(x, target.dim, "reduce_scatter", group, size)
        case _:
            raise ArgumentError.here(
                f"redistribute: expected {target} from another placement than {source}"
            )


def for_divided_work(x: Any, source: Placement, group: Group) -> Any:
    """Replicate a tensor for sharded work; its gradient is summed over ranks."""
    if isinstance(source, Shard):
        return _joined(x, source.dim, "all_gather", group)
    return _call("sum_gradients", redistribute(x, source, Replicate(), group), group)


def _same_dim(x: Any, source: Placement, target: Placement) -> bool:
    if isinstance(source, Shard) and isinstance(target, Shard):
        return source.dim % x.ndim == target.dim % x.ndim
    return False


def _call(op: str, x: Any, group: Group) -> Any:
    y = wrap(record(REGISTRY[op], [lazy_of(x)], {"group": group.number})[0])
    if not trace.now.grad_mode and y.numel():
        await_result(y.reshape(-1)[:1].lazy)  # even if this rank does not read the result
    return y


def _joined(x: Any, dim: int, op: str, group: Group, size: int | None = None) -> Any:
    """All ranks' shards, concatenated along a dimension."""
    dim %= x.ndim
    part = x.shape[dim] if size is None else part_of(size, group.size)
    rows = _call(op, _padded(x, dim, part), group).movedim(0, dim)
    whole = rows.reshape(*x.shape[:dim], group.size * part, *x.shape[dim + 1 :])
    return whole if size is None else whole.narrow(dim, 0, size)


def _own_part(x: Any, dim: int, op: str, group: Group, size: int | None) -> Any:
    """This rank's shard along a dimension."""
    shard = _call(op, _cut(x, dim, group, size), group)
    if size is None:
        return shard
    begin, end = rows_of(size, group.size, group.index)
    return shard.narrow(dim % x.ndim, 0, end - begin)


def _cut(x: Any, dim: int, group: Group, size: int | None) -> Any:
    """The shards along a dimension, stacked along a new first one."""
    if not -x.ndim <= dim < x.ndim or (size is None and x.shape[dim] % group.size):
        raise ShapeError.here(
            f"Shard({dim}): expected a size along that dimension that {group.size} ranks divide, "
            f"got a tensor of shape {tuple(x.shape)}"
        )
    dim %= x.ndim
    part = part_of(x.shape[dim], group.size)
    whole = _padded(x, dim, part * group.size)
    return whole.reshape(*x.shape[:dim], group.size, part, *x.shape[dim + 1 :]).movedim(dim, 0)


def _padded(x: Any, dim: int, size: int) -> Any:
    """Pad with zeros to a size along a dimension."""
    missing = size - x.shape[dim]
    if not missing:
        return x
    ends = tuple([(0, missing if i == dim else 0) for i in range(x.ndim)])
    return call(REGISTRY["pad"], x, paddings=ends)
