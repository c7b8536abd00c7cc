"""Ids divided among the parts of a table, each of which then looks up its own."""

from __future__ import annotations

from typing import Any

import numpy as np

from weft.errors import OutOfRangeError
from weft.ir.dtype import DType, int32
from weft.ir.shape import Shape
from weft.ops.boundary.state import no_cases
from weft.ops.declaration import NO_GRADIENT, Array, Boundary, defop
from weft.ops.declaration.attribute import REQUIRED
from weft.ops.declaration.fact import Autocast, Facts


def owners(ids: Array, parts: int, rows: int | None) -> tuple[Array, Array]:
    """The part that has each id, and its row there.

    Args:
        rows: of the whole table, whose parts are ranges of ids, the first ones longer by one if it
            does not divide; with `None`, id i is row i // parts of part i % parts.

    >>> owners(np.arange(5), 2, None)
    (array([0, 1, 0, 1, 0]), array([0, 0, 1, 1, 2]))
    >>> owners(np.arange(5), 2, 5)
    (array([0, 0, 0, 1, 1]), array([0, 1, 2, 0, 1]))
    """
    if rows is None:
        return ids % parts, ids // parts
    size, longer = divmod(rows, parts)
    late = ids >= longer * (size + 1)
    base = np.where(late, ids - longer, ids)
    width = np.where(late, max(size, 1), size + 1)
    return base // width, base % width


def _partition(ids: Array, *, parts: int, rows: int | None, unique: bool) -> tuple[Array, ...]:
    flat = ids.reshape(-1)
    low, high = (0, 0) if not flat.size else (flat.min(), flat.max())
    if low < 0 or (rows is not None and high >= rows and flat.size):
        wrong = low if low < 0 else high
        limit = "0 or more" if rows is None else f"from 0 to {rows - 1}"
        raise OutOfRangeError(f"expected ids {limit}, got {wrong}")
    again: Array | None = None
    if unique:
        flat, again = np.unique(flat, return_inverse=True)
    part, row = owners(flat, parts, rows)
    order = np.argsort(part.astype(np.uint8 if parts <= 256 else np.int32), kind="stable")
    places = np.empty(len(flat), np.int32)
    places[order] = np.arange(len(flat), dtype=np.int32)
    places = places if again is None else places[again]
    ends = np.cumsum(np.bincount(part, minlength=parts)[:-1])
    found = np.split(row[order].astype(ids.dtype), ends)
    return (*found, places.reshape(ids.shape))


def _types(ids: DType, *, parts: int, **_: Any) -> tuple[DType, ...]:
    return (*[ids] * parts, int32)


def _shapes(ids: Shape, *, parts: int, **_: Any) -> tuple[Shape, ...]:
    return (*[(None,)] * parts, ids)


partition_ids = defop(
    "partition_ids",
    inputs="ids",
    attrs={"parts": REQUIRED, "rows": None, "unique": False},
    dtype=_types,
    shape=_shapes,
    reference=_partition,
    vjp=NO_GRADIENT,
    lower=Boundary(),
    cases=no_cases,
    outputs=-1,
    partial=True,
    facts=Facts(autocast=Autocast.KEPT, host=True),
)
"""For each part the rows to look up there, then the place of each id among all these rows.

`gather(concatenate(*rows of the parts), places)` are the rows of the ids. With `unique`, no row is
looked up twice.
"""
