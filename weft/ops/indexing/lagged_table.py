"""Lazily updated tables: an optimizer's update touches only the rows that have a gradient.

Most optimizers move a row even in steps in which its gradient is zero, because their running means
decay. `lag_update` skips such steps and stores for each row the last step applied. Skipped steps
are applied later, by the optimizer's own rule with a zero gradient: by `lag_gather` when the row is
looked up, by the next update of the row, or at the latest once in `PERIOD` steps. So all values
equal those of updating the whole table, by the same operations in the same order.

Common inputs:

- `clock`: int32 scalar, the step to catch up to, counted from 1.
- `history`: (PERIOD + 1, numbers); row `step % (PERIOD + 1)` is what the rule needs in that step.
- `last`: int32, for each row the last step applied; `NEVER` for one that zeros do not move
  because it had no gradient yet.
- `tables`: the parameter, then the optimizer's state, all of one shape.
- `rule`: a `Subgraph` of (p, g, *state, *numbers), elementwise; it gives the new p and state.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import numpy as np

from weft.errors import DTypeError, ShapeError
from weft.ir.dtype import DType, float32, int32
from weft.ir.node import TensorType, Value
from weft.ir.shape import Dims, Shape, compatible, merge, show
from weft.ops.call import Subgraph, call, trace
from weft.ops.declaration import (
    NO_GRADIENT,
    Array,
    Case,
    Elementwise,
    Opaque,
    catalogue,
    defop,
    op_of,
)
from weft.ops.declaration.attribute import REQUIRED
from weft.ops.declaration.fact import AS_GIVEN
from weft.ops.declaration.rule import index_dtype
from weft.ops.indexing.gather import check_indices, index_fault

PERIOD: Final = 255
"""Steps after which a row is caught up at the latest."""
NEVER: Final = -1
"""`last` of a row without any gradient yet, which does not move without one."""


def is_elementwise(rule: Subgraph) -> bool:
    """Whether a rule computes each element from the same element of its inputs."""
    return all(n.op == "constant" or isinstance(op_of(n).lower, Elementwise) for n in rule.nodes)


def swept(rows: int, clock: int) -> range:
    """The rows that an update catches up even without a gradient."""
    size = -(-rows // PERIOD)
    first = clock % PERIOD * size
    return range(min(first, rows), min(first + size, rows))


def _check_tables(indices: DType, clock: DType, last: DType, floats: tuple[DType, ...]) -> None:
    index_dtype(indices)
    if (clock, last) != (int32, int32) or set(floats) != {float32}:
        raise DTypeError(
            "expected clock and last of int32, and float32 for all others, got"
            f" {clock}, {last}, {', '.join(map(str, floats))}"
        )


def _table_shape(last: Shape, tables: tuple[Shape, ...]) -> Dims:
    """The one shape of all tables, as far as it is known."""
    whole: Shape = None
    for shape in tables:
        if not compatible(whole, shape) or not compatible(last, shape and shape[:1]) or not shape:
            raise ShapeError(
                f"expected tables of one shape and last of as many rows, got last {show(last)}"
                f" and tables {', '.join(map(show, tables))}"
            )
        whole = merge(whole, shape)
    assert whole is not None
    return whole


def _check_history(history: Shape) -> None:
    if history is not None and (len(history) != 2 or history[0] == 0):
        raise ShapeError(f"expected a history of rows of numbers, got {show(history)}")


class _Numbers:
    """The history entries of a step, as arguments of the rule."""

    def __init__(self, history: Array) -> None:
        self.history = history

    def __call__(self, step: int) -> list[Array]:
        row = self.history[step % len(self.history)]
        return [np.asarray(x) for x in row]


def _caught_up(
    tables: list[Array], last: Array, clock: int, history: Array, rule: Subgraph
) -> list[Array]:
    """Rows after all skipped steps up to `clock`, with zero gradients."""
    tables, numbers = [np.array(t) for t in tables], _Numbers(history)
    behind = (last != NEVER) & (last < clock)
    for step in range(int(last[behind].min(initial=clock)) + 1, clock + 1):
        rows = behind & (last < step)
        p, *slots = [t[rows] for t in tables]
        found = call.reference(p, np.zeros_like(p), *slots, *numbers(step), function=rule)
        for table, new in zip(tables, found, strict=True):
            table[rows] = new
    return tables


# lag_gather: up-to-date rows of a table


def _gather_dtype(
    x: DType, indices: DType, clock: DType, last: DType, *floats: DType, **_: Any
) -> DType:
    _check_tables(indices, clock, last, (x, *floats))
    return x


def _gather_shape(
    x: Shape, indices: Shape, clock: Shape, last: Shape, history: Shape, *slots: Shape,
    rule: Subgraph, output: int,
) -> Shape:  # fmt: skip
    assert indices is not None
    _check_history(history)
    return (*indices, *_table_shape(last, (x, *slots))[1:])


def _gather_reference(
    x: Array, indices: Array, clock: Array, last: Array, history: Array, *slots: Array,
    rule: Subgraph, output: int,
) -> Array:  # fmt: skip
    found = check_indices(indices, len(x))
    flat = found.reshape(-1)
    rows = [table[flat] for table in (x, *slots)]
    rows = _caught_up(rows, last[flat], int(clock), history, rule)
    return rows[output].reshape(*found.shape, *x.shape[1:])


# lag_update: the tables after a step in which some rows have a gradient


def _update_dtype(
    indices: DType, g: DType, clock: DType, last: DType, *floats: DType, **_: Any
) -> tuple[DType, ...]:
    _check_tables(indices, clock, last, (g, *floats))
    return (int32, *floats[1:])


def _update_shape(
    indices: Shape, g: Shape, clock: Shape, last: Shape, history: Shape, *tables: Shape,
    rule: Subgraph, first: int,
) -> tuple[Shape, ...]:  # fmt: skip
    table = _table_shape(last, tables)
    assert indices is not None
    _check_history(history)
    if len(indices) != 1 or not _has_rows(g, indices, table[1:], first):
        raise ShapeError(
            f"expected a row of g for each of a row of indices, got indices {show(indices)},"
            f" g {show(g)} and tables {show(table)}"
        )
    return (merge(last, table[:1]), *[table] * len(tables))


def _has_rows(g: Shape, indices: Dims, row: Dims, first: int) -> bool:
    """Whether g may have a table row for each index, from column `first` on if it is wider."""
    if g is None or len(g) != 2 or len(row) != 1:
        return not first and compatible(g, (*indices, *row))
    columns, wanted = g[1], row[0]
    fits = columns is None or wanted is None or 0 <= first <= columns - wanted
    return fits and compatible(g[:1], indices)


def _update_reference(
    indices: Array, g: Array, clock: Array, last: Array, history: Array, *tables: Array,
    rule: Subgraph, first: int,
) -> tuple[Array, ...]:  # fmt: skip
    g = g if g.ndim != 2 else g[:, first : first + tables[0].shape[1]]
    now, found = int(clock), check_indices(indices, len(last))
    touched = np.zeros(len(last), bool)
    touched[found] = True
    due = np.zeros(len(last), bool)
    due[swept(len(last), now)] = True
    due = (due & (last != NEVER)) & ~touched
    last, done = np.array(last), [np.array(t) for t in tables]
    for rows, until in ((touched, now - 1), (due, now)):
        caught = _caught_up([t[rows] for t in done], last[rows], until, history, rule)
        for table, new in zip(done, caught, strict=True):
            table[rows] = new
    total = np.zeros_like(tables[0])
    np.add.at(total, found, g)
    p, *slots = [t[touched] for t in done]
    numbers = _Numbers(history)(now)
    for table, new in zip(
        done, call.reference(p, total[touched], *slots, *numbers, function=rule), strict=True
    ):
        table[touched] = new
    last[touched | due] = now
    return (last, *done)


def traced_rule(function: Any, slots: int, numbers: int) -> Subgraph:
    """A rule of (p, g, *state, *numbers) as a `Subgraph`."""
    row, scalar = TensorType(float32, (1,)), TensorType(float32, ())
    return trace(function, [row] * (2 + slots) + [scalar] * numbers)


def _decaying(p: Value, g: Value, m: Value, v: Value, a: Value, b: Value) -> tuple[Value, ...]:
    m, v = m * a + g, v * b + g * g
    return p - m / (catalogue.sqrt(v) + 0.01), m, v


def _tables(rows: int, width: int) -> tuple[list[Array], Array, Array, Array]:
    rng = np.random.default_rng(rows)
    tables = [rng.uniform(0.1, 1, (rows, width)).astype(np.float32) for _ in range(3)]
    last = rng.integers(NEVER, 7, rows).astype(np.int32)
    history = rng.uniform(0.8, 0.99, (PERIOD + 1, 2)).astype(np.float32)
    return tables, last, history, np.array(6, np.int32)


def _gather_cases() -> Iterator[Case]:
    rule = traced_rule(_decaying, 2, 2)
    for rows, width, picked in ((9, 5, 4), (300, 70, 40), (5, 1, 3), (4, 16, 0)):
        (p, m, v), last, history, clock = _tables(rows, width)
        for kind in (np.int32, np.int64):
            indices = (np.arange(picked, dtype=kind) * 7 % rows).reshape(-1, 1 + (picked % 2 == 0))
            for output in range(3):
                attrs = {"rule": rule, "output": output}
                yield Case((p, indices, clock, last, history, m, v), attrs, rtol=1e-5)


def _update_cases() -> Iterator[Case]:
    rule = traced_rule(_decaying, 2, 2)
    for rows, width, picked in ((9, 5, 12), (300, 70, 40), (5, 1, 3), (4, 16, 0), (600, 64, 90)):
        tables, last, history, clock = _tables(rows, width)
        indices = np.arange(picked, dtype=np.int64) * 7 % max(rows // 2, 1)
        rng = np.random.default_rng(picked)
        g = rng.uniform(-1, 1, (picked, width)).astype(np.float32)
        inputs = (indices, g, clock, np.minimum(last, 5), history, *tables)
        yield Case(inputs, {"rule": rule}, rtol=1e-5)
        wide = np.concatenate([np.full((picked, 3), 9, np.float32), g, -g], axis=1)
        yield Case((indices, wide, *inputs[2:]), {"rule": rule, "first": 3}, rtol=1e-5)


lag_gather = defop(
    "lag_gather",
    inputs="x indices clock last history *slots",
    attrs={"rule": REQUIRED, "output": 0},
    dtype=_gather_dtype,
    shape=_gather_shape,
    reference=_gather_reference,
    vjp=NO_GRADIENT,
    lower=Opaque("lag_gather", fault=index_fault),
    cases=_gather_cases,
    facts=AS_GIVEN,
)
"""Rows of table number `output`, after all steps up to `clock`."""

lag_update = defop(
    "lag_update",
    inputs="indices g clock last history *tables",
    attrs={"rule": REQUIRED, "first": 0},
    dtype=_update_dtype,
    shape=_update_shape,
    reference=_update_reference,
    vjp=NO_GRADIENT,
    lower=Opaque("lag_update"),
    cases=_update_cases,
    outputs=-1,
    facts=AS_GIVEN,
)
"""`last` and the tables after step `clock`, with gradient `g` in the rows `indices`.

`g` may be wider than the tables; then its columns from `first` on are used."""
