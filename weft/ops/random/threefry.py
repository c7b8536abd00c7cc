"""Threefry-2x32 and the numbers that JAX makes of its bits.

`threefry2x32` is 20 rounds of Salmon et al., "Parallel Random Numbers: As Easy as 1, 2, 3" (2011).
Element i of a draw hashes the two halves of i, as JAX does with `jax_threefry_partitionable`, so
that bits, uniform numbers and integers are the same as JAX's, and others the same up to rounding.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from weft.ir.dtype import DType, as_dtype, uint64
from weft.ir.node import Value
from weft.ops.declaration import Array, catalogue, constant_of
from weft.ops.special.error_function import erfinv

ROTATIONS: Final = ((13, 15, 26, 6), (17, 29, 16, 24))
PARITY: Final = 0x1BD11BDA
_SIGNED: Final = {8: "uint8", 16: "uint16", 32: "uint32", 64: "uint64"}
_MANTISSA: Final = {"float16": 10, "bfloat16": 7, "float32": 23, "float64": 52}


def _rounds(m: Any, word: Callable[[int], Any], key: Any, x: Sequence[Any]) -> Any:
    """The hash by functions of these names: NumPy's, or the catalogue's."""
    keys = [*key, m.bitwise_xor(m.bitwise_xor(key[0], key[1]), word(PARITY))]
    a, b = m.add(x[0], keys[0]), m.add(x[1], keys[1])
    for i in range(5):
        for r in ROTATIONS[i % 2]:
            a = m.add(a, b)
            turned = m.bitwise_or(m.left_shift(b, word(r)), m.right_shift(b, word(32 - r)))
            b = m.bitwise_xor(a, turned)
        a = m.add(a, keys[(i + 1) % 3])
        b = m.add(m.add(b, keys[(i + 2) % 3]), word(i + 1))
    return a, b


def threefry2x32(key: Array | Sequence[Array], x: Sequence[Array]) -> tuple[Array, Array]:
    """The hash of two words by a key, all uint32 arrays.

    >>> zero = np.zeros(1, np.uint32)
    >>> [hex(int(y[0])) for y in threefry2x32((zero, zero), (zero, zero))]
    ['0x6b200159', '0x99ba4efe']
    """
    with np.errstate(over="ignore"):
        return _rounds(np, np.uint32, key, x)


def hashed(key: Value, x0: Value, x1: Value) -> Value:
    """The hash of two words, stacked along a new last axis.

    Args:
        key: (..., 2); its leading axes broadcast with the words'.
    """
    return catalogue.stack(*_rounds(catalogue, _constant, _halves(key), (x0, x1)), axis=-1)


def _halves(pairs: Value) -> list[Value]:
    """The two words of each pair."""
    shape = pairs.shape
    assert shape is not None
    parts = catalogue.split.all(pairs, sizes=(1, 1), axis=-1)
    return [catalogue.reshape(part, shape=shape[:-1]) for part in parts]


def _constant(number: int) -> Value:
    return constant_of(np.array(number, np.uint32))


def bits(pairs: Value, *, width: int) -> Value:
    """Bits of a width from pairs of hashed words."""
    high, low = _halves(pairs)
    if width == 64:
        shift = constant_of(np.array(32, np.uint64))
        wide = catalogue.left_shift(catalogue.cast(high, dtype=uint64), shift)
        return catalogue.bitwise_or(wide, catalogue.cast(low, dtype=uint64))
    mixed = catalogue.bitwise_xor(high, low)
    return mixed if width == 32 else catalogue.cast(mixed, dtype=as_dtype(_SIGNED[width]))


def uniform(bits: Value, low: Value, high: Value, *, dtype: DType) -> Value:
    """Numbers in [low, high) whose mantissa are the first of the bits."""
    width, mantissa = dtype.size * 8, _MANTISSA[dtype.name]
    unsigned = as_dtype(_SIGNED[width])
    given = bits.dtype.size * 8  # 8 of bfloat16, whose mantissa has 7
    bits = catalogue.cast(bits, dtype=unsigned)
    shift = constant_of(np.array(given - mantissa, unsigned.numpy))
    one = constant_of(np.array(1, dtype.numpy).view(unsigned.numpy))
    drawn = catalogue.bitwise_or(catalogue.right_shift(bits, shift), one)
    unit = catalogue.bitcast(drawn, dtype=dtype) - constant_of(np.array(1, dtype.numpy))
    return catalogue.maximum(low, unit * (high - low) + low)


def integers(
    high: Value, low: Value, first: Value, last: Value, *, dtype: DType, beyond: bool
) -> Value:
    """Integers in [first, last) from twice as many bits as the dtype has.

    Args:
        beyond: whether `last` was larger than the dtype can hold, and is its largest number.
    """
    unsigned = high.dtype
    one = constant_of(np.array(1, unsigned.numpy))
    span = catalogue.cast(last - first, dtype=unsigned)
    span = catalogue.select(catalogue.less_equal(last, first), one, span)
    if beyond:
        span = span + catalogue.cast(catalogue.greater(last, first), dtype=unsigned)
    # A wrapped span of 0 stands for all numbers: remainders have no effect
    full = catalogue.equal(span, constant_of(np.array(0, unsigned.numpy)))
    safe = catalogue.select(full, one, span)

    def rest(x: Value) -> Value:
        return catalogue.select(full, x, catalogue.remainder(x, safe))

    half = rest(constant_of(np.array(1 << (unsigned.size * 4), unsigned.numpy)))
    offset = rest(rest(high) * rest(half * half) + rest(low))
    return first + catalogue.cast(offset, dtype=dtype)


# Distributions of uniform numbers in a range; `tiny` and `eps` are of the dtype

_ROOT2: Final = math.sqrt(2)


def _like(u: Value, number: float) -> Value:
    return constant_of(np.array(number, u.dtype.numpy))


def normal(u: Value) -> Value:
    """Standard normal numbers from uniform ones in (-1, 1)."""
    return erfinv(u) * _like(u, _ROOT2)


def exponential(u: Value) -> Value:
    """Exponential numbers from uniform ones in [0, 1)."""
    return -catalogue.log1p(-u)


def gumbel(u: Value) -> Value:
    """Gumbel numbers from uniform ones in (0, 1)."""
    return -catalogue.log(-catalogue.log(u))


def laplace(u: Value) -> Value:
    """Laplace numbers from uniform ones in (-1, 1)."""
    return catalogue.sign(u) * catalogue.log1p(-catalogue.abs(u))


def logistic(u: Value) -> Value:
    """Logistic numbers from uniform ones in (0, 1)."""
    return catalogue.log(u) - catalogue.log1p(-u)


def cauchy(u: Value) -> Value:
    """Cauchy numbers from uniform ones in (0, 1)."""
    return catalogue.tan(_like(u, math.pi) * (u - _like(u, 0.5)))


def truncated_bounds(x: Value) -> Value:
    """Where a bound of a normal number lies among uniform numbers in (-1, 1)."""
    return catalogue.erf(x / _like(x, _ROOT2))


def truncated_normal(u: Value, low: Value, high: Value) -> Value:
    """Normal numbers in (low, high) from uniform ones between `truncated_bounds`."""
    most, least = (_like(u, s * math.inf) for s in (1, -1))
    inside = catalogue.maximum(normal(u), catalogue.nextafter(low, most))
    return catalogue.minimum(inside, catalogue.nextafter(high, least))


# Rejection sampling on the host: one key for each number, as many turns as it takes


def _split(keys: Array, count: int) -> list[Array]:
    """`count` keys from each: arrays (n, 2)."""
    zero = np.zeros(len(keys), np.uint32)
    turns = [threefry2x32(keys.T, (zero, zero + np.uint32(i))) for i in range(count)]
    return [np.stack(pair, 1) for pair in turns]


def _unit(keys: Array, low: float, high: float, dtype: Any) -> Array:
    """A uniform number from each key."""
    zero = np.zeros(len(keys), np.uint32)
    a, b = threefry2x32(keys.T, (zero, zero))
    if dtype == np.float64:
        wide = (a.astype(np.uint64) << np.uint64(32)) | b.astype(np.uint64)
        u = ((wide >> np.uint64(12)) | np.array(1.0).view(np.uint64)).view(np.float64) - 1
    else:
        u = (((a ^ b) >> np.uint32(9)) | np.float32(1).view(np.uint32)).view(np.float32)
        u = (u - np.float32(1)).astype(dtype)
    first, last = dtype(low), dtype(high)
    return np.maximum(first, u * (last - first) + first)


def _normal(keys: Array, dtype: Any) -> Array:
    u = _unit(keys, float(np.nextafter(dtype(-1), dtype(0))), 1.0, dtype)
    return dtype(_ROOT2) * erfinv.reference(u).astype(dtype)


def log_gamma(keys: Array, alpha: Array) -> Array:
    """Logarithms of gamma numbers of a shape parameter, one a key.

    (Marsaglia and Tsang, "A Simple Method for Generating Gamma Variables", 2000.)

    Args:
        keys: (n, 2).
        alpha: (n,).
    """
    dtype = alpha.dtype.type
    small = alpha < 1
    d = np.where(small, alpha + 1, alpha) - dtype(1 / 3)
    c = dtype(1 / 3) / np.sqrt(d)
    keys, last = _split(keys, 2)
    v = np.ones_like(alpha)
    open_ = np.ones(len(alpha), bool)
    while open_.any():
        keys[open_], x_keys, u_keys = _split(keys[open_], 3)
        x, w = np.zeros_like(c[open_]), np.full_like(c[open_], -1)
        while (w <= 0).any():
            again = w <= 0
            x_keys[again], drawn = _split(x_keys[again], 2)
            x[again] = _normal(drawn, dtype)
            w[again] = 1 + x[again] * c[open_][again]
        cube, square, u = w * w * w, x * x, _unit(u_keys, 0.0, 1.0, dtype)
        v[open_] = cube
        with np.errstate(divide="ignore"):
            bound = square * dtype(0.5) + d[open_] * (1 - cube + np.log(cube))
            refused = (u >= 1 - dtype(0.0331) * square * square) & (np.log(u) >= bound)
        open_[open_] = refused
    boost = np.log1p(-_unit(last, 0.0, 1.0, dtype))
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.log(d) + np.log(v) + np.where(small & (boost != 0), boost / alpha, 0)


def poisson(key: Array, rate: Array) -> Array:
    """Poisson numbers below a rate of 10 by Knuth's products, others by Hormann's rejection.

    Args:
        key: (2,).
        rate: any shape; each turn draws for all elements from one key.
    """
    knuth = np.isnan(rate) | (rate < 10)
    few = _knuth(key, np.where(knuth, rate, 0))
    many = few if knuth.all() else _rejected(key, np.where(knuth, 1e5, rate).astype(rate.dtype))
    return np.where(rate == 0, 0, np.where(knuth, few, many))


def _all_unit(key: Array, shape: tuple[int, ...]) -> Array:
    count = math.prod(shape)
    index = np.arange(count, dtype=np.uint32)
    a, b = threefry2x32(key.reshape(2, 1), (np.zeros_like(index), index))
    u = (((a ^ b) >> np.uint32(9)) | np.float32(1).view(np.uint32)).view(np.float32)
    return (u - np.float32(1)).reshape(shape)


def _knuth(key: Array, rate: Array) -> Array:
    k, total = np.zeros(rate.shape, np.int64), np.zeros(rate.shape, np.float32)
    while (total > -rate).any():
        key, drawn = (part[0] for part in _split(key.reshape(1, 2), 2))
        k += total > -rate
        with np.errstate(divide="ignore"):
            total = total + np.log(_all_unit(drawn, rate.shape))
    return k - 1


def _rejected(key: Array, rate: Array) -> Array:
    log_rate, b = np.log(rate), 0.931 + 2.53 * np.sqrt(rate)
    a = -0.059 + 0.02483 * b
    inverse, most = 1.1239 + 1.1328 / (b - 3.4), 0.9277 - 3.6224 / (b - 2)
    found, done = np.full(rate.shape, -1, rate.dtype), np.zeros(rate.shape, bool)
    lgamma = catalogue.lgamma.reference
    while not done.all():
        key, first, second = (part[0] for part in _split(key.reshape(1, 2), 3))
        u, v = _all_unit(first, rate.shape) - 0.5, _all_unit(second, rate.shape)
        gap = 0.5 - np.abs(u)
        k = np.floor((2 * a / gap + b) * u + rate + 0.43)
        with np.errstate(divide="ignore", invalid="ignore"):
            s = np.log(v * inverse / (a / (gap * gap) + b))
            t = -rate + k * log_rate - lgamma(np.maximum(k, 0) + 1)
        taken = (gap >= 0.07) & (v <= most)
        taken |= ~((k < 0) | ((gap < 0.013) & (v > gap))) & (s <= t)
        found, done = np.where(taken, k, found), done | taken
    return found.astype(np.int64)
