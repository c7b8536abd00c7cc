"""Arrays sharded over ranks: all-gather, reduce-scatter, send; gradients of each other.

There are two conventions. With `all_gather` and `reduce_scatter`, gradients are those of the sum of
all ranks' losses. `join_parts` and `own_part` convert between a replicated value and its shards,
and gradients are those of one loss that all ranks compute.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from weft.errors import ShapeError
from weft.ir.node import Value
from weft.ir.shape import Shape
from weft.ops.communication.collective import exchange, group_of
from weft.ops.declaration import Array, Op, catalogue
from weft.transport import collective


def _rows(shape: Shape, group: int, **_: Any) -> tuple[Shape, ...]:
    """An additional leading axis of members."""
    return (None if shape is None else (group_of(group).size, *shape),)


def _row(shape: Shape, group: int, **_: Any) -> tuple[Shape, ...]:
    count = group_of(group).size
    if shape is not None and (not shape or shape[0] not in (None, count)):
        raise ShapeError(f"expected a first dimension of {count}, the number of ranks, got {shape}")
    return (None if shape is None else shape[1:],)


def _gather(x: Array, group: int) -> tuple[Array, ...]:
    members = group_of(group)
    out = np.empty((members.size, *x.shape), x.dtype)
    own = np.array(x, order="C").reshape(-1)
    what = f"all_gather of {x.dtype}{list(x.shape)}"
    collective.all_gather(members, own, list(out.reshape(members.size, -1)), what)
    return (out,)


def _own(x: Array, group: int) -> tuple[Array, ...]:
    return (np.array(x[group_of(group).index]),)


def _reduce_scatter(x: Array, group: int) -> tuple[Array, ...]:
    out = np.empty(x.shape[1:], x.dtype)
    what = f"reduce_scatter of {x.dtype}{list(out.shape)}"
    parts = list(np.array(x, order="C").reshape(len(x), -1))
    collective.reduce_scatter(group_of(group), parts, out, "sum", what)
    return (out,)


def _permute(x: Array, group: int, pairs: tuple[tuple[int, int], ...]) -> tuple[Array, ...]:
    members, own, out = group_of(group), np.array(x, order="C"), np.zeros(x.shape, x.dtype)
    sends = {b: own for a, b in pairs if a == members.index != b}
    receives = {a: out for a, b in pairs if b == members.index != a}
    with members.call(f"permute {pairs} of {x.dtype}{list(x.shape)}") as tag:
        members.exchange(tag, sends, receives)
    return (own if (members.index, members.index) in pairs else out,)


def _to_all(x: Array, group: int) -> tuple[Array, ...]:
    out = np.empty(x.shape, x.dtype)
    what = f"all_to_all of {x.dtype}{list(x.shape)}"
    rows, found = (list(a.reshape(len(a), -1)) for a in (np.array(x, order="C"), out))
    collective.all_to_all(group_of(group), rows, found, what)
    return (out,)


def _divided(shape: Shape, group: int) -> tuple[Shape, ...]:
    _row(shape, group)
    return (shape,)


def _by(name: str) -> Callable[..., tuple[Value, ...]]:
    """A gradient that is another operation."""

    def vjp(gs: Any, ys: Any, x: Value, **attrs: Any) -> tuple[Value, ...]:
        return getattr(catalogue, name).all(gs[0], **attrs)

    return vjp


def _back(gs: Any, ys: Any, x: Value, group: int, pairs: Any) -> tuple[Value, ...]:
    turned = tuple([(b, a) for a, b in pairs])
    return permute_parts.all(gs[0], group=group, pairs=turned)


def _op(name: str, reference: Any, shape: Any, vjp: Any, **attrs: Any) -> Op:
    return exchange(
        name, inputs="x", shape=shape, reference=reference, vjp=vjp, partial=False, group=0, **attrs
    )


all_gather = _op("all_gather", _gather, _rows, _by("reduce_scatter"))
reduce_scatter = _op("reduce_scatter", _reduce_scatter, _row, _by("all_gather"))
join_parts = _op("join_parts", _gather, _rows, _by("own_part"))
own_part = _op("own_part", _own, _row, _by("join_parts"))
all_to_all = _op("all_to_all", _to_all, _divided, _by("all_to_all"))
permute_parts = _op("permute_parts", _permute, lambda s, **_: (s,), _back, pairs=())
