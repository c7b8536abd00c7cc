"""Checks of images (N, C, spatial...) and of per-dimension options."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, TypeVar

from weft.documentation import named
from weft.eager.tensor.argument import integer, sizes
from weft.errors import ShapeError
from weft.ir.shape import show

F = TypeVar("F", bound=Callable[..., Any])

_DIMS: Final = {1: "L", 2: "H, W", 3: "D, H, W"}
_WINDOW: Final = {1: "k", 2: "kh, kw", 3: "kd, kh, kw"}


def of_rank(spatial: int) -> Callable[[F], F]:
    """A decorator for a function that is made for each number of spatial dimensions.

    `pool` becomes `pool2d`; in its docstring, `{image}` becomes `(N, C, H, W) or (C, H, W)`, and
    `{window}` becomes `kh, kw`.

    Args:
        spatial: the number of spatial dimensions.
    """
    dims = _DIMS[spatial]

    def placed(function: F) -> F:
        doc = (function.__doc__ or "").replace("{image}", f"(N, C, {dims}) or (C, {dims})")
        doc = doc.replace("{window}", _WINDOW[spatial]).replace("{rank}", f"{spatial}d")
        return named(f"{function.__name__}{spatial}d", doc)(function)

    return placed


def check_image(name: str, shape: Sequence[int], spatial: int) -> None:
    """Check that an image has optional N, channels, and the given number of spatial dimensions.

    Raises:
        ShapeError: the rank differs.
    """
    if len(shape) not in (spatial + 1, spatial + 2):
        dims = _DIMS[spatial]
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
