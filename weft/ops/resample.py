"""Images of other sizes: `interpolate`, and channels traded for pixels.

Images are N, spatial..., C. An axis at a time, every new pixel is a weighted sum of a few old ones,
whose places and weights are known when the graph is built.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

import numpy as np

from weft.errors import GraphError, ShapeError
from weft.ir.dtype import float32
from weft.ir.node import Value
from weft.ir.shape import show
from weft.ops.base import Array, at_user_line, catalogue, constant_of
from weft.ops.gather import gather
from weft.ops.pooling import adaptive_avg_pool
from weft.ops.rule import concrete

__all__ = ["channel_shuffle", "interpolate", "pixel_shuffle", "pixel_unshuffle"]

Taps = list[tuple[Array, Array]]  # (places, weights), one of each a new pixel
_CUBIC: Final = -0.75
"""The free parameter of cubic convolution (Keys, 1981), as in PyTorch and OpenCV."""


def interpolate(
    x: Value,
    size: Sequence[int],
    mode: str = "nearest",
    align_corners: bool = False,
    scales: Sequence[float] | None = None,
) -> Value:
    """`x` with its spatial axes resampled to the sizes `size`, as PyTorch's `interpolate` does.

    Args:
        mode: `nearest`, `nearest-exact`, `linear` (bilinear and trilinear are it on 2 and 3 axes),
            `cubic`, or `area`.
        align_corners: the first and last pixels of both images lie upon each other, instead of the
            images' edges.
        scales: how much larger each axis becomes, where that is not the ratio of the sizes.

    Raises:
        GraphError: an unknown mode.
        ShapeError: not a positive size for each spatial axis; the shape must be known.
    """
    image = concrete(x)[1:-1]
    if len(size) != len(image) or min(size, default=0) < 1 or 0 in image:
        raise ShapeError(
            f"interpolate: expected {len(image)} positive sizes for x of shape {show(x.shape)},"
            f" got {tuple(size)}{at_user_line()}"
        )
    if mode == "area":
        return adaptive_avg_pool(x, size)
    taps = _TAPS.get(mode)
    if taps is None:
        names = ", ".join((*_TAPS, "area"))
        raise GraphError(f"interpolate: expected mode {names}, got {mode!r}{at_user_line()}")
    half = x.dtype.size == 2
    y = catalogue.cast(x, dtype=float32) if half and mode in ("linear", "cubic") else x
    for axis, (old, new) in enumerate(zip(image, size, strict=True)):
        ratio = old / new if scales is None else 1 / scales[axis]
        if old != new or ratio != 1:
            y = _weighted(y, axis + 1, taps(old, new, ratio, align_corners))
    return catalogue.cast(y, dtype=x.dtype) if y.dtype is not x.dtype else y


def _weighted(x: Value, axis: int, taps: Taps) -> Value:
    """The weighted sum of pixels along an axis."""
    shape = tuple(-1 if i == axis else 1 for i in range(len(concrete(x))))
    total: Value | None = None
    for places, weights in taps:
        part = gather(x, constant_of(places), axis=axis)
        if not (weights == 1).all():
            part = part * constant_of(weights.astype(x.dtype.numpy).reshape(shape))
        total = part if total is None else total + part
    assert total is not None
    return total


def _nearest(old: int, new: int, ratio: float, align: bool) -> Taps:
    places = np.floor(np.arange(new, dtype=np.float32) * np.float32(ratio))
    return [(np.minimum(places.astype(np.int64), old - 1), np.ones(new))]


def _nearest_exact(old: int, new: int, ratio: float, align: bool) -> Taps:
    places = np.floor((np.arange(new, dtype=np.float32) + np.float32(0.5)) * np.float32(ratio))
    return [(np.minimum(places.astype(np.int64), old - 1), np.ones(new))]


def _sources(old: int, new: int, ratio: float, align: bool) -> Array:
    """Where new pixels lie among the old ones."""
    if align:
        return np.arange(new) * ((old - 1) / (new - 1) if new > 1 else 0.0)
    return (np.arange(new) + 0.5) * ratio - 0.5


def _linear(old: int, new: int, ratio: float, align: bool) -> Taps:
    at = np.clip(_sources(old, new, ratio, align), 0, old - 1)
    low = np.floor(at).astype(np.int64)
    part = at - low
    return [(low, 1 - part), (np.minimum(low + 1, old - 1), part)]


def _cubic(old: int, new: int, ratio: float, align: bool) -> Taps:
    at = _sources(old, new, ratio, align)
    low = np.floor(at).astype(np.int64)
    part = at - low

    def near(d: Array) -> Array:
        return ((_CUBIC + 2) * d - (_CUBIC + 3)) * d * d + 1

    def far(d: Array) -> Array:
        return _CUBIC * (((d - 5) * d + 8) * d - 4)

    weights = (far(part + 1), near(part), near(1 - part), far(2 - part))
    return [(np.clip(low + i - 1, 0, old - 1), w) for i, w in enumerate(weights)]


_TAPS: Final[Mapping[str, Callable[[int, int, float, bool], Taps]]] = {
    "nearest": _nearest,
    "nearest-exact": _nearest_exact,
    "linear": _linear,
    "cubic": _cubic,
}


# Channels traded for pixels


def pixel_shuffle(x: Value, factor: int) -> Value:
    """Blocks of `factor` pixels a side from as many channels, (N, H, W, C r r) -> (N, H r, W r, C).

    Of the channels of a pixel of the result, the place in the block counts fastest, as in PyTorch
    (Shi et al., 2016).

    Raises:
        ShapeError: a rank other than 4, or channels that the block does not divide.
    """
    n, height, width, channels = _image("pixel_shuffle", x)
    if factor < 1 or channels % (factor * factor):
        raise ShapeError(
            f"pixel_shuffle: expected channels that {factor} * {factor} divides, got shape"
            f" {show(x.shape)}{at_user_line()}"
        )
    left = channels // (factor * factor)
    split = catalogue.reshape(x, shape=(n, height, width, left, factor, factor))
    moved = catalogue.transpose(split, perm=(0, 1, 4, 2, 5, 3))
    return catalogue.reshape(moved, shape=(n, height * factor, width * factor, left))


def pixel_unshuffle(x: Value, factor: int) -> Value:
    """The inverse of `pixel_shuffle`: blocks of pixels as channels.

    Raises:
        ShapeError: a rank other than 4, or sizes that `factor` does not divide.
    """
    n, height, width, channels = _image("pixel_unshuffle", x)
    if factor < 1 or height % factor or width % factor:
        raise ShapeError(
            f"pixel_unshuffle: expected sizes that {factor} divides, got shape"
            f" {show(x.shape)}{at_user_line()}"
        )
    rows, columns = height // factor, width // factor
    split = catalogue.reshape(x, shape=(n, rows, factor, columns, factor, channels))
    moved = catalogue.transpose(split, perm=(0, 1, 3, 5, 2, 4))
    return catalogue.reshape(moved, shape=(n, rows, columns, channels * factor * factor))


def _image(name: str, x: Value) -> tuple[int, ...]:
    dims = concrete(x)
    if len(dims) != 4:
        raise ShapeError(f"{name}: expected x of rank 4, got shape {show(dims)}{at_user_line()}")
    return dims


def channel_shuffle(x: Value, groups: int) -> Value:
    """Channels in the order that takes one of each group in turn (Zhang et al., 2017).

    Raises:
        ShapeError: groups that do not divide the channels.
    """
    *lead, channels = concrete(x)
    if groups < 1 or channels % groups:
        raise ShapeError(
            f"channel_shuffle: expected groups that divide {channels} channels, got"
            f" {groups}{at_user_line()}"
        )
    split = catalogue.reshape(x, shape=(*lead, groups, channels // groups))
    perm = (*range(len(lead)), len(lead) + 1, len(lead))
    return catalogue.reshape(catalogue.transpose(split, perm=perm), shape=(*lead, channels))
