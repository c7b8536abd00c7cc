"""The batch axis."""

from __future__ import annotations

from typing import Final

from weft.eager.record.call.interned_type import intern
from weft.eager.record.pending.lazy import Lazy, begun
from weft.eager.tensor.dispatch import record
from weft.errors import ShapeError
from weft.ir.shape import known
from weft.ir.shape import show as listed
from weft.ops.declaration import REGISTRY

_TRANSPOSE: Final = REGISTRY["transpose"]


def to_front(x: Lazy, axis: int | None) -> Lazy:
    """A value with a batch axis moved to the front, if there is one."""
    if axis is None:
        return x
    rank = len(known(x.type.shape))
    if not -rank <= axis < rank:
        raise ShapeError.here(
            f"vmap: expected an axis of a tensor of shape {listed(x.type.shape)}, got {axis}"
        )
    return moved(x, axis % rank, 0)


def moved(x: Lazy, source: int, target: int) -> Lazy:
    """A value with an axis moved."""
    rank = len(known(x.type.shape))
    if source == target:
        return x
    order = [i for i in range(rank) if i != source]
    order.insert(target, source)
    return record(_TRANSPOSE, (x,), {"perm": tuple(order)})[0]


def example(x: Lazy, mapped: bool = True) -> Lazy:
    """A placeholder with the type of one example."""
    if not mapped:
        return x
    return begun(Lazy(), intern(x.type.dtype, known(x.type.shape)[1:]))
