"""Asynchronous all-gathers of shards and reduce-scatters of gradients.

Each has a start and an end. The start copies this rank's data to memory of its own; the
communication thread receives the others'; the end waits for it and copies the result to its place.
A program may end in between. Ranks start them in the order of the program.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from weft.ir.dtype import DType, int64
from weft.ir.node import Value
from weft.ir.shape import Shape, known
from weft.ops.boundary.state import no_cases
from weft.ops.communication.collective import (
    ORDERED,
    alike,
    all_reduce,
    exchange,
    group_of,
    reduced,
)
from weft.ops.communication.exchange_log import logged
from weft.ops.communication.shard import (
    Counts,
    Message,
    Sizes,
    all_parts,
    gather,
    gather_parts,
    join_parts_into,
    own_parts,
    reduce_parts_of,
    scatter_parts,
)
from weft.ops.communication.ticket import begun, ended
from weft.ops.declaration import NO_GRADIENT, Array, Composite, constant_of, defop
from weft.ops.declaration.attribute import REQUIRED
from weft.ops.declaration.fact import Autocast, Facts
from weft.transport.group import Group

MOST_REDUCED: Final = 1
"""The most reductions in flight, each with memory for whole gradients, when another starts."""


def _ticket_dtype(*_: DType, **__: Any) -> tuple[DType, ...]:
    return (int64,)


def _ticket_shape(*_: Shape, **__: Any) -> tuple[Shape, ...]:
    return ((),)


def _whole_dtypes(*_: DType, dtypes: tuple[DType, ...], **__: Any) -> tuple[DType, ...]:
    return (*dtypes, int64)


def _whole_shapes(*_: Shape, shapes: tuple[Sizes, ...], **__: Any) -> tuple[Shape, ...]:
    return (*shapes, ())


# -- all-gather


def _begin_gather(*xs: Array, group: int) -> tuple[Array, ...]:
    members = group_of(group)
    messages = own_parts(xs, members)

    def work() -> list[Message]:
        gather(messages, members)
        return messages

    return (begun(members, work),)


def _end_gather(
    ticket: Array, *_: Array, shapes: tuple[Sizes, ...], dtypes: tuple[DType, ...], group: int
) -> tuple[Array, ...]:
    found = [np.empty(shape, kind.numpy) for shape, kind in zip(shapes, dtypes, strict=True)]
    join_parts_into(ended(ticket), found)
    return (*found, np.array(len(found)))


def _end_gather_into(xs: Sequence[Array], outs: Sequence[Array], **_: Any) -> None:
    join_parts_into(ended(xs[0]), outs[:-1])
    outs[-1][...] = len(outs) - 1


def _end_gather_vjp(
    gs: Any, ys: Any, ticket: Value, *parts: Value, group: int, **_: Any
) -> tuple[Value | None, ...]:
    """The gradient, for the sum of all ranks' losses."""
    if not parts:
        return (None,)
    counts = tuple([known(x.shape)[0] for x in parts])
    found = scatter_parts.all(*gs[: len(parts)], counts=counts, group=group, reduction="sum")
    return (None, *found)


begin_gather = exchange(
    "begin_gather", dtype=_ticket_dtype, shape=_ticket_shape, reference=_begin_gather,
    vjp=NO_GRADIENT, partial=False, group=0,
)  # fmt: skip
"""A number that `end_gather` takes; see `weft.ops.communication.shard.gather_parts`."""

end_gather = exchange(
    "end_gather", inputs="ticket *parts", dtype=_whole_dtypes, shape=_whole_shapes,
    reference=_end_gather, into=_end_gather_into, vjp=_end_gather_vjp, shapes=REQUIRED,
    dtypes=REQUIRED, group=0,
)  # fmt: skip
"""The whole arrays, then their number. If shards are given, gradients flow to them."""


# -- reduce-scatter


def _begin_reduce(
    *xs: Array, counts: Counts, group: int, replicas: int, reduction: str
) -> tuple[Array, ...]:
    members = group_of(group)
    others = None if replicas < 0 else group_of(replicas)
    reductions = members.transport.reductions
    while len(reductions) > MOST_REDUCED:
        waited = reductions.popleft()
        if not waited.done():
            members.transport.result_of(waited)
    messages = all_parts(xs, counts, members)

    def work() -> list[Message]:
        found = reduce_parts_of(messages, reduction, members)
        messages.clear()
        return found if others is None else _reduced_again(found, others, reduction)

    ticket = begun(members, work)
    reductions.append(members.transport.tickets[int(ticket)])
    return (ticket,)


def _reduced_again(
    messages: Sequence[Message], others: Group, reduction: str
) -> list[Message]:  # fmt: skip
    """The reduction over replicas, the ranks with the same shards."""
    rows = reduced(others, [message.rows for message in messages], reduction)
    return [m._replace(rows=found) for m, found in zip(messages, rows, strict=True)]


def _end_reduce(
    ticket: Array, *, shapes: tuple[Sizes, ...], dtypes: tuple[DType, ...]
) -> tuple[Array, ...]:
    found = [np.empty(shape, kind.numpy) for shape, kind in zip(shapes, dtypes, strict=True)]
    join_parts_into(ended(ticket), found)
    return tuple(found)


def _end_reduce_into(xs: Sequence[Array], outs: Sequence[Array], **_: Any) -> None:
    join_parts_into(ended(xs[0]), outs)


begin_reduce = exchange(
    "begin_reduce", dtype=_ticket_dtype, shape=_ticket_shape, reference=_begin_reduce,
    vjp=NO_GRADIENT, partial=False, counts=REQUIRED, group=0, replicas=-1, reduction="mean",
)  # fmt: skip
"""A number that `end_reduce` takes; see `reduce_parts`."""

end_reduce = exchange(
    "end_reduce", inputs="ticket", dtype=lambda *_, dtypes, **__: dtypes,
    shape=lambda *_, shapes, **__: shapes, reference=_end_reduce, into=_end_reduce_into,
    vjp=NO_GRADIENT, facts=Facts(autocast=Autocast.KEPT, late=True), shapes=REQUIRED,
    dtypes=REQUIRED,
)  # fmt: skip

PAIRED: Final = frozenset({begin_gather, end_gather, begin_reduce, end_reduce})
"""Halves of an exchange, between which a program computes something else."""


def _part_shapes(*xs: Shape, counts: Counts, **_: Any) -> tuple[Shape, ...]:
    pairs = zip(xs, counts, strict=True)
    return tuple([None if x is None else (n, *x[1:]) for x, n in pairs])


def _reduce_later(*xs: Value, counts: Counts, **attrs: Any) -> tuple[Value, ...]:
    ticket = begin_reduce.all(*xs, counts=counts, **attrs)[0]
    shapes = tuple([(n, *known(x.shape)[1:]) for x, n in zip(xs, counts, strict=True)])
    return end_reduce.all(ticket, shapes=shapes, dtypes=tuple([x.dtype for x in xs]))


def _reduce_parts(*xs: Array, counts: Counts, **attrs: Any) -> tuple[Array, ...]:
    (ticket,) = _begin_reduce(*xs, counts=counts, **attrs)
    found = [np.empty((n, *x.shape[1:]), x.dtype) for x, n in zip(xs, counts, strict=True)]
    join_parts_into(ended(ticket), found)
    return tuple(found)


def _reduce_parts_vjp(
    gs: Any, ys: Any, *xs: Value, counts: Counts, group: int, replicas: int, reduction: str
) -> tuple[Value, ...]:
    if replicas >= 0:
        gs = all_reduce.all(*gs, reduction=reduction, group=replicas)
    shapes = tuple([known(x.shape) for x in xs])
    whole = gather_parts.all(*gs, shapes=shapes, group=group)[: len(xs)]
    if reduction == "sum":
        return whole
    size = group_of(group).size
    return tuple([g / constant_of(size, g.dtype) for g in whole])


reduce_parts = defop(
    "reduce_parts",
    inputs="*xs",
    attrs={"counts": REQUIRED, "group": 0, "replicas": -1, "reduction": "mean"},
    dtype=alike,
    shape=_part_shapes,
    reference=logged(_reduce_parts, compared=True),
    vjp=_reduce_parts_vjp,
    lower=Composite(_reduce_later),
    cases=no_cases,
    outputs=-1,
    stateful=True,
    partial=True,
    facts=ORDERED,
)
"""This rank's padded shards, of `counts` rows, of the mean or sum of whole arrays over a group.

It is also taken over the group `replicas`, unless that is negative. Programs wait for the shards
when there is nothing else to do.
"""
