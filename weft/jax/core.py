"""`jax.core`: names that programs use in annotations and checks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from weft.jax.array import Array as ShapedArray
from weft.jax.array import Array as Tracer
from weft.jax.device import Jaxpr as Jaxpr

DeviceArray = ShapedArray


def safe_map(f: Callable[..., Any], *xs: Sequence[Any]) -> list[Any]:
    """`map` of sequences of one length, as a list."""
    return [f(*row) for row in zip(*xs, strict=True)]


def safe_zip(*xs: Sequence[Any]) -> list[tuple[Any, ...]]:
    """`zip` of sequences of one length, as a list."""
    return list(zip(*xs, strict=True))


__all__ = ["DeviceArray", "Jaxpr", "ShapedArray", "Tracer", "partial", "safe_map", "safe_zip"]
