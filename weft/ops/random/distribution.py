"""Random numbers of a given dtype and shape from a counter."""

from __future__ import annotations

import math
from typing import Any, Final

from weft.ir.dtype import DType, float32, float64, int64
from weft.ir.node import Value
from weft.ir.shape import known
from weft.ops.boundary import probability as chance
from weft.ops.declaration import catalogue, constant_of
from weft.ops.random import counter_based as nodes
from weft.ops.random import discrete
from weft.ops.random.counter_based import SEED


def bernoulli_node(
    counter: Value, p: Value, *, shape: Any, dtype: DType, check: bool = False
) -> Value:
    """Ones with probabilities `p`, which broadcast, otherwise zeros.

    Args:
        check: whether to check that `p` holds probabilities.
    """
    p = chance.chances(p, "bernoulli") if check else p
    p = catalogue.broadcast_to(catalogue.cast(p, dtype=float32), shape=shape)
    return catalogue.cast(nodes.bernoulli(counter, SEED, shape, p), dtype=dtype)


def multinomial(counter: Value, weights: Value, *, count: int, replacement: bool) -> Value:
    """Indices, each drawn with a probability proportional to its weight."""
    weights = chance.weights(weights, "multinomial")
    flat = weights if len(known(weights.shape)) == 2 else catalogue.expand_dims(weights, axis=0)
    logits = catalogue.log(catalogue.cast(flat, dtype=float32))
    if replacement:
        drawn = nodes.categorical(counter, SEED, logits, count)
    else:  # the largest of logits + Gumbel noise are a draw without replacement
        u = nodes.random_uniform(counter, SEED, known(flat.shape), low=1e-10)
        noisy = logits - catalogue.log(-catalogue.log(u))
        order = catalogue.sort.all(catalogue.negative(noisy), axis=1)[1]
        drawn = order[:, :count]
    drawn = catalogue.cast(drawn, dtype=int64)
    return drawn if flat is weights else catalogue.squeeze(drawn, axes=(0,))


def binomial(counter: Value, count: Value, p: Value, *, shape: Any, dtype: DType) -> Value:
    """How many of `count` trials with probability `p` succeed."""
    count, p = (catalogue.cast(x, dtype=float64) for x in (count, p))
    return catalogue.cast(discrete.binomial(counter, SEED, count, p, shape), dtype=dtype)


def poisson(counter: Value, rate: Value, *, dtype: DType) -> Value:
    """Poisson numbers with mean `rate`."""
    given = catalogue.cast(chance.rates(rate, "poisson"), dtype=float64)
    drawn = discrete.poisson(counter, SEED, given, known(rate.shape))
    return catalogue.cast(drawn, dtype=dtype)


def uniform_node(
    counter: Value, low: Value | None = None, high: Value | None = None, *, shape: Any, dtype: DType
) -> Value:
    """Uniform numbers in (0, 1)."""
    if low is None or high is None:
        return nodes.random_uniform(counter, SEED, shape, dtype)
    return nodes.random_uniform(counter, SEED, shape, dtype, low, high)


def normal_node(
    counter: Value, mean: Value | None = None, std: Value | None = None, *, shape: Any,
    dtype: DType, check: bool = False,
) -> Value:  # fmt: skip
    """Normal numbers, by default with mean 0 and standard deviation 1.

    Args:
        check: whether to check that `std` is not negative.
    """
    x = nodes.random_normal(counter, SEED, shape, dtype)
    std = chance.deviations(std, "normal") if check and std is not None else std
    x = x if std is None else x * catalogue.cast(std, dtype=dtype)
    return x if mean is None else x + catalogue.cast(mean, dtype=dtype)


def integers_node(counter: Value, *, shape: Any, low: int, high: int, dtype: DType) -> Value:
    """Integers in [low, high) as numbers of any dtype."""
    if dtype.is_integer:
        return nodes.random_integers(counter, SEED, shape, low, high, dtype)
    x = nodes.random_integers(counter, SEED, shape, low, high, int64)
    return catalogue.cast(x, dtype=dtype)


def permutation(counter: Value, *, size: int, dtype: DType) -> Value:
    """The numbers 0 to size - 1 in random order."""
    return catalogue.cast(nodes.random_permutation(counter, SEED, size), dtype=dtype)


def complex(counter: Value, *, shape: Any, dtype: DType, normal: bool) -> Value:
    """Complex numbers with real and imaginary parts drawn alike; normal ones have variance 1."""
    both = (2, *shape)
    if normal:
        drawn = nodes.random_normal(counter, SEED, both, dtype.real)
        drawn = drawn * constant_of(math.sqrt(0.5), dtype.real)
    else:
        drawn = nodes.random_uniform(counter, SEED, both, dtype.real)
    return catalogue.complex(drawn[0], drawn[1])


def _uniform(counter: Value, shape: Any, dtype: DType) -> Value:
    return nodes.random_uniform(counter, SEED, shape, dtype)


def exponential(counter: Value, rate: Value, *, shape: Any, dtype: DType) -> Value:
    """Exponentially distributed numbers with a given rate."""
    return -catalogue.log1p(-_uniform(counter, shape, dtype)) / rate


def cauchy(counter: Value, median: Value, sigma: Value, *, shape: Any, dtype: DType) -> Value:
    """Numbers from a Cauchy distribution with this median and half width."""
    turn = (_uniform(counter, shape, dtype) - constant_of(0.5, dtype)) * math.pi
    return median + sigma * catalogue.tan(turn)


def log_normal(counter: Value, mean: Value, std: Value, *, shape: Any, dtype: DType) -> Value:
    """Log-normal numbers."""
    return catalogue.exp(mean + std * nodes.random_normal(counter, SEED, shape, dtype))


def geometric(counter: Value, p: Value, *, shape: Any, dtype: DType) -> Value:
    """Geometric numbers: how many trials with probability `p` until one succeeds."""
    rest = catalogue.log1p(-_uniform(counter, shape, dtype))
    return catalogue.maximum(catalogue.ceil(rest / catalogue.log1p(-p)), constant_of(1, dtype))


def categorical(counter: Value, logits: Value, *, shape: Any) -> Value:
    """Classes, drawn for rows of log probabilities (..., classes) by the Gumbel-max trick, int64.

    Args:
        shape: of the result; it ends with that of the rows.
    """
    noise = gumbel(counter, shape=(*shape, known(logits.shape)[-1]), dtype=logits.dtype)
    return catalogue.cast(catalogue.argmax(logits + noise, axis=-1), dtype=int64)


def gumbel(counter: Value, *, shape: Any, dtype: DType) -> Value:
    """Numbers from the standard Gumbel distribution, never infinite."""
    wide = float64 if dtype is float64 else float32
    u = nodes.random_uniform(counter, SEED, shape, wide)
    inside = u * (1 - 2.0**-23) + 2.0**-24
    return catalogue.cast(-catalogue.log(-catalogue.log(inside)), dtype=dtype)


_ANGLES: Final = 24  # each is refused with a probability of at most 0.35, all with 1e-11


def von_mises(counter: Value, concentration: Value, *, shape: Any) -> Value:
    """Angles from the von Mises distribution around 0.

    Source: Best and Fisher, "Efficient simulation of the von Mises distribution", 1979.
    """
    dtype, k = concentration.dtype, catalogue.cast(concentration, dtype=float64)
    # 1 / r of the wrapped Cauchy distribution from which angles are taken or refused
    tau = catalogue.sqrt(k * k * 4.0 + 1.0) + 1.0
    rho = (tau - catalogue.sqrt(tau * 2.0)) / (k * 2.0)
    narrow = catalogue.less(k, constant_of(1e-5, float64))
    r = catalogue.select(narrow, 1.0 / k + k, (rho * rho + 1.0) / (rho * 2.0))
    u = nodes.random_uniform(counter, SEED, (3, _ANGLES, *shape), float64)
    z = catalogue.cos(u[0] * math.pi)
    cosine = (r * z + 1.0) / (r + z)
    c = k * (r - cosine)
    good = catalogue.less(catalogue.log(1.0 - u[1]), catalogue.log(c) + 1.0 - c)
    found = cosine[_ANGLES - 1]
    for i in reversed(range(_ANGLES - 1)):
        found = catalogue.select(good[i], cosine[i], found)
    one = constant_of(1, float64)
    angle = catalogue.acos(catalogue.clip(found, -one, one))
    positive = catalogue.less(u[2][0], constant_of(0.5, float64))
    return catalogue.cast(catalogue.select(positive, angle, -angle), dtype=dtype)
