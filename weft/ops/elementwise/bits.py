"""Counts of bits."""

from __future__ import annotations

from weft.ir import dtype as types
from weft.ir.node import Value
from weft.ops.declaration import catalogue, constant_of

__all__: list[str] = []


def bit_count(x: Value) -> Value:
    """How many bits of integers that are not negative are 1, as uint8.

    Neighboring fields of 1, 2, 4, ... bits are added.
    """
    if x.dtype == types.bool_:
        return catalogue.cast(x, dtype=types.uint8)
    width = x.dtype.size * 8
    step = 1
    while step < width:
        ones = (1 << step) - 1
        mask = sum([ones << at for at in range(0, width, 2 * step)])
        some = constant_of(mask, x.dtype)
        moved = catalogue.right_shift(x, constant_of(step, x.dtype))
        x = catalogue.bitwise_and(x, some) + catalogue.bitwise_and(moved, some)
        step *= 2
    return catalogue.cast(x, dtype=types.uint8)
