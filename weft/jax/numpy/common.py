"""What functions of `jax.numpy` share."""

from __future__ import annotations

from typing import Any

import weft.numpy as plain
from weft.jax.array import Array, jaxed, strong
from weft.jax.numpy import creation, kind


def _public(function: Any) -> Any:
    function.__globals__["__all__"].append(function.__name__)
    return function


def _array(x: Any) -> Any:
    return strong(creation.asarray(x))


def _floating(x: Any) -> Any:
    x = _array(x)
    return x if x.dtype.is_inexact else x.astype(float)


_where = jaxed(plain.where, True)


def _axes(axis: Any, rank: int) -> Any:
    return tuple(range(rank)) if axis is None else axis


def _values(x: Any) -> Any:
    if isinstance(x, Array):
        return x.array
    return type(x)(map(_values, x)) if type(x) in (list, tuple) else x


def dtype_promoted(*xs: Any) -> list[Any]:
    """Arrays of their common dtype."""
    return kind.promoted(*[creation.asarray(x) for x in xs])
