"""NumPy's subscripts on values, in terms of slice, gather and reshapes."""

from __future__ import annotations

import operator
from typing import Any, Final

import numpy as np

from weft.errors import GraphError, OutOfRangeError, ShapeError
from weft.ir.node import Value
from weft.ops.base import at_user_line, catalogue, constant_of, is_complete, known_value

__all__ = ["subscript"]

FIRST: Final = -(1 << 31)  # beyond every begin; a bound of `slice` is clamped to the array
LAST: Final = (1 << 31) - 1


def subscript(x: Value, key: Any) -> Value:
    """`x[key]` for integers, slices, `...`, `None`, and one-dimensional or scalar integer values.

    Bounds of slices may be values. A value or list of integers picks entries along its axis.

    Raises:
        OutOfRangeError: an integer outside a dimension that is known.
        ShapeError: more subscripts than axes, or an unknown rank where it is needed.
    """
    items = _without_ellipsis(x, key if isinstance(key, tuple) else (key,))
    begin: list[Any] = []
    end: list[Any] = []
    strides: list[Any] = []
    after: list[tuple[str, Any]] = []  # what to do to the sliced array: (kind, index) by new axis
    for item in items:
        if item is None:
            after.append(("new", None))
            continue
        kind, bounds = _bounds(item, x, len(begin))
        after.append((kind, item))
        for into, bound in zip((begin, end, strides), bounds, strict=True):
            into.append(bound)
    if any(bounds != (0, LAST, 1) for bounds in zip(begin, end, strides, strict=True)):
        x = catalogue.slice(x, begin=begin, end=end, strides=strides)
    return _reshaped(x, after)


def _reshaped(x: Value, after: list[tuple[str, Any]]) -> Value:
    axis = 0
    for kind, item in after:
        if kind == "drop":
            x = catalogue.squeeze(x, axes=(axis,))
            continue
        if kind == "new":
            x = catalogue.expand_dims(x, axis=axis)
        elif kind == "pick":
            x = catalogue.gather(x, item, axis=axis)
            axis += _rank_of(item)
            continue
        axis += 1
    return x


def _rank_of(item: Any) -> int:
    rank = item.rank if isinstance(item, Value) else 1
    if rank is None:
        raise ShapeError(
            "subscript: expected indices of known rank, got <unknown>" + at_user_line()
        )
    return rank


def _without_ellipsis(x: Value, items: tuple[Any, ...]) -> list[Any]:
    """The subscripts with `...` replaced by as many full slices as the rank asks for."""
    named = sum(1 for item in items if item is not None and item is not ...)
    dots = [i for i, item in enumerate(items) if item is ...]
    if len(dots) > 1:
        raise GraphError("subscript: expected at most one '...'" + at_user_line())
    if x.rank is None:
        raise ShapeError(f"subscript: expected a value of known rank, got {x!r}" + at_user_line())
    if named > x.rank:
        raise ShapeError(
            f"subscript: expected at most {x.rank} subscripts, got {named}" + at_user_line()
        )
    at = dots[0] if dots else len(items)
    fill = [slice(None)] * (x.rank - named)
    return [*items[:at], *fill, *items[at + 1 :]]


def _bounds(item: Any, x: Value, axis: int) -> tuple[str, tuple[Any, Any, Any]]:
    """What becomes of an axis (keep, drop, pick), and its begin, end and stride."""
    if isinstance(item, Value) and item.rank == 0 and is_complete(known_value(item)):
        item = known_value(item)
    if isinstance(item, np.ndarray) and item.ndim:
        item = constant_of(item)
    if isinstance(item, np.integer | np.ndarray):
        item = operator.index(item) if np.issubdtype(item.dtype, np.integer) else item
    if isinstance(item, bool | np.bool_):
        raise GraphError(f"subscript: expected no boolean, got {item}" + at_user_line())
    if isinstance(item, int):
        return "drop", (*_single(item, x, axis), 1)
    if isinstance(item, slice):
        return "keep", _range(item)
    if isinstance(item, Value | list):
        return "pick", (0, LAST, 1)
    raise GraphError(
        f"subscript: expected an integer, a slice, '...', None or integer values, got {item!r}"
        + at_user_line()
    )


def _single(index: int, x: Value, axis: int) -> tuple[int, int]:
    assert x.shape is not None
    dim = x.shape[axis]
    if dim is not None and not -dim <= index < dim:
        raise OutOfRangeError(
            f"subscript: expected {-dim} <= index < {dim} on axis {axis}, got {index}"
            + at_user_line()
        )
    return index, LAST if index == -1 else index + 1


def _range(item: slice) -> tuple[Any, Any, Any]:
    step = 1 if item.step is None else item.step
    if isinstance(step, Value) and (item.start is None or item.stop is None):
        raise GraphError(
            "subscript: expected both bounds where the step is a value" + at_user_line()
        )
    forward = isinstance(step, Value) or step > 0
    begin = (0 if forward else LAST) if item.start is None else item.start
    end = (LAST if forward else FIRST) if item.stop is None else item.stop
    return begin, end, step
