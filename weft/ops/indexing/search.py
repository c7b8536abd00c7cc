"""Insertion positions of values in sorted rows."""

from __future__ import annotations

from weft.ir import dtype as types
from weft.ir.node import Value
from weft.ops.declaration import catalogue, constant_of
from weft.ops.indexing.sort import comes_before
from weft.ops.linalg.matrix import dims


def places_in_order(
    ordered: Value, values: Value, *, side: str, int32: bool = False, nan_last: bool = False
) -> Value:
    """Insertion positions in sorted rows; with `nan_last`, NaNs go after existing ones."""
    if len(ordered.shape or ()) == 1:
        places = catalogue.searchsorted(ordered, values, side=side)
    else:
        row, column = (
            catalogue.expand_dims(ordered, axis=-2),
            catalogue.expand_dims(values, axis=-1),
        )
        before = catalogue.cast(comes_before(row, column, side), dtype=types.int32)
        places = catalogue.sum(before, axes=(-1,))
    if nan_last and values.dtype.is_floating:
        end = constant_of(dims(ordered)[-1], types.int32)
        places = catalogue.select(catalogue.not_equal(values, values), end, places)
    return catalogue.cast(places, dtype=types.int32 if int32 else types.int64)
