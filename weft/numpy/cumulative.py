"""Builds NumPy's cumulative functions from operations that run along an axis."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from weft.eager.tensor.dispatch import cast, record, wrap
from weft.errors import ShapeError
from weft.ir.dtype import DType, int64, uint64
from weft.numpy.convert import array_like, typed
from weft.numpy.manipulation import axis_within, concat, ravel
from weft.ops.declaration import Op

if TYPE_CHECKING:
    from weft.numpy.array import ndarray


def counted(x: Any, dtype: Any) -> Any:
    """The input of a sum: integers become 64-bit unless a dtype is given."""
    x = array_like(x)
    kind: DType = x.dtype
    if dtype is None and not kind.is_inexact:
        dtype = uint64 if kind.kind == "u" else int64
    return typed(x, dtype)


def of_numpy(op: Op) -> Callable[..., ndarray]:
    """NumPy's function; without an axis, of the flattened array."""

    def function(a: Any, axis: int | None = None, dtype: Any = None) -> ndarray:
        return _running(op, ravel(a) if axis is None else a, axis, dtype)

    return function


def of_standard(op: Op) -> Callable[..., ndarray]:
    """The function of the array API standard; `include_initial` begins with the neutral element."""

    def function(
        x: Any, /, *, axis: int | None = None, dtype: Any = None, include_initial: bool = False
    ) -> ndarray:
        return _running(op, x, axis, dtype, include_initial)

    return function


def _running(op: Op, x: Any, axis: Any, dtype: Any, initial: bool = False) -> Any:
    """The cumulative results along an axis.

    Raises:
        ShapeError: no axis is given for an array of rank above 1.
    """
    x = counted(x, dtype)
    if axis is None:
        if x.ndim > 1:
            raise ShapeError.here(f"{op.name}: expected an axis for an array of rank {x.ndim}")
        x, axis = ravel(x), 0
    at = axis_within(op.name, axis, x.ndim)
    y = wrap(record(op, (x.lazy,), {"axis": at})[0], x)
    return _with_neutral(op, y, at) if initial else y


def _with_neutral(op: Op, y: Any, axis: int) -> Any:
    """`y` with the neutral element prepended along an axis."""
    neutral = op.reference(np.ones(1), axis=0, exclusive=True, reverse=False)
    dims = (*y.shape[:axis], 1, *y.shape[axis + 1 :])
    first = wrap(cast(array_like(neutral).lazy, y.dtype), y).broadcast_to(dims)
    return concat([first, y], axis=axis)
