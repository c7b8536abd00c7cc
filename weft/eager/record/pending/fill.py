"""Arrays filled with a number, such as `zeros(n)`: they depend on nothing and cannot fail."""

from __future__ import annotations

from typing import Final

from weft.eager.record.memory import memory_pool
from weft.eager.record.pending.lazy import Lazy, Record
from weft.eager.record.pending.loop_cut import FEW
from weft.eager.record.pending.state import State, trace
from weft.ir.node import TensorType
from weft.ir.shape import known, size
from weft.ops.shape.creation import full

MOST_FILLED: Final = 1 << 14  # elements of one that is filled to be written into


def is_fill(record: Record) -> bool:
    """Whether a record is such a call."""
    return record.plan.pattern.called is full and not record.inputs


def has_only_fills(now: State) -> bool:
    """Whether nothing else is pending in a thread, so that nothing can fail any more."""
    return len(now.pending) < FEW and all(map(is_fill, now.pending))


def fill(lazy: Lazy) -> None:
    """Compute a small pending value of this kind at once, without what else is pending."""
    now, record = trace.now, lazy.record
    if record is None or not is_fill(record) or now.depth or now.inspect is not None:
        return
    if type(lazy.type) is not TensorType or not 0 < size(known(lazy.type.shape)) <= MOST_FILLED:
        return
    place = next((i for i, each in enumerate(now.pending) if each is record), None)
    if place is None or lazy.tracked:
        return
    array = memory_pool.empty(known(lazy.type.shape), lazy.type.dtype.numpy)
    array.fill(record.plan.static["value"])
    lazy.array, lazy.record = array, None
    del now.pending[place]
    if now.loop_start is not None:
        now.loop_start.seen -= place < now.loop_start.seen
