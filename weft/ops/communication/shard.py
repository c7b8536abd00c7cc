"""Sharded arrays: rows are gathered for use, and gradients reduce-scattered.

Rank i of p has the rows from i * c on, with c = ceil(rows / p); the last ranks may have fewer or
none. Messages pad shards to c rows, so that all ranks make the same calls; several arrays share a
message.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from weft.errors import ShapeError
from weft.ir.dtype import int64
from weft.ir.node import Value
from weft.ir.shape import Shape, known
from weft.ops.communication.collective import exchange, group_of
from weft.ops.declaration import Array, constant_of
from weft.ops.declaration.attribute import REQUIRED
from weft.transport import collective, shared
from weft.transport.group import Group

Sizes = tuple[int, ...]
Counts = tuple[int, ...]


def part_of(rows: int, ranks: int) -> int:
    """The number of rows of a padded shard."""
    return -(-rows // ranks)


def rows_of(rows: int, ranks: int, index: int) -> tuple[int, int]:
    """The range of rows of a rank.

    Example:
        >>> [rows_of(5, 4, i) for i in range(4)]
        [(0, 2), (2, 4), (4, 5), (5, 5)]
    """
    part = part_of(rows, ranks)
    return min(index * part, rows), min((index + 1) * part, rows)


# The operations, on padded shards


def _columns(
    kinds: Sequence[Any], widths: Sequence[int]
) -> Iterator[tuple[Any, list[int], Counts]]:
    """For each dtype, its arrays and their column ranges."""
    for kind in dict.fromkeys(kinds):
        places = [i for i, k in enumerate(kinds) if k == kind]
        yield kind, places, tuple(np.cumsum([0, *[widths[i] for i in places]]).tolist())


class Message(NamedTuple):
    """Arrays of one element type that are sent together.

    Attributes:
        places: their positions among all arrays.
        ends: the start and end of each array's columns.
        rows: memory, a row for each member.
    """

    places: list[int]
    ends: Counts
    rows: Array

    def columns(self) -> Iterator[tuple[int, Array]]:
        """Each array's position, and the memory of its shards, one per row."""
        for i, (a, b) in zip(self.places, itertools.pairwise(self.ends), strict=True):
            yield i, self.rows[:, a:b]


def own_parts(xs: Sequence[Array], members: Group) -> list[Message]:
    """Messages with this rank's shards, and room for the others'."""
    found: list[Message] = []
    for kind, places, ends in _columns([x.dtype for x in xs], [x.size for x in xs]):
        message = Message(places, ends, np.empty((members.size, ends[-1]), kind))
        for i, rows in message.columns():
            rows[members.index] = xs[i].reshape(-1)
        found.append(message)
    return found


def gather(messages: Sequence[Message], members: Group) -> None:
    """Receive the others' shards."""
    for places, ends, rows in messages:
        what = _gathered(places, ends, rows.dtype)
        collective.all_gather(members, rows[members.index], list(rows), what)


def _gathered(places: Sequence[int], ends: Counts, kind: Any) -> str:
    """The call's name."""
    return f"all_gather of {len(places)} parts, {ends[-1]} {kind}"


def _parts_in(whole: Array, count: int, members: Group) -> list[Array]:
    """The memory of each member's shard of `count` elements in a whole array."""
    flat = whole.reshape(-1)
    return [flat[i * count : (i + 1) * count] for i in range(members.size)]


def join_parts_into(messages: Sequence[Message], outs: Sequence[Array]) -> None:
    """Fill whole arrays with the concatenated shards."""
    for message in messages:
        for i, rows in message.columns():
            flat, count = outs[i].reshape(-1), rows.shape[1]
            for begin, row in zip(range(0, flat.size, count or 1), rows, strict=False):
                part = flat[begin : begin + count]
                part[...] = row[: part.size]


def _gather_into(xs: Sequence[Array], outs: Sequence[Array], shapes: Any, group: int) -> None:
    """Gather in place in shared memory; by messages, all arrays of one dtype together."""
    del shapes
    members = group_of(group)
    channel = members.channel
    if channel is None:
        messages = own_parts(xs, members)
        gather(messages, members)
        join_parts_into(messages, outs[:-1])
    else:
        for kind, places, ends in _columns([x.dtype for x in xs], [x.size for x in xs]):
            parts = [_parts_in(outs[i], xs[i].size, members) for i in places]
            own = [xs[i] for i in places]
            shared.all_gather(members, channel, own, parts, _gathered(places, ends, kind))
    outs[-1][...] = len(xs)


def all_parts(xs: Sequence[Array], counts: Counts, members: Group) -> list[Message]:
    """Messages with whole arrays, each split into shards of `counts` rows."""
    sizes = [n * math.prod(x.shape[1:]) for x, n in zip(xs, counts, strict=True)]
    found: list[Message] = []
    for kind, places, ends in _columns([x.dtype for x in xs], sizes):
        message = Message(places, ends, np.empty((members.size, ends[-1]), kind))
        for i, rows in message.columns():
            _fill_parts(rows, xs[i].reshape(-1))
        found.append(message)
    return found


def _fill_parts(rows: Array, flat: Array) -> None:
    """Split a vector into rows, padded with zeros."""
    count = rows.shape[1]
    for i, row in enumerate(rows):
        part = flat[i * count : (i + 1) * count]
        row[: part.size] = part
        row[part.size :] = 0


def reduce_parts_of(messages: Sequence[Message], reduction: str, members: Group) -> list[Message]:
    """This rank's shard of the reduction of each message: messages of a single row."""
    found: list[Message] = []
    for places, ends, rows in messages:
        out = np.empty(ends[-1], rows.dtype)
        what = f"reduce_scatter({reduction}) of {len(places)} parts, {ends[-1]} {rows.dtype}"
        collective.reduce_scatter(members, list(rows), out, reduction, what)
        found.append(Message(places, ends, out.reshape(1, -1)))
    return found


def _gather(*xs: Array, shapes: tuple[Sizes, ...], group: int) -> tuple[Array, ...]:
    found: list[Array] = [np.empty(s, x.dtype) for x, s in zip(xs, shapes, strict=True)]
    found.append(np.empty((), np.int64))
    _gather_into(xs, found, shapes, group)
    return tuple(found)


def _scatter(*xs: Array, counts: Counts, group: int, reduction: str) -> tuple[Array, ...]:
    members = group_of(group)
    messages = reduce_parts_of(all_parts(xs, counts, members), reduction, members)
    found = [np.empty((n, *x.shape[1:]), x.dtype) for x, n in zip(xs, counts, strict=True)]
    join_parts_into(messages, found)
    return tuple(found)


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
    """The gradient, for the sum of all ranks' losses."""
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
    reference=_gather, into=_gather_into, vjp=_gather_vjp, shapes=REQUIRED, group=0,
)  # fmt: skip
"""Whole arrays of these shapes, from each rank's padded shard; followed by their number.

Keeping that number keeps the communication alive without keeping an array.
"""

scatter_parts = exchange(
    "scatter_parts", shape=_part_shapes, reference=_scatter, vjp=_scatter_vjp, counts=REQUIRED,
    group=0, reduction="sum",
)  # fmt: skip
"""This rank's padded shards, of `counts` rows, of the sum or mean over ranks of whole arrays."""
