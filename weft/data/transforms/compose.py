"""Composition of transforms, and their random numbers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from weft.eager.tensor.generator import default_generator
from weft.pipeline.call import element_random

__all__ = ["Compose", "Lambda", "RandomApply"]


def random() -> np.random.Generator:
    """The element's generator in a pipeline, else one that follows `weft.manual_seed`."""
    return element_random() or np.random.Generator(np.random.Philox(key=default_generator.next()))


class Compose:
    """Applies transforms one after the other.

    Args:
        transforms: functions of an image.

    >>> Compose([lambda x: x + 1, lambda x: x * 2])(3)
    8
    """

    def __init__(self, transforms: Sequence[Callable[[Any], Any]]) -> None:
        self.transforms = list(transforms)

    def __call__(self, image: Any) -> Any:
        """The result of the last transform."""
        for transform in self.transforms:
            image = transform(image)
        return image


class RandomApply:
    """Applies all transforms with probability `p`, else none.

    Args:
        transforms: functions of an image.
        p: the probability.
    """

    def __init__(self, transforms: Sequence[Callable[[Any], Any]], p: float = 0.5) -> None:
        self.transforms = Compose(transforms)
        self.p = p

    def __call__(self, image: Any) -> Any:
        """The image, transformed or not."""
        return self.transforms(image) if random().random() < self.p else image


class Lambda:
    """A function as a transform.

    Args:
        lambd: the function.
    """

    def __init__(self, lambd: Callable[[Any], Any]) -> None:
        self.lambd = lambd

    def __call__(self, image: Any) -> Any:
        """What the function returns."""
        return self.lambd(image)
