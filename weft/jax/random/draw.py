"""`jax.random`: keys of Threefry-2x32, and numbers that are the same as JAX's."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from weft.eager.record.memory.array_value import leaf
from weft.eager.record.pending.lazy import Tracer
from weft.eager.tensor.dispatch import recorded, wrap
from weft.errors import ArgumentError, DTypeError, nameless
from weft.ir.dtype import DType, as_dtype, bfloat16, uint32
from weft.jax.array import Array, as_array, canonical, of_array, strong
from weft.jax.config import without_effect
from weft.jax.host import values
from weft.jax.key import Keys, keys_of, words
from weft.jax.numpy import api as _numpy
from weft.numpy.promotion import finfo, iinfo
from weft.ops.random import threefry, transform

jnp: Any = _numpy

__all__ = [
    "KeyArray", "PRNGKey", "bernoulli", "bits", "categorical", "cauchy", "choice", "clone",
    "exponential", "fold_in", "gumbel", "key", "key_data", "key_impl", "laplace", "logistic",
    "multivariate_normal", "normal", "permutation", "rademacher", "randint", "shuffle", "split",
    "truncated_normal", "uniform", "wrap_key_data",
]  # fmt: skip

KeyArray = Array
_hashed: Final = recorded(threefry.hashed, differentiable=False)
_bits: Final = recorded(threefry.bits, differentiable=False)
_uniform: Final = recorded(threefry.uniform)
_integers: Final = recorded(threefry.integers, differentiable=False)
_bounds: Final = recorded(threefry.truncated_bounds)
_truncated: Final = recorded(threefry.truncated_normal)
_complex: Final = recorded(transform.complex_normal)
_correlated: Final = recorded(transform.correlated)
_place: Final = recorded(transform.weighted_place, differentiable=False)
_race: Final = recorded(transform.race, differentiable=False)
_LIKE: Final = of_array(np.zeros(0, np.float32))


def _new(x: Any) -> Any:
    return wrap(leaf(x), _LIKE)


# Keys


def PRNGKey(seed: Any, *, impl: Any = None) -> Array:
    """A key: two uint32 words, the halves of a seed.

    >>> PRNGKey(42)
    Array([ 0, 42], dtype=uint32)
    """
    if impl not in (None, "threefry2x32"):
        raise ArgumentError.here(f"PRNGKey: expected impl 'threefry2x32', got {impl!r}")
    if isinstance(seed, Array) and isinstance(seed.lazy, Tracer):
        return jnp.stack([jnp.zeros_like(seed), seed]).astype(uint32)
    word = int(np.asarray(seed))
    high = word >> 32 if canonical("int64") is as_dtype("int64") else 0
    return _new(np.array([high & threefry_mask, word & threefry_mask], np.uint32))


threefry_mask: Final = 0xFFFFFFFF


def key(seed: Any, *, impl: Any = None) -> Keys:
    """A key with a dtype of its own.

    >>> key(42).dtype, key_data(key(42))
    (key<fry>, Array([ 0, 42], dtype=uint32))
    """
    return keys_of(PRNGKey(seed, impl=impl))


def clone(key: Any) -> Array:
    """The same key."""
    return key


def key_data(keys: Any) -> Array:
    """The words of keys."""
    return words(keys)


def wrap_key_data(key_bits_array: Any, *, impl: Any = None) -> Keys:
    """Keys of these words."""
    PRNGKey(0, impl=impl)
    return keys_of(as_array(key_bits_array))


def key_impl(keys: Any) -> str:
    """The name of the generator."""
    checked(keys)
    return "fry"


def checked(key: Any) -> Array:
    """A key as an array.

    Raises:
        TypeError: it is none.
    """
    found = as_array(words(key))
    kind = getattr(getattr(found, "lazy", None), "type", None)
    if kind is None or kind.dtype is not uint32 or kind.shape[-1:] != (2,):
        shown = type(key).__name__ if kind is None else kind
        raise TypeError(f"Expected a PRNG key of two uint32 words, got {shown}")
    return found


def _index(shape: Sequence[int]) -> Any:
    size = math.prod(shape)
    if size >> 32:
        raise ArgumentError.here(f"random: expected at most 2**32 numbers, got {size}")
    return np.arange(size, dtype=np.uint32).reshape(tuple(shape))


def _pairs(key: Any, shape: Sequence[int], first: Any = None) -> Any:
    """Two hashed words for each element of a shape."""
    key = checked(key)
    low = _index(shape) if first is None else first
    known = values([key]) if isinstance(low, np.ndarray) else None
    if known is not None:
        words = known[0]
        return _new(np.stack(threefry.threefry2x32(words, (np.zeros_like(low), low)), -1))
    return _hashed.on(_LIKE, key, np.zeros(np.shape(low), np.uint32), low)


def shape_of(shape: Any) -> tuple[int, ...]:
    if isinstance(shape, int | np.integer):
        return (int(shape),)
    return tuple([int(n) for n in shape])


def split(key: Any, num: Any = 2) -> Array:
    """New keys from a key: an array with a row for each."""
    return _like(key, _pairs(key, shape_of(num)))


def _like(key: Any, found: Any) -> Any:
    return keys_of(found) if isinstance(key, Keys) else found


def fold_in(key: Any, data: Any) -> Array:
    """A new key from a key and an integer."""
    known = values([data])
    if known is not None:
        place: Any = np.array(int(known[0]) & threefry_mask, np.uint32)
    else:
        place = as_array(data).astype(uint32)
    return _like(key, _pairs(key, (), place))


# Bits, uniform numbers and integers


def bits(key: Any, shape: Any = (), dtype: Any = None) -> Array:
    """Uniform bits of an unsigned dtype, uint32 by default."""
    kind = canonical(dtype or "uint")
    return _of_width(key, shape_of(shape), kind.size * 8)


def _of_width(key: Any, shape: Sequence[int], width: int) -> Any:
    return _bits.on(_LIKE, _pairs(key, shape), width=width)


def floating(dtype: Any, name: str) -> DType:
    kind = canonical(dtype or float)
    if not kind.is_floating:
        raise nameless(DTypeError(f"dtype argument to `{name}` must be a float dtype, got {kind}"))
    return kind


def uniform(
    key: Any, shape: Any = (), dtype: Any = None, minval: Any = 0.0, maxval: Any = 1.0
) -> Array:
    """Uniform numbers in [minval, maxval)."""
    kind = floating(dtype, "uniform")
    low, high = (jnp.asarray(x, kind) for x in (minval, maxval))
    drawn = _of_width(key, shape_of(shape), 8 if kind is bfloat16 else kind.size * 8)
    return _uniform.on(_LIKE, drawn, low, high, dtype=kind)


def randint(key: Any, shape: Any, minval: Any, maxval: Any, dtype: Any = None) -> Array:
    """Integers in [minval, maxval)."""
    kind = canonical(dtype or int)
    wide = kind if kind.size >= 4 else as_dtype("int32")
    limits = iinfo(wide)
    beyond = isinstance(maxval, int) and maxval > limits.max
    low, high = (jnp.asarray(_bounded(x, limits)).astype(wide) for x in (minval, maxval))
    first, second = split(key)
    dims = shape_of(shape)
    words = [_of_width(k, dims, wide.size * 8) for k in (first, second)]
    found = _integers.on(_LIKE, *words, low, high, dtype=wide, beyond=beyond)
    return found.astype(kind)


def _bounded(x: Any, limits: Any) -> Any:
    """A Python number within the limits of a dtype."""
    return sorted((limits.min, x, limits.max))[1] if isinstance(x, int) else x


def permutation(key: Any, x: Any, axis: int = 0, independent: bool = False) -> Array:
    """A permutation of `range(x)`, or of an array along an axis."""
    given_ = jnp.arange(x) if isinstance(x, int | np.integer) or not np.ndim(x) else as_array(x)
    if independent or given_.ndim == 1:
        return shuffle(key, given_, axis)
    return jnp.take(given_, shuffle(key, jnp.arange(given_.shape[axis])), axis)


def shuffle(key: Any, x: Any, axis: int = 0) -> Array:
    """An array sorted by random numbers, so often that ties do not matter."""
    x = as_array(x)
    rounds = math.ceil(3 * math.log(max(1, x.size)) / math.log(threefry_mask))
    for _ in range(rounds):
        key, subkey = split(key)
        places = jnp.argsort(_of_width(subkey, x.shape, 32), axis)
        x = jnp.take_along_axis(x, places, axis)
    return x


def choice(
    key: Any, a: Any, shape: Any = (), replace: bool = True, p: Any = None, axis: int = 0
) -> Array:
    """Entries of an array, or of `range(a)`, with or without replacement.

    Raises:
        ValueError: more entries than there are, without replacement.
    """
    dims, whole = shape_of(shape), isinstance(a, int | np.integer) or not np.ndim(a)
    count = int(a) if whole else as_array(a).shape[axis]
    draws = math.prod(dims)
    if not replace and draws > count:
        raise nameless(
            ArgumentError(
                f"Cannot take a larger sample (size {draws}) than population (size {count}) when "
                "'replace=False'"
            )
        )
    if p is None and not replace:
        places = permutation(key, count)[:draws]
        if not whole and as_array(a).ndim == 1:
            return permutation(key, a)[:draws].reshape(dims)
    elif p is None:
        places = randint(key, dims, 0, count)
    elif replace:
        total = jnp.cumsum(jnp.asarray(p))
        places = _place.on(_LIKE, total, uniform(key, dims, dtype=total.dtype))
    else:
        places = jnp.argsort(_race.on(_LIKE, gumbel(key, (count,)), jnp.asarray(p, float)))[:draws]
    if whole:
        return places.reshape(dims)
    found = jnp.take(as_array(a), places, axis)
    return found.reshape((*found.shape[:axis], *dims, *found.shape[axis + places.ndim :]))


# Distributions of one uniform number


def _of_uniform(name: str, low: str | float, high: float = 1.0) -> Callable[..., Array]:
    transform = recorded(getattr(threefry, name))

    def draw(key: Any, shape: Any = (), dtype: Any = None) -> Array:
        kind = floating(dtype, name)
        limits = finfo(kind)
        least = {"tiny": limits.tiny, "eps": limits.eps, "above -1": -1 + limits.eps / 2}
        start = least[low] if isinstance(low, str) else low
        return transform.on(_LIKE, uniform(key, shape, kind, start, high))

    draw.__name__ = draw.__qualname__ = name
    draw.__doc__ = f"Numbers of the {name} distribution."
    return draw


exponential: Final = _of_uniform("exponential", 0.0)
laplace: Final = _of_uniform("laplace", "above -1")
logistic: Final = _of_uniform("logistic", "tiny")
cauchy: Final = _of_uniform("cauchy", "eps")
_gumbel: Final = _of_uniform("gumbel", "tiny")
_normal: Final = _of_uniform("normal", "above -1")


def gumbel(key: Any, shape: Any = (), dtype: Any = None, mode: Any = None) -> Array:
    """Gumbel numbers, in JAX's default mode."""
    without_effect("gumbel", mode=mode)
    return _gumbel(key, shape, dtype)


def normal(key: Any, shape: Any = (), dtype: Any = None) -> Array:
    """Standard normal numbers.

    >>> import numpy as np
    >>> np.round(normal(PRNGKey(0), (3,)).array, 4).tolist()
    [1.6226, 2.0253, -0.4336]
    """
    kind = canonical(dtype or float)
    if not kind.is_complex:
        return _normal(key, shape, dtype)
    return _complex.on(_LIKE, *[_normal(k, shape, kind.real) for k in split(key)])


def truncated_normal(
    key: Any, lower: Any, upper: Any, shape: Any = None, dtype: Any = None
) -> Array:
    """Normal numbers in (lower, upper)."""
    kind = floating(dtype, "truncated_normal")
    ends = [jnp.asarray(x, kind) for x in (lower, upper)]
    dims = np.broadcast_shapes(*[x.shape for x in ends]) if shape is None else shape
    u = uniform(key, dims, kind, *[_bounds.on(_LIKE, x) for x in ends])
    return _truncated.on(_LIKE, u, *ends)


def bernoulli(key: Any, p: Any = 0.5, shape: Any = None, mode: str = "low") -> Array:
    """Booleans that are true with probability `p`."""
    without_effect("bernoulli", mode=mode)
    p = jnp.asarray(p, None if jnp.asarray(p).dtype.is_inexact else float)
    return uniform(key, p.shape if shape is None else shape, p.dtype) < strong(p)


def rademacher(key: Any, shape: Any = (), dtype: Any = None) -> Array:
    """-1 and 1 with equal probability."""
    return jnp.where(bernoulli(key, 0.5, shape), 1, -1).astype(canonical(dtype or int))


def categorical(
    key: Any, logits: Any, axis: int = -1, shape: Any = None, replace: bool = True, mode: Any = None
) -> Array:
    """Indices drawn with probabilities `softmax(logits)` along an axis."""
    without_effect("categorical", mode=mode)
    logits = strong(jnp.asarray(logits))
    batch = tuple(np.delete(logits.shape, axis).tolist())
    dims = batch if shape is None else shape_of(shape)
    before = dims[: len(dims) - len(batch)]
    if not replace:
        scores = logits + gumbel(key, logits.shape, logits.dtype)
        last = jnp.moveaxis(scores, axis, -1)
        ranked = jnp.argsort(last, -1, descending=True)[..., : math.prod(before)]
        return jnp.moveaxis(ranked, -1, 0).reshape(dims)
    back = axis - logits.ndim if axis >= 0 else axis
    return jnp.argmax(logits + gumbel(key, (*before, *logits.shape), logits.dtype), axis=back)


# Distributions of normal numbers, and of several draws


def multivariate_normal(
    key: Any, mean: Any, cov: Any, shape: Any = None, dtype: Any = None, method: str = "cholesky"
) -> Array:
    """Normal numbers of a mean and covariance.

    Raises:
        ArgumentError: another method than `cholesky`, `eigh`, `svd`.
    """
    mean, cov = jnp.asarray(mean, float), jnp.asarray(cov, float)
    dims = mean.shape[:-1] if shape is None else shape_of(shape)
    scale = None
    if method == "cholesky":
        factor = jnp.linalg.cholesky(cov)
    elif method == "eigh":
        scale, factor = jnp.linalg.eigh(cov)
    elif method == "svd":
        factor, scale, _ = jnp.linalg.svd(cov)
    else:
        raise ArgumentError.here(f"multivariate_normal: expected a known method, got {method!r}")
    z = normal(key, (*dims, mean.shape[-1]), dtype)
    return _correlated.on(_LIKE, z, mean, factor, scale)
