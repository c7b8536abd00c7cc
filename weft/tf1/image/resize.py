"""Images of other sizes: resized, cropped, padded."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from weft import ops
from weft.documentation import named
from weft.errors import ArgumentError, ShapeError
from weft.ir.node import Value
from weft.ops.image import resample
from weft.tf1.elementwise.arithmetic import cast
from weft.tf1.framework.convert import convert_to_tensor, static_value
from weft.tf1.framework.dtypes import float32
from weft.tf1.framework.graph import emit, fail, name_scope
from weft.tf1.framework.tensor import Tensor
from weft.tf1.random.distribution import random_uniform
from weft.tf1.shaping.arrangement import expand_dims, pad, shape, squeeze

__all__ = [
    "ResizeMethod", "central_crop", "crop_to_bounding_box", "pad_to_bounding_box", "random_crop",
    "resize", "resize_area", "resize_bicubic", "resize_bilinear", "resize_image_with_crop_or_pad",
    "resize_image_with_pad", "resize_images", "resize_nearest_neighbor", "resize_of_2",
    "resize_with_crop_or_pad",
]  # fmt: skip


class ResizeMethod:
    """How new pixels are made."""

    BILINEAR = 0
    NEAREST_NEIGHBOR = 1
    BICUBIC = 2
    AREA = 3


_MODES = {0: "linear", 1: "nearest", 2: "cubic", 3: "area"}
_NAMES = {"bilinear": 0, "nearest": 1, "bicubic": 2, "area": 3}


def _sizes(size: Any, what: str) -> list[int]:
    known = [static_value(s) for s in size] if isinstance(size, list | tuple) \
        else static_value(size)  # fmt: skip
    if known is None or any(k is None for k in known) or len(known) != 2:
        text = f"{what}: expected a height and a width that are known now, got {size!r}"
        raise fail(ShapeError, text)
    return [int(k) for k in known]


def _resized(
    images: Any, size: Any, mode: str, align: bool, half: bool, kind: str, name: str | None
) -> Tensor:
    with name_scope(name, kind, [images]) as scope:
        x = convert_to_tensor(images, name="images")
        if x.shape.ndims not in (4, None):
            raise fail(ShapeError, f"{kind}: expected 4 axes, got shape {x.shape}")
        wanted = _sizes(size, kind)

        def build(v: Value) -> Value:
            kept = v.dtype
            if mode == "nearest" and not kept.is_floating:
                v = ops.cast(v, dtype=float32.ir if kept.size < 4 else "float64")
            elif not kept.is_floating:
                v = ops.cast(v, dtype=float32.ir)
            y = v
            for axis, new in enumerate(wanted, start=1):
                if half:
                    how = "nearest-exact" if mode == "nearest" else mode
                    y = ops.resample(y, axis=axis, size=new, mode=how)
                else:
                    y = ops.corner_resize(y, axis=axis, size=new, mode=mode, align=align)
            return ops.cast(y, dtype=kept) if mode == "nearest" else y

        return emit(kind, [x], build, name=scope)


def _method(name_: str, mode: str, kind: str):
    @named(
        name_,
        """Images [batch, height, width, channels] resized; float32, or as they are for the nearest.

    Args:
        images: of any numeric type.
        size: the new height and width.
        align_corners: align the centers of the corner pixels.
        name: of the operation.
        half_pixel_centers: pixels have centers, as in TensorFlow 2, not corners.

    Raises:
        ShapeError: the images do not have 4 axes, or the size is not known.
    """,
    )
    def resized(
        images: Any, size: Any, align_corners: bool = False, name: str | None = None,
        half_pixel_centers: bool = False,
    ) -> Tensor:  # fmt: skip
        if half_pixel_centers and mode == "cubic":
            raise fail(ArgumentError, f"{kind}: expected half_pixel_centers=False")
        half = half_pixel_centers and not align_corners
        return _resized(images, size, mode, align_corners, half, kind, name)

    return resized


resize_bilinear = _method("resize_bilinear", "linear", "ResizeBilinear")
resize_nearest_neighbor = _method("resize_nearest_neighbor", "nearest", "ResizeNearestNeighbor")
resize_bicubic = _method("resize_bicubic", "cubic", "ResizeBicubic")


def resize_area(
    images: Any, size: Any, align_corners: bool = False, name: str | None = None
) -> Tensor:
    """Images [batch, height, width, channels] resized by the mean over the area of new pixels."""
    return _resized(images, size, "area", align_corners, False, "ResizeArea", name)


def resize_images(
    images: Any, size: Any, method: Any = ResizeMethod.BILINEAR, align_corners: bool = False,
    preserve_aspect_ratio: bool = False, name: str | None = None,
) -> Tensor:  # fmt: skip
    """An image [height, width, channels] or images, resized.

    Args:
        images: of any numeric type; the result is float32, or as they are for the nearest.
        size: the new height and width.
        method: of `ResizeMethod`, or its name.
        align_corners: align the centers of the corner pixels.
        preserve_aspect_ratio: make height or width smaller to keep their ratio.
        name: of the operations.

    Raises:
        ArgumentError: the method is not known.
    """
    number = _NAMES.get(method, method) if isinstance(method, str) else method
    if number not in _MODES:
        raise fail(ArgumentError, f"resize_images: expected a method, got {method!r}")
    kinds = ("ResizeBilinear", "ResizeNearestNeighbor", "ResizeBicubic", "ResizeArea")

    def resized(batch: Tensor, wanted: list[int]) -> Tensor:
        if batch.shape.ndims == 4 and batch.shape.as_list()[1:3] == wanted:
            return batch if number == 1 else cast(batch, float32)
        return _resized(batch, wanted, _MODES[number], align_corners, False, kinds[number], None)

    return _of_any(images, size, preserve_aspect_ratio, name, resized)


def _of_any(
    images: Any, size: Any, keeps_ratio: bool, name: str | None,
    resized: Callable[[Tensor, list[int]], Tensor],
) -> Tensor:  # fmt: skip
    """An image or images, resized."""
    with name_scope(name, "resize", [images]):
        x = convert_to_tensor(images, name="images")
        single = x.shape.ndims == 3
        batch = expand_dims(x, 0) if single else x
        wanted = _sizes(size, "resize_images")
        if keeps_ratio:
            old = batch.shape.as_list()[1:3]
            if None in old:
                text = f"resize_images: expected a known height and width, got {x.shape}"
                raise fail(ShapeError, text)
            sizes = [o for o in old if o is not None]
            scale = min(n / o for n, o in zip(wanted, sizes, strict=True))
            wanted = [round(o * scale) for o in sizes]
        same = resized(batch, wanted)
        return squeeze(same, [0]) if single else same


_FILTERS = {
    "bilinear": "linear", "nearest": "nearest-exact", "bicubic": "cubic", "lanczos3": "lanczos3",
    "lanczos5": "lanczos5",
}  # fmt: skip


def resize_of_2(
    images: Any, size: Any, method: Any = "bilinear", preserve_aspect_ratio: bool = False,
    antialias: bool = False, name: str | None = None,
) -> Tensor:  # fmt: skip
    """An image, or images [N, height, width, channels], resized; pixels have centers.

    Args:
        images: of any numeric type; the result is float32, or as they are for the nearest.
        size: the new height and width.
        method: `bilinear`, `nearest`, `bicubic`, `area`, `lanczos3` or `lanczos5`.
        preserve_aspect_ratio: make height or width smaller to keep their ratio.
        antialias: weigh all old pixels under a new one.
        name: of the operations.

    Raises:
        ArgumentError: the method is not known.
    """
    if method == "area":
        return resize_images(images, size, method, False, preserve_aspect_ratio, name)
    if method not in _FILTERS:
        raise fail(ArgumentError, f"resize: expected a method of {[*_FILTERS]}, got {method!r}")
    mode = _FILTERS[method]

    def resized(batch: Tensor, wanted: list[int]) -> Tensor:
        x = batch if method == "nearest" else cast(batch, float32)
        if not antialias and method in ("nearest", "bilinear"):
            kind = "ResizeNearestNeighbor" if method == "nearest" else "ResizeBilinear"
            return _resized(x, wanted, mode.removesuffix("-exact"), False, True, kind, None)
        smooth = antialias or method.startswith("lanczos")
        return emit(
            "ScaleAndTranslate", [x], resample.resized, shape=(None, *wanted, None), mode=mode,
            antialias=smooth, name="ScaleAndTranslate",
        )  # fmt: skip

    return _of_any(images, size, preserve_aspect_ratio, name, resized)


resize = resize_images


def crop_to_bounding_box(
    image: Any, offset_height: Any, offset_width: Any, target_height: Any, target_width: Any
) -> Tensor:
    """The part of an image, or of images, that begins at an offset.

    Args:
        image: (height, width, channels), or with a batch before.
        offset_height, offset_width: the first row and column.
        target_height, target_width: the numbers of rows and columns.
    """
    x = convert_to_tensor(image)
    rows = slice(offset_height, offset_height + target_height)
    columns = slice(offset_width, offset_width + target_width)
    return x[:, rows, columns] if x.shape.ndims == 4 else x[rows, columns]


def pad_to_bounding_box(
    image: Any, offset_height: Any, offset_width: Any, target_height: Any, target_width: Any
) -> Tensor:
    """An image, or images, with zeros around.

    Args:
        image: (height, width, channels), or with a batch before.
        offset_height, offset_width: the rows and columns of zeros before.
        target_height, target_width: the numbers of rows and columns of the result.
    """
    x = convert_to_tensor(image)
    lead = [[0, 0]] if x.shape.ndims == 4 else []
    at = len(lead)
    sizes = [d if d is not None else shape(x)[i] for i, d in enumerate(x.shape.as_list())]
    below = target_height - sizes[at] - offset_height
    right = target_width - sizes[at + 1] - offset_width
    return pad(x, [*lead, [offset_height, below], [offset_width, right], [0, 0]])


def resize_image_with_crop_or_pad(image: Any, target_height: int, target_width: int) -> Tensor:
    """The middle of an image, or of images, or with zeros around, of this size.

    Args:
        image: (height, width, channels), or with a batch before; of known sizes.
        target_height, target_width: the numbers of rows and columns.

    Raises:
        ShapeError: the sizes are not known.
    """
    x = convert_to_tensor(image)
    dims = x.shape.as_list() if x.shape.ndims is not None else [None]
    height, width = dims[-3:-1] if len(dims) >= 3 else (None, None)
    if height is None or width is None:
        text = f"expected a known height and width, got shape {x.shape}"
        raise fail(ShapeError, f"resize_image_with_crop_or_pad: {text}")
    down, right = max((height - target_height) // 2, 0), max((width - target_width) // 2, 0)
    inner = crop_to_bounding_box(
        x, down, right, min(target_height, height), min(target_width, width)
    )
    above, left = max((target_height - height) // 2, 0), max((target_width - width) // 2, 0)
    return pad_to_bounding_box(inner, above, left, target_height, target_width)


resize_with_crop_or_pad = resize_image_with_crop_or_pad


def resize_image_with_pad(
    image: Any, target_height: int, target_width: int, method: Any = ResizeMethod.BILINEAR,
    align_corners: bool = False,
) -> Tensor:  # fmt: skip
    """An image, or images, resized with its ratio and zeros around.

    Args:
        image: (height, width, channels), or with a batch before; of known sizes.
        target_height, target_width: the numbers of rows and columns.
        method, align_corners: as in `resize_images`.
    """
    inner = resize_images(image, [target_height, target_width], method, align_corners, True)
    return resize_image_with_crop_or_pad(inner, target_height, target_width)


def central_crop(image: Any, central_fraction: float) -> Tensor:
    """The middle of an image, or of images.

    Args:
        image: (height, width, channels), or with a batch before; of known sizes.
        central_fraction: the fraction of height and width that is kept.

    Raises:
        ArgumentError: the fraction is not in (0, 1].
        ShapeError: height or width is not known.
    """
    if not 0 < central_fraction <= 1:
        text = f"central_crop: expected a fraction in (0, 1], got {central_fraction}"
        raise fail(ArgumentError, text)
    x = convert_to_tensor(image)
    height, width = (d or 0 for d in x.shape.as_list()[-3:-1])
    if not height or not width:
        raise fail(ShapeError, f"central_crop: expected a known height and width, got {x.shape}")
    down = int((height - height * central_fraction) / 2)
    right = int((width - width * central_fraction) / 2)
    return crop_to_bounding_box(x, down, right, height - 2 * down, width - 2 * right)


def random_crop(value: Any, size: Any, seed: int | None = None, name: str | None = None) -> Tensor:
    """A block of a tensor, at a random place.

    Args:
        value: a tensor.
        size: of the block, along each axis; known now.
        seed: of the random numbers.
        name: of the operations.

    Raises:
        ShapeError: the block is larger than the tensor, or its size is not known.
    """
    with name_scope(name, "random_crop", [value]):
        x = convert_to_tensor(value, name="value")
        known = static_value(size)
        if known is None:
            raise fail(ShapeError, f"random_crop: expected a size that is known, got {size!r}")
        dims, wanted = x.shape.as_list(), [int(n) for n in np.ravel(known)]
        if any(d is not None and d < n for d, n in zip(dims, wanted, strict=True)):
            text = f"expected a block within shape {x.shape}, got size {wanted}"
            raise fail(ShapeError, f"random_crop: {text}")
        sizes = shape(x)
        key: list[Any] = []
        for axis, (old, new) in enumerate(zip(dims, wanted, strict=True)):
            if old == new:
                key.append(slice(None))
                continue
            room = cast(sizes[axis] - new + 1, float32)
            at = cast(random_uniform([], seed=seed) * room, "int32")
            key.append(slice(at, at + new))
        y = x[tuple(key)]
        y.set_shape(wanted)
        return y
