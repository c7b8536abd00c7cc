"""Checks of images (N, C, spatial...) and of per-dimension options."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from weft.eager.tensor.argument import integer, sizes
from weft.errors import ShapeError
from weft.ir.shape import show


def check_image(name: str, shape: Sequence[int], spatial: int) -> None:
    """Check that an image has optional N, channels, and the given number of spatial dimensions.

    Raises:
        ShapeError: the rank differs.
    """
    if len(shape) not in (spatial + 1, spatial + 2):
        dims = ", ".join(("D", "H", "W")[-spatial:]) if spatial > 1 else "L"
        raise ShapeError.here(
            f"{name}: expected an input (N, C, {dims}) or (C, {dims}), got shape "
            f"{show(tuple(shape))}"
        )


def sizes_of(name: str, value: Any, count: int, one_for_all: bool = True) -> tuple[int, ...]:
    """One number for all spatial dimensions, or one each, as a tuple.

    Args:
        one_for_all: whether a sequence of one number also stands for all.

    Raises:
        DTypeError: something other than integers.
        ShapeError: the number of entries is wrong.
    """
    if isinstance(value, list | tuple):
        numbers = sizes(name, (value,))
        if len(numbers) == 1 and one_for_all:
            return numbers * count
        if len(numbers) != count:
            raise ShapeError.here(f"{name}: expected 1 or {count} numbers, got {numbers}")
        return numbers
    return (integer(name, value),) * count
