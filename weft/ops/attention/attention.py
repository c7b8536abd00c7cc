"""Scaled dot-product attention: every query takes a weighted mean of the values.

    scores = scale * (q @ k.T) + mask
    y = softmax(scores) @ v

After Vaswani et al., "Attention Is All You Need". The log-sum-exp of each row is an output, too:
from it the gradient recomputes the weights, so none have to be kept (Dao et al., "FlashAttention").
Half precision is computed in float32 throughout and rounded once.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any, Final

import numpy as np

from weft.errors import DTypeError, ShapeError
from weft.ir import dtype as types
from weft.ir.dtype import DType, as_dtype
from weft.ir.extent import same
from weft.ir.node import Value
from weft.ir.shape import Dims, Shape, broadcast, compatible, known, show, size
from weft.ops.declaration import Array, Case, Composite, Opaque, catalogue, constant_of, defop
from weft.ops.declaration.attribute import REQUIRED
from weft.ops.declaration.fact import Autocast, Batching, Facts, Sizes, Work
from weft.ops.declaration.numeric import FLOATS, HALVES, draw
from weft.ops.declaration.rule import floating, sum_like
from weft.ops.elementwise.compare import equal, less_equal, select
from weft.ops.elementwise.convert import cast
from weft.ops.elementwise.transcendental import exp, log
from weft.ops.linalg.matmul import matmul
from weft.ops.reduction import reduce
from weft.ops.shape.creation import iota

WHOLE: Final = 16
"""Elements in the longest vector: a width that is a multiple of it needs no partial vectors."""


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


def _attend(
    q: Array, k: Array, v: Array, mask: tuple[Array, ...], causal: bool, scale: float
) -> tuple[Array, Array]:
    """In the precision of the arrays, with each row's maximum subtracted before `exp`."""
    s = np.matmul(q, np.swapaxes(k, -1, -2)) * q.dtype.type(scale)
    hidden = s.dtype.type(-np.inf)
    for m in mask:
        s = np.where(m, s, hidden) if m.dtype == bool else s + m.astype(s.dtype)
    if causal:
        s = np.where(np.tri(*s.shape[-2:], dtype=bool), s, hidden)
    top = s.max(axis=-1, keepdims=True, initial=-np.inf)
    top = np.where(top == -np.inf, s.dtype.type(0), top)
    e = np.exp(s - top)
    total = np.maximum(e.sum(axis=-1, keepdims=True), 1)
    return np.matmul(e / total, v), (top + np.log(total))[..., 0]


def _reference(
    q: Array, k: Array, v: Array, *mask: Array, causal: bool, scale: float | None
) -> tuple[Array, Array]:
    wide = [x.astype(np.float64) for x in (q, k, v)]
    with np.errstate(all="ignore"):
        y, log_sums = _attend(wide[0], wide[1], wide[2], mask, causal, _scale(q.shape, scale))
    return y.astype(q.dtype), log_sums.astype(np.float32 if q.itemsize == 2 else q.dtype)


SAFE: Final = 30.0
"""Scores whose exponentials can be summed without a maximum: e**30 is 1e13."""
BLOCK: Final = 1 << 15
"""Scores computed at a time, so that they stay in the second-level cache (128 KiB)."""


def _fast(
    q: Array, k: Array, v: Array, *mask: Array, causal: bool, scale: float | None
) -> tuple[Array, Array]:
    """Without maximum for small scores; a column of ones among the values sums the weights."""
    factor = _scale(q.shape, scale)
    if mask or not k.size or not _largest(q) * _largest(k) * abs(factor) < SAFE:
        return _attend(q, k, v, mask, causal, factor)
    batch = np.broadcast_shapes(q.shape[:-2], k.shape[:-2], v.shape[:-2])
    q, k, v = (_stacked(x, batch) for x in (q * q.dtype.type(factor), k, v))
    y, total = np.empty((*q.shape[:-1], v.shape[-1]), q.dtype), np.empty(q.shape[:-1], q.dtype)
    keys, values = np.ascontiguousarray(np.swapaxes(k, -1, -2)), _with_column(v, 1)
    for part in _parts(q, k):
        e = np.matmul(q[part], keys[part])
        np.exp(e, out=e)
        if causal:
            np.copyto(e, 0, where=_later(e))
        found = np.matmul(e, values[part])
        total[part] = found[..., -1]
        np.divide(found[..., :-1], found[..., -1:], out=y[part])
    log_sums = np.log(total, out=total)
    return y.reshape(*batch, *y.shape[1:]), log_sums.reshape(*batch, log_sums.shape[-1])


def _largest(x: Array) -> float:
    """The largest norm of a row."""
    return math.sqrt(np.einsum("...i,...i->...", x, x).max(initial=0))


def _stacked(x: Array, batch: tuple[int, ...]) -> Array:
    """The matrices of a batch along one axis."""
    return np.broadcast_to(x, (*batch, *x.shape[-2:])).reshape(-1, *x.shape[-2:])


def _with_column(x: Array, column: Any) -> Array:
    """Matrices with an additional column."""
    y = np.empty((*x.shape[:-1], x.shape[-1] + 1), x.dtype)
    y[..., :-1], y[..., -1] = x, column
    return y


def _with_row(x: Array) -> Array:
    """Transposed matrices with an additional row of ones: matmuls with them are the fastest."""
    y = np.empty((*x.shape[:-2], x.shape[-1] + 1, x.shape[-2]), x.dtype)
    y[..., :-1, :], y[..., -1, :] = np.swapaxes(x, -1, -2), 1
    return y


def _parts(q: Array, k: Array) -> Iterator[slice]:
    """The matrices whose scores are computed together."""
    count = max(BLOCK // max(q.shape[1] * k.shape[1], 1), 1)
    return (slice(i, i + count) for i in range(0, len(q), count))


def _later(s: Array) -> Array:
    """A mask of the keys that come after their query."""
    return np.logical_not(np.tri(*s.shape[-2:], dtype=bool))


def _in_float32(*xs: Value) -> list[Value]:
    """The inputs, half precision widened to float32."""
    return [cast(x, dtype=types.float32) if x.dtype in HALVES else x for x in xs]


def _scores(q: Value, k: Value, mask: list[Value], causal: bool, scale: float) -> Value:
    """The scores before softmax; minus infinity where a key is masked."""
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
    if not causal and same(known(q.shape)[-2], 1) and _suits(q, k, v):
        parts = _of_one_batch(q, k, v)
        rows = (*known(parts[0].shape)[:-1], known(k.shape)[-2])
        whole = [m if m.shape == rows else catalogue.broadcast_to(m, shape=rows) for m in mask]
        y, log_sum = catalogue.query_attention.all(*parts, *whole, scale=scale)
        return y, log_sum
    if not mask and _suits(q, k, v):
        y, log_sum = flash_attention.all(*_of_one_batch(q, k, v), causal=causal, scale=scale)
        return y, log_sum
    dtype = q.dtype
    q, k, v, *masks = _in_float32(q, k, v, *mask)
    s = _scores(q, k, masks, causal, scale)
    top = reduce.max(s, axes=(-1,), keepdims=True)
    # A query with all keys masked gets zeros; otherwise the sum is at least 1.
    top = select(equal(top, constant_of(-np.inf, s.dtype)), constant_of(0, s.dtype), top)
    e = exp(s - top)
    total = catalogue.maximum(reduce.sum(e, axes=(-1,), keepdims=True), constant_of(1, s.dtype))
    y = matmul(e / total, v)
    return cast(y, dtype=dtype), catalogue.squeeze(top + log(total), axes=(-1,))


def _suits(q: Value, k: Value, v: Value) -> bool:
    """Whether there is a kernel: rows must be whole vectors on every target."""
    widths = known(q.shape)[-1], known(v.shape)[-1]
    return all(n > 0 and n % WHOLE == 0 for n in widths) and known(k.shape)[-2] > 0


def _of_one_batch(*xs: Value) -> list[Value]:
    """The matrices, broadcast to common leading dimensions."""
    batch = known(broadcast(*[known(x.shape)[:-2] for x in xs]))
    shapes = [(*batch, *known(x.shape)[-2:]) for x in xs]
    pairs = zip(xs, shapes, strict=True)
    return [x if x.shape == s else catalogue.broadcast_to(x, shape=s) for x, s in pairs]


def _vjp(
    gs: Any, ys: Any, q: Any, k: Any, v: Any, *mask: Any, causal: bool, scale: float | None
) -> tuple[Any, ...]:
    factor = _scale(q.shape, scale)
    (g, g_sum), (y, log_sum) = gs, ys
    wide_g, y, wide_q, wide_k, wide_v, *masks = _in_float32(g, y, q, k, v, *mask)
    # The part of a row's gradient that all its weights share, as they sum to 1.
    shared = reduce.sum(wide_g * y, axes=(-1,)) - g_sum
    if not mask and _suits(q, k, v):
        parts = (g, *_of_one_batch(q, k, v), log_sum, shared)
        found: Any = flash_attention_grad.all(*parts, causal=causal, scale=factor)
        return _fitted(found, (q, k, v))
    s = _scores(wide_q, wide_k, masks, causal, factor)
    *found, ds = _slopes(s, (wide_g, wide_q, wide_k, wide_v, log_sum, shared), factor)
    by_mask = [
        cast(sum_like(ds, m), dtype=m.dtype) if m.dtype is not types.bool_ else None for m in mask
    ]
    return (*_fitted(found, (q, k, v)), *by_mask)


def _fitted(found: Any, xs: tuple[Any, ...]) -> tuple[Any, ...]:
    """Cotangents with the shapes and dtypes of their inputs."""
    summed = [(sum_like(d, x), x.dtype) for d, x in zip(found, xs, strict=True)]
    return tuple([d if d.dtype is kind else cast(d, dtype=kind) for d, kind in summed])


def _slopes(s: Value, xs: tuple[Any, ...], scale: float) -> tuple[Value, ...]:
    """Cotangents of q, k, v and the scores, by operations on whole matrices."""
    g, q, k, v, log_sum, shared = xs
    p = exp(s - catalogue.expand_dims(log_sum, axis=-1))
    ds = p * (matmul(g, v, transpose_y=True) - catalogue.expand_dims(shared, axis=-1))
    by_key = matmul(ds, q, transpose_x=True) * scale
    return matmul(ds, k) * scale, by_key, matmul(p, g, transpose_x=True), ds


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
            # The first key stays visible, so that no row is fully masked by accident.
            kind = types.bool_ if n % 2 else dtype
            masks = [] if mask is None else [draw(mask, kind, seed=3)]
            attrs = {"causal": n % 2 == 0, "scale": 0.7 if n % 3 == 2 else None}
            yield Case((*arrays, *masks), attrs, rtol=1e-5, atol=2e-5)
    q, v = draw((3, 4), types.float32), draw((2, 3), types.float32, seed=1)
    blind = np.array([[True, False], [False, False], [True, True]])
    yield Case((q, draw((2, 4), types.float32, seed=2), v, blind), atol=1e-5)


def _products(q: Sizes, k: Sizes, *rest: Sizes, **_: Any) -> int:
    """The approximate work of both matmuls: for each output element, the last two of `rest`."""
    return 2 * k[-2] * (size(rest[-2]) + size(rest[-1]))


attention = defop(
    "attention",
    inputs="q k v *mask",
    attrs={"causal": False, "scale": None},
    dtype=_dtype,
    shape=_shape,
    reference=_reference,
    fast=_fast,
    vjp=_vjp,
    lower=Composite(_expand),
    cases=_cases,
    outputs=2,
    normal=_normal,
    facts=Facts(autocast=Autocast.LOW, work=Work(_products, ns=0.15)),
)
"""Attention of queries q (..., L, E) to keys k (..., S, E) and values v (..., S, Ev).

Outputs y (..., L, Ev) and the logarithm of every row's sum of exponentials (..., L), in float32
for half precision. Leading dimensions broadcast. A mask broadcasts to the scores (..., L, S): a
boolean one is true for visible keys, a floating-point one is added to the scores. With `causal`,
query i sees only keys 0 to i. `scale` is 1 / sqrt(E) by default. A query with all keys masked gets
zeros.
"""


# The kernels: no mask, one batch, widths that are whole vectors
def _flash_shape(q: Shape, k: Shape, v: Shape, causal: bool, scale: float) -> tuple[Shape, Shape]:
    found = _shape(q, k, v, causal=causal, scale=scale)
    assert q is not None and k is not None and v is not None
    for name, shape in (("q and k", q), ("v", v)):
        width = shape[-1]
        if width is not None and (width % WHOLE or not width):
            raise ShapeError(f"expected {name} of a width that {WHOLE} divides, got {show(shape)}")
    return found


def _grad_dtype(
    g: DType, q: DType, k: DType, v: DType, log_sums: DType, shared: DType, **_: Any
) -> tuple[DType, ...]:
    found, wide = _dtype(q, k, v)
    floating(found, g)
    floating(wide, log_sums, shared)
    return (found,) * 3


def _flash_vjp(
    gs: Any, ys: Any, q: Any, k: Any, v: Any, causal: bool, scale: float
) -> tuple[Any, ...]:
    return _vjp(gs, ys, q, k, v, causal=causal, scale=scale)


def _flash_cases() -> Iterator[Case]:
    for i, dtype in enumerate(FLOATS):
        for n, (batch, queries, keys, width, depth) in enumerate((
            ((), 2, 3, 16, 16), ((2, 2), 17, 17, 16, 48), ((3,), 70, 130, 64, 32),
            ((2,), 130, 70, 32, 80), ((1,), 1, 40, 16, 16),
        )):  # fmt: skip
            shapes = (queries, width), (keys, width), (keys, depth)
            arrays = [draw((*batch, *s), dtype, seed=j) for j, s in enumerate(shapes)]
            for causal in ((n + i) % 2 == 1,) if i else (False, True):
                attrs = {"causal": causal, "scale": 0.25 if n % 2 else -0.1}
                yield Case(tuple(arrays), attrs, rtol=1e-5, atol=2e-5)


def _flash_products(q: Sizes, k: Sizes, *_: Sizes, **__: Any) -> int:
    return 2 * size(q) * k[-2]


flash_attention = defop(
    "flash_attention",
    inputs="q k v",
    attrs={"causal": False, "scale": REQUIRED},
    dtype=_dtype,
    shape=_flash_shape,
    reference=_reference,
    fast=_fast,
    vjp=_flash_vjp,
    lower=Opaque("flash_attention"),
    cases=_flash_cases,
    outputs=2,
    facts=Facts(
        autocast=Autocast.KEPT, batching=Batching.LEADING, work=Work(_flash_products, ns=0.15)
    ),
)
"""`attention` by a kernel that never stores the score matrix."""


def _grad_shape(
    g: Shape, q: Shape, k: Shape, v: Shape, log_sums: Shape, shared: Shape, causal: bool,
    scale: float,
) -> tuple[Shape, Shape, Shape]:  # fmt: skip
    y, rows = _flash_shape(q, k, v, causal, scale)
    for name, shape, expected in (
        ("g", g, y),
        ("log_sums", log_sums, rows),
        ("shared", shared, rows),
    ):
        if not compatible(shape, expected):
            raise ShapeError(f"expected {name} of shape {show(expected)}, got {show(shape)}")
    return q, k, v


def _grad_reference(
    g: Array, q: Array, k: Array, v: Array, log_sums: Array, shared: Array, causal: bool,
    scale: float,
) -> tuple[Array, ...]:  # fmt: skip
    wide = [x.astype(np.float64) for x in (g, q, k, v, log_sums, shared)]
    s = np.matmul(wide[1], np.swapaxes(wide[2], -1, -2)) * scale
    if causal:
        s = np.where(np.tri(*s.shape[-2:], dtype=bool), s, -np.inf)
    p = np.exp(s - wide[4][..., None])
    ds = p * (np.matmul(wide[0], np.swapaxes(wide[3], -1, -2)) - wide[5][..., None]) * scale
    turned = np.swapaxes(ds, -1, -2), np.swapaxes(p, -1, -2)
    found = np.matmul(ds, wide[2]), np.matmul(turned[0], wide[1]), np.matmul(turned[1], wide[0])
    return tuple(x.astype(q.dtype) for x in found)


def _fast_grad(
    g: Array, q: Array, k: Array, v: Array, log_sums: Array, shared: Array, causal: bool,
    scale: float,
) -> tuple[Array, ...]:  # fmt: skip
    """An additional column in the matmuls subtracts the part that is constant along a row."""
    batch, factor = q.shape[:-2], q.dtype.type(scale)
    g, q, k, v = (_stacked(x, batch) for x in (g, q, k, v))
    queries = _with_column(q * factor, -log_sums.reshape(q.shape[:-1]))
    cotangents = _with_column(g, -shared.reshape(q.shape[:-1]))
    keys, values = _with_row(k), _with_row(v)
    found = tuple([np.empty(x.shape, x.dtype) for x in (q, k, v)])
    by_q, by_k, by_v = found
    for part in _parts(q, k):
        p = np.matmul(queries[part], keys[part])
        np.exp(p, out=p)
        if causal:
            np.copyto(p, 0, where=_later(p))
        ds = np.matmul(cotangents[part], values[part])
        ds *= p
        np.matmul(ds, k[part], out=by_q[part])
        np.matmul(np.swapaxes(ds, -1, -2), q[part], out=by_k[part])
        np.matmul(np.swapaxes(p, -1, -2), g[part], out=by_v[part])
    by_q *= factor
    by_k *= factor
    return tuple([x.reshape(*batch, *x.shape[1:]) for x in found])


def _grad_vjp(
    gs: Any, ys: Any, g: Any, q: Any, k: Any, v: Any, log_sums: Any, shared: Any, causal: bool,
    scale: float,
) -> tuple[Any, ...]:  # fmt: skip
    given = (g, q, k, v, log_sums, shared)
    by_q, by_k, by_v, g, q, k, v = _in_float32(*gs, g, q, k, v)
    s = _scores(q, k, [], causal, scale)
    p = exp(s - catalogue.expand_dims(log_sums, axis=-1))
    slope = matmul(g, v, transpose_y=True) - catalogue.expand_dims(shared, axis=-1)
    ds = p * slope
    by_ds = (matmul(by_q, k, transpose_y=True) + matmul(q, by_k, transpose_y=True)) * scale
    by_slope = by_ds * p
    by_s = p * (by_ds * slope + matmul(g, by_v, transpose_y=True))
    found = (
        matmul(by_slope, v) + matmul(p, by_v),
        (matmul(by_s, k) + matmul(ds, by_k)) * scale,
        (matmul(by_s, q, transpose_x=True) + matmul(ds, by_q, transpose_x=True)) * scale,
        matmul(by_slope, g, transpose_x=True),
        -reduce.sum(by_s, axes=(-1,)),
        -reduce.sum(by_slope, axes=(-1,)),
    )
    return _fitted(found, given)


def _grad_cases() -> Iterator[Case]:
    for n, case in enumerate(_flash_cases()):
        y, log_sums = _reference(*case.inputs, **case.attrs)
        dtype, wide = as_dtype(y.dtype), as_dtype(log_sums.dtype)
        g, shared = draw(y.shape, dtype, seed=4), draw(log_sums.shape, wide, seed=5)
        small = n < 2
        inputs = (g, *case.inputs, log_sums, shared)
        yield Case(inputs, case.attrs, rtol=1e-5, atol=1e-4, differentiate=small)


def _grad_products(g: Sizes, q: Sizes, k: Sizes, *_: Sizes, **__: Any) -> int:
    return 5 * size(q) * k[-2]


flash_attention_grad = defop(
    "flash_attention_grad",
    inputs="g q k v log_sums shared",
    attrs={"causal": False, "scale": REQUIRED},
    dtype=_grad_dtype,
    shape=_grad_shape,
    reference=_grad_reference,
    fast=_fast_grad,
    vjp=_grad_vjp,
    lower=Opaque("flash_attention_grad"),
    cases=_grad_cases,
    outputs=3,
    facts=Facts(
        autocast=Autocast.KEPT, batching=Batching.LEADING, work=Work(_grad_products, ns=0.15)
    ),
)
"""Cotangents of q, k and v, from that of y, the log-sum-exp outputs of `flash_attention`, and for
each row sum(g * y) minus the cotangent of the log-sum-exp.
"""
