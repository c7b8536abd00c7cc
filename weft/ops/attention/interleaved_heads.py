"""Attention on interleaved heads, as a projection leaves them, without transposes or splits.

    q (..., L, Hq, E)   k (..., S, Hk, E)   v (..., S, Hv, Ev)

Each operand uses its `heads` heads from `first` on, so q, k and v may be one array.
`weft.passes.simplify` replaces `flash_attention` between transposes by these.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, cast

import numpy as np

from weft.errors import ShapeError
from weft.ir.dtype import DType, as_dtype
from weft.ir.node import Value
from weft.ir.shape import Dims, Shape, compatible, known, show
from weft.ops.attention.attention import flash_attention, flash_attention_grad
from weft.ops.declaration import BY_EXPANSION, Array, Case, Opaque, catalogue, defop
from weft.ops.declaration.attribute import REQUIRED
from weft.ops.declaration.fact import Autocast, Batching, Facts
from weft.ops.declaration.numeric import FLOATS, draw
from weft.ops.indexing.slicing import cut

First = tuple[int, int, int]


def _turned(shape: Shape, heads: int | None = None, first: int = 0) -> Dims:
    """The shape with its heads, or the `heads` in use, before its rows."""
    if shape is None or len(shape) < 3:
        raise ShapeError(f"expected rank 3 or more, got shape {show(shape)}")
    *batch, rows, there, width = shape
    if heads is not None and there is not None and not 0 <= first <= first + heads <= there:
        raise ShapeError(f"expected heads {first} to {first + heads} of {show(shape)}")
    return (*batch, there if heads is None else heads, rows, width)


def _shape(
    q: Shape, k: Shape, v: Shape, causal: bool, scale: float, heads: int, first: First
) -> tuple[Shape, Shape]:
    parts = [_turned(x, heads, f) for x, f in zip((q, k, v), first, strict=True)]
    if not all([compatible(part[:-3], parts[0][:-3]) for part in parts]):
        raise ShapeError(f"expected q, k and v of one batch, got {show(q)}, {show(k)}, {show(v)}")
    y, sums = cast("tuple[Shape, Shape]", flash_attention.shape(*parts, causal=causal, scale=scale))
    return _turned(y), sums


def _grad_shape(
    g: Shape, q: Shape, k: Shape, v: Shape, sums: Shape, shared: Shape, causal: bool,
    scale: float, heads: int, first: First,
) -> Shape:  # fmt: skip
    parts = [_turned(x, heads, f) for x, f in zip((q, k, v), first, strict=True)]
    if not all([compatible(part, parts[0]) for part in parts]):
        raise ShapeError(f"expected q, k and v alike, got {show(q)}, {show(k)} and {show(v)}")
    flash_attention_grad.shape(_turned(g), *parts, sums, shared, causal=causal, scale=scale)
    *batch, _, rows, width = parts[0]
    return (*batch, rows, 3 * heads, width)


def _before_rows(x: Array, heads: int, first: int = 0) -> Array:
    return np.swapaxes(x[..., first : first + heads, :], -2, -3)


def _reference(
    q: Array, k: Array, v: Array, causal: bool, scale: float, heads: int, first: First
) -> tuple[Array, Array]:
    parts = [_before_rows(x, heads, f) for x, f in zip((q, k, v), first, strict=True)]
    y, sums = flash_attention.reference(*parts, causal=causal, scale=scale)
    return np.ascontiguousarray(_before_rows(y, y.shape[-2])), sums


def _grad_reference(
    g: Array, q: Array, k: Array, v: Array, sums: Array, shared: Array, causal: bool,
    scale: float, heads: int, first: First,
) -> Array:  # fmt: skip
    parts = [_before_rows(x, heads, f) for x, f in zip((q, k, v), first, strict=True)]
    given = (_before_rows(g, heads), *parts, sums, shared)
    found = flash_attention_grad.reference(*given, causal=causal, scale=scale)
    return np.concatenate([_before_rows(x, x.shape[-2]) for x in found], axis=-2)


def turned(x: Value) -> Value:
    """`x` with its heads moved before its rows, or back."""
    rank = len(known(x.shape))
    return catalogue.transpose(x, perm=(*range(rank - 3), rank - 2, rank - 3, rank - 1))


def heads_of(x: Value, heads: int, first: int) -> Value:
    """The `heads` heads of `x` from `first` on."""
    axis = len(known(x.shape)) - 2
    return cut(x, axis, first, first + heads)


def _expand(
    q: Value, k: Value, v: Value, causal: bool, scale: float, heads: int, first: First
) -> tuple[Value, Value]:
    parts = [turned(heads_of(x, heads, f)) for x, f in zip((q, k, v), first, strict=True)]
    y, sums = flash_attention.all(*parts, causal=causal, scale=scale)
    return turned(y), sums


def _grad_expand(
    g: Value, q: Value, k: Value, v: Value, sums: Value, shared: Value, causal: bool,
    scale: float, heads: int, first: First,
) -> Value:  # fmt: skip
    parts = [turned(heads_of(x, heads, f)) for x, f in zip((q, k, v), first, strict=True)]
    found = flash_attention_grad.all(turned(g), *parts, sums, shared, causal=causal, scale=scale)
    return catalogue.concatenate(*map(turned, found), axis=len(known(q.shape)) - 2)


def _cases() -> Iterator[Case]:
    for dtype in FLOATS:
        for n, (batch, queries, keys, heads, width, depth) in enumerate((
            ((), 3, 3, 2, 16, 16), ((2,), 17, 17, 2, 32, 32), ((2, 1), 5, 19, 2, 16, 48),
        )):  # fmt: skip
            attrs = {"causal": n % 2 == 0, "scale": -0.1, "heads": heads}
            if queries == keys:
                x = draw((*batch, queries, 3 * heads, width), dtype)
                yield Case((x, x, x), {**attrs, "first": (0, heads, 2 * heads)}, 1e-5, 2e-5)
            shapes = (queries, heads, width), (keys, heads + 1, width), (keys, heads, depth)
            arrays = [draw((*batch, *s), dtype, seed=j) for j, s in enumerate(shapes)]
            yield Case(tuple(arrays), {**attrs, "first": (0, 1, 0)}, 1e-5, 2e-5)


head_attention = defop(
    "head_attention",
    inputs="q k v",
    attrs={"causal": False, "scale": REQUIRED, "heads": REQUIRED, "first": REQUIRED},
    dtype=lambda *kinds, **_: flash_attention.dtype(*kinds),
    shape=_shape,
    reference=_reference,
    vjp=BY_EXPANSION,
    lower=Opaque("flash_attention", _expand),
    cases=_cases,
    outputs=2,
    facts=Facts(autocast=Autocast.KEPT, batching=Batching.LEADING),
)
"""`flash_attention` on interleaved heads: y (..., L, heads, Ev), sums (..., heads, L)."""


def _grad_dtype(*kinds: DType, **_: Any) -> DType:
    found = cast("tuple[DType, ...]", flash_attention_grad.dtype(*kinds))
    return found[0]


def _grad_cases() -> Iterator[Case]:
    for case in _cases():
        q, k, v = case.inputs
        if q.shape[:-2] != k.shape[:-2] or q.shape[-1] != v.shape[-1]:
            continue
        y, sums = _reference(q, k, v, **case.attrs)
        g = draw(y.shape, as_dtype(y.dtype), seed=4)
        shared = draw(sums.shape, as_dtype(sums.dtype), seed=5)
        small = q.size < 2000
        yield Case((g, q, k, v, sums, shared), case.attrs, 1e-5, 1e-4, differentiate=small)


head_attention_grad = defop(
    "head_attention_grad",
    inputs="g q k v log_sums shared",
    attrs={"causal": False, "scale": REQUIRED, "heads": REQUIRED, "first": REQUIRED},
    dtype=_grad_dtype,
    shape=_grad_shape,
    reference=_grad_reference,
    vjp=BY_EXPANSION,
    lower=Opaque("flash_attention_grad", _grad_expand),
    cases=_grad_cases,
    facts=Facts(autocast=Autocast.KEPT, batching=Batching.LEADING),
)
"""`flash_attention_grad` on interleaved heads, for as many queries as keys of one width.

Gives the cotangents of q, k and v in one array (..., L, 3 * heads, E).
"""
