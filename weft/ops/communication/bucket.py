"""A reduction over ranks in two parts: it begins when its inputs are there, and ends when needed.

In between the communication thread works on it while the program goes on. Within a program all
that begin come before all that end (see `reduced_later`), so that the last buckets' gradients are
computed while the first are under way, and the first are used while the last are.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np

from weft.errors import DistributedError
from weft.ir.dtype import DType, int64
from weft.ir.node import Value
from weft.ir.shape import Shape
from weft.ops.base import NO_GRADIENT, Array
from weft.ops.communication.collective import all_reduce, exchange, group_of, reduced
from weft.transport import session
from weft.transport.reduction import check_reduction


def _begin(*xs: Array, reduction: str, group: int) -> tuple[Array, ...]:
    members = group_of(group)
    transport = members.transport
    number = next(transport.numbers)
    transport.tickets[number] = transport.submit(lambda: reduced(members, xs, reduction))
    return (np.array(number),)


def _begun_dtype(*dtypes: DType, reduction: str, **_: Any) -> tuple[DType, ...]:
    for dtype in dtypes:
        check_reduction(reduction, dtype.numpy)
    return (int64,)


begin_all_reduce = exchange(
    "begin_all_reduce", dtype=_begun_dtype, shape=lambda *_, **__: ((),), reference=_begin,
    vjp=NO_GRADIENT, partial=False, reduction="sum", group=0,
)  # fmt: skip


def _end(ticket: Array, *_: Array) -> tuple[Array, ...]:
    joined = session.current()
    if joined is None:
        raise DistributedError("the process group has ended before a call that it has begun")
    return joined.transport.tickets.pop(int(ticket)).result()


def _ended_shapes(_: Shape, *shapes: Shape) -> tuple[Shape, ...]:
    return shapes


end_all_reduce = exchange(
    "end_all_reduce", inputs="ticket *xs", dtype=lambda _, *dtypes: dtypes, shape=_ended_shapes,
    reference=_end, vjp=NO_GRADIENT,
)  # fmt: skip
"""Results of `begin_all_reduce`; the same inputs, which have to stay as they are until then."""


def reduced_later(
    *xs: Value, buckets: Sequence[int], reduction: str = "sum", group: int = 0
) -> tuple[Value, ...]:
    """Reduce values over ranks, in buckets of so many values each; at once if there is but one."""
    if len(buckets) == 1:
        return all_reduce.all(*xs, reduction=reduction, group=group)
    ends = np.cumsum([0, *buckets]).tolist()
    parts = [xs[a:b] for a, b in itertools.pairwise(ends)]
    begin = functools.partial(begin_all_reduce.all, reduction=reduction, group=group)
    tickets = [begin(*part)[0] for part in parts]
    found: list[Value] = []
    for ticket, part in zip(tickets, parts, strict=True):
        found += end_all_reduce.all(ticket, *part)
    return tuple(found)


__all__ = ["reduced_later"]
