"""Asynchronous reductions over ranks: started when inputs are ready, finished when needed.

In between, the communication thread reduces while the program goes on. In a program all starts come
before all ends (see `reduced_later`), so later gradients are computed while the first buckets are
reduced, and the first are used while the last are reduced.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np

from weft.ir.dtype import DType, int64
from weft.ir.node import Value
from weft.ir.shape import Shape
from weft.ops.communication.collective import all_reduce, exchange, group_of, reduce_into
from weft.ops.communication.ticket import begun, ended
from weft.ops.declaration import NO_GRADIENT, Array
from weft.transport.reduction import check_reduction


def _begin(*xs: Array, reduction: str, group: int) -> tuple[Array, ...]:
    found = [np.empty((), np.int64), *[np.empty(x.shape, x.dtype) for x in xs]]
    _begin_into(xs, found, reduction, group)
    return tuple(found)


def _begin_into(xs: Sequence[Array], outs: Sequence[Array], reduction: str, group: int) -> None:
    members, (ticket, *ys) = group_of(group), outs
    for x, y in zip(xs, ys, strict=True):
        if not is_same(x, y):
            y[...] = x
    ticket[...] = begun(members, lambda: reduce_into(members, ys, ys, reduction))


def is_same(x: Array, y: Array) -> bool:
    """Whether two arrays of one type and shape share their memory."""
    return x.ctypes.data == y.ctypes.data


def _begun_dtype(*dtypes: DType, reduction: str, **_: Any) -> tuple[DType, ...]:
    for dtype in dtypes:
        check_reduction(reduction, dtype.numpy)
    return (int64, *dtypes)


def _begun_shapes(*shapes: Shape, **_: Any) -> tuple[Shape, ...]:
    return ((), *shapes)


begin_all_reduce = exchange(
    "begin_all_reduce", dtype=_begun_dtype, shape=_begun_shapes, reference=_begin,
    into=_begin_into, vjp=NO_GRADIENT, partial=False, reduction="sum", group=0,
)  # fmt: skip
"""A ticket for `end_all_reduce`, and result memory that is written until then."""


def _end(ticket: Array, *ys: Array) -> tuple[Array, ...]:
    ended(ticket)
    return ys


def _end_into(given: Sequence[Array], outs: Sequence[Array]) -> None:
    for y, out in zip(_end(*given), outs, strict=True):
        if not is_same(y, out):
            out[...] = y


def _ended_shapes(_: Shape, *shapes: Shape) -> tuple[Shape, ...]:
    return shapes


end_all_reduce = exchange(
    "end_all_reduce", inputs="ticket *ys", dtype=lambda _, *dtypes: dtypes, shape=_ended_shapes,
    reference=_end, into=_end_into, vjp=NO_GRADIENT, compared=False,
)  # fmt: skip
"""The results of `begin_all_reduce`, once reduced."""


def reduced_later(
    *xs: Value, buckets: Sequence[int], reduction: str = "sum", group: int = 0
) -> tuple[Value, ...]:
    """Reduce values over ranks, in buckets of these sizes; a single bucket synchronously."""
    if len(buckets) == 1:
        return all_reduce.all(*xs, reduction=reduction, group=group)
    ends = np.cumsum([0, *buckets]).tolist()
    parts = [xs[a:b] for a, b in itertools.pairwise(ends)]
    begin = functools.partial(begin_all_reduce.all, reduction=reduction, group=group)
    found: list[Value] = []
    for running in [begin(*part) for part in parts]:
        found += end_all_reduce.all(*running)
    return tuple(found)


__all__ = ["reduced_later"]
