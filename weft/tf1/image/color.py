"""Colors, brightness, and turned and mirrored images."""

from __future__ import annotations

from typing import Any

import numpy as np

from weft.documentation import named
from weft.errors import ArgumentError, ShapeError
from weft.ops.image.color import hsv_to_rgb as rgb_of_hsv
from weft.ops.image.color import rgb_to_hsv as hsv_of_rgb
from weft.tf1.elementwise import arithmetic, clip
from weft.tf1.elementwise.arithmetic import cast
from weft.tf1.framework.convert import convert_to_tensor, unary
from weft.tf1.framework.dtypes import as_dtype, float32
from weft.tf1.framework.graph import fail, name_scope
from weft.tf1.framework.tensor import Tensor
from weft.tf1.indexing.slicing import where
from weft.tf1.nn.normalization import moments
from weft.tf1.random.distribution import random_uniform
from weft.tf1.reduction import reduce_mean, reduce_sum
from weft.tf1.shaping.arrangement import concat, expand_dims, reverse, shape, tile, transpose

__all__ = [
    "adjust_brightness", "adjust_contrast", "adjust_gamma", "adjust_hue", "adjust_saturation",
    "convert_image_dtype", "flip_left_right", "flip_up_down", "grayscale_to_rgb", "hsv_to_rgb",
    "per_image_standardization", "per_image_whitening", "random_brightness",
    "random_contrast", "random_flip_left_right", "random_flip_up_down", "random_hue",
    "random_saturation", "rgb_to_grayscale", "rgb_to_hsv", "rot90", "total_variation",
    "transpose_image",
]  # fmt: skip


def rgb_to_hsv(images: Any, name: str | None = None) -> Tensor:
    """Hue, saturation and value of colors, all in [0, 1]; the last axis has 3 elements."""
    return unary("RGBToHSV", hsv_of_rgb, images, name)


def hsv_to_rgb(images: Any, name: str | None = None) -> Tensor:
    """Red, green and blue of hue, saturation and value."""
    return unary("HSVToRGB", rgb_of_hsv, images, name)


def convert_image_dtype(
    image: Any, dtype: Any, saturate: bool = False, name: str | None = None
) -> Tensor:
    """An image of another type: floating types have values in [0, 1], integers their range.

    Args:
        image: a tensor.
        dtype: the new type.
        saturate: clip before the cast.
        name: of the operations.
    """
    x = convert_to_tensor(image, name="image")
    new, old = as_dtype(dtype).base_dtype, x.dtype.base_dtype
    if new is old:
        return x
    with name_scope(name, "convert_image", [x]):
        if old.is_integer and new.is_integer:
            first, last = (int(np.iinfo(d.as_numpy_dtype).max) for d in (old, new))
            if first > last:
                return cast(arithmetic.floordiv(x, (first + 1) // (last + 1)), new)
            return cast(x, new) * ((last + 1) // (first + 1))
        if old.is_integer:
            return cast(x, new) * float(1.0 / np.iinfo(old.as_numpy_dtype).max)
        if new.is_integer:
            scaled = x * (float(np.iinfo(new.as_numpy_dtype).max) + 0.5)
            return arithmetic.saturate_cast(scaled, new) if saturate else cast(scaled, new)
        return cast(x, new)


def _as_float(image: Any, build: Any) -> Tensor:
    """A function of an image in floating numbers, and back to its type."""
    x = convert_to_tensor(image, name="image")
    kind = x.dtype.base_dtype
    if kind.is_floating:
        return build(x)
    return convert_image_dtype(build(convert_image_dtype(x, float32)), kind, saturate=True)


def rgb_to_grayscale(images: Any, name: str | None = None) -> Tensor:
    """The brightness of colors: 0.2989 red + 0.587 green + 0.114 blue; one channel."""
    with name_scope(name, "rgb_to_grayscale", [images]):
        weights = [0.2989, 0.587, 0.114]
        return _as_float(images, lambda x: reduce_sum(x * weights, -1, keepdims=True))


def grayscale_to_rgb(images: Any, name: str | None = None) -> Tensor:
    """Three equal channels of one."""
    with name_scope(name, "grayscale_to_rgb", [images]):
        x = convert_to_tensor(images)
        return tile(x, [*([1] * ((x.shape.ndims or 1) - 1)), 3])


def adjust_brightness(image: Any, delta: Any) -> Tensor:
    """An image plus `delta`, in [0, 1] whatever the image's type."""
    return _as_float(image, lambda x: x + delta)


def adjust_contrast(images: Any, contrast_factor: Any) -> Tensor:
    """Distances to each channel's mean times a factor."""

    def build(x: Tensor) -> Tensor:
        mean = reduce_mean(x, [-3, -2], keepdims=True)
        return (x - mean) * contrast_factor + mean

    return _as_float(images, build)


def adjust_gamma(image: Any, gamma: Any = 1, gain: Any = 1) -> Tensor:
    """gain * image ** gamma, of values in [0, 1]."""
    return _as_float(image, lambda x: gain * x**gamma)


def adjust_saturation(image: Any, saturation_factor: Any, name: str | None = None) -> Tensor:
    """The saturation of colors times a factor."""

    def build(x: Tensor) -> Tensor:
        h, s, v = _channels(rgb_to_hsv(x))
        return hsv_to_rgb(concat([h, clip.clip_by_value(s * saturation_factor, 0.0, 1.0), v], -1))

    with name_scope(name, "adjust_saturation", [image]):
        return _as_float(image, build)


def adjust_hue(image: Any, delta: Any, name: str | None = None) -> Tensor:
    """The hue of colors plus `delta`, in [-1, 1]."""

    def build(x: Tensor) -> Tensor:
        h, s, v = _channels(rgb_to_hsv(x))
        return hsv_to_rgb(concat([arithmetic.floormod(h + delta, 1.0), s, v], -1))

    with name_scope(name, "adjust_hue", [image]):
        return _as_float(image, build)


def _channels(x: Tensor) -> list[Tensor]:
    return [x[..., i : i + 1] for i in range(3)]


def per_image_standardization(image: Any) -> Tensor:
    """(x - mean) / max(deviation, 1 / sqrt(elements)) of each image, float32."""
    with name_scope(None, "per_image_standardization", [image]):
        x = cast(convert_to_tensor(image, name="image"), float32)
        mean, variance = moments(x, [-3, -2, -1], keepdims=True)
        sizes = cast(shape(x), float32)
        rank = x.shape.ndims or 3
        count = sizes[rank - 3] * sizes[rank - 2] * sizes[rank - 1]
        return (x - mean) / arithmetic.maximum(arithmetic.sqrt(variance), arithmetic.rsqrt(count))


per_image_whitening = per_image_standardization


def _flipped(title: str, axis: int, what: str):
    @named(title, f"An image, or images, mirrored {what}.")
    def flip(image: Any) -> Tensor:
        x = convert_to_tensor(image, name="image")
        return reverse(x, [axis + (x.shape.ndims or 3)])

    return flip


flip_left_right = _flipped("flip_left_right", -2, "left to right")
flip_up_down = _flipped("flip_up_down", -3, "upside down")


def _sometimes(title: str, flip: Any):
    @named(title, f"`{flip.__name__}` with a probability of one half, each image by itself.")
    def random(image: Any, seed: int | None = None) -> Tensor:
        x = convert_to_tensor(image, name="image")
        if x.shape.ndims == 4:
            flags = random_uniform([shape(x)[0]], seed=seed) < 0.5
            for _ in range(3):
                flags = expand_dims(flags, -1)
            y = _blended(flags, flip(x), x)
        else:
            y = _blended(random_uniform([], seed=seed) < 0.5, flip(x), x)
        y.set_shape(x.shape)
        return y

    return random


def _blended(flags: Tensor, a: Tensor, b: Tensor) -> Tensor:
    """`a` where flags, which broadcast, are true, else `b`."""
    return where(arithmetic.logical_and(flags, arithmetic.equal(b, b)), a, b)


random_flip_left_right = _sometimes("random_flip_left_right", flip_left_right)
random_flip_up_down = _sometimes("random_flip_up_down", flip_up_down)


def transpose_image(image: Any) -> Tensor:
    """An image, or images, with rows and columns exchanged."""
    x = convert_to_tensor(image, name="image")
    return transpose(x, [0, 2, 1, 3] if x.shape.ndims == 4 else [1, 0, 2])


def rot90(image: Any, k: int = 1, name: str | None = None) -> Tensor:
    """An image, or images, turned counterclockwise by k quarters."""
    with name_scope(name, "rot90", [image]):
        x = convert_to_tensor(image, name="image")
        turn = int(k) % 4
        if turn == 0:
            return x
        if turn == 1:
            return flip_up_down(transpose_image(x))
        if turn == 2:
            return flip_up_down(flip_left_right(x))
        return transpose_image(flip_up_down(x))


def _between(low: float, high: float, what: str, seed: int | None) -> Tensor:
    if high <= low:
        raise fail(ArgumentError, f"{what}: expected upper > lower, got {high} and {low}")
    return random_uniform([], low, high, seed=seed)


def random_brightness(image: Any, max_delta: float, seed: int | None = None) -> Tensor:
    """`adjust_brightness` by a number from [-max_delta, max_delta)."""
    if max_delta < 0:
        raise fail(ArgumentError, "random_brightness: expected max_delta >= 0")
    return adjust_brightness(image, random_uniform([], -max_delta, max_delta, seed=seed))


def random_contrast(image: Any, lower: float, upper: float, seed: int | None = None) -> Tensor:
    """`adjust_contrast` by a factor from [lower, upper)."""
    return adjust_contrast(image, _between(lower, upper, "random_contrast", seed))


def random_saturation(image: Any, lower: float, upper: float, seed: int | None = None) -> Tensor:
    """`adjust_saturation` by a factor from [lower, upper)."""
    return adjust_saturation(image, _between(lower, upper, "random_saturation", seed))


def random_hue(image: Any, max_delta: float, seed: int | None = None) -> Tensor:
    """`adjust_hue` by a number from [-max_delta, max_delta), at most 0.5."""
    if not 0 <= max_delta <= 0.5:
        raise fail(ArgumentError, f"random_hue: expected max_delta in [0, 0.5], got {max_delta}")
    return adjust_hue(image, random_uniform([], -max_delta, max_delta, seed=seed))


def total_variation(images: Any, name: str | None = None) -> Tensor:
    """The sum of the differences of neighboring pixels, of each image."""
    with name_scope(name, "total_variation", [images]):
        x = convert_to_tensor(images)
        if x.shape.ndims not in (3, 4):
            raise fail(ShapeError, f"total_variation: expected 3 or 4 axes, got {x.shape}")
        axes = [-3, -2, -1]
        down = reduce_sum(arithmetic.abs(x[..., 1:, :, :] - x[..., :-1, :, :]), axes)
        right = reduce_sum(arithmetic.abs(x[..., 1:, :] - x[..., :-1, :]), axes)
        return down + right
