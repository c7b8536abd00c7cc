"""Candidate sampling: classes drawn from a known distribution, and how often each is expected.

The distributions and expected counts are those of TensorFlow's samplers, which draw one class after
another and, for distinct ones, drop repeats. Here draws are a Poisson process of rate 1: class i is
drawn first at the time `E_i / p_i`, where `E_i` is exponentially distributed, and the first `n`
distinct classes are those with the `n` least times. Given these times, the numbers of repeats until
the last one are Poisson numbers, so that the number of draws is distributed as TensorFlow's, too.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from weft.ir.dtype import float32, float64, int64
from weft.ir.node import Value
from weft.ops.declaration import catalogue, constant_of
from weft.ops.random.counter_based import random_bits, random_normal, random_uniform
from weft.ops.shape.creation import zeros_like

APART: Final = 0x5851F42D  # changes the key, so that repeats and times are independent
COUNTED: Final = 1024  # up to this mean, repeats are counted one by one
ENOUGH: Final = 1400  # a Poisson number of that mean exceeds this with a chance of 4e-29


@dataclass(frozen=True)
class Distribution:
    """A distribution over the classes 0 to `size` - 1.

    Args:
        chance: the probabilities of float64 class numbers.
        quantile: maps numbers in [0, 1) to numbers that are rounded down to classes.
    """

    size: int
    chance: Callable[[Value], Value]
    quantile: Callable[[Value], Value]


def uniform(size: int) -> Distribution:
    """The same probability for each class."""
    return Distribution(size, lambda c: zeros_like(c) + 1 / size, lambda u: u * float(size))


def log_uniform(size: int) -> Distribution:
    """The probability `log((c + 2) / (c + 1)) / log(size + 1)` for class c (Zipf's law)."""
    total = math.log1p(size)
    return Distribution(
        size,
        lambda c: catalogue.log1p(1.0 / (c + 1.0)) / total,
        lambda u: catalogue.exp(u * total) - 1.0,
    )


def candidates(
    counter: Value, key: tuple[int, int], truth: Value,
    *, distribution: Distribution, count: int, unique: bool,
) -> tuple[Value, Value, Value]:  # fmt: skip
    """Sampled classes, and how often those in `truth` and the sampled ones are expected there.

    Args:
        truth: classes, of any shape.
        count: how many are sampled; at most as many as there are if `unique`.
        unique: whether they are distinct.

    Returns:
        int64 classes (count,), float32 counts of the shape of `truth`, float32 counts (count,).
    """
    if unique:
        drawn, tries = _distinct(counter, key, distribution, count)
    else:
        drawn, tries = _repeated(counter, key, distribution, count), None
    classes = [catalogue.cast(truth, dtype=float64), drawn]
    expected = [_expected(distribution.chance(c), count, tries) for c in classes]
    return catalogue.cast(drawn, dtype=int64), expected[0], expected[1]


def _distinct(
    counter: Value, key: tuple[int, int], distribution: Distribution, count: int
) -> tuple[Value, Value]:
    """Distinct classes in the order of their first draws, and the number of draws until then."""
    shape = (distribution.size,)
    chances = distribution.chance(catalogue.iota(shape=shape, dtype=float64))
    times = _exponential(counter, key, distribution.size) / chances
    negated, order = catalogue.top_k.all(-times, k=count)
    drawn = catalogue.cast(order, dtype=float64)
    since = negated - negated[-1:]  # from the first draw of a class to the last draw of all
    mean = catalogue.sum(since * distribution.chance(drawn))
    return drawn, _poisson(counter, (key[0] ^ APART, key[1]), mean) + float(count)


def _exponential(counter: Value, key: tuple[int, int], count: int) -> Value:
    bits = random_bits(counter, seed=key, shape=(count,))
    return -catalogue.log1p(-(catalogue.cast(bits, dtype=float64) * 2.0**-32 + 2.0**-33))


def _poisson(counter: Value, key: tuple[int, int], mean: Value) -> Value:
    """A Poisson number, computed without a call of Python: these make a step copy its variables.

    It is the number of arrivals of a Poisson process. Of large means, it is the rounded quantile of
    Cornish and Fisher's expansion ("Moments and Cumulants in the Specification of Distributions",
    1938), off by less than 1 / mean.
    """
    arrivals = catalogue.cumsum(_exponential(counter, key, ENOUGH), axis=0)
    counted = catalogue.sum(catalogue.cast(catalogue.less(arrivals, mean), dtype=float64))
    z = random_normal(counter, (key[0], key[1] ^ APART), (), float64)
    rounded = catalogue.floor(mean + catalogue.sqrt(mean) * z + (z * z - 1.0) / 6.0 + 0.5)
    return catalogue.select(catalogue.less_equal(mean, float(COUNTED)), counted, rounded)


def _repeated(
    counter: Value, key: tuple[int, int], distribution: Distribution, count: int
) -> Value:
    u = random_uniform(counter, key, (count,), float64)
    last = constant_of(distribution.size - 1, float64)
    return catalogue.minimum(catalogue.floor(distribution.quantile(u)), last)


def _expected(chance: Value, count: int, tries: Value | None) -> Value:
    """`1 - (1 - chance) ** tries`, or `chance * count` where no draw was dropped."""
    found = chance * float(count)
    if tries is not None:
        seen = -catalogue.expm1(tries * catalogue.log1p(-chance))
        found = catalogue.select(catalogue.equal(tries, float(count)), found, seen)
    return catalogue.cast(found, dtype=float32)
