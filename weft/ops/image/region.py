"""Regions of images: `roi_align`, `roi_pool`; `nms`, which drops boxes that overlap better ones.

Sources: He et al., "Mask R-CNN" (2017), section 3; Girshick, "Fast R-CNN" (2015), section 2.1;
Girshick et al., "Rich feature hierarchies" (2014), section 2.
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
from numpy.typing import NDArray

from weft.ir.dtype import int64
from weft.ir.node import Value
from weft.ops.declaration import catalogue, constant_of
from weft.ops.declaration.rule import concrete

__all__ = ["nms", "region_bins", "region_samples", "roi_align", "roi_pool"]

Tap = tuple[Value, Value]  # index along an axis, and weight (0 outside the image)


def _number(value: Any, like: Value) -> Value:
    return constant_of(np.array(value, like.dtype.numpy))


def roi_align(
    x: Value, boxes: Value, *, size: tuple[int, int], samples: tuple[int, int], scale: float,
    aligned: bool,
) -> Value:  # fmt: skip
    """Means over bins of boxes, (K, C, *size), of an image sampled between its pixels.

    Args:
        x: images, (N, C, H, W).
        boxes: the number of an image, then x1, y1, x2, y2; (K, 5).
        samples: points of a bin, along both axes.
        scale: from the boxes' coordinates to pixels.
        aligned: whether pixels have their centers at halves.
    """
    n, channels, height, width = concrete(x)
    del n
    count = concrete(boxes)[0]
    rows, columns = [
        _taps(boxes[:, first] * scale, boxes[:, first + 2] * scale, bins, points, pixels, aligned)
        for first, bins, points, pixels in zip(
            (2, 1), size, samples, (height, width), strict=True
        )
    ]  # fmt: skip
    last = catalogue.transpose(x, perm=(0, 2, 3, 1))
    pixels = catalogue.reshape(last, shape=(-1, channels))
    image = catalogue.cast(boxes[:, 0], dtype=int64) * (height * width)
    total: Value | None = None
    for (y, share), (place, other) in itertools.product(rows, columns):
        index = _axis(_axis(image, 1), 1) + _axis(y, 2) * width + _axis(place, 1)
        weight = _axis(_axis(share, 2) * _axis(other, 1), 3)
        part = catalogue.gather(pixels, index, axis=0) * weight
        total = part if total is None else total + part
    assert total is not None  # there are four corners
    shape = (count, size[0], samples[0], size[1], samples[1], channels)
    means = catalogue.mean(catalogue.reshape(total, shape=shape), axes=(2, 4))
    return catalogue.transpose(means, perm=(0, 3, 1, 2))


def _axis(x: Value, axis: int) -> Value:
    return catalogue.expand_dims(x, axis=axis)


def _taps(
    start: Value, end: Value, bins: int, points: int, pixels: int, aligned: bool
) -> list[Tap]:  # fmt: skip
    """The two pixels around each point of boxes along an axis, (K, bins * points)."""
    if aligned:
        start, end = start - _number(0.5, start), end - _number(0.5, end)
    length = end - start
    if not aligned:
        length = catalogue.maximum(length, _number(1, length))
    steps = (np.arange(bins * points) + 0.5) / (bins * points)
    place = _axis(start, 1) + _axis(length, 1) * _number(steps, start)
    inside = catalogue.logical_and(
        catalogue.greater_equal(place, _number(-1, place)),
        catalogue.less_equal(place, _number(pixels, place)),
    )
    place = catalogue.clip(place, _number(0, place), _number(pixels - 1, place))
    below = catalogue.floor(place)
    part, none = place - below, _number(0, place)
    above = catalogue.minimum(below + _number(1, place), _number(pixels - 1, place))
    shares = ((below, _number(1, place) - part), (above, part))
    return [
        (catalogue.cast(at, dtype=int64), catalogue.select(inside, share, none))
        for at, share in shares
    ]


def region_samples(
    boxes: NDArray[Any], size: tuple[int, int], scale: float, aligned: bool
) -> NDArray[np.int64]:
    """Points of a bin along both axes, a row a box: as many as it has pixels, rounded up.

    >>> region_samples(np.array([[0, 0, 0, 20, 10.0]]), (7, 7), 1.0, True).tolist()
    [[2, 3]]
    """
    lengths = boxes[:, (4, 3)] * scale - boxes[:, (2, 1)] * scale
    if not aligned:
        lengths = np.maximum(lengths, 1.0)
    return np.maximum(np.ceil(lengths / np.array(size)), 0).astype(np.int64)


def roi_pool(x: Value, pixels: Value, *, size: tuple[int, int]) -> tuple[Value, Value]:
    """The largest values of bins, (K, C, *size), and the pixels where they are.

    Values are 0, and pixels -1, in bins without a pixel. Of equal values the first is taken.

    Args:
        x: images, (N, C, H, W).
        pixels: of the bins, a row each, as numbers in all images; -1 where there are no more:
            (K, number of bins, pixels).
    """
    _, channels, height, width = concrete(x)
    count, bins, most = concrete(pixels)
    last = catalogue.reshape(catalogue.transpose(x, perm=(0, 2, 3, 1)), shape=(-1, channels))
    there = catalogue.greater_equal(pixels, constant_of(np.int64(0)))
    index = catalogue.maximum(pixels, constant_of(np.int64(0)))
    read = catalogue.select(
        _axis(there, 3), catalogue.gather(last, index, axis=0), _number(-np.inf, x)
    )
    best = _axis(catalogue.cast(catalogue.argmax(read, axis=2), dtype=int64), 2)
    found = catalogue.reshape(
        catalogue.take_along_axis(read, best, axis=2), shape=(count, bins, channels)
    )
    is_empty = _axis(catalogue.logical_not(there[:, :, 0]), 2)
    values = catalogue.select(is_empty, _number(0, x), found)
    wide = catalogue.broadcast_to(_axis(pixels, 3), shape=(count, bins, most, channels))
    where = catalogue.reshape(
        catalogue.take_along_axis(wide, best, axis=2), shape=(count, bins, channels)
    )
    within = catalogue.select(
        is_empty, constant_of(np.int64(-1)), where % constant_of(np.int64(height * width))
    )
    return _outwards(values, size), _outwards(within, size)


def _outwards(y: Value, size: tuple[int, int]) -> Value:
    """(K, bins, C) as (K, C, *size)."""
    count, _, channels = concrete(y)
    moved = catalogue.transpose(y, perm=(0, 2, 1))
    return catalogue.reshape(moved, shape=(count, channels, *size))


def region_bins(
    boxes: NDArray[Any], size: tuple[int, int], scale: float, image: tuple[int, int]
) -> NDArray[np.int64]:
    """The pixels of each bin of boxes, as `roi_pool` takes them: bins of whole pixels.

    >>> region_bins(np.array([[0, 0, 0, 3, 1.0]]), (1, 2), 1.0, (4, 5)).tolist()
    [[[0, 1, 5, 6], [2, 3, 7, 8]]]
    """
    rows, columns = [
        _bins(boxes[:, first] * scale, boxes[:, first + 2] * scale, bins, pixels)
        for first, bins, pixels in zip((2, 1), size, image, strict=True)
    ]  # (K, bins, pixels along the axis), -1 where there are no more
    first = boxes[:, 0].astype(np.int64)[:, None, None, None, None] * (image[0] * image[1])
    y, x = rows[:, :, None, :, None], columns[:, None, :, None, :]
    found = np.where((y < 0) | (x < 0), -1, first + y * image[1] + x)
    found = found.reshape(len(boxes), size[0] * size[1], found.shape[3] * found.shape[4])
    order = np.argsort(found < 0, axis=-1, kind="stable")  # those that there are come first
    return np.take_along_axis(found, order, -1)


def _bins(
    start: NDArray[Any], end: NDArray[Any], bins: int, pixels: int
) -> NDArray[np.int64]:  # fmt: skip
    """The pixels of bins of boxes along an axis."""
    low, high = [np.sign(v) * np.floor(np.abs(v) + 0.5) for v in (start, end)]
    length = np.maximum(high - low + 1, 1) / np.array(bins, start.dtype)
    steps = np.arange(bins + 1).astype(start.dtype)
    first = np.clip(np.floor(length[:, None] * steps[:-1]) + low[:, None], 0, pixels)
    last = np.clip(np.ceil(length[:, None] * steps[1:]) + low[:, None], 0, pixels)
    most = int(max(np.max(last - first, initial=0), 1))
    found = first[:, :, None] + np.arange(most)
    return np.where(found < last[:, :, None], found, -1).astype(np.int64)


def nms(boxes: NDArray[Any], scores: NDArray[Any], threshold: float) -> NDArray[np.int64]:
    """The boxes, best first, that overlap no better one by more than the threshold.

    Args:
        boxes: x1, y1, x2, y2 a row.
        scores: of boxes; of equal ones the first is better.
        threshold: of the intersection's area over the union's.

    >>> boxes = np.array([[0, 0, 2, 2], [0, 0, 2, 1.9], [3, 3, 4, 4]])
    >>> nms(boxes, np.array([0.5, 0.9, 0.1]), 0.5).tolist()
    [1, 2]
    """
    order = np.argsort(-scores, kind="stable")
    lows, highs = boxes[order, :2].T, boxes[order, 2:].T
    areas = np.prod(highs - lows, axis=0)
    alive = np.ones(len(order), bool)
    for i in range(len(order)):
        if alive[i]:
            rest = slice(i + 1, None)
            low = np.maximum(lows[:, i, None], lows[:, rest])
            high = np.minimum(highs[:, i, None], highs[:, rest])
            shared = np.prod(np.maximum(high - low, 0), axis=0)
            union = areas[i] + areas[rest] - shared
            with np.errstate(invalid="ignore"):  # two boxes without area do not overlap
                alive[rest] &= ~(shared / union > threshold)
    return order[alive]
