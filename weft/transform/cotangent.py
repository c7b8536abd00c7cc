"""Cotangents of one value or node: their sum, checks and defaults."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from weft.errors import GraphError
from weft.ir.node import Node, Value
from weft.ir.shape import Shape, compatible, show
from weft.ops.call import barrier
from weft.ops.control.stack import is_on_stack, sum_of_stacks
from weft.ops.declaration import catalogue
from weft.ops.indexing.row_sparse import Cotangent as Cotangent
from weft.ops.indexing.row_sparse import RowSparse, sum_rows
from weft.ops.indexing.row_sparse import dense as dense
from weft.ops.shape.creation import zeros_like
from weft.transform.interpreter import place


def add_up(parts: Sequence[Cotangent]) -> Cotangent | None:
    """The sum of cotangents; `RowSparse` if all of them are."""
    if not parts:
        return None
    if len(parts) == 1 and isinstance(parts[0], Value):
        return parts[0]
    rows = [p for p in parts if isinstance(p, RowSparse)]
    dense = [p for p in parts if isinstance(p, Value)]
    if not dense:
        return sum_rows(rows)
    total = dense[0] if len(dense) == 1 else _sum(dense)
    return sum_rows(rows).added_to(total) if rows else total


def _sum(values: Sequence[Value]) -> Value:
    return sum_of_stacks(values) if is_on_stack(values[0]) else catalogue.add_n(*values)


def checked(g: Cotangent, x: Value, node: Node) -> Cotangent:
    """A rule's result, after checking that it can be a cotangent of `x`."""
    if isinstance(g, Value) and g.type == x.type:
        return g
    shape: Shape = g.shape if isinstance(g, Value) else x.shape
    if g.dtype is not x.dtype or not compatible(shape, x.shape):
        raise GraphError(
            f"{node.op}: expected its gradient rule to give {x.type} for {x.name},"
            f" got {g.dtype} of shape {show(shape)} ({place(node)})"
        )
    return g


def filled(gs: Sequence[Cotangent | None], ys: Sequence[Value]) -> list[Cotangent | None]:
    """Cotangents, with zeros for floating-point outputs that have none."""
    return [
        zeros_like(y) if g is None and y.dtype.is_inexact else g
        for g, y in zip(gs, ys, strict=True)
    ]


def together(gs: Sequence[Cotangent | None]) -> list[Cotangent | None]:
    """The cotangents behind one barrier; `RowSparse` stays so."""
    values = [g.values if isinstance(g, RowSparse) else g for g in gs if g is not None]
    held = iter(barrier.all(*values))
    return [replace(g, values=next(held)) if isinstance(g, RowSparse) else g and next(held)
            for g in gs]  # fmt: skip
