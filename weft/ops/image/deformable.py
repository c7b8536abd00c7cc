"""Convolutions whose kernels reach where a network says.

Sources: Dai et al., "Deformable Convolutional Networks" (2017); Zhu et al., "Deformable ConvNets
v2" (2018), for the mask.
"""

from __future__ import annotations

import numpy as np

from weft.errors import ShapeError
from weft.ir.node import Value
from weft.ir.shape import show
from weft.ops.declaration import catalogue, constant_of
from weft.ops.declaration.rule import concrete
from weft.ops.image.grid_sample import sample_at

__all__ = ["deform_conv2d"]


def deform_conv2d(
    x: Value, weight: Value, offset: Value, bias: Value, mask: Value | None = None, *,
    stride: tuple[int, int], padding: tuple[int, int], dilation: tuple[int, int], groups: int,
    offset_groups: int,
) -> Value:  # fmt: skip
    """A convolution of images, (N, C, H, W), that reads each point of its kernel elsewhere.

    Args:
        weight: (channels, C / groups, kernel height, kernel width).
        offset: how far away, in pixels: (N, offset_groups * kernel points * 2, rows, columns),
            first down, then right.
        bias: (channels,).
        mask: factors of what is read, (N, offset_groups * kernel points, rows, columns).

    Raises:
        ShapeError: the offsets do not fit the kernel, or are not as many as there are results.
    """
    n, channels, *image = concrete(x)
    made, _, *kernel = concrete(weight)
    points = kernel[0] * kernel[1]
    rows, columns = [
        (size + 2 * pad - apart * (reach - 1) - 1) // step + 1
        for size, pad, apart, reach, step in zip(
            image, padding, dilation, kernel, stride, strict=True
        )
    ]
    for what, value, parts in (("offset", offset, 2), ("mask", mask, 1)):
        wanted = (n, offset_groups * points * parts, rows, columns)
        if value is not None and concrete(value) != wanted:
            raise ShapeError.here(
                f"deform_conv2d: expected {what} of shape {wanted}, got {show(value.shape)}"
            )
    moved = catalogue.reshape(offset, shape=(n * offset_groups, points, 2, rows, columns))
    grids = [
        np.arange(count) * step - pad + np.arange(reach)[:, None] * apart
        for count, step, pad, reach, apart in zip(
            (rows, columns), stride, padding, kernel, dilation, strict=True
        )
    ]  # (points along the axis of the kernel, places)
    down = np.broadcast_to(grids[0][:, None, :, None], (*kernel, rows, columns))
    right = np.broadcast_to(grids[1][None, :, None, :], (*kernel, rows, columns))
    places = [
        moved[:, :, axis] + constant_of(own.reshape(1, points, rows, columns).astype(x.dtype.numpy))
        for axis, own in enumerate((down, right))
    ]
    own = (n * offset_groups, channels // offset_groups, *image)
    read = sample_at(catalogue.reshape(x, shape=own), places)
    if mask is not None:
        factors = (n * offset_groups, 1, points, rows, columns)
        read = read * catalogue.reshape(mask, shape=factors)
    inner = channels // groups * points
    read = catalogue.reshape(read, shape=(n, groups, inner, rows * columns))
    kernels = catalogue.reshape(weight, shape=(groups, made // groups, inner))
    y = catalogue.reshape(catalogue.matmul(kernels, read), shape=(n, made, rows, columns))
    return y + catalogue.reshape(bias, shape=(1, made, 1, 1))
