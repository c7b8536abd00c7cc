"""Conversion of images to tensors, and transforms of tensors."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from weft.data.transforms.compose import random
from weft.eager.functions.api import Tensor
from weft.eager.tensor.dispatch import leaf, wrap
from weft.errors import ArgumentError, ShapeError
from weft.formats.image import pixels

__all__ = ["MixUp", "Normalize", "PILToTensor", "RandomErasing", "ToTensor"]

Array = np.ndarray[Any, Any]


def _array(image: Any) -> Array:
    """(height, width, channels)."""
    if not isinstance(image, np.ndarray):
        return pixels(image)
    return image if image.ndim == 3 else image[..., None]


class ToTensor:
    """A float32 tensor (channels, height, width); bytes are scaled to [0, 1]."""

    def __call__(self, image: Any) -> Any:
        """The tensor."""
        array = _array(image).transpose(2, 0, 1)
        found = np.empty(array.shape, np.float32)
        if array.dtype == np.uint8:
            np.multiply(array, np.float32(1 / 255), out=found)
        else:
            found[...] = array
        return wrap(leaf(found))


class PILToTensor:
    """A tensor (channels, height, width) of the image's own type."""

    def __call__(self, image: Any) -> Any:
        """The tensor."""
        return wrap(leaf(np.ascontiguousarray(_array(image).transpose(2, 0, 1))))


def _alike(found: Array, given: Any) -> Any:
    return wrap(leaf(found)) if isinstance(given, Tensor) else found


def _into(image: Any, found: Array, name: str) -> Any:
    """The image itself, changed to these values."""
    if not isinstance(image, Tensor | np.ndarray) or _values(image).dtype != found.dtype:
        got = getattr(image, "dtype", type(image).__name__)
        raise ArgumentError(f"{name}: inplace=True: expected an image of {found.dtype}, got {got}")
    image[...] = found
    return image


def _values(image: Any) -> Array:
    array = image.numpy() if isinstance(image, Tensor) else np.asarray(image)
    if array.ndim < 3:
        text = f"expected (channels, height, width), got shape {array.shape}; ToTensor comes before"
        raise ShapeError(f"transforms: {text}")
    return array


class Normalize:
    """`(x - mean) / std` of each channel of tensors or arrays (..., channels, height, width).

    Args:
        mean: what is subtracted from each channel.
        std: by what each channel is divided.
        inplace: whether to change the image itself, whose numbers are then floating-point.
    """

    def __init__(self, mean: Sequence[float], std: Sequence[float], inplace: bool = False) -> None:
        self.inplace = inplace
        self.mean = np.asarray(mean, np.float32).reshape(-1, 1, 1)
        self.std = np.asarray(std, np.float32).reshape(-1, 1, 1)
        if not self.std.all():
            raise ArgumentError(f"Normalize: expected std other than 0, got {std}")

    def __call__(self, image: Any) -> Any:
        """The normalized values."""
        found = _values(image) - self.mean
        found /= self.std
        return _into(image, found, "Normalize") if self.inplace else _alike(found, image)


class RandomErasing:
    """Fills a random rectangle with `value`, or with "random" numbers, with probability `p`.

    Source: Zhong et al., "Random erasing data augmentation", 2017.

    Args:
        p: the probability.
        scale: the least and the largest share of the area.
        ratio: the least and the largest aspect ratio.
        value: a number, one for each channel, or `"random"`.
        inplace: whether to change the image itself.
    """

    def __init__(
        self, p: float = 0.5, scale: tuple[float, float] = (0.02, 0.33),
        ratio: tuple[float, float] = (0.3, 3.3), value: Any = 0, inplace: bool = False,
    ) -> None:  # fmt: skip
        self.p, self.scale, self.ratio, self.value = p, scale, ratio, value
        self.inplace = inplace

    def __call__(self, image: Any) -> Any:
        """The values with a rectangle erased, or not."""
        drawn = random()
        if drawn.random() >= self.p:
            return image
        found = _values(image).copy()
        height, width = found.shape[-2:]
        for _ in range(10):  # as torchvision does
            area = height * width * drawn.uniform(*self.scale)
            ratio = math.exp(drawn.uniform(math.log(self.ratio[0]), math.log(self.ratio[1])))
            h, w = round(math.sqrt(area * ratio)), round(math.sqrt(area / ratio))
            if 0 < h < height and 0 < w < width:
                top, left = drawn.integers(height - h + 1), drawn.integers(width - w + 1)
                part = found[..., top : top + h, left : left + w]
                part[...] = self._fill(part, drawn)
                return (
                    _into(image, found, "RandomErasing") if self.inplace else _alike(found, image)
                )
        return image

    def _fill(self, part: Array, drawn: np.random.Generator) -> Any:
        if self.value == "random":
            return drawn.standard_normal(part.shape, np.float32)
        value = np.asarray(self.value, np.float32)
        return value.reshape(-1, 1, 1) if value.ndim else value


class MixUp:
    """Mixes each batch with a permutation of itself; labels become shares of `num_classes`.

    Use it as a `map` over batches (x, y): `dataset.batch(64).map(MixUp(10))`.

    Args:
        num_classes: the number of classes.
        alpha: both parameters of the beta distribution that shares are drawn from; large ones give
            shares near 1/2.

    Source: Zhang et al., "mixup: beyond empirical risk minimization", 2018.
    """

    def __init__(self, num_classes: int, alpha: float = 1.0) -> None:
        self.__name__ = "MixUp"
        self.num_classes, self.alpha = num_classes, alpha

    def __call__(self, x: Any, y: Any) -> tuple[Any, Any]:
        """Mixed values and label shares, float32."""
        drawn = random()
        share = np.float32(drawn.beta(self.alpha, self.alpha))
        values = np.asarray(x.numpy() if isinstance(x, Tensor) else x, np.float32)
        labels = np.asarray(y.numpy() if isinstance(y, Tensor) else y)
        order = drawn.permutation(len(values))
        hot = np.eye(self.num_classes, dtype=np.float32)[labels]
        mixed = share * values + (1 - share) * values[order]
        shares = share * hot + (1 - share) * hot[order]
        return _alike(mixed, x), _alike(shares, y)
