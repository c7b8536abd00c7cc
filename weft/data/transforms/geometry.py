"""Crops, flips and resizing."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from weft.data.transforms.compose import random
from weft.errors import ArgumentError, ShapeError
from weft.formats.image import pillow

__all__ = [
    "CenterCrop", "Pad", "RandomCrop", "RandomHorizontalFlip", "RandomResizedCrop",
    "RandomVerticalFlip", "Resize",
]  # fmt: skip

Size = int | tuple[int, int] | list[int]


def pair(size: Size) -> tuple[int, int]:
    """A height and a width; one number stands for both."""
    if isinstance(size, int):
        return size, size
    if len(size) == 1:
        return size[0], size[0]
    return size[0], size[1]


def is_array(image: Any) -> bool:
    """Whether it is an array and not a Pillow image."""
    return isinstance(image, np.ndarray)


def size_of(image: Any) -> tuple[int, int]:
    """Height and width."""
    return image.shape[:2] if is_array(image) else (image.height, image.width)


def crop(image: Any, top: int, left: int, height: int, width: int) -> Any:
    """A part of an image."""
    if is_array(image):
        return image[top : top + height, left : left + width]
    return image.crop((left, top, left + width, top + height))


def resized(image: Any, height: int, width: int, box: Any = None) -> Any:
    """An image, or its part in `box` (left, top, right, bottom), resized with antialiasing."""
    library = pillow("Resize")
    if not is_array(image):
        return image.resize((width, height), library.BILINEAR, box)
    flat = image[..., 0] if image.ndim == 3 and image.shape[2] == 1 else image
    found = np.asarray(library.fromarray(flat).resize((width, height), library.BILINEAR, box))
    return found[..., None] if found.ndim < image.ndim else found


class Resize:
    """Resizes to (height, width), or the shorter side to a size, which keeps the aspect ratio.

    Args:
        size: (height, width), or the size of the shorter side.
        max_size: the most that the longer side may have, if `size` is one number.
    """

    def __init__(self, size: Size, max_size: int | None = None) -> None:
        self.size = size
        self.max_size = max_size

    def __call__(self, image: Any) -> Any:
        """The resized image."""
        if not isinstance(self.size, int) and len(self.size) == 2:
            return resized(image, *pair(self.size))
        height, width = size_of(image)
        scale = pair(self.size)[0] / min(height, width)
        if self.max_size is not None:
            scale = min(scale, self.max_size / max(height, width))
        return resized(image, max(int(height * scale), 1), max(int(width * scale), 1))


class Pad:
    """Adds a border of `padding` pixels (all sides; x and y; left, top, right, bottom).

    Args:
        padding: a number for all sides, two for x and y, or four for left, top, right and bottom.
        fill: the value of the border.
    """

    def __init__(self, padding: int | tuple[int, ...], fill: int = 0) -> None:
        sides = (padding,) * 4 if isinstance(padding, int) else tuple(padding)
        self.sides = sides * 2 if len(sides) == 2 else sides
        if len(self.sides) != 4:
            raise ArgumentError(f"Pad: expected 1, 2 or 4 numbers, got {padding}")
        self.fill = fill

    def __call__(self, image: Any) -> Any:
        """The padded image."""
        left, top, right, bottom = self.sides
        if is_array(image):
            rest = ((0, 0),) * (image.ndim - 2)
            around = ((top, bottom), (left, right), *rest)
            return np.pad(image, around, constant_values=self.fill)
        library = pillow("Pad")
        size = image.width + left + right, image.height + top + bottom
        found = library.new(image.mode, size, (self.fill,) * len(image.getbands()))
        found.paste(image, (left, top))
        return found


class CenterCrop:
    """Crops the center; smaller images are padded with 0.

    Args:
        size: (height, width), or the side of a square.
    """

    def __init__(self, size: Size) -> None:
        self.size = pair(size)

    def __call__(self, image: Any) -> Any:
        """The cropped image."""
        image = _at_least(image, *self.size)
        height, width = size_of(image)
        top, left = (height - self.size[0] + 1) // 2, (width - self.size[1] + 1) // 2
        return crop(image, top, left, *self.size)


def _at_least(image: Any, height: int, width: int) -> Any:
    """The image, padded if it is smaller."""
    down, right = (max(w - n, 0) for w, n in zip((height, width), size_of(image), strict=True))
    if not (down or right):
        return image
    return Pad((right // 2, down // 2, right - right // 2, down - down // 2))(image)


class RandomCrop:
    """Crops at a random place, after optional padding.

    Args:
        size: (height, width), or the side of a square.
        padding: a border that is added first, as in `Pad`.
        pad_if_needed: whether smaller images get a border.
        fill: the value of borders.

    Raises:
        ShapeError: the image is smaller, and `pad_if_needed` is not set.
    """

    def __init__(
        self, size: Size, padding: int | tuple[int, ...] | None = None, pad_if_needed: bool = False,
        fill: int = 0,
    ) -> None:  # fmt: skip
        self.size = pair(size)
        self.pad = None if padding is None else Pad(padding, fill)
        self.pad_if_needed = pad_if_needed

    def __call__(self, image: Any) -> Any:
        """The cropped image."""
        image = image if self.pad is None else self.pad(image)
        image = _at_least(image, *self.size) if self.pad_if_needed else image
        (height, width), (h, w) = size_of(image), self.size
        if height < h or width < w:
            raise ShapeError(f"RandomCrop: expected at least {h} x {w}, got {height} x {width}")
        drawn = random()
        top, left = int(drawn.integers(height - h + 1)), int(drawn.integers(width - w + 1))
        return crop(image, top, left, h, w)


class RandomHorizontalFlip:
    """Flips left and right with probability `p`."""

    def __init__(self, p: float = 0.5) -> None:
        self.p = p

    def __call__(self, image: Any) -> Any:
        """The image, flipped or not."""
        if random().random() >= self.p:
            return image
        if is_array(image):
            return np.ascontiguousarray(image[:, ::-1])
        return image.transpose(pillow("flip").FLIP_LEFT_RIGHT)


class RandomVerticalFlip:
    """Flips top and bottom with probability `p`."""

    def __init__(self, p: float = 0.5) -> None:
        self.p = p

    def __call__(self, image: Any) -> Any:
        """The image, flipped or not."""
        if random().random() >= self.p:
            return image
        if is_array(image):
            return np.ascontiguousarray(image[::-1])
        return image.transpose(pillow("flip").FLIP_TOP_BOTTOM)


class RandomResizedCrop:
    """Crops a random area with a random aspect ratio, and resizes it.

    Args:
        size: (height, width) of the result, or the side of a square.
        scale: the least and the largest share of the area.
        ratio: the least and the largest aspect ratio.

    Source: Szegedy et al., "Going deeper with convolutions", 2014.
    """

    def __init__(
        self,
        size: Size,
        scale: tuple[float, float] = (0.08, 1.0),
        ratio: tuple[float, float] = (3 / 4, 4 / 3),
    ) -> None:
        self.size = pair(size)
        self.scale, self.ratio = scale, ratio

    def __call__(self, image: Any) -> Any:
        """The resized crop."""
        left, top, width, height = self._box(*size_of(image))
        return resized(image, *self.size, (left, top, left + width, top + height))

    def _box(self, height: int, width: int) -> tuple[int, int, int, int]:
        drawn = random()
        low, high = math.log(self.ratio[0]), math.log(self.ratio[1])
        for _ in range(10):  # as torchvision does
            area = height * width * drawn.uniform(*self.scale)
            ratio = math.exp(drawn.uniform(low, high))
            w, h = round(math.sqrt(area * ratio)), round(math.sqrt(area / ratio))
            if 0 < w <= width and 0 < h <= height:
                left = int(drawn.integers(width - w + 1))
                return left, int(drawn.integers(height - h + 1)), w, h
        h = min(height, round(width / self.ratio[0]))
        w = min(width, round(h * self.ratio[1]))
        return (width - w) // 2, (height - h) // 2, w, h
