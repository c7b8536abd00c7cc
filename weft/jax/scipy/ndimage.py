"""`jax.scipy.ndimage`: values between elements."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from weft.eager.tensor.dispatch import recorded
from weft.jax.array import given
from weft.jax.numpy import api as _numpy
from weft.jax.numpy.common import array_of, floating_of
from weft.ops.indexing import coordinate

__all__ = ["map_coordinates"]

_sampled = recorded(coordinate.map_coordinates)


def map_coordinates(
    input: Any, coordinates: Sequence[Any], order: int, mode: str = "constant", cval: float = 0.0
) -> Any:
    """Values of an array at coordinates, one array an axis, which may lie between elements."""
    x = array_of(input)
    whole = floating_of(x) if order else x
    places = [floating_of(c) for c in coordinates]
    found = given(
        _sampled(whole, _numpy.asarray(cval, whole.dtype), *places, order=order, mode=mode)
    )
    return found if found.dtype == x.dtype else _numpy.round(found).astype(x.dtype)
