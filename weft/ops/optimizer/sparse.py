"""Update rules on the rows of a table that have a gradient, in time that does not depend on it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from weft.ir.dtype import int32
from weft.ir.node import Value
from weft.ops.declaration import catalogue
from weft.ops.indexing.gather import gather
from weft.ops.indexing.scatter import scatter_set
from weft.ops.indexing.sort import argsort
from weft.ops.shape.creation import full, zeros_like


def summed_rows(indices: Value, rows: Value) -> tuple[Value, Value]:
    """Indices in ascending order, and for each the sum of the rows that have it.

    A repeated index is repeated here, with the whole sum each time, so that shapes stay known.

    Args:
        indices: (n), 0 or more.
        rows: (n, ...).
    """
    order = argsort(indices)
    ascending = gather(indices, order)
    before = catalogue.concatenate(full((1,), -1, indices.dtype), ascending[:-1], axis=0)
    begins = catalogue.cast(catalogue.not_equal(ascending, before), dtype=int32)
    group = catalogue.cumsum(begins, axis=0) - 1
    totals = catalogue.scatter_add(zeros_like(rows), group, gather(rows, order))
    return ascending, gather(totals, group)


def updated_rows(
    tables: Sequence[Value], indices: Value, rows: Value, update: Callable[..., Sequence[Value]],
    rates: Sequence[Value],
) -> list[Value]:  # fmt: skip
    """A parameter and its slots after a rule for the rows with a gradient; others stay as they are.

    Args:
        tables: the parameter, then its slots.
        update: from (g, p, *slots, *rates) to the new values of p and slots.
    """
    places, totals = summed_rows(indices, rows)
    new = update(totals, *[gather(table, places) for table in tables], *rates)
    pairs = zip(tables, new, strict=True)
    return [scatter_set(table, places, values) for table, values in pairs]
