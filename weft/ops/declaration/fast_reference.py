"""Runs a scalar lowering rule on whole arrays with NumPy: the `fast` form of slow references."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from weft.ir.dtype import DType
from weft.ops.declaration.op import Array


class Arrays:
    """The part of the emitter protocol that rules of special functions use, on arrays."""

    abs, floor, round, sqrt = np.abs, np.floor, np.rint, np.sqrt
    exp, log, sin, cos = np.exp, np.log, np.sin, np.cos
    minimum, maximum, select = np.minimum, np.maximum, staticmethod(np.where)
    less, less_equal, equal = operator.lt, operator.le, operator.eq
    bit_and, bit_or = operator.and_, operator.or_

    @staticmethod
    def const(value: float, dtype: DType) -> Any:
        """A number."""
        return dtype.numpy.type(value)

    @staticmethod
    def cast(x: Any, dtype: DType | np.dtype[Any]) -> Array:
        """The numbers as another dtype."""
        return np.asarray(x).astype(dtype.numpy if isinstance(dtype, DType) else dtype)

    @staticmethod
    def fma(x: Any, y: Any, z: Any) -> Any:
        """`x * y + z`, rounded twice here."""
        return x * y + z


_ROWS = 1 << 14  # elements at a time, so that intermediates stay in the cache


def on_whole_arrays(rule: Callable[..., Any]) -> Callable[..., Array]:
    """A scalar rule as a function of an array."""
    emitter = Arrays()

    def run(x: Array, **attrs: Any) -> Array:
        flat = np.ascontiguousarray(x).reshape(-1)
        found = np.empty_like(flat)
        with np.errstate(all="ignore"):
            for i in range(0, flat.size, _ROWS):
                found[i : i + _ROWS] = rule(emitter, flat[i : i + _ROWS], **attrs)
        return found.reshape(x.shape)

    return run
