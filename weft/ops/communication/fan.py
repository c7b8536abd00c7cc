"""One value used by several parts of a batch, whose gradients are added in a fixed tree."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from weft.ir.dtype import DType
from weft.ir.node import Value
from weft.ir.shape import Shape
from weft.ops.declaration import Array, Case, Composite, catalogue, defop
from weft.ops.declaration.fact import AS_GIVEN
from weft.ops.declaration.numeric import FLOATS, draw


def tree_sum(xs: Sequence[Value]) -> Value:
    """A pairwise tree sum, in the order in which ranks reduce."""
    while len(xs) > 1:
        pairs = [catalogue.add(a, b) for a, b in zip(xs[::2], xs[1::2], strict=False)]
        xs = [*pairs, *xs[len(xs) & ~1 :]]
    return xs[0]


def _fan(x: Array, count: int) -> tuple[Array, ...]:
    return (x,) * count


def _fan_dtype(dtype: DType, count: int) -> tuple[DType, ...]:
    return (dtype,) * count


def _fan_shape(shape: Shape, count: int) -> tuple[Shape, ...]:
    return (shape,) * count


def _fan_out(x: Value, count: int) -> tuple[Value, ...]:
    return (x,) * count


def _vjp(gs: Any, ys: Any, x: Value, count: int) -> tuple[Value]:
    return (tree_sum(gs),)


def _cases() -> Iterator[Case]:
    for dtype in FLOATS:
        yield Case((draw((2, 3), dtype),), {"count": 4})
    yield Case((draw((), FLOATS[0]),), {"count": 3})


fan_out = defop(
    "fan_out",
    inputs="x",
    attrs={"count": 1},
    dtype=_fan_dtype,
    shape=_fan_shape,
    reference=_fan,
    vjp=_vjp,
    lower=Composite(_fan_out),
    cases=_cases,
    outputs=-1,
    partial=True,
    facts=AS_GIVEN,
)
