"""Changes of color."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np

from weft.data.transforms.compose import random
from weft.data.transforms.geometry import is_array
from weft.errors import ArgumentError
from weft.formats.image import pillow, pixels

__all__ = ["ColorJitter", "Grayscale"]

Range = float | tuple[float, float]


class ColorJitter:
    """Random changes of brightness, contrast, saturation and hue, in random order.

    A number `x` draws factors from [1 - x, 1 + x] (hue: shifts from [-x, x], at most 0.5 of the
    circle); a pair is the range itself.

    Args:
        brightness, contrast, saturation: ranges of the factors of each.
        hue: the range of the shift.
    """

    def __init__(
        self, brightness: Range = 0, contrast: Range = 0, saturation: Range = 0, hue: Range = 0,
    ) -> None:  # fmt: skip
        around = (("Brightness", brightness), ("Contrast", contrast), ("Color", saturation))
        self.ranges = {name: _range(given, 1.0) for name, given in around}
        self.hue = _range(hue, 0.0)
        if max(map(abs, self.hue)) > 0.5:
            raise ArgumentError(f"ColorJitter: expected hue within [-0.5, 0.5], got {hue}")

    def __call__(self, image: Any) -> Any:
        """The changed image."""
        drawn = random()
        found = pillow("ColorJitter").fromarray(image) if is_array(image) else image
        for number in drawn.permutation(4):
            if number == 3:
                shift = drawn.uniform(*self.hue)
                found = found if shift == 0 else _shifted(found, shift)
                continue
            name = tuple(self.ranges)[number]
            factor = drawn.uniform(*self.ranges[name])
            if factor != 1:
                found = _enhanced(found, name, factor)
        return np.asarray(found) if is_array(image) else found


def _range(given: Range, middle: float) -> tuple[float, float]:
    if isinstance(given, tuple | list):
        return given[0], given[1]
    if given < 0:
        raise ArgumentError(f"ColorJitter: expected 0 or more, got {given}")
    low = middle - given
    return (max(low, 0.0) if middle else low), middle + given


def _enhanced(image: Any, name: str, factor: float) -> Any:
    enhance: Any = importlib.import_module("PIL.ImageEnhance")
    return getattr(enhance, name)(image).enhance(factor)


def _shifted(image: Any, shift: float) -> Any:
    hsv = np.array(image.convert("HSV"))
    hsv[..., 0] += np.uint8(round(shift * 255) % 256)
    return pillow("hue").fromarray(hsv, "HSV").convert(image.mode)


class Grayscale:
    """Grayscale, in 1 or 3 channels.

    Args:
        num_output_channels: 1, or 3 equal ones.
    """

    def __init__(self, num_output_channels: int = 1) -> None:
        self.channels = num_output_channels

    def __call__(self, image: Any) -> Any:
        """The grayscale image."""
        gray = (pillow("Grayscale").fromarray(image) if is_array(image) else image).convert("L")
        if is_array(image):
            return np.repeat(pixels(gray), self.channels, axis=2)
        return gray if self.channels == 1 else gray.convert("RGB")
