"""Scaled dot-product attention: every query takes a weighted mean of the values.

    scores = scale * (q @ k.T) + mask
    y = softmax(scores) @ v

After Vaswani et al., "Attention Is All You Need". The logarithm of each row's sum of exponentials
is an output too: from it the gradient computes any weight again, so that none need be kept (Dao et
al., "FlashAttention"). Half precision is computed in float32 from end to end and rounded once.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from weft.errors import DTypeError, ShapeError
from weft.ir import dtype as types
from weft.ir.dtype import DType
from weft.ir.node import Value
from weft.ir.shape import Dims, Shape, broadcast, known, show
from weft.ops import reduce
from weft.ops.base import Array, Case, Composite, catalogue, constant_of, defop
from weft.ops.compare import equal, less_equal, select
from weft.ops.contraction import matmul
from weft.ops.convert import cast
from weft.ops.creation import iota
from weft.ops.maths import exp, log
from weft.ops.numeric import FLOATS, HALVES, draw
from weft.ops.rule import floating, sum_like


def _dtype(q: DType, k: DType, v: DType, *mask: DType, **_: Any) -> tuple[DType, DType]:
    found = floating(q, k, v)
    if len(mask) > 1:
        raise DTypeError(f"expected at most one mask, got {len(mask)}")
    if mask and mask[0] not in (found, types.bool_):
        raise DTypeError(f"expected a mask of bool or {found}, got {mask[0]}")
    return found, types.float32 if found in HALVES else found


def _shape(
    q: Shape, k: Shape, v: Shape, *mask: Shape, causal: bool, scale: float | None
) -> tuple[Shape, Shape]:
    for name, shape in (("q", q), ("k", k), ("v", v)):
        if shape is None or len(shape) < 2:
            raise ShapeError(f"expected {name} of rank 2 or more, got shape {show(shape)}")
    assert q is not None and k is not None and v is not None
    if k[-1] is not None and q[-1] is not None and k[-1] != q[-1]:
        raise ShapeError(
            f"expected q and k of one width, the last dimension, got {show(q)} and {show(k)}"
        )
    if v[-2] is not None and k[-2] is not None and v[-2] != k[-2]:
        raise ShapeError(
            f"expected as many values as keys, the dimension before the last, "
            f"got k {show(k)} and v {show(v)}"
        )
    batch = broadcast(q[:-2], k[:-2], v[:-2])
    assert batch is not None
    rows = (*batch, q[-2])
    for shape in mask:
        scores = (*rows, k[-2])
        if broadcast(scores, shape) != scores and None not in (*scores, *(shape or (None,))):
            raise ShapeError(
                f"expected a mask that broadcasts to the scores {show(scores)}, got {show(shape)}"
            )
    return (*rows, v[-1]), rows


def _normal(q: Dims, *_: Shape, causal: bool, scale: float | None) -> Mapping[str, Any]:
    return {"causal": causal, "scale": _scale(q, scale)}


def _scale(q: Shape, scale: float | None) -> float:
    return 1 / math.sqrt(max(known(q)[-1], 1)) if scale is None else scale


def _reference(
    q: Array, k: Array, v: Array, *mask: Array, causal: bool, scale: float | None
) -> tuple[Array, Array]:
    wide = [x.astype(np.float64) for x in (q, k, v)]
    with np.errstate(all="ignore"):
        s = np.matmul(wide[0], np.swapaxes(wide[1], -1, -2)) * _scale(q.shape, scale)
        for m in mask:
            s = np.where(m, s, -np.inf) if m.dtype == bool else s + m.astype(np.float64)
        if causal:
            s = np.where(np.tri(*s.shape[-2:], dtype=bool), s, -np.inf)
        top = s.max(axis=-1, keepdims=True, initial=-np.inf)
        top = np.where(top == -np.inf, 0, top)
        e = np.exp(s - top)
        total = np.maximum(e.sum(axis=-1, keepdims=True), 1)
        y, lse = np.matmul(e / total, wide[2]), (top + np.log(total))[..., 0]
    return y.astype(q.dtype), lse.astype(np.float32 if q.itemsize == 2 else q.dtype)


def _in_float32(*xs: Value) -> list[Value]:
    """The inputs, half precision widened."""
    return [cast(x, dtype=types.float32) if x.dtype in HALVES else x for x in xs]


def _scores(q: Value, k: Value, mask: list[Value], causal: bool, scale: float) -> Value:
    """What softmax is taken of: minus infinity where a query may not see a key."""
    s = matmul(q, k, transpose_y=True) * scale
    hidden = constant_of(-np.inf, s.dtype)
    for m in mask:
        s = select(m, s, hidden) if m.dtype is types.bool_ else s + m
    if causal:
        square = known(s.shape)[-2:]
        s = select(less_equal(iota(shape=square, axis=1), iota(shape=square)), s, hidden)
    return s


def _expand(
    q: Value, k: Value, v: Value, *mask: Value, causal: bool, scale: float
) -> tuple[Value, Value]:
    dtype = q.dtype
    q, k, v, *masks = _in_float32(q, k, v, *mask)
    s = _scores(q, k, masks, causal, scale)
    top = reduce.max(s, axes=(-1,), keepdims=True)
    # A query that sees no key gets zeros; where it sees one, the sum is 1 at least.
    top = select(equal(top, constant_of(-np.inf, s.dtype)), constant_of(0, s.dtype), top)
    e = exp(s - top)
    total = catalogue.maximum(reduce.sum(e, axes=(-1,), keepdims=True), constant_of(1, s.dtype))
    y = matmul(e / total, v)
    return cast(y, dtype=dtype), catalogue.squeeze(top + log(total), axes=(-1,))


def _vjp(
    gs: Any, ys: Any, q: Any, k: Any, v: Any, *mask: Any, causal: bool, scale: float | None
) -> tuple[Any, ...]:
    factor = _scale(q.shape, scale)
    (g, g_sum), (y, log_sum) = gs, ys
    g, y, wide_q, wide_k, wide_v, *masks = _in_float32(g, y, q, k, v, *mask)
    # How much of a row's gradient all of its weights share, as they add up to 1.
    shared = reduce.sum(g * y, axes=(-1,)) - g_sum
    s = _scores(wide_q, wide_k, masks, causal, factor)
    p = exp(s - catalogue.expand_dims(log_sum, axis=-1))
    ds = p * (matmul(g, wide_v, transpose_y=True) - catalogue.expand_dims(shared, axis=-1))
    found = [
        matmul(ds, wide_k) * factor,
        matmul(ds, wide_q, transpose_x=True) * factor,
        matmul(p, g, transpose_x=True),
    ]
    fitted: list[Any] = [
        cast(sum_like(d, x), dtype=x.dtype) for d, x in zip(found, (q, k, v), strict=True)
    ]
    for m in mask:
        additive = m.dtype is not types.bool_
        fitted.append(cast(sum_like(ds, m), dtype=m.dtype) if additive else None)
    return tuple(fitted)


def _shapes() -> Iterator[tuple[tuple[int, ...], tuple[int, ...], int, tuple[int, ...] | None]]:
    """Shapes of q and k, width of v, shape of a mask."""
    yield (3, 4), (5, 4), 2, None
    yield (4, 3), (4, 3), 3, (4, 4)
    yield (2, 1, 3, 2), (2, 5, 2), 3, (2, 1, 1, 5)
    yield (5, 2), (2, 3, 2), 2, (3,)
    yield (2, 17, 9), (2, 19, 9), 33, None
    yield (1, 70, 16), (1, 70, 16), 16, (70, 70)


def _cases() -> Iterator[Case]:
    for i, dtype in enumerate(FLOATS):
        for n, (q, k, width, mask) in enumerate(_shapes()):
            if i and n > 2:
                break
            v = (*k[:-1], width)
            arrays = [draw(s, dtype, seed=j) for j, s in enumerate((q, k, v))]
            # The first key stays visible, so that only what is meant to be is infinite.
            kind = types.bool_ if n % 2 else dtype
            masks = [] if mask is None else [draw(mask, kind, seed=3)]
            attrs = {"causal": n % 2 == 0, "scale": 0.7 if n % 3 == 2 else None}
            yield Case((*arrays, *masks), attrs, rtol=1e-5, atol=2e-5)
    q, v = draw((3, 4), types.float32), draw((2, 3), types.float32, seed=1)
    blind = np.array([[True, False], [False, False], [True, True]])
    yield Case((q, draw((2, 4), types.float32, seed=2), v, blind), atol=1e-5)


attention = defop(
    "attention",
    inputs="q k v *mask",
    attrs={"causal": False, "scale": None},
    dtype=_dtype,
    shape=_shape,
    reference=_reference,
    vjp=_vjp,
    lower=Composite(_expand),
    cases=_cases,
    outputs=2,
    normal=_normal,
)
"""Attention of queries q (..., L, E) to keys k (..., S, E) and values v (..., S, Ev).

Outputs y (..., L, Ev) and the logarithm of every row's sum of exponentials (..., L), in float32
for half precision. Leading dimensions broadcast. A mask broadcasts to the scores (..., L, S): a
boolean one says which keys a query sees, a floating one is added to the scores. With `causal`,
query i sees the keys 0 to i only. `scale` is 1 / sqrt(E) by default. A query that sees no key
gets zeros.
"""
