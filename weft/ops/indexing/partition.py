"""Ids divided among the parts of a table, each of which then looks up its own."""

from __future__ import annotations

from typing import Any

import numpy as np

from weft.errors import OutOfRangeError
from weft.ir.dtype import DType, int32
from weft.ir.shape import Shape
from weft.ops.boundary.state import no_cases
from weft.ops.declaration import HOSTED, NO_GRADIENT, Array, Opaque, defop
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


def room(most: int) -> int:
    """The rows that a part gets room for: a power of two, so that few programs are compiled.

    >>> [room(n) for n in (0, 1, 2, 3, 100)]
    [0, 1, 2, 4, 128]
    """
    return 1 << (most - 1).bit_length() if most else 0


def _checked(ids: Array, rows: int | None) -> Array:
    flat = ids.reshape(-1)
    low, high = (0, 0) if not flat.size else (flat.min(), flat.max())
    if low < 0 or (rows is not None and high >= rows and flat.size):
        wrong = low if low < 0 else high
        limit = "0 or more" if rows is None else f"from 0 to {rows - 1}"
        raise OutOfRangeError(f"expected ids {limit}, got {wrong}")
    return flat


def _sizes(ids: Array, *, parts: int, rows: int | None, unique: bool) -> tuple[Array]:
    flat = _checked(ids, rows)
    part, _ = owners(np.unique(flat) if unique else flat, parts, rows)
    counts = np.bincount(part, minlength=parts)
    most = room(int(counts.max(initial=0)))
    return (np.where(counts, most, 0).astype(np.int32),)


def _partition(
    ids: Array, *, parts: int, rows: int | None, unique: bool, sizes: Any
) -> tuple[Array, ...]:
    flat = _checked(ids, rows)
    again: Array | None = None
    if unique:
        flat, again = np.unique(flat, return_inverse=True)
    part, row = owners(flat, parts, rows)
    order = np.argsort(part.astype(np.uint8 if parts <= 256 else np.int32), kind="stable")
    counts = np.bincount(part, minlength=parts)
    begins = np.cumsum([0, *sizes[:-1]])
    places = np.empty(len(flat), np.int32)
    shift = np.repeat(begins - np.cumsum([0, *counts[:-1]]), counts)
    places[order] = np.arange(len(flat)) + shift
    places = places if again is None else places[again]
    found = np.split(row[order].astype(ids.dtype), np.cumsum(counts[:-1]))
    padded = [_padded(x, int(size)) for x, size in zip(found, sizes, strict=True)]
    return (*padded, places.reshape(ids.shape))


def _padded(rows: Array, size: int) -> Array:
    """Rows with the first one repeated: it is looked up anyway, and gets no more gradient."""
    return np.concatenate([rows, np.repeat(rows[:1], size - len(rows))]) if size else rows


def _types(ids: DType, *, parts: int, **_: Any) -> tuple[DType, ...]:
    return (*[ids] * parts, int32)


def _shapes(ids: Shape, *, parts: int, sizes: Any, **_: Any) -> tuple[Shape, ...]:
    known = (None,) * parts if sizes is None else sizes
    return (*[(None if size is None else int(size),) for size in known], ids)


partition_sizes = defop(
    "partition_sizes",
    inputs="ids",
    attrs={"parts": REQUIRED, "rows": None, "unique": False},
    dtype=lambda ids, **_: (int32,),
    shape=lambda ids, *, parts, **_: ((parts,),),
    reference=_sizes,
    vjp=NO_GRADIENT,
    lower=Opaque(HOSTED),
    cases=no_cases,
    outputs=-1,
    partial=True,
    facts=Facts(autocast=Autocast.KEPT),
)
"""How many rows each part of a table has room for when these ids are looked up: enough for the part
that most of them belong to, none where none belongs."""


partition_ids = defop(
    "partition_ids",
    inputs="ids",
    attrs={"parts": REQUIRED, "rows": None, "unique": False, "sizes": REQUIRED},
    dtype=_types,
    shape=_shapes,
    reference=_partition,
    vjp=NO_GRADIENT,
    lower=Opaque(HOSTED),
    cases=no_cases,
    outputs=-1,
    partial=True,
    facts=Facts(autocast=Autocast.KEPT),
)
"""For each part the rows to look up there, then the place of each id among all these rows.

`gather(concatenate(*rows of the parts), places)` are the rows of the ids. With `unique`, no row is
looked up twice. `sizes` are those of `partition_sizes`; unused room repeats a row.
"""
