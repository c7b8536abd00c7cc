"""Maxima over windows whose places are drawn: `fractional_max_pool2d` and its 3-D twin.

Source: Graham, "Fractional Max-Pooling" (2014).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from weft.eager.functions.random.generator import rand
from weft.eager.tensor.argument import dims_of
from weft.eager.tensor.dispatch import recorded
from weft.errors import ArgumentError, ShapeError
from weft.ir.dtype import int64
from weft.ir.node import Value
from weft.ir.shape import known, show
from weft.nn.functional.layout import batched, check_image, sizes_of
from weft.ops.base import at_user_line, catalogue, constant_of

Sizes = tuple[int, ...]


def _begins(sample: Value, old: int, new: int, window: int) -> Value:
    """Where the windows of an axis begin, (N, C, new), from a number in [0, 1) for each channel."""
    step = constant_of((old - window) / max(new - 1, 1), sample.dtype)
    numbers = constant_of(np.arange(max(new - 1, 0)).astype(sample.dtype.numpy))
    shift = catalogue.cast(sample * step, dtype=int64)
    drawn = catalogue.cast((numbers + sample) * step, dtype=int64) - shift
    if new == 0:
        return drawn
    last = catalogue.broadcast_to(constant_of(old - window, int64), shape=known(sample.shape))
    return catalogue.concatenate(drawn, last, axis=2)


def _places(samples: Value, image: Sizes, output: Sizes, window: Sizes) -> Value:
    """The pixels of every window, by their numbers: (N, C, windows, pixels of a window)."""
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


@recorded
def _fractional(x: Value, samples: Value, *, window: Sizes, output: Sizes, indices: bool) -> Any:
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


def fractional_max_pool(
    spatial: int, input: Any, kernel_size: Any, output_size: Any, output_ratio: Any,
    return_indices: bool, samples: Any,
) -> Any:  # fmt: skip
    """Maxima over drawn windows of 2 or 3 spatial dimensions."""
    name, shape = f"fractional_max_pool{spatial}d", dims_of(input)
    check_image(name, shape, spatial)
    image = shape[-spatial:]
    window = sizes_of(f"{name}: kernel_size", kernel_size, spatial, one_for_all=False)
    if (output_size is None) == (output_ratio is None):
        raise ArgumentError(f"{name}: expected output_size or output_ratio{at_user_line()}")
    if output_size is not None:
        output = sizes_of(f"{name}: output_size", output_size, spatial, one_for_all=False)
    else:
        several = isinstance(output_ratio, list | tuple)
        ratios = tuple(output_ratio) if several else (output_ratio,) * spatial
        output = tuple([int(d * r) for d, r in zip(image, ratios, strict=True)])
    fits = [o + k - 1 <= d for o, k, d in zip(output, window, image, strict=True)]
    if not all(fits) or shape[-spatial - 1] == 0:
        raise ShapeError(
            f"{name}: expected channels, and output_size + kernel_size - 1 of at most the input's "
            f"sizes, got output_size {output} and kernel_size {window} for an input {show(shape)}"
            f"{at_user_line()}"
        )
    lead = shape[:-spatial] if len(shape) == spatial + 2 else (1, shape[0])
    if samples is None:
        samples = rand(*lead, spatial, dtype=input.dtype)
    elif dims_of(samples)[1:] != (lead[1], spatial) or dims_of(samples)[0] < lead[0]:
        raise ShapeError(
            f"{name}: expected _random_samples of shape {show((*lead, spatial))}, or more in the "
            f"first dimension, got {show(dims_of(samples))}{at_user_line()}"
        )
    else:
        samples = samples[: lead[0]]
    return _fractional(input, samples, window=window, output=output, indices=bool(return_indices))


def fractional_max_pool2d(
    input: Any, kernel_size: Any, output_size: Any = None, output_ratio: Any = None,
    return_indices: bool = False, _random_samples: Any = None,
) -> Any:  # fmt: skip
    """Maxima over windows of (N, C, H, W), as many as asked for, at places that are drawn.

    Args:
        output_size: the sizes of the result, or `output_ratio`, below 1, what part of the image's.
        return_indices: give the places of the maxima as well.
        _random_samples: numbers in [0, 1), (N, C, 2), that decide on the places; more are left.
    """
    return fractional_max_pool(
        2, input, kernel_size, output_size, output_ratio, return_indices, _random_samples
    )


def fractional_max_pool3d(
    input: Any, kernel_size: Any, output_size: Any = None, output_ratio: Any = None,
    return_indices: bool = False, _random_samples: Any = None,
) -> Any:  # fmt: skip
    """Maxima over windows of (N, C, D, H, W), as many as asked for, at places that are drawn.

    The arguments are those of `fractional_max_pool2d`.
    """
    return fractional_max_pool(
        3, input, kernel_size, output_size, output_ratio, return_indices, _random_samples
    )
