"""Joining and splitting arrays: concatenate, stack, split, unstack."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from weft.errors import ShapeError
from weft.ir.node import Value
from weft.ir.shape import Shape, merge, normal_axis, show
from weft.ops.declaration import Array, Case, Composite, Pull, catalogue, defop
from weft.ops.declaration.attribute import REQUIRED, UNKNOWN
from weft.ops.declaration.example import ALL, count, each_dtype
from weft.ops.declaration.fact import Autocast, Batching, Facts
from weft.ops.declaration.rule import add_dims, concrete, front_axis, front_new_axis, same
from weft.ops.indexing.slicing import cut
from weft.ops.shape.reshape import dimension

# concatenate, stack


def _concatenate_shape(*xs: Shape, axis: Any) -> Shape:
    if not xs:
        raise ShapeError("expected at least one input")
    ranked = next((x for x in xs if x is not None), None)
    if ranked is None:
        return None
    if axis is UNKNOWN or axis is None:
        return (None,) * len(ranked)
    if not ranked:
        raise ShapeError("expected inputs of rank at least 1, got shape ()")
    at = normal_axis(axis, len(ranked))
    along = add_dims(*[None if x is None else x[at] for x in xs if x is None or len(x) > at])
    rest: Shape = None
    for x in xs:
        open_ = None if x is None else tuple(None if i == at else d for i, d in enumerate(x))
        try:
            rest = merge(rest, open_)
        except ShapeError:
            shapes = " and ".join(map(show, xs))
            raise ShapeError(f"expected shapes equal but for axis {at}, got {shapes}") from None
    assert rest is not None
    return tuple(along if i == at else d for i, d in enumerate(rest))


def _concatenate_pull(b: Any, index: Any, *xs: Any, axis: int) -> Any:
    at = normal_axis(axis, len(xs[0].shape))
    start, found = 0, None
    for x in xs:
        size = x.shape[at]
        if 0 in x.shape:
            continue
        inner = b.clamp(index[at] - start, 0, size)
        value = x((*index[:at], inner, *index[at + 1 :]))
        here = b.inside(index[at], start, start + size)
        found = value if found is None else b.select(here, value, found)
        start += size
    return b.const(0, xs[0].dtype) if found is None else found


def _concatenate_vjp(g: Value, y: Value, *xs: Value, axis: int) -> tuple[Value, ...]:
    if len(xs) == 1:
        return (g,)
    at = axis if axis >= 0 else axis + _rank(xs[0])
    sizes = [dimension(x, at) for x in xs]
    return split.all(g, sizes=sizes, axis=at)


def _rank(x: Value) -> int:
    if x.shape is None:
        return len(concrete(x))  # raises, so that the rule is called again later
    return len(x.shape)


def _concatenate_cases() -> Iterator[Case]:
    for dtype in ALL:
        parts = (count((2, 3), dtype), count((2, 1), dtype), count((2, 4), dtype))
        yield Case(parts, {"axis": 1})
    yield Case((count((2, 3)), count((0, 3)), count((1, 3))), {"axis": 0})
    yield Case((count((2, 3)),), {"axis": -1})
    yield Case((count((0,)), count((0,))), {"axis": 0})
    yield Case((count((2, 3, 33)), count((2, 2, 33))), {"axis": -2})


concatenate = defop(
    "concatenate",
    inputs="*xs",
    attrs={"axis": 0},
    dtype=same,
    shape=_concatenate_shape,
    reference=lambda *xs, axis: np.concatenate(xs, axis),
    vjp=_concatenate_vjp,
    normal=front_axis,
    lower=Pull(_concatenate_pull),
    cases=_concatenate_cases,
    partial=True,
    facts=Facts(linear=True, batching=Batching.AXIS),
)


def _stack_shape(*xs: Shape, axis: int) -> Shape:
    x: Shape = None
    for other in xs:
        try:
            x = merge(x, other)
        except ShapeError:
            shapes = " and ".join(map(show, xs))
            raise ShapeError(f"expected inputs of one shape, got {shapes}") from None
    if x is None or axis is UNKNOWN:
        return None
    at = normal_axis(axis, len(x) + 1)
    return (*x[:at], len(xs), *x[at:])


def _stack_expand(*xs: Value, axis: int) -> Value:
    return concatenate(*[catalogue.expand_dims(x, axis=axis) for x in xs], axis=axis)


stack = defop(
    "stack",
    inputs="x *xs",
    attrs={"axis": 0},
    dtype=same,
    shape=_stack_shape,
    reference=lambda *xs, axis: np.stack(xs, axis),
    vjp=lambda g, y, *xs, axis: unstack.all(g, count=len(xs), axis=axis),
    normal=front_new_axis,
    lower=Composite(_stack_expand),
    cases=lambda: (
        [Case((count((2, 3)), -count((2, 3))), {"axis": axis}) for axis in (0, 1, 2, -1, -3)]
        + [Case((count(()), count(()), count(())))]
    ),
    partial=True,
    facts=Facts(autocast=Autocast.WIDEST, linear=True, batching=Batching.AXIS),
)

# split, unstack


def _split_shape(x: Shape, *, sizes: Any, axis: Any) -> tuple[Shape, ...]:
    if x is None or axis is UNKNOWN:
        return (None if x is None else (None,) * len(x),) * len(sizes)
    at = normal_axis(axis, len(x))
    if any(n is not None and n < 0 for n in sizes):
        raise ShapeError(f"sizes: expected numbers that are not negative, got {sizes}")
    total = add_dims(*sizes)
    if total is not None and x[at] is not None and total != x[at]:
        raise ShapeError(f"sizes: expected a sum of x.shape[{at}] == {x[at]}, got {sizes}")
    return tuple((*x[:at], n, *x[at + 1 :]) for n in sizes)


def _split_reference(x: Array, *, sizes: Any, axis: int) -> tuple[Array, ...]:
    parts = np.split(x, np.cumsum(sizes)[:-1], axis) if sizes else []
    return tuple(map(np.ascontiguousarray, parts))


def _split_expand(x: Value, *, sizes: Any, axis: int) -> tuple[Value, ...]:
    at = normal_axis(axis, len(concrete(x)))
    starts = [sum(sizes[:i]) for i in range(len(sizes))]
    return tuple(cut(x, at, s, s + n) for s, n in zip(starts, sizes, strict=True))


split = defop(
    "split",
    inputs="x",
    attrs={"sizes": REQUIRED, "axis": 0},
    dtype=same,
    shape=_split_shape,
    reference=_split_reference,
    vjp=lambda g, y, x, *, sizes, axis: (concatenate(*g, axis=axis),),
    normal=front_axis,
    lower=Composite(_split_expand),
    cases=lambda: [
        *each_dtype((2, 6), sizes=(1, 3, 2), axis=1),
        Case((count((5, 2)),), {"sizes": (5,)}),
        Case((count((5, 2)),), {"sizes": (0, 5), "axis": -2}),
    ],
    outputs=-1,
    partial=True,
    facts=Facts(autocast=Autocast.KEPT, linear=True, batching=Batching.AXIS),
)


def _unstack_shape(x: Shape, *, count: int, axis: Any) -> tuple[Shape, ...]:
    if x is None or axis is UNKNOWN:
        return (None,) * count
    at = normal_axis(axis, len(x))
    if x[at] not in (None, count):
        raise ShapeError(f"count: expected x.shape[{at}] == {x[at]}, got {count}")
    return ((*x[:at], *x[at + 1 :]),) * count


def _unstack_expand(x: Value, *, count: int, axis: int) -> tuple[Value, ...]:
    at = normal_axis(axis, len(concrete(x)))
    return tuple(catalogue.squeeze(cut(x, at, i, i + 1), axes=(at,)) for i in range(count))


def _unstack_reference(x: Array, *, count: int, axis: int) -> tuple[Array, ...]:
    return tuple(np.array(part) for part in np.moveaxis(x, axis, 0))


unstack = defop(
    "unstack",
    inputs="x",
    attrs={"count": REQUIRED, "axis": 0},
    dtype=same,
    shape=_unstack_shape,
    reference=_unstack_reference,
    vjp=lambda g, y, x, *, count, axis: (stack(*g, axis=axis),),
    normal=front_axis,
    lower=Composite(_unstack_expand),
    cases=lambda: [
        Case((count((2, 3, 4)),), {"count": (2, 3, 4)[axis], "axis": axis})
        for axis in (0, 1, 2, -1)
    ],
    outputs=-1,
    partial=True,
    facts=Facts(autocast=Autocast.KEPT, linear=True, batching=Batching.AXIS),
)
