"""Phases without jumps."""

from __future__ import annotations

from weft.ir.node import Value
from weft.ops.declaration import catalogue
from weft.ops.declaration.rule import concrete
from weft.ops.indexing.slicing import cut


def unwrap(x: Value, *, axis: int, period: float, jump: float) -> Value:
    """`x` plus multiples of the period, so that neighbors differ by at most half of it.

    Args:
        jump: the least difference that is taken for a jump.
    """
    size, rank = concrete(x)[axis], len(concrete(x))
    if size < 2:
        return x
    steps, half = cut(x, axis, 1, size) - cut(x, axis, 0, size - 1), period / 2
    wrapped = catalogue.remainder(steps + half, steps * 0.0 + period) - half
    at_end = catalogue.logical_and(catalogue.equal(wrapped, -half), catalogue.greater(steps, 0.0))
    moved = catalogue.select(at_end, half, wrapped) - steps
    moved = catalogue.select(catalogue.less(catalogue.abs(steps), jump), 0.0, moved)
    pads = tuple([(1, 0) if i == axis else (0, 0) for i in range(rank)])
    return x + catalogue.pad(catalogue.cumsum(moved, axis=axis), paddings=pads)
