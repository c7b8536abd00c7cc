"""Collectives that move rows in graphs: their work on arrays, and Horovod's gradients."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from weft import ops
from weft.horovod import reduction
from weft.horovod.process_set import ProcessSet
from weft.horovod.reduction import Reduction
from weft.ir.dtype import DType, int64
from weft.ir.node import Value
from weft.ir.shape import Shape
from weft.ops.communication.exchange_log import logged
from weft.transport.base import Array

Rule = Callable[..., tuple[Array, ...]]


def once(work: Callable[..., Any]) -> Rule:
    """A collective on arrays that runs once even if a step is computed several times."""

    def call(*xs: Array) -> tuple[Array, ...]:
        results = work(*[np.asarray(x, order="C") for x in xs])
        return tuple(results) if isinstance(results, list | tuple) else (results,)

    return logged(call, compared=True)


class Movement:
    """The collectives of a process set; the gradient of each uses the others.

    Gradients take and return values of the graph, as `weft.ops.boundary.state.host_call` requires.
    """

    def __init__(self, process_set: ProcessSet) -> None:
        self._set = process_set
        self.gather = once(lambda x: reduction.gather(process_set.group, x).whole)

    def exchange(self, dtype: DType) -> Rule:
        """An exchange of rows by splits; returns the rows and their numbers."""

        def work(x: Array, splits: Array | None = None) -> list[Array]:
            shares = None if splits is None else [int(n) for n in splits]
            rows, taken = reduction.exchange(self._set.group, x, shares)
            return [rows, np.array(taken, dtype.numpy)]

        return once(work)

    def scatter(self, how: Reduction) -> Rule:
        """A reduce-scatter: this rank's rows of a reduction."""
        return once(lambda x: reduction.scatter(self._set.group, x, how))

    def gather_vjp(self, g: Any, y: Any, x: Value) -> tuple[Value]:
        """This rank's rows of the mean."""
        members = self._set.group
        mean = ops.all_reduce.all(_first(g), reduction="mean", group=members.number)[0]

        def own_rows(x: Array) -> Array:
            counts = np.array([x.shape[0]], np.int64)
            first, last = reduction.gather(members, counts).own_of_counts(members)
            return np.arange(first, last)

        rows = _call(once(own_rows), (int64,), ((x.shape or (None,))[:1],), None, x)[0]
        return (ops.gather(mean, rows, axis=0),)

    def exchange_vjp(self, g: Any, y: Any, x: Value, *splits: Value) -> tuple[Value | None, ...]:
        """The rows' gradients, sent back by the receivers of the rows."""
        back, dtype = self.exchange(y[1].dtype), y[1].dtype
        shapes = (x.shape, (self._set.size(),))
        returned = _call(back, (x.dtype, dtype), shapes, self.exchange_vjp, _first(g), y[1])
        return (returned[0], *[None] * len(splits))

    def scatter_vjp(self, how: Reduction) -> Callable[..., tuple[Value]]:
        """All ranks' rows."""
        scale = reduction.scatter_scale(self._set.group, how)

        def vjp(g: Any, y: Any, x: Value) -> tuple[Value]:
            own = _first(g)
            own = own if scale == 1.0 else own * ops.declaration.constant_of(scale, own.dtype)
            return _call(self.gather, (x.dtype,), (x.shape,), self.gather_vjp, own)

        return vjp


def _first(g: Any) -> Value:
    return g[0] if isinstance(g, tuple) else g


def _call(
    function: Rule, dtypes: tuple[DType, ...], shapes: tuple[Shape, ...], gradient: Any,
    *xs: Value,
) -> Any:  # fmt: skip
    return ops.host_call.all(
        *xs, function=function, dtypes=dtypes, shapes=shapes, gradient=gradient
    )
