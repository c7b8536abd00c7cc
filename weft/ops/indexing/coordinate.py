"""Values of an array between its elements."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import Final

import numpy as np

from weft.errors import ArgumentError
from weft.ir.node import Value
from weft.ops.declaration import catalogue, constant_of
from weft.ops.declaration.rule import concrete
from weft.ops.indexing.gather import gather


def _whole(value: int) -> Value:
    return constant_of(np.array(value, np.int32))


def _wrapped(i: Value, size: int) -> Value:
    return catalogue.remainder(i, _whole(size))


def _folded(i: Value, period: int, size: int, shift: int) -> Value:
    j = catalogue.remainder(i, _whole(period))
    return catalogue.select(catalogue.less(j, _whole(size)), j, _whole(period - shift) - j)


def _mirrored(i: Value, size: int) -> Value:
    return _folded(i, max(2 * size - 2, 1), size, 0)


def _reflected(i: Value, size: int) -> Value:
    return _folded(i, 2 * size, size, 1)


def _clamped(i: Value, size: int) -> Value:
    return catalogue.minimum(catalogue.maximum(i, _whole(0)), _whole(size - 1))


_MODES: Final[Mapping[str, Callable[[Value, int], Value]]] = {
    "constant": _clamped, "nearest": _clamped, "wrap": _wrapped, "mirror": _mirrored,
    "reflect": _reflected,
}  # fmt: skip


def map_coordinates(x: Value, cval: Value, *coordinates: Value, order: int, mode: str) -> Value:
    """Values of `x` at coordinates, one array an axis, which may lie between elements.

    Args:
        cval: the value outside, of mode `constant`.
        order: 0 takes the nearest element, 1 interpolates linearly.
        mode: `constant`, `nearest`, `wrap`, `mirror` (at the middle of the last element) or
            `reflect` (at its edge).

    Raises:
        ArgumentError: another order or mode.
    """
    if order not in (0, 1) or mode not in _MODES:
        raise ArgumentError.here(
            f"map_coordinates: expected order 0 or 1 and a mode of {(*_MODES,)}, got {order} and "
            f"{mode!r}"
        )
    taps = [_taps(c, order) for c in coordinates]
    dims, terms = concrete(x), list[Value]()
    flat = catalogue.reshape(x, shape=(-1,))
    for row in itertools.product(*taps):
        places = [_MODES[mode](i, n) for (i, _), n in zip(row, dims, strict=True)]
        found = gather(flat, _offset(places, dims), axis=0)
        if mode == "constant":
            inside = [catalogue.equal(i, p) for (i, _), p in zip(row, places, strict=True)]
            for each in inside:
                found = catalogue.select(each, found, cval)
        for _, weight in row:
            found = found if weight is None else found * weight
        terms.append(found)
    return terms[0] if len(terms) == 1 else catalogue.add_n(*terms)


def _taps(c: Value, order: int) -> list[tuple[Value, Value | None]]:
    """The elements around a coordinate, with their weights."""
    if order == 0:
        nearest = catalogue.round(c)
        return [(catalogue.cast(nearest, dtype="int32"), None)]
    low = catalogue.floor(c)
    i = catalogue.cast(low, dtype="int32")
    return [(i, 1 - (c - low)), (i + _whole(1), c - low)]


def _offset(places: Sequence[Value], dims: Sequence[int]) -> Value:
    found = places[0]
    for place, size in zip(places[1:], dims[1:], strict=True):
        found = found * _whole(size) + place
    return found
