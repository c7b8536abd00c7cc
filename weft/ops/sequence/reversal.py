"""Sequences of several lengths in one array, reversed."""

from __future__ import annotations

from weft.ir.dtype import int32
from weft.ir.node import Value
from weft.ops.declaration import catalogue
from weft.ops.shape.creation import iota
from weft.ops.shape.reshape import dimension


def reverse_sequence(x: Value, lengths: Value, *, steps: int, batch: int) -> Value:
    """Each sequence reversed up to its length; later steps stay.

    Args:
        lengths: one per example, int32.
        steps, batch: the axes of steps and of examples; the rank must be known.

    Raises:
        OutOfRangeError: when run, a length beyond the number of steps.
    """
    rank = x.rank or 0
    order = (batch, steps, *[a for a in range(rank) if a not in (batch, steps)])
    front = catalogue.transpose(x, perm=order)
    places = iota(shape=(1, dimension(front, 1)), axis=1, dtype=int32)
    ends = catalogue.expand_dims(lengths, axis=1)
    source = catalogue.select(catalogue.less(places, ends), ends - 1 - places, places)
    turned = catalogue.gather(front, source, axis=1, batch_dims=1)
    return catalogue.transpose(turned, perm=tuple([order.index(a) for a in range(rank)]))
