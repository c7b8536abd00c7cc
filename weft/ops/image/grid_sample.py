"""Images sampled at computed positions: `grid_sample`, and the grid of an affine map.

Source: Jaderberg et al., "Spatial Transformer Networks" (2015).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from typing import Final

import numpy as np

from weft.ir.dtype import int64
from weft.ir.node import Value
from weft.ops.declaration import catalogue, constant_of
from weft.ops.declaration.rule import concrete
from weft.ops.image.resample import cubic_weights

__all__ = ["affine_grid", "grid_sample", "sample_at"]

Tap = tuple[Value, Value]  # index along an axis, and weight (0 outside the image)


def _number(value: float, like: Value) -> Value:
    return constant_of(np.array(value, like.dtype.numpy))


def grid_sample(x: Value, grid: Value, *, mode: str, padding: str, align_corners: bool) -> Value:
    """`x`, (N, C, spatial...), sampled at `grid`, (N, new spatial..., number of axes).

    Args:
        grid: positions from -1 to 1, the last spatial axis first.
        mode: `nearest`, `linear` or `cubic`.
        padding: outside the image: `zeros`, `border` or `reflection`.
        align_corners: -1 and 1 are the centers of the outer pixels instead of their edges.
    """
    image = concrete(x)[2:]
    taps = _TAPS[mode]
    along = [
        taps(_unscaled(grid[..., len(image) - 1 - i], size, align_corners), size, padding,
             align_corners)
        for i, size in enumerate(image)
    ]  # fmt: skip
    return _weighted(x, along)


def sample_at(x: Value, places: Sequence[Value]) -> Value:
    """`x`, (N, C, spatial...), between its pixels; 0 from one pixel outside.

    Args:
        places: pixel coordinates along each axis, (N, new axes...).
    """
    image = concrete(x)[2:]
    pairs = zip(places, image, strict=True)
    return _weighted(x, [_linear(place, size, "zeros", False) for place, size in pairs])


def _weighted(x: Value, along: Sequence[Sequence[Tap]]) -> Value:
    """The sum over all corners: pixels by the products of their weights along the axes."""
    n, channels, *image = concrete(x)
    places = concrete(along[0][0][0])[1:]
    last = catalogue.transpose(x, perm=(0, *range(2, len(image) + 2), 1))
    rows = catalogue.reshape(last, shape=(n * math.prod(image), channels))
    first = np.arange(n).reshape(n, *[1] * len(places)) * math.prod(image)
    total: Value | None = None
    for corner in itertools.product(*along):
        index, weight = constant_of(first), _number(1, x)
        for i, (place, share) in enumerate(corner):
            index = index + place * math.prod(image[i + 1 :])
            weight = weight * share
        part = catalogue.gather(rows, index, axis=0) * catalogue.expand_dims(weight, axis=-1)
        total = part if total is None else total + part
    assert total is not None  # there is at least one tap
    return catalogue.transpose(total, perm=(0, len(places) + 1, *range(1, len(places) + 1)))


def _unscaled(place: Value, size: int, align: bool) -> Value:
    """Positions from -1 to 1 as pixel coordinates."""
    if align:
        return (place + _number(1, place)) * _number((size - 1) / 2, place)
    return (place + _number(1, place)) * _number(size / 2, place) - _number(0.5, place)


def _inside(place: Value, size: int, padding: str, align: bool) -> Value:
    """Positions outside the image, mapped inside by the padding mode."""
    if padding == "zeros":
        return place
    if padding == "reflection":
        place = _reflected(place, size, align)
    return catalogue.clip(place, _number(0, place), _number(size - 1, place))


def _reflected(place: Value, size: int, align: bool) -> Value:
    low, span = (0.0, size - 1.0) if align else (-0.5, float(size))
    if not span:
        return place * 0
    away = catalogue.abs(place - _number(low, place))
    turns = catalogue.floor(away / _number(span, place))
    rest = away - turns * _number(span, place)
    odd = catalogue.not_equal(
        catalogue.remainder(turns, _number(2, place)), _number(0, place)
    )  # fmt: skip
    back = catalogue.select(odd, _number(span, place) - rest, rest)
    return back + _number(low, place)


def _tap(place: Value, weight: Value, size: int) -> Tap:
    """An integral position as an index, with weight 0 if outside."""
    zero, last = _number(0, place), _number(size - 1, place)
    within = catalogue.logical_and(
        catalogue.greater_equal(place, zero), catalogue.less_equal(place, last)
    )
    index = catalogue.cast(catalogue.select(within, place, zero), dtype=int64)
    return index, catalogue.select(within, weight, zero)


def _nearest(place: Value, size: int, padding: str, align: bool) -> list[Tap]:
    place = catalogue.round(_inside(place, size, padding, align))
    return [_tap(place, catalogue.broadcast_to(_number(1, place), shape=concrete(place)), size)]


def _linear(place: Value, size: int, padding: str, align: bool) -> list[Tap]:
    place = _inside(place, size, padding, align)
    below = catalogue.floor(place)
    part = place - below
    one = _number(1, place)
    return [_tap(below, one - part, size), _tap(below + one, part, size)]


def _cubic(place: Value, size: int, padding: str, align: bool) -> list[Tap]:
    below = catalogue.floor(place)
    found: list[Tap] = []
    for k, weight in enumerate(cubic_weights(place - below)):
        at = _inside(below + _number(k - 1, place), size, padding, align)
        found.append(_tap(catalogue.round(at), weight, size))
    return found


_TAPS: Final[dict[str, Callable[[Value, int, str, bool], list[Tap]]]] = {
    "nearest": _nearest, "linear": _linear, "cubic": _cubic,
}  # fmt: skip


def affine_grid(theta: Value, *, size: tuple[int, ...], align_corners: bool) -> Value:
    """The sampling grid of affine maps `theta`, (N, axes, axes + 1).

    Args:
        size: the image's spatial sizes.
        align_corners: as for `grid_sample`.
    """
    axes = [
        np.linspace(-1, 1, n) * (1 if align_corners else (n - 1) / n) if n > 1 else np.zeros(1)
        for n in size
    ]
    places = np.meshgrid(*axes, indexing="ij")
    base = np.stack([*places[::-1], np.ones(size)], -1).reshape(-1, len(size) + 1)
    n, rank, _ = concrete(theta)
    turned = catalogue.transpose(theta, perm=(0, 2, 1))
    found = catalogue.matmul(constant_of(base.astype(theta.dtype.numpy)), turned)
    return catalogue.reshape(found, shape=(n, *size, rank))
