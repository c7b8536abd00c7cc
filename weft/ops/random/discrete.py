"""Binomial and Poisson numbers, each from one uniform number.

Probabilities are summed alternately up and down from the mode, until the sum reaches the uniform
number of 32 bits. The number of steps grows with the standard deviation. (C. Kemp, "A modal method
for generating binomial variables", 1986.)
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from weft.ir.dtype import float64
from weft.ir.node import Value
from weft.ir.shape import known
from weft.ops.boundary.host import call
from weft.ops.boundary.routine import Routine, routine
from weft.ops.declaration import Array, catalogue
from weft.ops.random.counter_based import random_bits

_lgamma: Final = np.vectorize(math.lgamma, otypes=[np.float64])
Step = Callable[[Array, Array], Array]


def binomial(counter: Value, seed: Any, count: Value, p: Value, shape: Any) -> Value:
    """How many of `count` trials with probability `p` succeed; all float64.

    NaN if a count is no natural number or a probability is not between 0 and 1.
    """
    return _drawn(_binomial, counter, seed, (count, p), shape)


def poisson(counter: Value, seed: Any, rate: Value, shape: Any) -> Value:
    """Poisson numbers with mean `rate`, float64; NaN if a rate is negative."""
    return _drawn(_poisson, counter, seed, (rate,), shape)


def _drawn(
    function: Routine, counter: Value, seed: Any, given: tuple[Value, ...], shape: Any
) -> Value:
    bits = random_bits(counter, seed=seed, shape=shape)
    u = catalogue.cast(bits, dtype=float64) * 2.0**-32 + 2.0**-33
    xs = [catalogue.broadcast_to(x, shape=known(u.shape)) for x in given]

    flat = [catalogue.reshape(x, shape=(-1,)) for x in (u, *xs)]
    (found,) = call(function, *flat, types_of=[(float64, known(flat[0].shape))])
    return catalogue.reshape(found, shape=known(u.shape))


@routine
def _binomial(u: Array, count: Array, p: Array) -> Array:
    wrong = ~((count >= 0) & (count == np.floor(count)) & (p >= 0) & (p <= 1))
    n, p = np.where(wrong, 0.0, count), np.where(wrong, 0.0, p)
    q = np.minimum(p, 1 - p)  # of the rarer outcome, at most 1/2
    mode = np.floor((n + 1) * q)
    odds = q / (1 - q)
    with np.errstate(divide="ignore", invalid="ignore"):
        chance = _lgamma(n + 1) - _lgamma(mode + 1) - _lgamma(n - mode + 1)
        log = np.where(mode > 0, mode * np.log(q), 0.0) + (n - mode) * np.log1p(-q)
    found = _walk(u, mode, np.exp(chance + log), lambda k, i: (n[i] - k + 1) / k * odds[i], n)
    return np.where(wrong, np.nan, np.where(p > 0.5, n - found, found))


@routine
def _poisson(u: Array, rate: Array) -> Array:
    wrong = ~(rate >= 0)
    mean = np.where(wrong, 0.0, rate)
    mode = np.floor(mean)
    with np.errstate(divide="ignore", invalid="ignore"):
        log = np.where(mode > 0, mode * np.log(mean), 0.0) - mean - _lgamma(mode + 1)
    most = np.full_like(mean, np.inf)
    found = _walk(u, mode, np.exp(log), lambda k, i: mean[i] / k, most)
    return np.where(wrong, np.nan, found)


def _walk(u: Array, mode: Array, chance: Array, ratio: Step, most: Array) -> Array:
    """The outcome at which probabilities add up to `u`.

    Args:
        mode: the likeliest outcome; `chance` is its probability.
        ratio: the probability of outcome k over that of k - 1, for the elements at i.
        most: the largest outcome.
    """
    found = mode.copy()
    left = np.flatnonzero(u >= chance)  # elements that are not found yet
    rest = (u - chance)[left]
    top, bottom = mode[left], mode[left]
    high, low = chance[left], chance[left]
    while rest.size:
        top, bottom, before = top + 1, bottom - 1, bottom
        high = np.where(top <= most[left], high * ratio(top, left), 0.0)
        with np.errstate(divide="ignore", invalid="ignore"):
            low = np.where(bottom >= 0, low / ratio(before, left), 0.0)
        up, down = rest < high, rest < high + low
        done = down | (high + low <= np.finfo(float).tiny)  # left over by rounding
        drawn = np.where(up, top, np.where(down, bottom, found[left]))
        found[left[done]] = drawn[done]
        rest = rest - high - low
        left, rest, top, bottom, high, low = (
            x[~done] for x in (left, rest, top, bottom, high, low)
        )
    return found
