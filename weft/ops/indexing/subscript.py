"""NumPy's subscripts on values, in terms of slice, gather and reshapes."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, cast

import numpy as np

from weft.errors import GraphError, OutOfRangeError, ShapeError
from weft.ir.dtype import bool_
from weft.ir.node import Value, at_user_line
from weft.ir.shape import Dim
from weft.ops.declaration import Array, catalogue, constant_of
from weft.ops.declaration.attribute import known_value
from weft.ops.indexing.advanced_index import take_nd

__all__ = ["subscript"]

FIRST: Final = -(1 << 31)  # beyond every index; bounds of `slice` are clamped to the array
LAST: Final = (1 << 31) - 1
WHOLE: Final = (0, LAST, 1)


@dataclass(frozen=True)
class Item:
    """The effect of a subscript on one axis."""

    kind: str  # keep, drop, pick, or new for an added axis
    bounds: tuple[Any, Any, Any] = WHOLE  # begin, end, stride
    index: Any = None  # of pick: integers as a value


@dataclass(frozen=True)
class Key:
    """A parsed subscript: one item for each axis of the array and each added axis."""

    items: tuple[Item, ...]
    front: bool  # whether the dimensions of index arrays come first, as these are not adjacent

    @property
    def axes(self) -> tuple[Item, ...]:
        """The items of the array's own axes."""
        return tuple(item for item in self.items if item.kind != "new")


def subscript(x: Value, key: Any) -> Value:
    """`x[key]` for integers, slices, `...`, `None`, arrays or values of integers, and masks.

    Bounds of slices may be values. Index arrays broadcast against each other, as in NumPy. Masks
    are boolean arrays and not values, since their contents decide the shape.

    Raises:
        OutOfRangeError: an integer outside a known dimension.
        ShapeError: more subscripts than axes, or a rank that is needed but unknown.
    """
    found = parsed(x, key)
    return picked(sliced(x, found), found)


def sliced(x: Value, key: Key) -> Value:
    """The part of `x` that slices and integers select, with the rank of `x`."""
    bounds = [item.bounds for item in key.axes]
    if all(entry == WHOLE for entry in bounds):
        return x
    begin, end, strides = ([entry[i] for entry in bounds] for i in range(3))
    return catalogue.slice(x, begin=begin, end=end, strides=strides)


def picked(x: Value, key: Key) -> Value:
    """The sliced array after dropping axes, adding axes and picking."""
    axis = 0
    indices: list[Value | None] = []
    for item in key.items:
        if item.kind == "drop":
            x = catalogue.squeeze(x, axes=(axis,))
        elif item.kind == "pick" and item.index.rank == 0:
            x = take_nd(x, [*[None] * axis, item.index])
        else:
            x = catalogue.expand_dims(x, axis=axis) if item.kind == "new" else x
            indices.append(item.index)
            axis += 1
    return take_nd(x, indices, key.front)


# Parsing a subscript


@dataclass(frozen=True)
class _Pick:
    """An index array, or a mask's positions along one of its axes, of `size` entries."""

    index: Value | Array
    size: int | None = None


def parsed(x: Value, key: Any) -> Key:
    """Parse a subscript of `x`.

    Raises:
        GraphError, OutOfRangeError, ShapeError: as for `subscript`.
    """
    given = cast("tuple[Any, ...]", key if isinstance(key, tuple) else (key,))
    entries = [part for entry in given for part in _entries(entry)]
    filled = _without_ellipsis(x, entries)
    items: list[Item] = []
    axis = 0
    for entry in filled:
        if entry is None:
            items.append(Item("new"))
            continue
        assert x.shape is not None
        items.append(_item(entry, x.shape[axis], axis))
        axis += 1
    return Key(tuple(items), _apart(entries))


def _apart(entries: Sequence[Any]) -> bool:
    """Whether index arrays, and integers beside them, are not all adjacent."""
    if not any(isinstance(entry, _Pick) for entry in entries):
        return False
    places = [i for i, entry in enumerate(entries) if isinstance(entry, _Pick | int)]
    return places[-1] - places[0] >= len(places)


def _entries(entry: Any) -> list[Any]:
    """A subscript as an integer, a slice, `...`, `None` or picks; a mask gives several."""
    if isinstance(entry, Value):
        return [_of_value(entry)]
    if entry is None or entry is ... or isinstance(entry, slice):
        return [entry]
    if isinstance(entry, bool | np.bool_):
        raise GraphError.here(f"subscript: expected no boolean, got {entry}")
    if isinstance(entry, list | tuple | np.ndarray):
        return _of_array(cast("Any", entry))
    try:
        return [operator.index(entry)]
    except TypeError:
        raise _unfit(entry) from None


def _of_value(entry: Value) -> Any:
    if entry.dtype is bool_:
        raise GraphError.here(
            "subscript: expected a mask as an array of booleans, since how many of them hold"
            f" decides the shape, got {entry!r}; select keeps the shape"
        )
    if not entry.dtype.is_integer:
        raise _unfit(entry)
    if entry.rank is None:
        raise ShapeError.here("subscript: expected indices of known rank, got <unknown>")
    known = known_value(entry) if entry.rank == 0 else None
    return known if isinstance(known, int) else _Pick(entry)


def _of_array(entry: Any) -> list[Any]:
    try:
        array = np.asarray(entry)
    except (TypeError, ValueError):
        raise _unfit(entry) from None
    if not array.size and not isinstance(entry, np.ndarray):
        array = array.astype(np.int32)
    if array.dtype.kind == "b" and array.ndim:
        return [_Pick(n, d) for n, d in zip(array.nonzero(), array.shape, strict=True)]
    if array.dtype.kind not in "iu":
        raise _unfit(entry)
    return [_Pick(array)] if array.ndim else [int(array)]


def _unfit(entry: Any) -> GraphError:
    return GraphError(
        f"subscript: expected an integer, a slice, '...', None or integer values, got {entry!r}"
        + at_user_line()
    )


def _without_ellipsis(x: Value, entries: Sequence[Any]) -> list[Any]:
    """The subscripts with `...` replaced by full slices."""
    named = sum(1 for entry in entries if entry is not None and entry is not ...)
    dots = [i for i, entry in enumerate(entries) if entry is ...]
    if len(dots) > 1:
        raise GraphError.here("subscript: expected at most one '...'")
    if x.rank is None:
        raise ShapeError.here(f"subscript: expected a value of known rank, got {x!r}")
    if named > x.rank:
        raise ShapeError.here(f"subscript: expected at most {x.rank} subscripts, got {named}")
    at = dots[0] if dots else len(entries)
    fill = [slice(None)] * (x.rank - named)
    return [*entries[:at], *fill, *entries[at + 1 :]]


def _item(entry: Any, dim: Dim, axis: int) -> Item:
    if isinstance(entry, int):
        _check(entry, dim, axis)
        return Item("drop", (entry, LAST if entry == -1 else entry + 1, 1))
    if isinstance(entry, slice):
        return Item("keep", _range(entry))
    assert isinstance(entry, _Pick)
    if entry.size is not None and dim is not None and entry.size != dim:
        raise ShapeError.here(
            f"subscript: expected a mask of {dim} entries along axis {axis}, got {entry.size}"
        )
    if isinstance(entry.index, Value):
        return Item("pick", index=entry.index)
    return Item("pick", index=constant_of(_checked(entry.index, dim, axis)))


def _checked(index: Array, dim: Dim, axis: int) -> Array:
    """Indices as int32 or int64, counted from the front if the dimension is known."""
    index = index if index.dtype in (np.int32, np.int64) else index.astype(np.int64)
    if dim is None:
        return index
    for bad in index[(index < -dim) | (index >= dim)].reshape(-1)[:1]:
        _check(int(bad), dim, axis)
    return np.where(index < 0, index + dim, index).astype(index.dtype)


def _check(index: int, dim: Dim, axis: int) -> None:
    if dim is not None and not -dim <= index < dim:
        raise OutOfRangeError.here(
            f"subscript: expected {-dim} <= index < {dim} on axis {axis}, got {index}"
        )


def _range(item: slice) -> tuple[Any, Any, Any]:
    step = 1 if item.step is None else item.step
    if isinstance(step, Value) and (item.start is None or item.stop is None):
        raise GraphError.here("subscript: expected both bounds where the step is a value")
    forward = isinstance(step, Value) or step > 0
    begin = (0 if forward else LAST) if item.start is None else item.start
    end = (LAST if forward else FIRST) if item.stop is None else item.stop
    return begin, end, step
