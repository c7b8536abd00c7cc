"""Images as users write them, (N, C, spatial...), around operations that take channels last.

The transposes of neighbouring layers cancel when the graph is simplified.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from weft.eager.tensor.argument import integer, sizes
from weft.errors import ShapeError
from weft.ir.node import Value
from weft.ir.shape import known, show
from weft.ops.base import at_user_line, catalogue


def to_last(x: Value) -> Value:
    """(N, C, spatial...) as (N, spatial..., C)."""
    rank = len(known(x.shape))
    return x if rank < 3 else catalogue.transpose(x, perm=(0, *range(2, rank), 1))


def to_first(x: Value) -> Value:
    """(N, spatial..., C) as (N, C, spatial...)."""
    rank = len(known(x.shape))
    return x if rank < 3 else catalogue.transpose(x, perm=(0, rank - 1, *range(1, rank - 1)))


def channels_last(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function of images (N, spatial..., C) as one of images (N, C, spatial...).

    Its first argument and all its results are images.
    """

    @functools.wraps(function)
    def run(x: Value, *rest: Any, **static: Any) -> Any:
        y = function(to_last(x), *rest, **static)
        return tuple(map(to_first, y)) if isinstance(y, tuple) else to_first(y)

    return run


def batched(rank: int) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """A decorator: images without N, of `rank` - 1 dimensions, are a batch of one."""

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def run(x: Value, *rest: Any, **static: Any) -> Any:
            if len(known(x.shape)) != rank - 1:
                return function(x, *rest, **static)
            y = function(catalogue.expand_dims(x, axis=0), *rest, **static)
            if isinstance(y, tuple):
                return tuple([catalogue.squeeze(part, axes=(0,)) for part in y])
            return catalogue.squeeze(y, axes=(0,))

        return run

    return decorate


def check_image(name: str, shape: Sequence[int], spatial: int) -> None:
    """An image has N or not, channels, and as many spatial dimensions as named.

    Raises:
        ShapeError: it has not.
    """
    if len(shape) not in (spatial + 1, spatial + 2):
        dims = ", ".join(("D", "H", "W")[-spatial:]) if spatial > 1 else "L"
        raise ShapeError(
            f"{name}: expected an input (N, C, {dims}) or (C, {dims}), got shape "
            f"{show(tuple(shape))}{at_user_line()}"
        )


def sizes_of(name: str, value: Any, count: int, one_for_all: bool = True) -> tuple[int, ...]:
    """One number for all spatial dimensions, or one each.

    Args:
        one_for_all: whether a sequence of one number is one for all as well.

    Raises:
        DTypeError: something else than whole numbers.
        ShapeError: another number of them.
    """
    if isinstance(value, list | tuple):
        found = sizes(name, (value,))
        if len(found) == 1 and one_for_all:
            return found * count
        if len(found) != count:
            raise ShapeError(f"{name}: expected 1 or {count} numbers, got {found}{at_user_line()}")
        return found
    return (integer(name, value),) * count
