"""Fractional max pooling: maxima over randomly placed windows.

Source: Graham, "Fractional Max-Pooling" (2014).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from weft.ir.dtype import int64
from weft.ir.node import Value
from weft.ir.shape import known
from weft.ops.declaration import catalogue, constant_of
from weft.ops.shape.layout import batched

Sizes = tuple[int, ...]


def _begins(sample: Value, old: int, new: int, window: int) -> Value:
    """The window starts on an axis, (N, C, new), from a number in [0, 1) for each channel."""
    step = constant_of((old - window) / max(new - 1, 1), sample.dtype)
    numbers = constant_of(np.arange(max(new - 1, 0)).astype(sample.dtype.numpy))
    shift = catalogue.cast(sample * step, dtype=int64)
    drawn = catalogue.cast((numbers + sample) * step, dtype=int64) - shift
    if new == 0:
        return drawn
    last = catalogue.broadcast_to(constant_of(old - window, int64), shape=known(sample.shape))
    return catalogue.concatenate(drawn, last, axis=2)


def _places(samples: Value, image: Sizes, output: Sizes, window: Sizes) -> Value:
    """The flat pixel indices of every window: (N, C, windows, pixels of a window)."""
    spatial, lead = len(image), known(samples.shape)[:2]
    total: Any = constant_of(0, int64)
    for axis, (old, new, k) in enumerate(zip(image, output, window, strict=True)):
        column = 1 - axis if spatial == 2 else axis  # PyTorch draws for the width first in 2-D
        sample = samples[:, :, column : column + 1]
        begins = _begins(sample, old, new, k)
        shape = [*lead, *[1] * (2 * spatial)]
        shape[2 + axis] = new
        inner = [1] * (2 * spatial)
        inner[spatial + axis] = k
        at = catalogue.reshape(begins, shape=shape) + constant_of(np.arange(k).reshape(inner))
        total = total + at * constant_of(math.prod(image[axis + 1 :]), int64)
    return catalogue.reshape(total, shape=(*lead, math.prod(output), math.prod(window)))


def fractional(x: Value, samples: Value, *, window: Sizes, output: Sizes, indices: bool) -> Any:
    """Maxima over windows placed by `samples`; with `indices`, also their positions."""

    @batched(len(window) + 2)
    def run(x: Value) -> Any:
        n, channels, *image = known(x.shape)
        count, pixels = math.prod(output), math.prod(window)
        flat = catalogue.reshape(x, shape=(n, channels, math.prod(image)))
        places = _places(samples, tuple(image), output, window)
        spread = catalogue.reshape(places, shape=(n, channels, count * pixels))
        values = catalogue.take_along_axis(catalogue.stop_gradient(flat), spread, axis=2)
        values = catalogue.reshape(values, shape=(n, channels, count, pixels))
        best = catalogue.expand_dims(catalogue.argmax(values, axis=3), axis=3)
        chosen = catalogue.squeeze(catalogue.take_along_axis(places, best, axis=3), axes=(3,))
        shape = (n, channels, *output)
        y = catalogue.reshape(catalogue.take_along_axis(flat, chosen, axis=2), shape=shape)
        return (y, catalogue.reshape(chosen, shape=shape)) if indices else y

    return run(x)
