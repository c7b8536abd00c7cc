"""Updates of only those rows of a table that have a gradient (`weft.ops.indexing.lagged_table`).

The parameter and its state look as if the whole table had been updated. Reading all of it computes
the overdue updates; a lookup computes them for its own rows only.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from weft.eager.functions.api import Tensor
from weft.eager.record.pending.lazy import Lazy, begun, entry, serials
from weft.eager.record.pending.state import computing, trace
from weft.eager.tensor.dispatch import Recorded, leaf, wrap
from weft.eager.tensor.scalar import number
from weft.ir.dtype import int32
from weft.ir.node import Value
from weft.ir.shape import known
from weft.ops.call import Subgraph
from weft.ops.declaration import catalogue
from weft.ops.indexing.lagged_table import NEVER, PERIOD, is_elementwise, traced_rule
from weft.ops.indexing.row_sparse import RowSparse
from weft.ops.shape.creation import iota

Flags = tuple[tuple[str, Any], ...]


@functools.lru_cache(maxsize=256)
def rule_of(
    rule: Callable[..., Any], slots: int, numbers: tuple[str, ...], flags: Flags
) -> Subgraph | None:
    """The optimizer's rule, traced for the code generator; `None` if it is not elementwise."""

    def function(p: Value, g: Value, *rest: Value) -> tuple[Value, ...]:
        hyper = dict(zip(numbers, rest[slots:], strict=True))
        return rule(p, g, *rest[:slots], hyper=hyper, **dict(flags)).values

    traced = traced_rule(function, slots, len(numbers))
    return traced if is_elementwise(traced) else None


class Lagged:
    """A parameter and its state as tables whose rows may be behind in their updates."""

    def __init__(self) -> None:
        self._tables: list[Tensor] = []
        self._last: Tensor | None = None
        # the fully updated values that parameter and state hold, computed when they are read
        self._shown: list[Lazy] = []
        self._history: np.ndarray[Any, Any] | None = None
        self._clock = 0

    def __deepcopy__(self, memo: Any) -> Lagged:
        return Lagged()  # a copied parameter and its state start as fully updated tables

    def step(
        self, whole: Sequence[Tensor], g: Lazy, rule: Subgraph, numbers: Sequence[float],
        clock: int, idle: bool,
    ) -> None:  # fmt: skip
        """Record the update of a parameter by its gradient.

        Args:
            whole: the parameter and its state.
            g: the gradient.
            clock: the number of the step, from 1.
            idle: whether a zero gradient leaves alone a row that has had no gradient yet.
        """
        olds = [tensor.lazy for tensor in whole]
        shown = len(olds) == len(self._shown) and all(map(_is, olds, self._shown))
        shown = shown and self._clock == clock - 1
        follows = shown and all([x.array is None for x in olds])
        if follows:
            olds = [table.lazy for table in self._tables]
        else:
            seen = self._seen(known(olds[0].type.shape)[0], clock, idle, shown)
            self._last = wrap(leaf(seen, olds[0]))
        assert self._last is not None
        now, history = number(clock, int32), leaf(self._noted(numbers, clock), olds[0])
        inputs = (g, now, self._last.lazy, history, *olds)
        last, *news = trace.now.record(_UPDATE.plan(inputs, {"rule": rule}), inputs)
        self._last.replace_soon(last)
        self._show(whole, olds, news, follows, _later((now, last, history, *news), rule))
        self._clock = clock

    def _seen(self, rows: int, clock: int, idle: bool, shown: bool) -> np.ndarray[Any, Any]:
        """The last step that was applied to each row."""
        if shown and self._last is not None:  # all rows were read, so all are up to date
            before = self._last.array
            return np.where(before == NEVER, NEVER, clock - 1).astype(np.int32)
        return np.full(rows, NEVER if clock == 1 and idle else clock - 1, np.int32)

    def _noted(self, numbers: Sequence[float], clock: int) -> np.ndarray[Any, Any]:
        """The history of hyperparameters, with those of this step."""
        if self._history is None or self._history.shape[1] != len(numbers):
            self._history = np.zeros((PERIOD + 1, len(numbers)), np.float32)
        self._history[clock % (PERIOD + 1)] = numbers
        return self._history

    def _show(
        self, whole: Sequence[Tensor], olds: Sequence[Lazy], news: Sequence[Lazy], follows: bool,
        shown: list[Lazy],
    ) -> None:  # fmt: skip
        """Let the new tables reuse the memory; `whole` holds the fully updated values."""
        tables: list[Tensor] = []
        items = zip(whole, olds, news, shown, strict=True)
        with computing:
            for i, (tensor, old, new, value) in enumerate(items):
                place = old if old.array is not None else old.home
                tensor.replace_soon(value)
                value.home = None
                if follows:
                    self._tables[i].replace_soon(new)
                    tables.append(self._tables[i])
                else:
                    tables.append(wrap(new))
                    new.home, old.home = place, None
            self._tables, self._shown = tables, shown


def _is(x: Lazy, y: Lazy) -> bool:
    return x is y


def _update_rows(
    g: Any, now: Value, last: Value, history: Value, *tables: Value, rule: Subgraph
) -> tuple[Value, ...]:
    if isinstance(g, RowSparse):
        indices, rows = g.indices, g.values
    else:
        indices, rows = iota(shape=known(last.shape), dtype=int32), g
    return catalogue.lag_update.all(indices, rows, now, last, history, *tables, rule=rule)


def _whole(
    now: Value, last: Value, history: Value, p: Value, *slots: Value, rule: Subgraph
) -> list[Value]:
    """The fully updated parameter and state; a lookup in one is simplified to its own rows."""
    rows = iota(shape=known(last.shape), dtype=int32)
    return [
        catalogue.lag_gather(p, rows, now, last, history, *slots, rule=rule, output=i)
        for i in range(1 + len(slots))
    ]


_UPDATE: Final = Recorded(_update_rows, differentiable=False, rows=True)
_WHOLE: Final = Recorded(_whole, differentiable=False, rows=False)


def _later(inputs: tuple[Lazy, ...], rule: Subgraph) -> list[Lazy]:
    """The values of `_whole`, recorded without being computed until they are read."""
    plan = _WHOLE.plan(inputs, {"rule": rule})
    record = entry(plan, inputs, next(serials))
    record.outputs = outputs = [begun(Lazy(), t, record, i) for i, t in enumerate(plan.types)]
    return outputs
