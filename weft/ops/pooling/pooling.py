"""Pooling with PyTorch's options: dilation, ceil mode, indices of maxima, adaptive windows.

Images are N, spatial..., C. What the operations `max_pool` and `avg_pool` support goes to them; the
rest gathers windows by a table of positions.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from weft.errors import ShapeError
from weft.ir.dtype import float32, int64
from weft.ir.extent import pinned
from weft.ir.node import Value
from weft.ir.shape import show
from weft.ops.call import call, trace
from weft.ops.convolution.geometry import Geometry
from weft.ops.convolution.unfold import positions, window_geometry
from weft.ops.declaration import Array, catalogue, constant_of
from weft.ops.declaration.memory_check import check_room, check_table
from weft.ops.declaration.rule import concrete
from weft.ops.elementwise.compare import equal, isnan, logical_and, logical_or
from weft.ops.elementwise.transcendental import sqrt
from weft.ops.indexing.advanced_index import put_along_axis
from weft.ops.indexing.gather import gather, take_along_axis
from weft.ops.indexing.sort import argmax
from weft.ops.pooling.window import avg_pool, max_pool
from weft.ops.reduction import reduce
from weft.ops.shape.creation import full, iota
from weft.ops.shape.pad import pad

__all__ = [
    "adaptive_avg_pool", "adaptive_max_pool", "adaptive_max_pool_indices", "avg_pool_padded",
    "lp_pool", "max_pool_indices", "max_pool_padded", "max_unpool",
]  # fmt: skip

Sizes = Sequence[int]
Pairs = tuple[tuple[int, int], ...]


def _pairs(
    image: Sizes, window: Sizes, strides: Sizes, padding: Sizes, dilation: Sizes, ceil: bool
) -> Pairs:
    """Padding (low, high) of each axis; in ceil mode, as much as the last window needs.

    A window that begins in the high padding does not count, as in PyTorch.
    """
    found: list[tuple[int, int]] = []
    for size, k, s, p, d in zip(image, window, strides, padding, dilation, strict=True):
        extent = (k - 1) * d + 1
        outputs = -(-(size + 2 * p - extent) // s) + 1
        if (outputs - 1) * s >= size + p:
            outputs -= 1
        needed = (outputs - 1) * s + extent - size - p
        found.append((p, max(needed, 0) if ceil else p))
    return tuple(found)


def _options(
    x: Value, window: Sizes, strides: Sizes | None, padding: Sizes | None, dilation: Sizes | None
) -> tuple[tuple[int, ...], ...]:
    rank = len(window)
    return (
        concrete(x)[1:-1],
        tuple(window),
        tuple(strides or window),
        tuple(padding or (0,) * rank),
        tuple(dilation or (1,) * rank),
    )


def max_pool_padded(
    x: Value,
    window: Sizes,
    strides: Sizes | None = None,
    padding: Sizes | None = None,
    dilation: Sizes | None = None,
    ceil: bool = False,
) -> Value:
    """The largest element of every window; strides default to the window.

    Args:
        padding: a size for both ends of each axis; padding never wins.
        ceil: a last window that is only partly inside counts.
    """
    image, window, strides, padding, dilation = _options(x, window, strides, padding, dilation)
    if max(dilation) > 1:
        return max_pool_indices(x, window, strides, padding, dilation, ceil)[0]
    pairs = _pairs(image, window, strides, padding, dilation, ceil)
    return max_pool(x, window=window, strides=strides, padding=pairs)


def max_pool_indices(
    x: Value,
    window: Sizes,
    strides: Sizes | None = None,
    padding: Sizes | None = None,
    dilation: Sizes | None = None,
    ceil: bool = False,
) -> tuple[Value, Value]:
    """`max_pool_padded`, and the int64 flat index of every maximum, the first in a tie."""
    image, window, strides, padding, dilation = _options(x, window, strides, padding, dilation)
    pairs = _pairs(image, window, strides, padding, dilation, ceil)
    geo = window_geometry(
        "max_pool_indices", image, window, strides=strides, padding=pairs, dilation=dilation
    )
    return _largest(x, _table(geo), tuple(n or 0 for n in geo.output))


def _table(geo: Geometry) -> Array:
    """Flat pixel indices of every window, (windows, places); -1 for padding."""
    at = positions(geo)
    image = tuple(n or 0 for n in geo.image)
    inside = np.all([(p >= 0) & (p < n) for p, n in zip(at, image, strict=True)], axis=0)
    clipped = tuple(np.clip(p, 0, max(n - 1, 0)) for p, n in zip(at, image, strict=True))
    return np.where(inside, np.ravel_multi_index(clipped, image), -1)


def _largest(x: Value, table: Array, output: tuple[int, ...]) -> tuple[Value, Value]:
    """The maxima of windows given as pixel indices, and their indices; the first NaN wins."""
    dims = concrete(x)
    count, channels = dims[0], dims[-1]
    windows, places = table.shape
    pixels = catalogue.reshape(x, shape=(count, math.prod(dims[1:-1]), channels))
    seen = gather(catalogue.stop_gradient(pixels), constant_of(np.maximum(table, 0)), axis=1)
    inside = constant_of((table >= 0).reshape(1, windows, places, 1))
    lowest = constant_of(-math.inf, x.dtype)
    best = reduce.max(catalogue.select(inside, seen, lowest), axes=(2,), keepdims=True)
    wins = logical_and(inside, logical_or(equal(seen, best), isnan(seen)))
    place = argmax(wins, axis=2)
    first = iota(shape=(windows, 1), axis=0, dtype=int64) * places
    numbers = gather(constant_of(np.maximum(table, 0).reshape(-1)), place + first)
    values = take_along_axis(pixels, numbers, axis=1)
    empty = (table < 0).all(axis=1)
    if empty.any():  # a dilated window may miss all pixels
        values = catalogue.select(constant_of(empty.reshape(1, windows, 1)), lowest, values)
    shape = (count, *output, channels)
    return catalogue.reshape(values, shape=shape), catalogue.reshape(numbers, shape=shape)


def max_unpool(x: Value, indices: Value, image: Sizes) -> Value:
    """Zeros of spatial sizes `image` with every element of `x` at its flat index.

    Of several elements with one index the last is kept, but the pixel's gradient goes to all of
    them, as in PyTorch: they are copies of one maximum of overlapping windows.
    """
    dims = concrete(x)
    count, channels, windows = dims[0], dims[-1], math.prod(dims[1:-1])
    flat, pixels = (count, windows, channels), (count, math.prod(image), channels)

    def unpool(x: Value, indices: Value) -> Value:
        numbers, values = (catalogue.reshape(v, shape=flat) for v in (indices, x))
        zeros = full(pixels, 0, x.dtype)
        y = put_along_axis(zeros, numbers, values, axis=1, from_end=False)
        return catalogue.reshape(y, shape=(count, *image, channels))

    def backward(gs: Any, _: Any, xs: Any) -> tuple[Value, None]:
        numbers = catalogue.reshape(xs[1], shape=flat)
        g = take_along_axis(catalogue.reshape(gs[0], shape=pixels), numbers, axis=1)
        return catalogue.reshape(g, shape=dims), None

    return call(x, indices, function=trace(unpool, [x.type, indices.type], backward))


def avg_pool_padded(
    x: Value,
    window: Sizes,
    strides: Sizes | None = None,
    padding: Sizes | None = None,
    ceil: bool = False,
    count_include_pad: bool = True,
    divisor: int | None = None,
) -> Value:
    """The mean of every window; strides default to the window.

    Args:
        padding: a size for both ends of each axis; counted as zeros if `count_include_pad`.
        ceil: a last window that is only partly inside counts; elements beyond the padding never do.
        divisor: of the sums, instead of the number of elements.
    """
    image, window, strides, padding, dilation = _options(x, window, strides, padding, None)
    pairs = _pairs(image, window, strides, padding, dilation, ceil)
    attrs: dict[str, Any] = {"window": window, "strides": strides}
    if divisor is not None:
        mean = avg_pool(x, padding=pairs, count_include_pad=True, **attrs)
        return mean * (math.prod(window) / divisor)
    if count_include_pad and any(high > low for low, high in pairs):
        inner = tuple((low, min(low, high)) for low, high in pairs)
        x = pad(x, paddings=((0, 0), *inner, (0, 0)))
        outer = tuple((0, high - own) for (_, high), (_, own) in zip(pairs, inner, strict=True))
        return avg_pool(x, padding=outer, count_include_pad=False, **attrs)
    return avg_pool(x, padding=pairs, count_include_pad=count_include_pad, **attrs)


def lp_pool(
    x: Value, p: float, window: Sizes, strides: Sizes | None = None, ceil: bool = False
) -> Value:
    """The `p`-th root of the sum of `p`-th powers of every window.

    As in PyTorch, a window that is only partly inside is scaled up to a whole one, and the gradient
    of a window of zeros is zero.
    """
    powers = catalogue.square(x) if p == 2 else catalogue.power(x, constant_of(p, x.dtype))
    total = avg_pool_padded(powers, window, strides, None, ceil) * math.prod(window)
    total = catalogue.select(catalogue.not_equal(total, 0), total, 0)  # a root's derivative
    return sqrt(total) if p == 2 else catalogue.power(total, constant_of(1 / p, x.dtype))


# Adaptive windows


def _spans(size: int, output: int) -> tuple[Array, Array]:
    """The windows on an axis, as even as possible: positions (output, T), and which count.

    Shorter windows are padded by repeating their last position, which does not count.
    """
    longest = 1 + (size - 1) // output + (size % output != 0)
    check_table("adaptive pooling", (output, longest), int64)
    numbers = np.arange(output + 1)
    first, stop = numbers[:-1] * size // output, -(-numbers[1:] * size // output)
    at = first[:, None] + np.arange((stop - first).max())
    return np.minimum(at, stop[:, None] - 1), at < stop[:, None]


def _even(name: str, x: Value, output: Sizes) -> tuple[tuple[int, ...], bool]:
    """The spatial sizes of `x`, and whether the outputs divide them."""
    image = concrete(x)[1:-1]
    if len(image) != len(output) or min(output, default=0) < 1 or 0 in image:
        raise ShapeError.here(
            f"{name}: expected {len(image)} positive output sizes for x of shape {show(x.shape)},"
            f" got {tuple(output)}"
        )
    return image, all(n % o == 0 for n, o in zip(image, output, strict=True))


def adaptive_avg_pool(x: Value, output: Sizes) -> Value:
    """Means of windows sized so that each axis has `output` of them.

    Raises:
        ShapeError: not a positive size for each spatial axis.
    """
    image, even = _even("adaptive_avg_pool", x, output)
    check_room("adaptive_avg_pool", (concrete(x)[0], *output, concrete(x)[-1]), x.dtype)
    if max(output) == 1:
        return catalogue.mean(x, axes=tuple(range(1, len(image) + 1)), keepdims=True)
    if even and len(image) <= 3:
        window = tuple(n // o for n, o in zip(image, output, strict=True))
        return avg_pool(x, window=window)
    for axis, (size, count) in enumerate(zip(image, output, strict=True), start=1):
        if size != count:
            x = _means(x, axis, *_spans(pinned(size), pinned(count)))
    return x


def _means(x: Value, axis: int, places: Array, counts: Array) -> Value:
    """The mean along an axis of the elements that count, for every window."""
    wide = catalogue.cast(x, dtype=float32) if x.dtype.size == 2 else x
    rest = (1,) * (len(concrete(x)) - axis - 1)
    seen = gather(wide, constant_of(places), axis=axis)
    seen = catalogue.select(constant_of(counts.reshape(*counts.shape, *rest)), seen, 0)
    lengths = counts.sum(axis=1).astype(wide.dtype.numpy).reshape(-1, *rest)
    mean = reduce.sum(seen, axes=(axis + 1,)) / constant_of(lengths)
    return catalogue.cast(mean, dtype=x.dtype)


def adaptive_max_pool(x: Value, output: Sizes) -> Value:
    """The largest elements of the windows of `adaptive_avg_pool`."""
    image, even = _even("adaptive_max_pool", x, output)
    if even and len(image) <= 3:
        return max_pool(x, window=tuple(n // o for n, o in zip(image, output, strict=True)))
    return adaptive_max_pool_indices(x, output)[0]


def adaptive_max_pool_indices(x: Value, output: Sizes) -> tuple[Value, Value]:
    """`adaptive_max_pool`, and the int64 flat index of every maximum, the first in a tie."""
    image, _ = _even("adaptive_max_pool", x, output)
    check_room("adaptive_max_pool", (concrete(x)[0], *output, concrete(x)[-1]), x.dtype)
    axes = [_spans(pinned(n), pinned(o)) for n, o in zip(image, output, strict=True)]
    longest = [places.shape[1] for places, _ in axes]
    check_table("adaptive_max_pool", (*output, *longest), int64)
    table = np.zeros((*output, *longest), np.int64)
    inside = np.ones_like(table, np.bool_)
    for axis, (places, counts) in enumerate(axes):
        shape = [1] * table.ndim
        shape[axis], shape[len(axes) + axis] = places.shape
        table = table * image[axis] + places.reshape(shape)
        inside &= counts.reshape(shape)
    found = np.where(inside, table, -1).reshape(math.prod(output), math.prod(longest))
    return _largest(x, found, tuple(output))
