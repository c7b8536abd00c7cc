"""Assignment to a subscript: the array that `x` would be after `x[key] = value`."""

from __future__ import annotations

import math
from typing import Any

from weft.errors import ShapeError
from weft.ir.dtype import bool_, int64
from weft.ir.node import Value
from weft.ir.shape import show
from weft.ops.declaration import catalogue, constant_of
from weft.ops.declaration.rule import concrete
from weft.ops.indexing.advanced_index import combining
from weft.ops.indexing.subscript import WHOLE, Item, Key, parsed, picked, sliced
from weft.ops.shape.creation import iota

__all__ = ["subscript_update"]

_PLAIN = {
    "add": "add", "multiply": "multiply", "max": "maximum", "min": "minimum",
}  # fmt: skip


def subscript_update(x: Value, key: Any, value: Any, combine: str = "set") -> Value:
    """`x` after `x[key] = value`, where `value` broadcasts to the shape of `x[key]`.

    Takes what `subscript` takes, and a mask as a boolean value over the leading dimensions of `x`.
    With index arrays the shapes must be known. Gradients flow to `x` and `value`.

    Args:
        combine: `set` (the last of equal positions wins), `add`, `multiply`, `max` or `min`.

    Raises:
        OutOfRangeError, ShapeError: as for `subscript`, or a value that does not broadcast.
    """
    combining(combine)
    update = value if isinstance(value, Value) else constant_of(value, x.dtype)
    if isinstance(key, Value) and key.dtype is bool_:
        return _masked(x, key, update, combine)
    found = parsed(x, key)
    if any(item.kind == "pick" for item in found.items):
        return _scattered(x, found, update, combine)
    part = sliced(x, found)
    if combine != "set":
        old = picked(part, found)
        update = getattr(catalogue, _PLAIN[combine])(old, _fitted(update, concrete(old)))
    begin, end, strides = ([item.bounds[i] for item in found.axes] for i in range(3))
    return catalogue.slice_update(x, _of_rank(update, found), begin=begin, end=end, strides=strides)


def _masked(x: Value, mask: Value, update: Value, combine: str) -> Value:
    rank = len(concrete(mask))
    wide = catalogue.reshape(mask, shape=(*concrete(mask), *[1] * (len(concrete(x)) - rank)))
    if combine != "set":
        update = getattr(catalogue, _PLAIN[combine])(x, update)
    return catalogue.select(wide, update, x)


def _of_rank(update: Value, key: Key) -> Value:
    """The update shaped for the slice: dropped axes have size 1, added ones are removed."""
    dims = concrete(update)
    kept = [item for item in key.items if item.kind != "drop"]
    while len(dims) > len(kept) and dims[0] == 1:  # NumPy forgives leading ones
        dims = dims[1:]
    if len(dims) > len(kept):
        raise ShapeError.here(
            f"subscript_update: expected a value of rank at most {len(kept)}, got shape"
            f" {show(concrete(update))}"
        )
    sizes = iter((*[1] * (len(kept) - len(dims)), *dims))
    shape: list[int] = []
    for item in key.items:
        size = 1 if item.kind == "drop" else next(sizes)
        if item.kind != "new":
            shape.append(size)
        elif size != 1:
            raise ShapeError.here(
                "subscript_update: expected a value of 1 element along an axis that None adds, got"
                f" shape {show(concrete(update))}"
            )
    return catalogue.reshape(update, shape=tuple(shape))


def _fitted(update: Value, shape: tuple[int, ...]) -> Value:
    """The update broadcast to the part of the array that it replaces."""
    dims = concrete(update)
    while len(dims) > len(shape) and dims[0] == 1:  # NumPy forgives leading ones
        dims = dims[1:]
    return catalogue.broadcast_to(catalogue.reshape(update, shape=dims), shape=shape)


def _scattered(x: Value, key: Key, update: Value, combine: str) -> Value:
    """Assign by the row positions that the subscript selects; trailing full axes are the row."""
    items, dims = list(key.items), concrete(x)
    while items and items[-1] == Item("keep", WHOLE):
        items.pop()
    lead = sum(1 for item in items if item.kind != "new")
    size, row = math.prod(dims[:lead]), dims[lead:]
    numbers = iota(shape=(size,), dtype=int64)
    short = Key(tuple(items), key.front)
    places = picked(sliced(catalogue.reshape(numbers, shape=dims[:lead]), short), short)
    count = math.prod(concrete(places))
    wide = _fitted(update, (*concrete(places), *row))
    y = combining(combine)(
        catalogue.reshape(x, shape=(size, *row)),
        catalogue.reshape(places, shape=(count,)),
        catalogue.reshape(wide, shape=(count, *row)),
    )
    return catalogue.reshape(y, shape=dims)
