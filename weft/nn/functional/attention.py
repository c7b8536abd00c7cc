"""Attention: scaled dot product, and the multi-head attention of transformers."""

from __future__ import annotations

from typing import Any

from weft.eager.functions.random.generator import next_counter
from weft.eager.tensor.argument import dims_of
from weft.eager.tensor.dispatch import recorded
from weft.errors import ArgumentError, DTypeError, ShapeError
from weft.ir.shape import show
from weft.nn.functional.dropout import check_rate
from weft.ops.attention import multi_head as formulas

__all__ = ["multi_head_attention_forward", "scaled_dot_product_attention"]

_attention = recorded(formulas.attention, shown=1)


def scaled_dot_product_attention(
    query: Any, key: Any, value: Any, attn_mask: Any = None, dropout_p: float = 0.0,
    is_causal: bool = False, scale: float | None = None, enable_gqa: bool = False,
) -> Any:  # fmt: skip
    """`softmax(query @ key.T * scale + mask) @ value`.

    Args:
        query: (..., L, E).
        key: (..., S, E).
        value: (..., S, Ev).
        attn_mask: broadcasts to (..., L, S): true for keys that a query may see, or numbers to add.
        dropout_p: probability of dropping an attention weight.
        is_causal: query i sees only keys 0 to i, of those that `attn_mask` lets it see.
        scale: 1 / sqrt(E) by default.
        enable_gqa: allow fewer heads, dimension -3, of keys and values than of queries: each serves
            several queries.

    Source: Vaswani et al., "Attention Is All You Need" (2017).
    """
    check_rate("scaled_dot_product_attention", dropout_p)
    repeats = 1
    if enable_gqa:
        heads, shared = dims_of(query)[-3], dims_of(key)[-3]
        if heads % shared:
            raise ShapeError.here(
                f"scaled_dot_product_attention: expected heads of queries that heads of keys "
                f"divide, got {heads} and {shared}"
            )
        repeats = heads // shared
    counter = next_counter() if dropout_p > 0 else None
    return _attention(
        query, key, value, attn_mask, counter, causal=bool(is_causal),
        scale=None if scale is None else float(scale), rate=float(dropout_p), repeats=repeats,
    )  # fmt: skip


# multi-head attention


_projected_heads = recorded(formulas.projected_heads)
_masked_attention = recorded(formulas.masked_attention, shown=1)
_attention_weights = recorded(formulas.attention_weights)
_joined_heads = recorded(formulas.joined_heads)


def multi_head_attention(
    query: Any, key: Any, value: Any, weights: Any, bias: Any, out: Any, extra: Any, masks: Any,
    *, num_heads: int, is_causal: bool, dropout_p: float, add_zero_attn: bool, batch_first: bool,
    need_weights: bool, average_attn_weights: bool, static: tuple[Any, Any] = (None, None),
) -> tuple[Any, Any]:  # fmt: skip
    """The computation of `nn.MultiheadAttention`; see there.

    Args:
        weights: of queries, keys and values: packed (3 E, E), or `None` and one each.
        out: weight and bias of the output projection.
        extra: a learned row of keys and one of values, or `None`s.
        masks: which scores (L, S) or (N heads, L, S), and which keys (N, S), are ignored.
        static: keys and values used instead of projected ones, (N heads, S, E / heads), or `None`s.
    """
    _check(query, key, value, batch_first, num_heads, masks, static, extra)
    xs = (query, key, value)
    if key is value:
        xs = (query, None, None) if query is key else (query, key, None)
    counter = next_counter() if dropout_p > 0 else None
    zeros, batch_first, single = bool(add_zero_attn), bool(batch_first), len(dims_of(query)) == 2
    q, k, v = _projected_heads(
        *xs, *weights, bias, *extra, *static, heads=num_heads, zeros=zeros, batch_first=batch_first
    )
    how: dict[str, Any] = {
        "more": (extra[0] is not None) + zeros, "causal": bool(is_causal), "rate": float(dropout_p)
    }  # fmt: skip
    y = _masked_attention(q, k, v, *masks, counter, **how)
    y = _joined_heads(y, *out, single=single, batch_first=batch_first)
    if not need_weights:
        return y, None
    average = bool(average_attn_weights)
    return y, _attention_weights(q, k, *masks, counter, **how, average=average, single=single)


def _check(
    query: Any, key: Any, value: Any, batch_first: bool, heads: int, masks: tuple[Any, Any],
    static: tuple[Any, Any], extra: tuple[Any, Any],
) -> None:  # fmt: skip
    q, k, v = (dims_of(x) for x in (query, key, value))
    order = "(N, L, E)" if batch_first else "(L, N, E)"
    if len(q) not in (2, 3) or len(k) != len(q) or k[:-1] != v[:-1]:
        raise ShapeError.here(
            f"MultiheadAttention: expected query, key and value {order} or (L, E), keys and values "
            f"of one length, got {show(q)}, {show(k)} and {show(v)}"
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
            raise ShapeError.here(
                f"MultiheadAttention: expected {name} of shape {listed}, got {show(dims_of(mask))}"
            )
        if mask.dtype.is_integer:
            raise DTypeError.here(
                f"MultiheadAttention: expected {name} of booleans or floating numbers, got "
                f"{mask.dtype}"
            )


def _static_keys(static: Any, extra: Any, projected: tuple[int, ...]) -> int:
    """The number of keys and values, given or projected.

    Raises:
        ShapeError: the given ones do not fit the queries or each other.
        ArgumentError: given keys or values exclude learned rows.
    """
    shapes = [projected if x is None else dims_of(x) for x in static]
    for shape in shapes:
        expected = (projected[0], shapes[0][1], projected[2])
        if shape != expected:
            raise ShapeError.here(
                f"MultiheadAttention: expected static_k and static_v of shape {show(expected)}, "
                f"got {show(shape)}"
            )
    if any(x is not None and row is not None for x, row in zip(static, extra, strict=True)):
        raise ArgumentError.here(
            "MultiheadAttention: static_k and static_v exclude bias_k and bias_v"
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
    """`nn.MultiheadAttention` as a function: the result, and the weights or `None`.

    Args:
        query: (L, N, E) or (L, E).
        key, value: likewise, of S rows.
        embed_dim_to_check: E, a multiple of `num_heads`.
        num_heads: the number of heads.
        in_proj_weight: of queries, keys and values, (3 E, E), unless `use_separate_proj_weight`.
        in_proj_bias: (3 E), or `None`.
        bias_k, bias_v: a learned additional key and value (1, 1, E), or `None`s.
        add_zero_attn: append a key and a value of zeros.
        dropout_p: probability of dropping an attention weight in training.
        out_proj_weight: of the output's projection, (E, E).
        out_proj_bias: (E), or `None`.
        training: whether attention weights are dropped.
        key_padding_mask: (N, S), true for keys to ignore, or numbers to add.
        need_weights: whether to return the weights.
        attn_mask: (L, S) or (N num_heads, L, S), true for pairs to ignore, or numbers to add.
        use_separate_proj_weight: use `q_proj_weight`, `k_proj_weight` and `v_proj_weight`.
        q_proj_weight: (E, E).
        k_proj_weight: (E, width of keys).
        v_proj_weight: (E, width of values).
        static_k: keys used instead of projected ones, (N num_heads, S, E / num_heads).
        static_v: values, likewise.
        average_attn_weights: return the mean of the heads' weights.
        is_causal: `attn_mask` is the causal mask, so it need not be read.

    Raises:
        ShapeError: inputs or masks do not fit.
        ArgumentError: both `static_k` and `bias_k`, or `static_v` and `bias_v`.
    """
    width = dims_of(query)[-1]
    if width != embed_dim_to_check or num_heads < 1 or width % num_heads:
        raise ShapeError.here(
            f"multi_head_attention_forward: expected queries of width {embed_dim_to_check}, which "
            f"num_heads divides, got {width} and {num_heads} heads"
        )
    if is_causal and attn_mask is None:
        raise ArgumentError.here(
            "multi_head_attention_forward: is_causal needs the attn_mask that it describes"
        )
    causal = is_causal and bias_k is None and not add_zero_attn
    separate = (None, q_proj_weight, k_proj_weight, v_proj_weight)
    return multi_head_attention(
        query, key, value,
        separate if use_separate_proj_weight else (in_proj_weight, None, None, None),
        in_proj_bias, (out_proj_weight, out_proj_bias), (bias_k, bias_v),
        (None if causal else attn_mask, key_padding_mask), num_heads=num_heads, is_causal=causal,
        dropout_p=dropout_p if training else 0.0, add_zero_attn=add_zero_attn, batch_first=False,
        need_weights=need_weights, average_attn_weights=average_attn_weights,
        static=(static_k, static_v),
    )  # fmt: skip
