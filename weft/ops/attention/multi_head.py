"""Multi-head attention: masks, dropout and projections around the operation `attention`."""

from __future__ import annotations

import math
from typing import Any

from weft.ir import dtype as types
from weft.ir.node import Value
from weft.ir.shape import known
from weft.ops.declaration import catalogue, constant_of
from weft.ops.declaration.fact import Autocast, autocasting
from weft.ops.random.counter_based import SEED, bernoulli


def _weights(q: Value, k: Value, mask: Value | None, causal: bool, scale: float | None) -> Value:
    """The attention weights; a query with all keys masked has zeros."""
    dims = known(q.shape)
    factor = 1 / math.sqrt(dims[-1]) if scale is None else scale
    s = catalogue.matmul(q, k, transpose_y=True) * factor
    hidden, zero = constant_of(-math.inf, s.dtype), constant_of(0, s.dtype)
    if mask is not None:
        s = catalogue.select(mask, s, hidden) if mask.dtype is types.bool_ else s + mask
    if causal:
        square = known(s.shape)[-2:]
        earlier = catalogue.less_equal(
            catalogue.iota(shape=square, axis=1), catalogue.iota(shape=square)
        )
        s = catalogue.select(earlier, s, hidden)
    top = catalogue.stop_gradient(catalogue.max(s, axes=(-1,), keepdims=True))
    top = catalogue.select(catalogue.equal(top, hidden), zero, top)
    e = catalogue.exp(s - top)
    total = catalogue.sum(e, axes=(-1,), keepdims=True)
    return e / catalogue.select(catalogue.equal(total, zero), constant_of(1, s.dtype), total)


def _dropped(weights: Value, counter: Value | None, rate: float) -> Value:
    if counter is None:
        return weights
    mask = bernoulli(counter, SEED, known(weights.shape), 1.0 - rate)
    return catalogue.dropout(weights, mask, rate=rate)


def _attended(
    q: Value, k: Value, v: Value, mask: Value | None, counter: Value | None,
    *, causal: bool, scale: float | None, rate: float,
) -> tuple[Value, ...]:  # fmt: skip
    """What the queries find, and the log-sum-exp of their scores if the operation computes it."""
    if counter is None:
        masks = () if mask is None else (mask,)
        return catalogue.attention.all(q, k, v, *masks, causal=causal, scale=scale)
    return (catalogue.matmul(_dropped(_weights(q, k, mask, causal, scale), counter, rate), v),)


@autocasting(Autocast.LOW)
def attention(
    q: Value, k: Value, v: Value, mask: Value | None, counter: Value | None,
    *, causal: bool, scale: float | None, rate: float, repeats: int,
) -> tuple[Value, ...]:  # fmt: skip
    """`softmax(q @ k.T * scale + mask) @ v`; each key head serves `repeats` query heads.

    Without dropout a second result follows, which the gradient reads.
    """
    if repeats > 1:
        k, v = (_repeated(x, repeats) for x in (k, v))
    if mask is not None and mask.dtype is not types.bool_ and mask.dtype is not q.dtype:
        mask = catalogue.cast(mask, dtype=q.dtype)
    return _attended(q, k, v, mask, counter, causal=causal, scale=scale, rate=rate)


def _repeated(x: Value, times: int) -> Value:
    """Repeat every head of (..., heads, rows, width)."""
    *lead, heads, rows, width = known(x.shape)
    wide = catalogue.expand_dims(x, axis=-3)
    wide = catalogue.broadcast_to(wide, shape=(*lead, heads, times, rows, width))
    return catalogue.reshape(wide, shape=(*lead, heads * times, rows, width))


def _rows(x: Value, batch_first: bool) -> Value:
    """(N, L, E) from (N, L, E), (L, N, E) or (L, E)."""
    if len(known(x.shape)) == 2:
        return catalogue.expand_dims(x, axis=0)
    return x if batch_first else catalogue.transpose(x, perm=(1, 0, 2))


def _product(x: Value, weight: Value, bias: Value | None) -> Value:
    """(N, L, E) times the transpose of (out, E)."""
    n, length, width = known(x.shape)
    y = catalogue.matmul(catalogue.reshape(x, shape=(n * length, width)), weight, transpose_y=True)
    y = y if bias is None else y + bias
    return catalogue.reshape(y, shape=(n, length, known(weight.shape)[0]))


def _parts(x: Value | None, count: int) -> list[Any]:
    """Equal parts of the first dimension."""
    if x is None:
        return [None] * count
    size = known(x.shape)[0] // count
    return list(catalogue.split.all(x, sizes=(size,) * count, axis=0))


def _projected(xs: list[Value], weights: Any, bias: Value | None) -> list[Value]:
    """Queries, keys and values, in one matmul if they come from the same array."""
    width = known((weights[0] if weights[0] is not None else weights[1]).shape)[0]
    if weights[0] is not None and len(xs) == 1:
        y = _product(xs[0], weights[0], bias)
        return list(catalogue.split.all(y, sizes=(width // 3,) * 3, axis=-1))
    ws = list(weights[1:]) if weights[0] is None else _parts(weights[0], 3)
    bs = _parts(bias, 3)
    xs = xs * 3 if len(xs) == 1 else [*xs, xs[-1]] if len(xs) == 2 else xs
    return [_product(x, w, b) for x, w, b in zip(xs, ws, bs, strict=True)]


def _heads(x: Value, heads: int) -> Value:
    """(N, L, E) as (N, heads, L, E / heads)."""
    n, length, width = known(x.shape)
    split = catalogue.reshape(x, shape=(n, length, heads, width // heads))
    return catalogue.transpose(split, perm=(0, 2, 1, 3))


def _rows_of_heads(x: Value, heads: int) -> Value:
    """(N heads, S, E / heads) as (N, S, E)."""
    count, length, width = known(x.shape)
    split = catalogue.reshape(x, shape=(count // heads, heads, length, width))
    moved = catalogue.transpose(split, perm=(0, 2, 1, 3))
    return catalogue.reshape(moved, shape=(count // heads, length, heads * width))


def _extended(x: Value, row: Value | None, zeros: bool) -> Value:
    """Keys or values (N, S, E) with an optional learned row and row of zeros appended."""
    n, _, width = known(x.shape)
    parts = [x]
    if row is not None:
        parts.append(catalogue.broadcast_to(row, shape=(n, 1, width)))
    if zeros:
        parts.append(catalogue.broadcast_to(constant_of(0, x.dtype), shape=(n, 1, width)))
    return x if len(parts) == 1 else catalogue.concatenate(*parts, axis=1)


def _mask_of(
    mask: Value | None, padding: Value | None, heads: int, more: int, dtype: Any
) -> Value | None:
    """One mask for the scores (N, heads, L, S), from masks that are true at hidden keys."""
    found: list[Value] = []
    if mask is not None:
        dims = known(mask.shape)
        if len(dims) == 3:
            mask = catalogue.reshape(mask, shape=(-1, heads, *dims[1:]))
        found.append(mask)
    if padding is not None:
        dims = known(padding.shape)
        shape = (1, 1, 1, dims[0]) if len(dims) == 1 else (dims[0], 1, 1, dims[1])
        found.append(catalogue.reshape(padding, shape=shape))
    if more:
        found = [
            catalogue.pad(m, paddings=(*[(0, 0)] * (len(known(m.shape)) - 1), (0, more)))
            for m in found
        ]
    if not found:
        return None
    if all(m.dtype is types.bool_ for m in found):
        hidden = found[0] if len(found) == 1 else catalogue.logical_or(*found)
        return catalogue.logical_not(hidden)
    zero, least = constant_of(0, dtype), constant_of(-math.inf, dtype)
    added = [
        catalogue.select(m, least, zero)
        if m.dtype is types.bool_
        else catalogue.cast(m, dtype=dtype)
        for m in found
    ]
    return added[0] if len(added) == 1 else added[0] + added[1]


@autocasting(Autocast.LOW)
def projected_heads(
    x: Value, key: Value | None, value: Value | None,
    packed: Value | None, wq: Value | None, wk: Value | None, wv: Value | None,
    bias: Value | None, bias_k: Value | None, bias_v: Value | None,
    static_k: Value | None, static_v: Value | None,
    *, heads: int, zeros: bool, batch_first: bool,
) -> tuple[Value, Value, Value]:  # fmt: skip
    """Queries, keys and values (N, heads, L, E / heads)."""
    given = [_rows(v, batch_first) for v in (x, key, value) if v is not None]
    q, k, v = _projected(given, (packed, wq, wk, wv), bias)
    k = k if static_k is None else _rows_of_heads(static_k, heads)
    v = v if static_v is None else _rows_of_heads(static_v, heads)
    k, v = _extended(k, bias_k, zeros), _extended(v, bias_v, zeros)
    return _heads(q, heads), _heads(k, heads), _heads(v, heads)


@autocasting(Autocast.LOW)
def masked_attention(
    q: Value, k: Value, v: Value, mask: Value | None, padding: Value | None,
    counter: Value | None, *, more: int, causal: bool, rate: float,
) -> tuple[Value, ...]:  # fmt: skip
    """What queries find, and what its gradient reads: see `attention`.

    Args:
        more: keys that no mask hides, at the end.
    """
    whole = _mask_of(mask, padding, known(q.shape)[1], more, q.dtype)
    return _attended(q, k, v, whole, counter, causal=causal, scale=None, rate=rate)


@autocasting(Autocast.LOW)
def attention_weights(
    q: Value, k: Value, mask: Value | None, padding: Value | None, counter: Value | None,
    *, more: int, causal: bool, rate: float, average: bool, single: bool,
) -> Value:  # fmt: skip
    """The weights (N, L, S), averaged over the heads, or of each."""
    whole = _mask_of(mask, padding, known(q.shape)[1], more, q.dtype)
    weights = _dropped(_weights(q, k, whole, causal, None), counter, rate)
    weights = catalogue.mean(weights, axes=(1,)) if average else weights
    return catalogue.squeeze(weights, axes=(0,)) if single else weights


@autocasting(Autocast.LOW)
def joined_heads(
    y: Value, weight: Value, bias: Value | None, *, single: bool, batch_first: bool
) -> Value:
    """The output projection of what the queries of all heads found."""
    n, heads, length, width = known(y.shape)
    rows = catalogue.transpose(y, perm=(0, 2, 1, 3))
    y = _product(catalogue.reshape(rows, shape=(n, length, heads * width)), weight, bias)
    if single:
        return catalogue.squeeze(y, axes=(0,))
    return y if batch_first else catalogue.transpose(y, perm=(1, 0, 2))
