"""Resizing, pixel shuffles, channel shuffles, and windows as columns."""

from __future__ import annotations

import math
from typing import Any

from weft import ops
from weft.documentation import arguments_of
from weft.eager.tensor.argument import dims_of
from weft.eager.tensor.dispatch import cast, lazy_of, recorded, wrap
from weft.errors import ArgumentError, ShapeError
from weft.ir.dtype import float32, uint8
from weft.ir.node import Value
from weft.ir.shape import known, show
from weft.nn.functional.layout import sizes_of
from weft.ops.declaration import catalogue
from weft.ops.image.resample import interpolate_bytes
from weft.ops.shape.layout import channels_last

__all__ = [
    "channel_shuffle", "fold", "interpolate", "pixel_shuffle", "pixel_unshuffle", "unfold",
    "upsample", "upsample_bilinear", "upsample_nearest",
]  # fmt: skip

# PyTorch's name -> the catalogue's, and its number of spatial dimensions
_MODES = {
    "nearest": ("nearest", (1, 2, 3)), "nearest-exact": ("nearest-exact", (1, 2, 3)),
    "linear": ("linear", (1,)), "bilinear": ("linear", (2,)), "trilinear": ("linear", (3,)),
    "bicubic": ("cubic", (2,)), "area": ("area", (1, 2, 3)),
}  # fmt: skip


@recorded
def _interpolate(x: Value, **static: Any) -> Value:
    return channels_last(ops.interpolate)(x, **static)


@recorded
def _interpolate_bytes(x: Value, **static: Any) -> Value:
    return channels_last(interpolate_bytes)(x, **static)


def interpolate(
    input: Any, size: Any = None, scale_factor: Any = None, mode: str = "nearest",
    align_corners: bool | None = None, recompute_scale_factor: bool | None = None,
    antialias: bool = False,
) -> Any:  # fmt: skip
    """(N, C, spatial...) resized to other spatial sizes.

    Args:
        input: (N, C, spatial...), with 1, 2 or 3 spatial dimensions.
        size: the new spatial sizes; or `scale_factor`.
        scale_factor: the ratio of new to old sizes; one number stands for all dimensions.
        mode: `nearest`, `nearest-exact`, `linear` (1 spatial dimension), `bilinear`, `bicubic` (2),
            `trilinear` (3) or `area`.
        align_corners: align the corner pixels' centers, not the images' edges.
        recompute_scale_factor: use the ratio of the sizes instead of `scale_factor`.
        antialias: for `bilinear` and `bicubic`, average all pixels under a new one, as Pillow does.

    Raises:
        ShapeError, ValueError: sizes or mode do not fit.
    """
    shape = dims_of(input)
    spatial = len(shape) - 2
    method, ranks = _MODES.get(mode, (None, ()))
    if method is None or spatial not in ranks:
        raise ArgumentError.here(
            f"interpolate: expected one of the modes {', '.join(_MODES)} that fits an input "
            f"{show(shape)}, got {mode!r}"
        )
    if (size is None) == (scale_factor is None):
        raise ArgumentError.here("interpolate: expected size or scale_factor")
    if antialias and mode not in ("bilinear", "bicubic"):
        raise ArgumentError.here(
            f"interpolate: expected mode bilinear or bicubic with antialias, got {mode!r}"
        )
    scales: Any = None
    if size is not None:
        sizes = sizes_of("interpolate: size", size, spatial)
    else:
        several = isinstance(scale_factor, list | tuple)
        factors = tuple(scale_factor) if several else (scale_factor,) * spatial
        if len(factors) != spatial:
            raise ShapeError.here(f"interpolate: expected {spatial} factors, got {factors}")
        sizes = tuple([math.floor(d * f) for d, f in zip(shape[2:], factors, strict=True)])
        scales = None if recompute_scale_factor else tuple(map(float, factors))
    lazy = lazy_of(input)
    dtype = lazy.type.dtype
    static = {
        "size": sizes, "mode": method, "align_corners": bool(align_corners), "scales": scales,
        "antialias": bool(antialias),
    }  # fmt: skip
    if dtype == uint8 and method in ("linear", "cubic") and spatial == 2:
        return _interpolate_bytes(input, **static)
    if not dtype.is_integer:
        return _interpolate(input, **static)
    return _interpolate(wrap(cast(lazy, float32)), **static).add(0.5).floor().to(dtype)


@arguments_of(interpolate)
def upsample(
    input: Any, size: Any = None, scale_factor: Any = None, mode: str = "nearest",
    align_corners: bool | None = None,
) -> Any:  # fmt: skip
    """The deprecated name of `interpolate`."""
    return interpolate(input, size, scale_factor, mode, align_corners)


@arguments_of(interpolate)
def upsample_nearest(input: Any, size: Any = None, scale_factor: Any = None) -> Any:
    """The deprecated name of `interpolate` by nearest pixels."""
    return interpolate(input, size, scale_factor)


@arguments_of(interpolate)
def upsample_bilinear(input: Any, size: Any = None, scale_factor: Any = None) -> Any:
    """The deprecated name of bilinear `interpolate` with aligned corners."""
    return interpolate(input, size, scale_factor, "bilinear", align_corners=True)


def _over_lead(function: Any, x: Value, count: int, **static: Any) -> Value:
    """Extends a function of (N, ...) with `count` dimensions after N to any leading dimensions."""
    dims = known(x.shape)
    lead = dims[: len(dims) - count]
    flat = catalogue.reshape(x, shape=(math.prod(lead), *dims[len(lead) :]))
    y = channels_last(function)(flat, **static)
    return catalogue.reshape(y, shape=(*lead, *known(y.shape)[1:]))


@recorded
def _pixel_shuffle(x: Value, *, factor: int) -> Value:
    return _over_lead(ops.pixel_shuffle, x, 3, factor=factor)


@recorded
def _pixel_unshuffle(x: Value, *, factor: int) -> Value:
    return _over_lead(ops.pixel_unshuffle, x, 3, factor=factor)


def pixel_shuffle(input: Any, upscale_factor: int) -> Any:
    """(..., C r r, H, W) as (..., C, H r, W r) (Shi et al., 2016).

    Args:
        input: (..., C r r, H, W).
        upscale_factor: the factor r.
    """
    return _pixel_shuffle(input, factor=int(upscale_factor))


def pixel_unshuffle(input: Any, downscale_factor: int) -> Any:
    """(..., C, H r, W r) as (..., C r r, H, W).

    Args:
        input: (..., C, H r, W r).
        downscale_factor: the factor r.
    """
    return _pixel_unshuffle(input, factor=int(downscale_factor))


@recorded
def _channel_shuffle(x: Value, *, groups: int) -> Value:
    return channels_last(ops.channel_shuffle)(x, groups=groups)


def channel_shuffle(input: Any, groups: int) -> Any:
    """Interleaves the channel groups, dimension 1.

    Args:
        input: (N, C, ...).
        groups: the number of groups, which divides C.
    """
    return _channel_shuffle(input, groups=int(groups))


@recorded
def _unfold(x: Value, *, window: Any, strides: Any, padding: Any, dilation: Any) -> Value:
    dims = known(x.shape)
    image = catalogue.expand_dims(x, axis=0) if len(dims) == 3 else x
    n, channels = known(image.shape)[:2]
    last = catalogue.transpose(image, perm=(0, 2, 3, 1))
    rows = ops.unfold(last, window, strides, padding, dilation)  # N, h, w, positions, C
    columns = catalogue.transpose(rows, perm=(0, 4, 3, 1, 2))
    windows = math.prod(known(columns.shape)[3:])
    y = catalogue.reshape(columns, shape=(n, channels * math.prod(window), windows))
    return catalogue.squeeze(y, axes=(0,)) if len(dims) == 3 else y


@recorded
def _fold(x: Value, *, image: Any, window: Any, strides: Any, padding: Any, dilation: Any) -> Value:
    dims = known(x.shape)
    columns = catalogue.expand_dims(x, axis=0) if len(dims) == 2 else x
    places = math.prod(window)
    n, rows = known(columns.shape)[:2]
    outputs = _outputs(image, window, strides, padding, dilation)
    split = catalogue.reshape(columns, shape=(n, rows // places, places, *outputs))
    patches = catalogue.transpose(split, perm=(0, 3, 4, 2, 1))
    y = ops.fold(patches, image, window, strides, padding, dilation)
    y = catalogue.transpose(y, perm=(0, 3, 1, 2))
    return catalogue.squeeze(y, axes=(0,)) if len(dims) == 2 else y


def _outputs(image: Any, window: Any, strides: Any, padding: Any, dilation: Any) -> Any:
    axes = zip(image, window, strides, padding, dilation, strict=True)
    return tuple([(n + sum(p) - (k - 1) * d - 1) // s + 1 for n, k, s, p, d in axes])


def _windows(name: str, kernel_size: Any, dilation: Any, padding: Any, stride: Any) -> Any:
    pads = sizes_of(f"{name}: padding", padding, 2)
    return {
        "window": sizes_of(f"{name}: kernel_size", kernel_size, 2),
        "strides": sizes_of(f"{name}: stride", stride, 2),
        "padding": tuple([(p, p) for p in pads]),
        "dilation": sizes_of(f"{name}: dilation", dilation, 2),
    }


def unfold(
    input: Any, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1
) -> Any:
    """Windows of (N, C, H, W) as columns: (N, C kh kw, windows).

    Args:
        input: (N, C, H, W) or (C, H, W).
        kernel_size: the sizes kh, kw of the windows; one number stands for both.
        dilation: the steps within a window.
        padding: how many zeros are added at both ends of each dimension.
        stride: the steps of the windows.

    Raises:
        ShapeError: the rank differs, or a dimension other than the batch's is empty.
    """
    shape = dims_of(input)
    if len(shape) not in (3, 4) or not all(shape[-3:]):
        raise ShapeError.here(
            f"unfold: expected an input (N, C, H, W) or (C, H, W) with C, H and W above 0, got "
            f"{show(shape)}"
        )
    return _unfold(input, **_windows("unfold", kernel_size, dilation, padding, stride))


@arguments_of(unfold)
def fold(
    input: Any, output_size: Any, kernel_size: Any, dilation: Any = 1, padding: Any = 0,
    stride: Any = 1,
) -> Any:  # fmt: skip
    """Sums columns (N, C kh kw, windows) into an image; overlapping windows add up.

    Args:
        input: (N, C kh kw, windows), or without N.
        output_size: the sizes H, W of the image; one number stands for both.
    """
    static = _windows("fold", kernel_size, dilation, padding, stride)
    image = sizes_of("fold: output_size", output_size, 2)
    shape = dims_of(input)
    rows, count = shape[-2], math.prod(_outputs(image, *static.values()))
    if len(shape) not in (2, 3) or rows % math.prod(static["window"]) or shape[-1] != count:
        raise ShapeError.here(
            f"fold: expected an input (N, C * {math.prod(static['window'])}, {count}), got "
            f"{show(shape)}"
        )
    return _fold(input, image=image, **static)
