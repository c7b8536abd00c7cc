"""Arrays whose rows are divided among ranks: gathered for use, their gradients reduced into parts.

Rank i of p has the rows from i * c on, with c = ceil(rows / p): the last ranks may have fewer, or
none. Parts are padded to c rows under way, so that all ranks make the same calls; several arrays
travel as one message.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from weft.errors import ShapeError
from weft.ir.dtype import DType, int64
from weft.ir.node import Value
from weft.ir.shape import Shape, known
from weft.ops.base import Array, Composite, catalogue, constant_of, defop
from weft.ops.boundary.state import no_cases
from weft.ops.communication.collective import exchange, group_of
from weft.ops.declaration.attribute import REQUIRED
from weft.ops.declaration.fact import Autocast, Facts
from weft.transport import collective
from weft.transport.group import Group

Sizes = tuple[int, ...]
Counts = tuple[int, ...]


def part_of(rows: int, ranks: int) -> int:
    """How many rows a padded part has."""
    return -(-rows // ranks)


def rows_of(rows: int, ranks: int, index: int) -> tuple[int, int]:
    """The first row of a rank, and the one behind its last.

    Example:
        >>> [rows_of(5, 4, i) for i in range(4)]
        [(0, 2), (2, 4), (4, 5), (5, 5)]
    """
    part = part_of(rows, ranks)
    return min(index * part, rows), min((index + 1) * part, rows)


# The operations, on padded parts


def _columns(
    kinds: Sequence[Any], widths: Sequence[int]
) -> Iterator[tuple[Any, list[int], Counts]]:
    """For each element type the arrays that have it, and where their columns begin and end."""
    for kind in dict.fromkeys(kinds):
        places = [i for i, k in enumerate(kinds) if k == kind]
        yield kind, places, tuple(np.cumsum([0, *[widths[i] for i in places]]).tolist())


def _gather(*xs: Array, shapes: tuple[Sizes, ...], group: int) -> tuple[Array, ...]:
    members = group_of(group)
    found: dict[int, Array] = {}
    for kind, places, ends in _columns([x.dtype for x in xs], [x.size for x in xs]):
        rows = np.empty((members.size, ends[-1]), kind)
        for i, a, b in zip(places, ends, ends[1:], strict=False):
            rows[members.index, a:b] = xs[i].reshape(-1)
        what = f"all_gather of {len(places)} parts, {ends[-1]} {kind}"
        collective.all_gather(members, rows[members.index], list(rows), what)
        for i, a, b in zip(places, ends, ends[1:], strict=False):
            whole = np.ascontiguousarray(rows[:, a:b]).reshape(-1)
            found[i] = whole[: math.prod(shapes[i])].reshape(shapes[i])
    return (*[found[i] for i in range(len(xs))], np.array(len(xs)))


def _scatter(*xs: Array, counts: Counts, group: int, reduction: str) -> tuple[Array, ...]:
    members = group_of(group)
    sizes = [n * math.prod(x.shape[1:]) for x, n in zip(xs, counts, strict=True)]
    found: dict[int, Array] = {}
    for kind, places, ends in _columns([x.dtype for x in xs], sizes):
        parts = np.empty((members.size, ends[-1]), kind)
        for i, a, b in zip(places, ends, ends[1:], strict=False):
            parts[:, a:b] = _padded(xs[i], counts[i], members)
        out = np.empty(ends[-1], kind)
        what = f"reduce_scatter({reduction}) of {len(places)} parts, {ends[-1]} {kind}"
        collective.reduce_scatter(members, list(parts), out, reduction, what)
        for i, a, b in zip(places, ends, ends[1:], strict=False):
            found[i] = out[a:b].reshape(counts[i], *xs[i].shape[1:])
    return tuple([found[i] for i in range(len(xs))])


def _padded(x: Array, count: int, members: Group) -> Array:
    """A whole array as parts of so many rows, each of which is a row of the result."""
    if x.shape[0] != count * members.size:
        more = np.zeros((count * members.size - x.shape[0], *x.shape[1:]), x.dtype)
        x = np.concatenate([x, more])
    return x.reshape(members.size, -1)


def _whole_shapes(*xs: Shape, shapes: tuple[Sizes, ...], **_: Any) -> tuple[Shape, ...]:
    if len(shapes) != len(xs):
        raise ShapeError(f"expected a shape for each of {len(xs)} parts, got {len(shapes)}")
    return (*shapes, ())


def _part_shapes(*xs: Shape, counts: Counts, **_: Any) -> tuple[Shape, ...]:
    if len(counts) != len(xs):
        raise ShapeError(f"expected a number of rows for each of {len(xs)} arrays, got {counts}")
    pairs = zip(xs, counts, strict=True)
    return tuple([None if x is None else (n, *x[1:]) for x, n in pairs])


def _gather_vjp(gs: Any, ys: Any, *xs: Value, shapes: Any, group: int) -> tuple[Value, ...]:
    """Of the sum of all ranks' losses."""
    counts = tuple([known(x.shape)[0] for x in xs])
    return scatter_parts.all(*gs[: len(xs)], counts=counts, group=group, reduction="sum")


def _scatter_vjp(
    gs: Any, ys: Any, *xs: Value, counts: Counts, group: int, reduction: str
) -> tuple[Value, ...]:
    shapes = tuple([known(x.shape) for x in xs])
    whole = gather_parts.all(*gs, shapes=shapes, group=group)[: len(xs)]
    if reduction == "sum":
        return whole
    size = group_of(group).size
    return tuple([g / constant_of(size, g.dtype) for g in whole])


gather_parts = exchange(
    "gather_parts", dtype=lambda *dtypes, **_: (*dtypes, int64), shape=_whole_shapes,
    reference=_gather, vjp=_gather_vjp, shapes=REQUIRED, group=0,
)  # fmt: skip
"""Whole arrays of these shapes, of which each rank has a padded part; behind them their number.

Who keeps that number sees to it that the exchange happens, and keeps no array for it.
"""

scatter_parts = exchange(
    "scatter_parts", shape=_part_shapes, reference=_scatter, vjp=_scatter_vjp, counts=REQUIRED,
    group=0, reduction="sum",
)  # fmt: skip
"""This rank's padded parts, of so many rows, of the sum or mean over ranks of whole arrays."""


# The same on what ranks have, which need not be as many rows


def gather_shards(
    *shards: Value, shapes: Sequence[Sizes], group: int, dtype: DType | None = None
) -> tuple[Value, ...]:
    """Whole values of these shapes from each rank's rows, and behind them their number.

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
    return gather_parts.all(*parts, shapes=tuple(shapes), group=group)


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
    found = scatter_parts.all(*xs, counts=counts, group=group, reduction="mean")
    if replicas >= 0:
        found = catalogue.all_reduce.all(*found, reduction="mean", group=replicas)
    return tuple([_cut(x, n) for x, n in zip(found, rows, strict=True)])


def _cut(x: Value, rows: int) -> Value:
    shape = known(x.shape)
    if rows == shape[0]:
        return x
    return catalogue.slice(x, begin=(0,) * len(shape), end=(rows, *shape[1:]))


# What a unit of sharded parameters computes with


def _halves(xs: Sequence[Any]) -> tuple[Sequence[Any], Sequence[Any]]:
    count = len(xs) // 2
    return xs[:count], xs[count:]


def _first(*xs: Any, **_: Any) -> tuple[Any, ...]:
    return tuple(_halves(xs)[0])


def _unshard_vjp(
    gs: Any, ys: Any, *xs: Value, group: int, replicas: int, reduced: DType | None, again: bool
) -> tuple[Value | None, ...]:
    """The mean over all ranks, in parts: gradients of the shards."""
    shards = _halves(xs)[1]
    rows = [known(x.shape)[0] for x in shards]
    found = scatter_mean(*gs, rows=rows, group=group, replicas=replicas, dtype=reduced)
    pairs = zip(found, shards, strict=True)
    return (*[None] * len(rows), *[catalogue.cast(g, dtype=x.dtype) for g, x in pairs])


def _unshard_again(
    ys: Sequence[Value], xs: Sequence[Value], group: int, again: bool, **_: Any
) -> Sequence[Value] | None:
    if not again:
        return None
    shapes = [known(y.shape) for y in ys]
    shards = [catalogue.cast(x, dtype=y.dtype) for x, y in zip(_halves(xs)[1], ys, strict=True)]
    return gather_shards(*shards, shapes=shapes, group=group)[: len(ys)]


unshard = defop(
    "unshard",
    inputs="*xs",
    attrs={"group": 0, "replicas": -1, "reduced": None, "again": True},
    dtype=_first,
    shape=_first,
    reference=_first,
    vjp=_unshard_vjp,
    lower=Composite(_first),
    cases=no_cases,
    outputs=-1,
    partial=True,
    facts=Facts(autocast=Autocast.KEPT, again=_unshard_again),
)
"""Whole arrays; the inputs are these, gathered, and the shards, to which gradients go.

Gradients are means over the group, and over the group `replicas` unless it is negative, in the
element type `reduced`. With `again`, the backward pass gathers once more instead of keeping them.
"""
