"""What a unit of sharded parameters computes with: rows of each rank, not always as many."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from weft.ir.dtype import DType
from weft.ir.node import Value
from weft.ir.shape import known
from weft.ops.base import Composite, catalogue, defop
from weft.ops.boundary.state import no_cases
from weft.ops.communication.collective import group_of
from weft.ops.communication.overlap import begin_gather, end_gather, reduce_parts
from weft.ops.communication.shard import Sizes, part_of, rows_of
from weft.ops.declaration.fact import Again, Autocast, Facts
from weft.transport.group import Group


def begin_whole(
    *shards: Value, shapes: Sequence[Sizes], group: int, dtype: DType | None = None
) -> tuple[Value, ...]:
    """Begin to gather values of these shapes from each rank's rows: the ticket, and padded parts.

    Args:
        dtype: under way, and of the results.
    """
    size = group_of(group).size
    parts: list[Value] = []
    for x, shape in zip(shards, shapes, strict=True):
        missing = part_of(shape[0], size) - known(x.shape)[0]
        cast = x if dtype is None else catalogue.cast(x, dtype=dtype)
        ends = ((0, missing), *((0, 0),) * (len(shape) - 1))
        parts.append(catalogue.pad(cast, paddings=ends) if missing else cast)
    return (*begin_gather.all(*parts, group=group), *parts)


def begin_shards(*shards: Value, **static: Any) -> tuple[Value, ...]:
    """`begin_whole` of what no gradient flows to: the ticket alone."""
    return begin_whole(*shards, **static)[:1]


def end_shards(
    ticket: Value, *, shapes: tuple[Sizes, ...], dtypes: tuple[DType, ...], group: int
) -> tuple[Value, ...]:
    """The whole values, and behind them their number."""
    return end_gather.all(ticket, shapes=shapes, dtypes=dtypes, group=group)


def scatter_mean(
    *wholes: Value, rows: Sequence[int], group: int, replicas: int, dtype: DType | None = None
) -> tuple[Value, ...]:
    """This rank's rows, so many of each, of the mean over a group of whole values.

    Args:
        replicas: a group of which the mean is taken, too, unless it is negative.
        dtype: under way, and of the results.
    """
    size = group_of(group).size
    xs = wholes if dtype is None else tuple([catalogue.cast(x, dtype=dtype) for x in wholes])
    counts = tuple([part_of(known(x.shape)[0], size) for x in xs])
    found = reduce_parts.all(*xs, counts=counts, group=group, replicas=replicas)
    return tuple([_cut(x, n) for x, n in zip(found, rows, strict=True)])


def _cut(x: Value, rows: int) -> Value:
    shape = known(x.shape)
    if rows == shape[0]:
        return x
    return catalogue.slice(x, begin=(0,) * len(shape), end=(rows, *shape[1:]))


def _halves(xs: Sequence[Any]) -> tuple[Sequence[Any], Sequence[Any]]:
    count = len(xs) // 2
    return xs[:count], xs[count:]


def _first(*xs: Any, **_: Any) -> tuple[Any, ...]:
    return tuple(_halves(xs)[0])


def _unshard_vjp(
    gs: Any, ys: Any, *xs: Value, group: int, replicas: int, reduced: DType | None, **_: Any
) -> tuple[Value | None, ...]:
    """The mean over all ranks, in parts: gradients of the shards."""
    shards = _halves(xs)[1]
    rows = [known(x.shape)[0] for x in shards]
    found = scatter_mean(*gs, rows=rows, group=group, replicas=replicas, dtype=reduced)
    pairs = zip(found, shards, strict=True)
    return (*[None] * len(rows), *[catalogue.cast(g, dtype=x.dtype) for g, x in pairs])


def _begin_again(
    ys: Sequence[Value], xs: Sequence[Value], group: int, again: bool, within: int, **_: Any
) -> Sequence[Value] | None:
    if not again:
        return None
    shapes = [known(y.shape) for y in ys]
    if within >= 0:
        kept = [_own_rows(y, group_of(within)) for y in ys]
        return begin_whole(*kept, shapes=shapes, group=within)
    shards = [catalogue.cast(x, dtype=y.dtype) for x, y in zip(_halves(xs)[1], ys, strict=True)]
    return begin_whole(*shards, shapes=shapes, group=group)


def _end_again(
    ys: Sequence[Value], begun: Sequence[Value], group: int, within: int, **_: Any
) -> Sequence[Value]:
    shapes, dtypes = tuple([known(y.shape) for y in ys]), tuple([y.dtype for y in ys])
    members = group if within < 0 else within
    return end_gather.all(*begun, shapes=shapes, dtypes=dtypes, group=members)[: len(ys)]


def _own_rows(x: Value, members: Group) -> Value:
    shape = known(x.shape)
    begin, end = rows_of(shape[0], members.size, members.index)
    return catalogue.slice(x, begin=(begin, *(0,) * (len(shape) - 1)), end=(end, *shape[1:]))


def _ahead(ahead: int, **_: Any) -> int:
    return ahead


unshard = defop(
    "unshard",
    inputs="*xs",
    attrs={
        "group": 0,
        "replicas": -1,
        "reduced": None,
        "again": True,
        "within": -1,
        "ahead": 1,
    },
    dtype=_first,
    shape=_first,
    reference=_first,
    vjp=_unshard_vjp,
    lower=Composite(_first),
    cases=no_cases,
    outputs=-1,
    partial=True,
    facts=Facts(autocast=Autocast.KEPT, again=Again(_begin_again, _end_again, _ahead)),
)
"""Whole arrays; the inputs are these, gathered, and the shards, to which gradients go.

Gradients are means over the group, and over the group `replicas` unless it is negative, in the
element type `reduced`. With `again`, the backward pass gathers once more instead of keeping them;
from the shards, or from parts that the ranks of the group `within` keep of what was gathered. So
many gathers that follow begin meanwhile as `ahead` says.
"""
