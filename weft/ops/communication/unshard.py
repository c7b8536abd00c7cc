"""The parameters with which a sharded unit computes, from shards of different lengths."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from weft.ir.dtype import DType, float16
from weft.ir.node import Value
from weft.ir.shape import known
from weft.ops.boundary.state import no_cases
from weft.ops.communication.collective import all_reduce, group_of
from weft.ops.communication.overlap import begin_gather, end_gather, reduce_parts
from weft.ops.communication.shard import Sizes, part_of, rows_of
from weft.ops.declaration import Composite, catalogue, constant_of, defop
from weft.ops.declaration.attribute import REQUIRED
from weft.ops.declaration.fact import Again, Autocast, Facts
from weft.ops.shape.movement import moveaxis
from weft.transport.group import Group


def begin_whole(
    *shards: Value, shapes: Sequence[Sizes], dims: Sequence[int], group: int,
    dtype: DType | None = None,
) -> tuple[Value, ...]:  # fmt: skip
    """Start to gather values of these shapes from shards; returns the ticket and padded shards.

    Args:
        dims: along which each is sharded.
        dtype: of the messages and the results.
    """
    size = group_of(group).size
    parts: list[Value] = []
    for shard, shape, dim in zip(shards, shapes, dims, strict=True):
        x = moveaxis(shard, dim, 0)
        missing = part_of(shape[dim], size) - known(x.shape)[0]
        cast = x if dtype is None else catalogue.cast(x, dtype=dtype)
        ends = ((0, missing), *((0, 0),) * (len(shape) - 1))
        parts.append(catalogue.pad(cast, paddings=ends) if missing else cast)
    return (*begin_gather.all(*parts, group=group), *parts)


def begin_shards(*shards: Value, **static: Any) -> tuple[Value, ...]:
    """`begin_whole` for values without gradients; returns only the ticket."""
    return begin_whole(*shards, **static)[:1]


def end_shards(
    *begun: Value, shapes: tuple[Sizes, ...], dims: Sequence[int], dtypes: tuple[DType, ...],
    group: int,
) -> tuple[Value, ...]:  # fmt: skip
    """The whole values, then their number, from the result of `begin_whole`."""
    rows = tuple([_first_axis(shape, dim) for shape, dim in zip(shapes, dims, strict=True)])
    *found, count = end_gather.all(*begun, shapes=rows, dtypes=dtypes, group=group)
    return (*[moveaxis(x, 0, dim) for x, dim in zip(found, dims, strict=True)], count)


def _first_axis(shape: Sizes, dim: int) -> Sizes:
    """The sizes with that of dimension `dim` first."""
    return (shape[dim], *shape[:dim], *shape[dim + 1 :])


def scatter_mean(
    *wholes: Value, counts: Sequence[int], dims: Sequence[int], kinds: Sequence[DType], group: int,
    replicas: int, dtype: DType | None = None, divisor: float | None = None,
) -> tuple[Value, ...]:  # fmt: skip
    """This rank's shards, of `counts` along `dims`, of the mean of whole values over a group.

    Args:
        kinds: element types of the results.
        replicas: a group over which the mean is also taken, unless it is negative.
        dtype: of the messages.
        divisor: of the sum over all ranks, instead of their number.
    """
    size = group_of(group).size
    ranks = size if replicas < 0 else size * group_of(replicas).size
    rows = [moveaxis(x, dim, 0) for x, dim in zip(_cast(wholes, dtype), dims, strict=True)]
    padded = tuple([part_of(known(x.shape)[0], size) for x in rows])
    reduction, rest = _reduction(rows, divisor, ranks)
    found = reduce_parts.all(
        *rows, counts=padded, group=group, replicas=replicas, reduction=reduction
    )
    cut = [_cut(x, n) for x, n in zip(found, counts, strict=True)]
    parts = [moveaxis(x, 0, dim) for x, dim in zip(cut, dims, strict=True)]
    return _divided(parts, kinds, rest)


def mean_of_parts(
    *parts: Value, group: int, dtype: DType | None = None, divisor: float | None = None
) -> tuple[Value, ...]:
    """The mean over ranks with the same shards; see `scatter_mean`."""
    xs = _cast(parts, dtype)
    reduction, rest = _reduction(xs, divisor, group_of(group).size)
    found = all_reduce.all(*xs, reduction=reduction, group=group)
    return _divided(found, [x.dtype for x in parts], rest)


def _reduction(xs: Sequence[Value], divisor: float | None, ranks: int) -> tuple[str, float]:
    """The reduction, and the divisor afterwards: sums of float16 could be infinite."""
    if divisor is None:
        return "mean", 1.0
    if any([x.dtype is float16 for x in xs]):
        return "mean", divisor / ranks
    return "sum", divisor


def _cast(xs: Sequence[Value], dtype: DType | None) -> Sequence[Value]:
    return xs if dtype is None else [catalogue.cast(x, dtype=dtype) for x in xs]


def _divided(xs: Sequence[Value], kinds: Sequence[DType], by: float) -> tuple[Value, ...]:
    found = [catalogue.cast(x, dtype=kind) for x, kind in zip(xs, kinds, strict=True)]
    return tuple(found if by == 1.0 else [x / constant_of(by, x.dtype) for x in found])


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
    gs: Any, ys: Any, *xs: Value, group: int, replicas: int, reduced: DType | None,
    dims: Sequence[int], divisor: float | None, **_: Any,
) -> tuple[Value | None, ...]:  # fmt: skip
    """The gradients of the shards: shards of the mean over all ranks."""
    shards = _halves(xs)[1]
    found = scatter_mean(
        *gs, counts=[known(x.shape)[dim] for x, dim in zip(shards, dims, strict=True)], dims=dims,
        kinds=[x.dtype for x in shards], group=group, replicas=replicas, dtype=reduced,
        divisor=divisor,
    )  # fmt: skip
    return (*[None] * len(shards), *found)


def _begin_again(
    ys: Sequence[Value], xs: Sequence[Value], group: int, again: bool, within: int,
    dims: Sequence[int], **_: Any,
) -> Sequence[Value] | None:  # fmt: skip
    if not again:
        return None
    shapes = [known(y.shape) for y in ys]
    if within >= 0:
        kept = [_own_rows(y, group_of(within)) for y in ys]
        return begin_whole(*kept, shapes=shapes, dims=[0] * len(ys), group=within)
    shards = [catalogue.cast(x, dtype=y.dtype) for x, y in zip(_halves(xs)[1], ys, strict=True)]
    return begin_whole(*shards, shapes=shapes, dims=dims, group=group)


def _end_again(
    ys: Sequence[Value], begun: Sequence[Value], group: int, within: int, dims: Sequence[int],
    **_: Any,
) -> Sequence[Value]:  # fmt: skip
    shapes, dtypes = tuple([known(y.shape) for y in ys]), tuple([y.dtype for y in ys])
    members, cut = (group, dims) if within < 0 else (within, [0] * len(ys))
    return end_shards(*begun, shapes=shapes, dims=cut, dtypes=dtypes, group=members)[:-1]


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
        "dims": REQUIRED,
        "divisor": None,
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
"""Whole arrays; the inputs are the gathered arrays, and the shards, to which gradients flow.

Arrays are sharded along `dims`. Gradients are means over the group, and over the group `replicas`
unless it is negative, or sums divided by `divisor`, in the element type `reduced`. With `again`,
the backward pass gathers again instead of keeping the arrays: from the shards, or from larger
shards that the ranks of the group `within` keep. `ahead` is the number of following gathers to
start in the meantime.
"""
