"""Channels-first images, (N, C, spatial...), for operations that take channels last.

The transposes of adjacent layers cancel when the graph is simplified.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from weft.ir.node import Value
from weft.ir.shape import known
from weft.ops.declaration import catalogue


def to_last(x: Value) -> Value:
    """(N, C, spatial...) as (N, spatial..., C)."""
    rank = len(known(x.shape))
    return x if rank < 3 else catalogue.transpose(x, perm=(0, *range(2, rank), 1))


def to_first(x: Value) -> Value:
    """(N, spatial..., C) as (N, C, spatial...)."""
    rank = len(known(x.shape))
    return x if rank < 3 else catalogue.transpose(x, perm=(0, rank - 1, *range(1, rank - 1)))


def channels_last(function: Callable[..., Any]) -> Callable[..., Any]:
    """Turn a function of images (N, spatial..., C) into one of images (N, C, spatial...).

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
