"""Padding by zeros or edge elements, and cropping."""

from __future__ import annotations

from typing import Any

import numpy as np

from weft.ir.node import Value
from weft.ir.shape import known
from weft.ops.declaration import catalogue, constant_of
from weft.ops.indexing.gather import gather


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
