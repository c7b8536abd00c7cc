"""Padding by zeros or edge elements, and cropping."""

from __future__ import annotations

from typing import Any

import numpy as np

from weft.ir.node import Value
from weft.ir.shape import known
from weft.ops.declaration import catalogue, constant_of
from weft.ops.indexing.gather import gather
from weft.ops.indexing.slicing import cut


def padded(x: Value, pads: Any, mode: str, value: float = 0) -> Value:
    """`x` with (low, high) more elements on each dimension; negative numbers crop."""
    if mode in ("constant", "circular"):
        cut = [(max(-low, 0), max(-high, 0)) for low, high in pads]
        if any(low or high for low, high in cut):
            dims = known(x.shape)
            end = tuple([d - high for d, (_, high) in zip(dims, cut, strict=True)])
            x = catalogue.slice(x, begin=tuple([low for low, _ in cut]), end=end)
        pads = tuple([(max(low, 0), max(high, 0)) for low, high in pads])
    if mode == "constant":
        return catalogue.pad(x, paddings=pads, value=value) if any(map(any, pads)) else x
    if mode == "reflect" and min(n for pair in pads for n in pair) >= 0:
        return catalogue.mirror_pad(x, paddings=tuple(pads), mode="reflect")
    for axis, (low, high) in enumerate(pads):
        if low or high:
            x = gather(x, constant_of(_places(known(x.shape)[axis], low, high, mode)), axis=axis)
    return x


def _places(size: int, low: int, high: int, mode: str) -> np.ndarray[Any, Any]:
    """The source index of each element of a padded dimension."""
    at = np.arange(-low, size + high)
    if mode == "circular":
        return at % size
    if mode == "replicate":
        return np.clip(at, 0, size - 1)
    return size - 1 - np.abs(size - 1 - np.abs(at))


def framed(x: Value, value: Value, *, config: tuple[tuple[int, int, int], ...]) -> Value:
    """`x` within a frame of a value, and the value between its elements.

    Args:
        config: for each axis, how many before, after (negative numbers crop), and between.
    """
    for axis, (low, high, inner) in enumerate(config):
        dims = known(x.shape)
        n = dims[axis]
        if inner and n:
            gap = catalogue.broadcast_to(value, shape=dims)
            wide = catalogue.stack(x, *[gap] * inner, axis=axis + 1)
            shape = (*dims[:axis], n * (inner + 1), *dims[axis + 1 :])
            x = cut(catalogue.reshape(wide, shape=shape), axis, 0, shape[axis] - inner)
            n = shape[axis] - inner
        if low < 0 or high < 0:
            x = cut(x, axis, max(-low, 0), n - max(-high, 0))
        parts = [
            catalogue.broadcast_to(value, shape=(*dims[:axis], max(m, 0), *dims[axis + 1 :]))
            for m in (low, high)
        ]
        if max(low, high) > 0:
            x = catalogue.concatenate(parts[0], x, parts[1], axis=axis)
    return x
