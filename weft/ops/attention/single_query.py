"""Attention of a single query per head, as in each step of decoding.

Its kernel reads keys and values in place and skips blocks whose keys are all masked, so of a cache
it reads only the part that has been written.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, cast

from weft.errors import ShapeError
from weft.ir import dtype as types
from weft.ir.extent import same
from weft.ir.shape import Shape, compatible, show
from weft.ops.attention.attention import attention, flash_attention
from weft.ops.declaration import Array, Case, Opaque, defop
from weft.ops.declaration.attribute import REQUIRED
from weft.ops.declaration.fact import Autocast, Batching, Facts
from weft.ops.declaration.numeric import FLOATS, draw


def _shape(q: Shape, k: Shape, v: Shape, *mask: Shape, scale: float) -> tuple[Shape, Shape]:
    found = flash_attention.shape(q, k, v, causal=False, scale=scale)
    y, rows = cast("tuple[Shape, Shape]", found)
    assert q is not None and k is not None and rows is not None
    if q[-2] is not None and not same(q[-2], 1):
        raise ShapeError(f"expected one query, got q of shape {show(q)}")
    for shape in mask:
        if not compatible(shape, (*rows, k[-2])):
            raise ShapeError(f"expected a mask of shape {show((*rows, k[-2]))}, got {show(shape)}")
    return y, rows


def _reference(q: Array, k: Array, v: Array, *mask: Array, scale: float) -> tuple[Array, Array]:
    return attention.reference(q, k, v, *mask, causal=False, scale=scale)


def _vjp(gs: Any, ys: Any, q: Any, k: Any, v: Any, *mask: Any, scale: float) -> tuple[Any, ...]:
    return attention.vjp(gs, ys, q, k, v, *mask, causal=False, scale=scale)


def _cases() -> Iterator[Case]:
    for i, dtype in enumerate(FLOATS):
        for n, (batch, keys, width, depth) in enumerate((
            ((2, 3), 40, 16, 32), ((), 5, 32, 16), ((2,), 33, 16, 48), ((3,), 70, 64, 16),
        )):  # fmt: skip
            shapes = (1, width), (keys, width), (keys, depth)
            arrays = [draw((*batch, *s), dtype, seed=j) for j, s in enumerate(shapes)]
            kind = None if n % 3 == 0 else types.bool_ if n % 2 else dtype
            masks = [] if kind is None else [draw((*batch, 1, keys), kind, seed=3)]
            wide = i > 1 and n > 1
            attrs = {"scale": 0.3}
            yield Case((*arrays, *masks), attrs, rtol=1e-5, atol=2e-5, differentiate=not wide)


query_attention = defop(
    "query_attention",
    inputs="q k v *mask",
    attrs={"scale": REQUIRED},
    dtype=attention.dtype,
    shape=_shape,
    reference=_reference,
    vjp=_vjp,
    lower=Opaque("query_attention"),
    cases=_cases,
    outputs=2,
    facts=Facts(autocast=Autocast.KEPT, batching=Batching.LEADING),
)
"""`attention` with one query per head: q (..., 1, E).

A mask (..., 1, S) must have all leading dimensions.
"""
