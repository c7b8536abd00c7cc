"""`x.at[key]`: updates of an immutable array, each a new array."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, TypeGuard

import numpy as np

from weft.eager.functions.indexing import subscript
from weft.eager.functions.shape.joining import cat
from weft.eager.tensor.dispatch import recorded, wrap
from weft.errors import ArgumentError
from weft.ir.dtype import bool_
from weft.jax.array import Array, as_array, shape_of, strong, taken
from weft.jax.numpy.creation import asarray, ones_like
from weft.numpy.elementwise import clip
from weft.numpy.searching import where
from weft.ops.indexing.advanced_index import lies_outside, rows_or_end

__all__ = ["At"]

_rows_or_end: Final = recorded(rows_or_end, differentiable=False)
_lies_outside: Final = recorded(lies_outside, differentiable=False)
_MODES: Final = (None, "clip", "drop", "fill", "wrap", "promise_in_bounds", "one_hot")


def _is_index(entry: Any) -> TypeGuard[Array]:
    return isinstance(entry, Array) and entry.dtype.is_integer


def _integers(shape: Sequence[int], entries: Sequence[Any]) -> dict[int, int]:
    """Which entries of a subscript are integers, lists or arrays of them, and their axes."""
    taking = [_axes(e) for e in entries]
    found: dict[int, int] = {}
    axis = 0
    for k, e in enumerate(entries):
        axis += len(shape) - sum(taking) if e is Ellipsis else 0
        if (type(e) in (int, list) or _is_index(e)) and axis < len(shape):
            found[k] = axis
        axis += taking[k]
    return found


def _entries(key: Any) -> list[Any]:
    """The parts of a subscript, lists of Python's numbers as arrays."""
    taken_all = [taken(e) for e in (key if isinstance(key, tuple) else (key,))]
    return [as_array(np.asarray(e)) if isinstance(e, list) and e else e for e in taken_all]


def inside(shape: Sequence[int], key: Any) -> Any:
    """A subscript whose integers are clamped to the array, as in JAX."""
    entries = _entries(key)
    for k, axis in _integers(shape, entries).items():
        entries[k] = _limited(entries[k], shape[axis])
    return tuple(entries) if isinstance(key, tuple) else entries[0]


def _limited(entry: Any, size: int) -> Any:
    """An index or indices within an axis that has elements."""
    low, high = -size, size - 1
    if type(entry) is int and size:
        return min(max(entry, low), high)
    return clip(strong(entry), low, high) if _is_index(entry) and size else entry


def _axes(entry: Any) -> int:
    """How many axes a subscript consumes."""
    if entry is None or entry is Ellipsis or isinstance(entry, bool):
        return 0
    return entry.ndim if isinstance(entry, Array) and entry.dtype is bool_ else 1


def _values(x: Any) -> Any:
    return asarray(x) if isinstance(x, list | tuple) else as_array(x)


def _is_inexact(x: Any) -> bool:
    return x.dtype.is_inexact if isinstance(x, Array) else isinstance(x, float)


class _Place:
    """The elements at a subscript."""

    def __init__(self, x: Array, key: Any) -> None:
        self.x, self.key = x, key

    def get(
        self, *, mode: Any = None, fill_value: Any = None, indices_are_sorted: bool = False,
        unique_indices: bool = False, wrap_negative_indices: bool = True, out_sharding: Any = None,
    ) -> Array:  # fmt: skip
        """The elements; outside the array the nearest ones, or `fill_value` with mode "fill"."""
        found = self.x[self.key]
        if mode != "fill":
            return found
        outside, before = self._outside()
        if outside is None:
            return found
        value = fill_value if fill_value is not None else np.nan if found.dtype.is_inexact else 0
        after = (1,) * (found.ndim - before - outside.ndim)
        return where(outside.reshape((*outside.shape, *after)), value, found)

    def set(self, values: Any, **options: Any) -> Array:
        """The array with other elements there."""
        return self._updated(values, "set", **options)

    def add(self, values: Any, **options: Any) -> Array:
        """The array with values added, once for each time that a position occurs."""
        return self._updated(values, "add", **options)

    def subtract(self, values: Any, **options: Any) -> Array:
        """The array with values subtracted."""
        return self._updated(-_values(values), "add", **options)

    def multiply(self, values: Any, **options: Any) -> Array:
        """The array with elements multiplied."""
        return self._updated(values, "multiply", **options)

    mul = multiply

    def divide(self, values: Any, **options: Any) -> Array:
        """The array with elements divided."""
        return self.x / self._factors(values, options)

    def min(self, values: Any, **options: Any) -> Array:
        """The array with the smaller of each element and value."""
        return self._updated(values, "min", **options)

    def max(self, values: Any, **options: Any) -> Array:
        """The array with the larger of each element and value."""
        return self._updated(values, "max", **options)

    def power(self, values: Any, **options: Any) -> Array:
        """The array with elements raised to powers."""
        return self.x ** self._factors(values, options)

    def _factors(self, values: Any, options: dict[str, Any]) -> Array:
        """Ones, with values at the subscript."""
        return _Place(ones_like(self.x), self.key).multiply(values, **options)

    def apply(self, func: Callable[[Any], Any], **options: Any) -> Array:
        """The array with a function applied to elements."""
        return self._updated(func(self.x[self.key]), "set", **options)

    def _updated(
        self, values: Any, combine: str, *, mode: Any = None, indices_are_sorted: bool = False,
        unique_indices: bool = False, wrap_negative_indices: bool = True, out_sharding: Any = None,
    ) -> Array:  # fmt: skip
        if mode is not None and str(mode).rpartition(".")[2].lower() not in _MODES:
            raise ArgumentError.here(f"at: expected a mode of {_MODES[1:]}, got {mode!r}")
        x, values, shape = self.x, _values(values), shape_of(self.x)
        if combine != "set" and not x.dtype.is_inexact and _is_inexact(values):
            wide = _Place(x.astype(float), self.key)._updated(values, combine, mode=mode)
            return wide.astype(x.dtype)
        key = taken(self.key)
        if isinstance(key, Array) and key.dtype is bool_ and np.ndim(values) == 0:
            return self._masked(key, values, combine)
        outside, _ = (None, 0) if mode in ("clip", "promise_in_bounds") else self._outside()
        if outside is None or not isinstance(values, Array | int | float | complex):
            return subscript.updated(x, inside(shape, self.key), values, combine)  # type: ignore[return-value]
        # What lies outside goes to the end of an axis that is longer by one.
        entries = _entries(self.key)
        axes = _integers(shape, entries)
        (first, axis), *rest = axes.items()
        size = shape[axis]
        if not size:
            return x
        before = (slice(None),) * axis
        whole = cat([x, x[(*before, slice(0, 1))]], axis)
        entries[first] = where(outside, size, _rows_or_end(entries[first], size=size))
        for k, other in rest:
            entries[k] = _limited(entries[k], shape[other])
        found = subscript.updated(whole, tuple(entries), values, combine)
        return found[(*before, slice(0, size))]  # type: ignore[return-value]

    def _masked(self, mask: Array, values: Any, combine: str) -> Array:
        x = self.x
        wide = mask.reshape((*mask.shape, *(1,) * (x.ndim - mask.ndim)))
        if combine == "set":
            new = values
        elif combine in ("add", "multiply"):
            new = x + values if combine == "add" else x * values
        else:
            new = where(x < values if combine == "max" else x > values, values, x)
        return where(wide, new, x).astype(x.dtype)

    def _outside(self) -> tuple[Any, int]:
        """Where indices lie outside their axes, and how many axes of slices come before.

        `None` if there are no indices, or all are known to lie inside.
        """
        shape, entries = shape_of(self.x), _entries(self.key)
        axes = _integers(shape, entries)
        if not axes:
            return None, 0
        indices, places = [entries[k] for k in axes], [*axes.values()]
        sizes = tuple([shape[axis] for axis in places])
        found = _lies_outside(*map(asarray, indices), sizes=sizes)
        if all(map(_is_known, indices)) and not found.any():
            return None, 0
        together = places == [*range(places[0], places[-1] + 1)]
        return found, places[0] if together else 0


def _is_known(entry: Any) -> bool:
    return type(entry) is int or entry.lazy.array is not None


class At:
    """`x.at`: subscripted, it gives updates."""

    def __init__(self, x: Array) -> None:
        self.x = x

    def __getitem__(self, key: Any) -> _Place:
        return _Place(self.x, key)


def _get(self: Array, key: Any) -> Any:
    found: Any = subscript.get(self, inside(shape_of(self), key))
    return found if found.kind is self.kind else wrap(found.lazy, self)


setattr(Array, "at", property(At, doc="Updates: `x.at[key].set(y)` is a new array."))  # noqa: B010
setattr(Array, "__getitem__", _get)  # noqa: B010
