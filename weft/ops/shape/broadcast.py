"""Broadcasting to a shape, and its transpose: summing to a shape."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from weft.errors import ShapeError
from weft.ir.node import Value
from weft.ir.shape import Dim, Shape, compatible, show
from weft.ops.declaration import Array, Case, Composite, Pull, catalogue, defop
from weft.ops.declaration.attribute import REQUIRED, UNKNOWN
from weft.ops.declaration.blocked_reduction import reduced
from weft.ops.declaration.example import NUMBERS, count, each_dtype
from weft.ops.declaration.fact import Autocast, Cost, Facts
from weft.ops.declaration.numeric import widened
from weft.ops.declaration.rule import (
    checked_shape,
    concrete,
    same,
    shape_argument,
    sum_like,
    whole_shape,
)  # fmt: skip
from weft.ops.shape.reshape import reshape

# broadcast_to and its transpose, sum_to


def _spread(x: Dim, y: Dim) -> Dim:
    """Dimension `x` broadcast to `y`; either may be unknown."""
    return x if y is None and x != 1 else y


def _broadcast_shape(x: Shape, *, shape: Any) -> Shape:
    if shape is UNKNOWN:
        return None
    wanted = checked_shape(shape)
    if x is None or wanted is None:
        return wanted
    lead = len(wanted) - len(x)
    if lead < 0 or any(
        d not in (1, None, w) and w is not None for d, w in zip(x, wanted[lead:], strict=True)
    ):
        raise ShapeError(f"expected x to broadcast to {show(wanted)}, got shape {show(x)}")
    return (*wanted[:lead], *map(_spread, x, wanted[lead:]))


def _broadcast_pull(b: Any, index: Any, x: Any, **_: Any) -> Any:
    tail = index[len(index) - len(x.shape) :]
    return x(tuple(0 if d == 1 else i for d, i in zip(x.shape, tail, strict=True)))


def _broadcast_cases() -> Iterator[Case]:
    yield from each_dtype((3, 1), shape=(2, 3, 5))
    for old, new in (((), (4,)), ((4,), (4,)), ((1, 5), (3, 5)), ((1, 0), (3, 0)), ((1,), (0,))):
        yield Case((count(old),), {"shape": new})


broadcast_to = defop(
    "broadcast_to",
    inputs="x",
    attrs={"shape": REQUIRED},
    dtype=same,
    shape=_broadcast_shape,
    reference=lambda x, shape: np.array(np.broadcast_to(x, shape), order="C"),
    fast=np.broadcast_to,
    vjp=lambda g, y, x, **_: (sum_like(g, x),),
    normal=whole_shape,
    lower=Pull(_broadcast_pull),
    cases=_broadcast_cases,
    partial=True,
    facts=Facts(linear=True, view=True, cost=Cost.CHEAP),
)


def _sum_to_shape(x: Shape, *, shape: Any) -> Shape:
    if shape is UNKNOWN:
        return None
    wanted = checked_shape(shape)
    if x is None or wanted is None:
        return wanted
    tail = x[len(x) - len(wanted) :]
    if len(wanted) > len(x) or not all(
        w == 1 or compatible((d,), (w,)) for d, w in zip(tail, wanted, strict=True)
    ):
        raise ShapeError(f"expected {show(wanted)} to broadcast to x, got x of shape {show(x)}")
    return wanted


def summed_axes(x: tuple[int, ...], to: tuple[int, ...]) -> tuple[int, ...]:
    """The axes over which a cotangent is summed after `to` was broadcast to `x`."""
    lead = len(x) - len(to)
    spread = [lead + i for i, d in enumerate(to) if d == 1 and x[lead + i] != 1]
    return (*range(lead), *spread)


@widened
def _sum_to_reference(x: Array, shape: Any) -> Array:
    to = shape if isinstance(shape, tuple) else (shape,)
    return reduced(np.add, x, summed_axes(x.shape, to), True).reshape(to)


def _fast_sum_to(x: Array, shape: Any) -> Array:
    """Rows are summed by a matmul with ones, five times as fast as `np.sum`."""
    axes = summed_axes(x.shape, shape if isinstance(shape, tuple) else (shape,))
    rows = math.prod(x.shape[: len(axes)])
    leading = axes == tuple(range(len(axes))) and x.flags.c_contiguous
    if not leading or x.dtype.kind != "f" or rows < 2 or not x.size:
        return reduced(np.add, x, axes, True).reshape(shape)
    return np.matmul(np.ones(rows, x.dtype), x.reshape(rows, -1)).reshape(shape)


def _sum_to_expand(x: Value, *, shape: Any) -> Value:
    to = shape if isinstance(shape, tuple) else (shape,)
    axes = summed_axes(concrete(x), to)
    return reshape(catalogue.sum(x, axes=axes), shape=to) if axes else x


def _sum_to_cases() -> Iterator[Case]:
    for dtype in NUMBERS:
        yield Case((count((2, 3, 5), dtype),), {"shape": (3, 1)}, rtol=2e-2)
    for old, new in (((4,), ()), ((4,), (4,)), ((3, 5), (1, 5)), ((3, 0), (1,)), ((0, 2), (2,))):
        yield Case((count(old),), {"shape": new})


sum_to = defop(
    "sum_to",
    inputs="x",
    attrs={"shape": REQUIRED},
    dtype=same,
    shape=_sum_to_shape,
    reference=_sum_to_reference,
    fast=_fast_sum_to,
    vjp=lambda g, y, x, **_: (broadcast_to(g, shape=shape_argument(x)),),
    normal=whole_shape,
    lower=Composite(_sum_to_expand),
    cases=_sum_to_cases,
    partial=True,
    facts=Facts(autocast=Autocast.FLOAT32, linear=True),
)
