"""Windows of images as rows (`unfold`), their sum back (`fold`), and transposed convolution.

Images are N, spatial..., C, as everywhere in the catalogue.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from weft.errors import ShapeError
from weft.ir.dtype import int64
from weft.ir.node import Value
from weft.ir.shape import known, show
from weft.ops.convolution.convolution import conv_grad_input
from weft.ops.convolution.geometry import Geometry, geometry
from weft.ops.declaration import Array, catalogue, constant_of
from weft.ops.declaration.memory_check import check_table
from weft.ops.declaration.rule import concrete
from weft.ops.indexing.gather import gather, scatter_add
from weft.ops.indexing.slicing import slice_
from weft.ops.shape.creation import full, iota
from weft.ops.shape.pad import pad

__all__ = ["conv_transpose", "fold", "unfold"]


def window_geometry(
    name: str, image: Sequence[int], window: Sequence[int], **options: Any
) -> Geometry:
    """The geometry of a window on spatial axes of known sizes.

    Raises:
        ShapeError: as for `geometry`; names the function and the user's line.
    """
    try:
        return geometry(tuple(image), tuple(window), **options)
    except ShapeError as error:
        raise ShapeError.here(f"{name}: {error}") from None


def positions(geo: Geometry) -> tuple[Array, ...]:
    """For each spatial axis, the image index of every window element, of shape (O, T).

    O counts windows, T elements of a window, both in row-major order. Indices outside the image are
    padding.
    """
    outputs, axes = known(geo.output), range(len(geo.kernel))
    check_table("windows", (len(axes), *outputs, *geo.kernel), int64)
    windows = np.indices(outputs).reshape(len(axes), -1, 1)
    places = np.indices(geo.kernel).reshape(len(axes), 1, -1)
    return tuple(
        windows[a] * geo.strides[a] + places[a] * geo.dilation[a] - geo.padding[a][0] for a in axes
    )


def _in_padded(geo: Geometry) -> Array:
    """`positions` as flat pixel indices of the padded image."""
    shifted = [at + low for at, (low, _) in zip(positions(geo), geo.padding, strict=True)]
    return np.ravel_multi_index(tuple(shifted), geo.padded)


def _cropped(x: Value, geo: Geometry) -> Value:
    begin = (0, *[low for low, _ in geo.padding], 0)
    sizes = (concrete(x)[0], *known(geo.image), concrete(x)[-1])
    end = tuple(b + n for b, n in zip(begin, sizes, strict=True))
    return slice_(x, begin=begin, end=end)


def unfold(
    x: Value,
    window: Sequence[int],
    strides: Sequence[int] | None = None,
    padding: Any = None,
    dilation: Sequence[int] | None = None,
) -> Value:
    """The windows of an image: (N, output..., elements of the window, C).

    `padding` is zeros, as for `conv`; the shape must be known.

    Raises:
        ShapeError: a window that does not fit.
    """
    dims = concrete(x)
    geo = window_geometry(
        "unfold", dims[1:-1], window, strides=strides, padding=padding, dilation=dilation
    )
    wide = pad(x, paddings=((0, 0), *geo.padding, (0, 0)))
    pixels = catalogue.reshape(wide, shape=(dims[0], math.prod(geo.padded), dims[-1]))
    rows = gather(pixels, constant_of(_in_padded(geo)), axis=1)
    places = math.prod(geo.kernel)
    return catalogue.reshape(rows, shape=(dims[0], *known(geo.output), places, dims[-1]))


def fold(
    patches: Value,
    image: Sequence[int],
    window: Sequence[int],
    strides: Sequence[int] | None = None,
    padding: Any = None,
    dilation: Sequence[int] | None = None,
) -> Value:
    """The image of spatial sizes `image`, in which every pixel sums its occurrences in windows.

    It is the transpose of `unfold`, whose result has the shape of `patches`.

    Raises:
        ShapeError: patches of another shape, or a window that does not fit.
    """
    geo = window_geometry(
        "fold", image, window, strides=strides, padding=padding, dilation=dilation
    )
    dims = concrete(patches)
    count, channels = dims[0], dims[-1]
    expected = (count, *known(geo.output), math.prod(geo.kernel), channels)
    if dims != expected:
        raise ShapeError.here(f"fold: expected patches of shape {show(expected)}, got {show(dims)}")
    pixels = math.prod(geo.padded)
    table = constant_of(_in_padded(geo).reshape(-1))
    images = iota(shape=(count, 1), dtype=int64) * pixels
    rows = catalogue.reshape(images + table, shape=(math.prod(dims[:-1]),))
    updates = catalogue.reshape(patches, shape=(math.prod(dims[:-1]), channels))
    total = scatter_add(full((count * pixels, channels), 0, patches.dtype), rows, updates)
    return _cropped(catalogue.reshape(total, shape=(count, *geo.padded, channels)), geo)


def conv_transpose(
    x: Value,
    w: Value,
    strides: Sequence[int] | None = None,
    padding: Sequence[int] | None = None,
    output_padding: Sequence[int] | None = None,
    dilation: Sequence[int] | None = None,
    groups: int = 1,
) -> Value:
    """The transposed convolution of 1, 2 or 3 spatial axes, with PyTorch's arguments.

    Args:
        x: N, spatial..., channels in.
        w: spatial..., channels out / groups, channels in.
        padding: cropped from both ends of each axis of the result.
        output_padding: added at the high end of each axis.

    Raises:
        ShapeError: sizes that do not fit, or an output padding that is too large.
    """
    dims, weights = concrete(x), concrete(w)
    rank = len(dims) - 2
    step, spread = tuple(strides or (1,) * rank), tuple(dilation or (1,) * rank)
    cut, extra = tuple(padding or (0,) * rank), tuple(output_padding or (0,) * rank)
    if any(not 0 <= e < max(s, d) for e, s, d in zip(extra, step, spread, strict=True)):
        raise ShapeError.here(
            f"conv_transpose: expected an output padding below stride or dilation, got {extra} for"
            f" strides {step} and dilation {spread}"
        )
    # Output padding first reduces the cropping at the high end; the rest is zeros.
    high = [max(p - e, 0) for p, e in zip(cut, extra, strict=True)]
    zeros = [max(e - p, 0) for p, e in zip(cut, extra, strict=True)]
    image = [
        (n - 1) * s + (k - 1) * d + 1 - low - up
        for n, s, k, d, low, up in zip(dims[1:-1], step, weights, spread, cut, high, strict=False)
    ]
    y = conv_grad_input(
        x,
        w,
        shape=(dims[0], *image, weights[-2] * groups),
        strides=step,
        padding=tuple(zip(cut, high, strict=True)),
        dilation=spread,
        groups=groups,
    )
    return pad(y, paddings=((0, 0), *[(0, z) for z in zeros], (0, 0))) if any(zeros) else y
