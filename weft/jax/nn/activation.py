"""`jax.nn`: activations and normalizations, from `weft.nn.functional` and the catalogue."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from weft.eager.functions import api
from weft.eager.tensor.dispatch import recorded
from weft.jax.array import Array, as_array, given, strong
from weft.jax.config import refuse_given
from weft.jax.numpy import api as _numpy
from weft.jax.numpy.kind import promoted
from weft.nn import functional as F
from weft.ops.elementwise import jax_activation as formula

jnp: Any = _numpy

__all__ = [
    "celu", "dot_product_attention", "elu", "gelu", "glu", "hard_sigmoid", "hard_silu",
    "hard_swish", "hard_tanh", "identity", "leaky_relu", "log1mexp", "log_sigmoid",
    "log_softmax", "logmeanexp", "logsumexp", "mish", "one_hot", "relu", "relu6", "selu",
    "sigmoid", "silu", "soft_sign", "softmax", "softplus", "sparse_plus", "sparse_sigmoid",
    "squareplus", "standardize", "swish", "tanh",
]  # fmt: skip


def _floats(x: Any) -> Any:
    x = strong(as_array(x))
    x = jnp.asarray(x)
    return x if x.dtype.is_inexact else x.astype(float)


def _activation(function: Callable[..., Any], name: str) -> Callable[..., Array]:
    def activation(x: Any) -> Any:
        return given(function(_floats(x)))

    activation.__name__ = activation.__qualname__ = name
    activation.__doc__ = f"{name}(x), elementwise."
    return activation


def relu(x: Any) -> Array:
    """max(x, 0), elementwise, with the gradient 0 at 0."""
    return given(F.relu(strong(jnp.asarray(x))))


relu6 = _activation(F.relu6, "relu6")
sigmoid = _activation(api.sigmoid, "sigmoid")
silu = swish = _activation(F.silu, "silu")
selu = _activation(F.selu, "selu")
mish = _activation(F.mish, "mish")
softplus = _activation(F.softplus, "softplus")
soft_sign = _activation(F.softsign, "soft_sign")
log_sigmoid = _activation(F.logsigmoid, "log_sigmoid")
hard_sigmoid = _activation(F.hardsigmoid, "hard_sigmoid")
hard_silu = hard_swish = _activation(F.hardswish, "hard_silu")
hard_tanh = _activation(F.hardtanh, "hard_tanh")
tanh = _activation(api.tanh, "tanh")


def identity(x: Any) -> Array:
    """The array itself."""
    return jnp.asarray(x)


sparse_plus = _activation(recorded(formula.sparse_plus), "sparse_plus")
sparse_sigmoid = _activation(recorded(formula.sparse_sigmoid), "sparse_sigmoid")
log1mexp = _activation(recorded(formula.log1mexp), "log1mexp")
_squareplus = recorded(formula.squareplus)


def squareplus(x: Any, b: Any = 4) -> Array:
    """(x + sqrt(x**2 + b)) / 2."""
    x = _floats(x)
    return _squareplus(x, jnp.asarray(b, x.dtype))


def elu(x: Any, alpha: Any = 1.0) -> Array:
    """x, or `alpha * (exp(x) - 1)` below 0."""
    return given(F.elu(_floats(x), alpha))


def celu(x: Any, alpha: Any = 1.0) -> Array:
    """x, or `alpha * (exp(x / alpha) - 1)` below 0."""
    return given(F.celu(_floats(x), alpha))


def leaky_relu(x: Any, negative_slope: Any = 1e-2) -> Array:
    """x, or `negative_slope * x` below 0."""
    return given(F.leaky_relu(_floats(x), negative_slope))


def gelu(x: Any, approximate: bool = True) -> Array:
    """x times the normal distribution function, approximated by tanh unless told otherwise."""
    return given(F.gelu(_floats(x), approximate="tanh" if approximate else "none"))


def glu(x: Any, axis: int = -1) -> Array:
    """The first half times the sigmoid of the second."""
    return given(F.glu(_floats(x), dim=axis))


def _axes(axis: Any, rank: int) -> tuple[int, ...]:
    if axis is None:
        return tuple(range(rank))
    return (axis % rank,) if isinstance(axis, int) else tuple([a % rank for a in axis])


def _along(x: Any, axis: Any, function: Callable[..., Any]) -> Any:
    """A function along one axis, of several axes as one."""
    axes = _axes(axis, x.ndim)
    if len(axes) == 1:
        return given(function(x, axes[0]))
    last = tuple(range(-len(axes), 0))
    moved = jnp.moveaxis(x, axes, last)
    flat = moved.reshape((*moved.shape[: x.ndim - len(axes)], -1))
    return jnp.moveaxis(given(function(flat, -1)).reshape(moved.shape), last, axes)


def softmax(x: Any, axis: Any = -1, where: Any = None, initial: Any = None) -> Array:
    """exp(x) over its sum along axes; elements where `where` is false count as 0."""
    refuse_given("softmax", initial=initial)
    x = _floats(x)
    if where is None:
        return _along(x, axis, api.softmax)
    found = _along(jnp.where(where, x, -jnp.inf), axis, api.softmax)
    return jnp.where(where, found, 0)


def log_softmax(x: Any, axis: Any = -1, where: Any = None, initial: Any = None) -> Array:
    """The logarithm of `softmax`."""
    refuse_given("log_softmax", initial=initial)
    x = _floats(x)
    if where is None:
        return _along(x, axis, api.log_softmax)
    return _along(jnp.where(where, x, -jnp.inf), axis, api.log_softmax)


def logsumexp(
    a: Any, axis: Any = None, b: Any = None, keepdims: bool = False, return_sign: bool = False,
    where: Any = None,
) -> Any:  # fmt: skip
    """The logarithm of the sum of exponentials, weighted by `b`."""
    x = _floats(a)
    if where is not None:
        x = jnp.where(where, x, -jnp.inf)
    axes = _axes(axis, x.ndim)
    if b is None and not return_sign:
        return given(api.logsumexp(x, axes, keepdims)) if x.ndim else x
    weights = jnp.ones_like(x) if b is None else jnp.broadcast_to(_floats(b), x.shape)
    found, sign = _weighted(x, weights, axes=axes)
    if not keepdims:
        found, sign = (jnp.squeeze(v, axes) for v in (found, sign))
    return (found, sign) if return_sign else jnp.where(sign < 0, jnp.nan, found)


_weighted = recorded(formula.weighted_logsumexp)


def logmeanexp(x: Any, axis: Any = None, where: Any = None, keepdims: bool = False) -> Array:
    """The logarithm of the mean of exponentials."""
    x = _floats(x)
    count = math.prod([x.shape[a] for a in _axes(axis, x.ndim)])
    return logsumexp(x, axis, keepdims=keepdims, where=where) - math.log(count)


def standardize(
    x: Any, axis: Any = -1, mean: Any = None, variance: Any = None, epsilon: Any = 1e-5,
    where: Any = None,
) -> Array:  # fmt: skip
    """Values minus their mean over their deviation."""
    x = _floats(x)
    center = jnp.mean(x, axis, keepdims=True, where=where) if mean is None else mean
    spread = jnp.var(x, axis, keepdims=True, where=where) if variance is None else variance
    return _standardized(*promoted(x, center, spread), epsilon=float(epsilon))


_standardized = recorded(formula.standardized)


def one_hot(x: Any, num_classes: int, *, dtype: Any = None, axis: int = -1) -> Array:
    """Ones at the indices along a new axis; zeros only for indices out of range."""
    places = jnp.asarray(x)
    at = axis % (places.ndim + 1)
    numbers = jnp.arange(int(num_classes), dtype=places.dtype)
    shape = (*[1] * at, int(num_classes), *[1] * (places.ndim - at))
    return (jnp.expand_dims(places, at) == numbers.reshape(shape)).astype(dtype or float)


def dot_product_attention(
    query: Any, key: Any, value: Any, bias: Any = None, mask: Any = None, *,
    scale: Any = None, is_causal: bool = False, **options: Any,
) -> Array:  # fmt: skip
    """Attention of (batch, length, heads, width) arrays."""
    refuse_given(
        "dot_product_attention", **{k: v for k, v in options.items() if k != "implementation"}
    )
    q, k, v = (jnp.swapaxes(_floats(x), -3, -2) for x in (query, key, value))
    if is_causal and (mask is not None or bias is not None):
        causal = jnp.tril(jnp.ones((q.shape[-2], k.shape[-2]), bool))
        mask, is_causal = causal if mask is None else mask & causal, False
    if mask is not None:  # rows that see nothing are means of all values
        hidden = jnp.finfo(q.dtype).min * 0.7
        bias = jnp.where(mask, jnp.asarray(0 if bias is None else bias, q.dtype), hidden)
    options = {"scale": scale, "is_causal": is_causal, "enable_gqa": True}
    found = F.scaled_dot_product_attention(q, k, v, bias, **options)
    return jnp.swapaxes(given(found), -3, -2)
