"""Attention: scaled dot products, and the multi-head attention of transformers."""

from __future__ import annotations

import math
from typing import Any

from weft.eager.functions.random.generator import SEED, next_counter
from weft.eager.tensor.argument import dims_of
from weft.eager.tensor.dispatch import recorded
from weft.errors import ArgumentError, DTypeError, GraphError, ShapeError
from weft.ir import dtype as types
from weft.ir.node import Value
from weft.ir.shape import known, show
from weft.ops.base import at_user_line, catalogue, constant_of
from weft.ops.declaration.fact import Autocast
from weft.ops.random import counter_based as nodes


def _weights(q: Value, k: Value, mask: Value | None, causal: bool, scale: float | None) -> Value:
    """How much of every value each query takes; a query that sees no key takes nothing."""
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
    mask = nodes.bernoulli(counter, SEED, known(weights.shape), 1.0 - rate)
    return catalogue.dropout(weights, mask, rate=rate)


def _attended(
    q: Value, k: Value, v: Value, mask: Value | None, counter: Value | None,
    *, causal: bool, scale: float | None, rate: float,
) -> Value:  # fmt: skip
    if counter is None:
        masks = () if mask is None else (mask,)
        return catalogue.attention(q, k, v, *masks, causal=causal, scale=scale)
    return catalogue.matmul(_dropped(_weights(q, k, mask, causal, scale), counter, rate), v)


@recorded(autocast=Autocast.LOW)
def _attention(
    q: Value, k: Value, v: Value, mask: Value | None, counter: Value | None,
    *, causal: bool, scale: float | None, rate: float, repeats: int,
) -> Value:  # fmt: skip
    if repeats > 1:
        k, v = (_repeated(x, repeats) for x in (k, v))
    if mask is not None and mask.dtype is not types.bool_ and mask.dtype is not q.dtype:
        mask = catalogue.cast(mask, dtype=q.dtype)
    return _attended(q, k, v, mask, counter, causal=causal, scale=scale, rate=rate)


def _repeated(x: Value, times: int) -> Value:
    """Every head of (..., heads, rows, width) several times."""
    *lead, heads, rows, width = known(x.shape)
    wide = catalogue.expand_dims(x, axis=-3)
    wide = catalogue.broadcast_to(wide, shape=(*lead, heads, times, rows, width))
    return catalogue.reshape(wide, shape=(*lead, heads * times, rows, width))


def scaled_dot_product_attention(
    query: Any, key: Any, value: Any, attn_mask: Any = None, dropout_p: float = 0.0,
    is_causal: bool = False, scale: float | None = None, enable_gqa: bool = False,
) -> Any:  # fmt: skip
    """`softmax(query @ key.T * scale + mask) @ value`.

    Args:
        query: (..., L, E); key (..., S, E); value (..., S, Ev).
        attn_mask: broadcasts to (..., L, S): true for keys that a query sees, or numbers to add.
        dropout_p: probability with which a weight is left out.
        is_causal: query i sees the keys 0 to i only; goes without `attn_mask`.
        scale: 1 / sqrt(E) by default.
        enable_gqa: fewer heads, dimension -3, of keys and values than of queries: each serves
            several.

    Source: Vaswani et al., "Attention Is All You Need" (2017).
    """
    if is_causal and attn_mask is not None:
        raise GraphError(
            f"scaled_dot_product_attention: is_causal goes without attn_mask{at_user_line()}"
        )
    repeats = 1
    if enable_gqa:
        heads, shared = dims_of(query)[-3], dims_of(key)[-3]
        if heads % shared:
            raise ShapeError(
                f"scaled_dot_product_attention: expected heads of queries that heads of keys "
                f"divide, got {heads} and {shared}{at_user_line()}"
            )
        repeats = heads // shared
    counter = next_counter() if dropout_p > 0 else None
    return _attention(
        query, key, value, attn_mask, counter, causal=bool(is_causal),
        scale=None if scale is None else float(scale), rate=float(dropout_p), repeats=repeats,
    )  # fmt: skip


# Multi-head attention


def _rows(x: Value, batch_first: bool) -> Value:
    """(N, L, E) from (N, L, E), (L, N, E) or (L, E)."""
    if len(known(x.shape)) == 2:
        return catalogue.expand_dims(x, axis=0)
    return x if batch_first else catalogue.transpose(x, perm=(1, 0, 2))


def _product(x: Value, weight: Value, bias: Value | None) -> Value:
    """(N, L, E) times (out, E) transposed."""
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
    """Queries, keys and values, all in one product where they come from the same."""
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
    """Keys or values (N, S, E) with a learned row and a row of zeros."""
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
    """One mask for the scores (N, heads, L, S), from masks that say what is hidden."""
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


@recorded(autocast=Autocast.LOW)
def _multi_head_attention(
    x: Value, key: Value | None, value: Value | None,
    packed: Value | None, wq: Value | None, wk: Value | None, wv: Value | None,
    bias: Value | None, out_weight: Value, out_bias: Value | None,
    bias_k: Value | None, bias_v: Value | None,
    mask: Value | None, padding: Value | None, counter: Value | None,
    static_k: Value | None, static_v: Value | None,
    *, heads: int, causal: bool, rate: float, zeros: bool, batch_first: bool, average: bool,
) -> tuple[Value, Value]:  # fmt: skip
    """The result, and the weights: averaged over the heads or not."""
    single = len(known(x.shape)) == 2
    given = [_rows(v, batch_first) for v in (x, key, value) if v is not None]
    q, k, v = _projected(given, (packed, wq, wk, wv), bias)
    k = k if static_k is None else _rows_of_heads(static_k, heads)
    v = v if static_v is None else _rows_of_heads(static_v, heads)
    k, v = _extended(k, bias_k, zeros), _extended(v, bias_v, zeros)
    n, length, width = known(q.shape)
    q, k, v = (_heads(part, heads) for part in (q, k, v))
    more = (bias_k is not None) + zeros
    whole = _mask_of(mask, padding, heads, more, q.dtype)
    y = _attended(q, k, v, whole, counter, causal=causal, scale=None, rate=rate)
    y = catalogue.reshape(catalogue.transpose(y, perm=(0, 2, 1, 3)), shape=(n, length, width))
    y = _product(y, out_weight, out_bias)
    # Computed only if somebody looks.
    weights = _dropped(_weights(q, k, whole, causal, None), counter, rate)
    weights = catalogue.mean(weights, axes=(1,)) if average else weights
    if single:
        return catalogue.squeeze(y, axes=(0,)), catalogue.squeeze(weights, axes=(0,))
    return (y if batch_first else catalogue.transpose(y, perm=(1, 0, 2))), weights


def multi_head_attention(
    query: Any, key: Any, value: Any, weights: Any, bias: Any, out: Any, extra: Any, masks: Any,
    *, num_heads: int, is_causal: bool, dropout_p: float, add_zero_attn: bool, batch_first: bool,
    average_attn_weights: bool, static: tuple[Any, Any] = (None, None),
) -> tuple[Any, Any]:  # fmt: skip
    """What `nn.MultiheadAttention` computes; see there.

    Args:
        weights: of queries, keys and values: packed (3 E, E), or `None` and one each.
        out: weight and bias of the product at the end.
        extra: a learned row of keys and one of values, or `None`s.
        masks: which scores (L, S) or (N heads, L, S), and which keys (N, S), are hidden.
        static: keys and values in place of the projected ones, (N heads, S, E / heads), or `None`s.
    """
    _check(query, key, value, batch_first, num_heads, masks, static, extra)
    xs = (query, key, value)
    if key is value:
        xs = (query, None, None) if query is key else (query, key, None)
    counter = next_counter() if dropout_p > 0 else None
    return _multi_head_attention(
        *xs, *weights, bias, *out, *extra, *masks, counter, *static, heads=num_heads,
        causal=bool(is_causal), rate=float(dropout_p), zeros=bool(add_zero_attn),
        batch_first=bool(batch_first), average=bool(average_attn_weights),
    )  # fmt: skip


def _check(
    query: Any, key: Any, value: Any, batch_first: bool, heads: int, masks: tuple[Any, Any],
    static: tuple[Any, Any], extra: tuple[Any, Any],
) -> None:  # fmt: skip
    q, k, v = (dims_of(x) for x in (query, key, value))
    order = "(N, L, E)" if batch_first else "(L, N, E)"
    if len(q) not in (2, 3) or len(k) != len(q) or k[:-1] != v[:-1]:
        raise ShapeError(
            f"MultiheadAttention: expected query, key and value {order} or (L, E), keys and values "
            f"of one length, got {show(q)}, {show(k)} and {show(v)}{at_user_line()}"
        )
    one, two = (0, 1) if batch_first else (1, 0)
    n, length, keys = (1, q[0], k[0]) if len(q) == 2 else (q[one], q[two], k[two])
    keys = _static_keys(static, extra, (n * heads, keys, q[-1] // heads))
    expected = (
        ((length, keys), (n * heads, length, keys)),
        ((n, keys), (keys,)) if len(q) == 2 else ((n, keys),),
    )
    for name, mask, shapes in zip(("attn_mask", "key_padding_mask"), masks, expected, strict=True):
        if mask is None:
            continue
        if dims_of(mask) not in shapes:
            listed = " or ".join(map(show, shapes))
            raise ShapeError(
                f"MultiheadAttention: expected {name} of shape {listed}, got "
                f"{show(dims_of(mask))}{at_user_line()}"
            )
        if mask.dtype.is_integer:
            raise DTypeError(
                f"MultiheadAttention: expected {name} of booleans or floating numbers, got "
                f"{mask.dtype}{at_user_line()}"
            )


def _static_keys(static: Any, extra: Any, projected: tuple[int, ...]) -> int:
    """How many keys and values there are, given or projected ones.

    Raises:
        ShapeError: those that are given do not fit the queries, or each other.
        ArgumentError: there is a learned row for those that are given.
    """
    shapes = [projected if x is None else dims_of(x) for x in static]
    for shape in shapes:
        expected = (projected[0], shapes[0][1], projected[2])
        if shape != expected:
            raise ShapeError(
                f"MultiheadAttention: expected static_k and static_v of shape {show(expected)}, "
                f"got {show(shape)}{at_user_line()}"
            )
    if any(x is not None and row is not None for x, row in zip(static, extra, strict=True)):
        raise ArgumentError(
            f"MultiheadAttention: static_k and static_v go without bias_k and bias_v"
            f"{at_user_line()}"
        )
    return shapes[0][1]


def multi_head_attention_forward(
    query: Any, key: Any, value: Any, embed_dim_to_check: int, num_heads: int,
    in_proj_weight: Any, in_proj_bias: Any, bias_k: Any, bias_v: Any, add_zero_attn: bool,
    dropout_p: float, out_proj_weight: Any, out_proj_bias: Any, training: bool = True,
    key_padding_mask: Any = None, need_weights: bool = True, attn_mask: Any = None,
    use_separate_proj_weight: bool = False, q_proj_weight: Any = None, k_proj_weight: Any = None,
    v_proj_weight: Any = None, static_k: Any = None, static_v: Any = None,
    average_attn_weights: bool = True, is_causal: bool = False,
) -> tuple[Any, Any]:  # fmt: skip
    """`nn.MultiheadAttention` with every weight an argument: the result, and the weights or `None`.

    Args:
        query: (L, N, E) or (L, E); key and value alike, of S rows.
        embed_dim_to_check: E, of which `num_heads` is a divisor.
        in_proj_weight: of queries, keys and values, (3 E, E), unless `use_separate_proj_weight`.
        in_proj_bias: (3 E), or `None`.
        bias_k: a learned key (1, 1, E) more, and `bias_v` a value; or `None`s.
        dropout_p: probability with which a weight is left out in training.
        static_k: keys in place of the projected ones, (N num_heads, S, E / num_heads).
        static_v: values, alike.

    Raises:
        ShapeError: inputs or masks that do not fit.
        ArgumentError: `static_k` and `bias_k`, or `static_v` and `bias_v`.
    """
    width = dims_of(query)[-1]
    if width != embed_dim_to_check or num_heads < 1 or width % num_heads:
        raise ShapeError(
            f"multi_head_attention_forward: expected queries of width {embed_dim_to_check}, which "
            f"num_heads divides, got {width} and {num_heads} heads{at_user_line()}"
        )
    if is_causal and attn_mask is None:
        raise ArgumentError(
            f"multi_head_attention_forward: is_causal goes with the attn_mask that it describes"
            f"{at_user_line()}"
        )
    causal = is_causal and bias_k is None and not add_zero_attn
    separate = (None, q_proj_weight, k_proj_weight, v_proj_weight)
    y, weights = multi_head_attention(
        query, key, value,
        separate if use_separate_proj_weight else (in_proj_weight, None, None, None),
        in_proj_bias, (out_proj_weight, out_proj_bias), (bias_k, bias_v),
        (None if causal else attn_mask, key_padding_mask), num_heads=num_heads, is_causal=causal,
        dropout_p=dropout_p if training else 0.0, add_zero_attn=add_zero_attn, batch_first=False,
        average_attn_weights=average_attn_weights, static=(static_k, static_v),
    )  # fmt: skip
    return y, weights if need_weights else None
