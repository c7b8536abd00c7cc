"""Numbers of further distributions from uniform and normal ones, as graph nodes."""

from __future__ import annotations

import math

from weft.ir.node import Value
from weft.ops.declaration import catalogue, constant_of
from weft.ops.declaration.rule import concrete
from weft.ops.linalg.matrix import diagonal

__all__: list[str] = []


def triangular(u: Value, left: Value, mode: Value, right: Value) -> Value:
    """Triangular numbers from uniform ones."""
    width, rise = right - left, mode - left
    first = left + catalogue.sqrt(u * width * rise)
    second = right - catalogue.sqrt((1.0 - u) * width * (right - mode))
    return catalogue.select(catalogue.less(u, rise / width), first, second)


def wald(y: Value, u: Value, mean: Value) -> Value:
    """Inverse Gaussian numbers from squares of normal and from uniform ones.

    Source: Michael, Schucany and Haas, "Generating Random Variates Using Transformations with
    Multiple Roots", 1976.
    """
    square = mean * mean
    root = catalogue.sqrt(4.0 * mean * y + square * y * y)
    x = mean + square * y / 2.0 - mean / 2.0 * root
    return catalogue.select(catalogue.less_equal(u, mean / (mean + x)), x, square / x)


def trials(u: Value, p: Value) -> Value:
    """How many trials of probability `p` it takes until the first success, from uniform numbers."""
    known = catalogue.select(catalogue.equal(u, 0.0), u * 0.0 + 1.0, u)
    return catalogue.floor(catalogue.log(known) / catalogue.log1p(-p)) + 1.0


def rayleigh(u: Value, scale: Value) -> Value:
    """Rayleigh numbers from uniform ones."""
    return scale * catalogue.sqrt(catalogue.log(u) * -2.0)


def student(n: Value, g: Value, half: Value) -> Value:
    """Student's t numbers from normal ones and gamma ones of shape `half`, half the freedom."""
    return n * catalogue.sqrt(half / g)


def chi_square(g: Value) -> Value:
    """Chi-square numbers from gamma ones of half the degrees of freedom."""
    return g * 2.0


def ratio(top: Value, below: Value, top_free: Value, below_free: Value) -> Value:
    """F numbers from gamma ones of half the degrees of freedom each."""
    return chi_square(top) / top_free / (chi_square(below) / below_free)


def first_share(a: Value, b: Value) -> Value:
    """Beta numbers: the share of the first of two gamma numbers, from their logarithms."""
    return catalogue.sigmoid(a - b)


def maxwell(n: Value) -> Value:
    """Maxwell numbers: lengths of vectors of three normal numbers, the last axis."""
    return catalogue.norm(n, axes=(-1,))


def signed(sign: Value, x: Value, loc: Value, scale: Value) -> Value:
    """Numbers with signs, a scale and a location."""
    return sign * x * scale + loc


def weibull(e: Value, scale: Value, concentration: Value) -> Value:
    """Weibull numbers from exponential ones."""
    return catalogue.power(e, 1.0 / concentration) * scale


def generalized_normal(sign: Value, g: Value, p: Value) -> Value:
    """Numbers with density exp(-|x|**p) from signs and gamma numbers of shape 1 / p."""
    return sign * catalogue.power(g, 1.0 / p)


def in_ball(x: Value, e: Value, p: Value) -> Value:
    """Points in the unit ball of the p-norm from generalized normal and exponential numbers."""
    mass = catalogue.sum(catalogue.power(catalogue.abs(x), p), axes=(-1,)) + e
    return x / catalogue.expand_dims(catalogue.power(mass, 1.0 / p), axis=-1)


def rotation(q: Value, r: Value) -> Value:
    """A uniformly distributed orthogonal matrix from the QR factors of a normal one."""
    return q * catalogue.expand_dims(catalogue.sign(diagonal(r)), axis=-2)


def complex_normal(real: Value, imag: Value) -> Value:
    """Complex normal numbers of variance 1 from two normal ones."""
    root = constant_of(math.sqrt(2), real.dtype)
    return catalogue.complex(real / root, imag / root)


def weighted_place(total: Value, u: Value) -> Value:
    """The index that a uniform number chooses, from running sums of weights."""
    size = concrete(total)[0]
    last = catalogue.slice(total, begin=(size - 1,), end=(size,))
    return catalogue.searchsorted(total, last * (1.0 - u), side="left")


def race(gumbel: Value, p: Value) -> Value:
    """Numbers whose order draws without replacement with weights `p` (Efraimidis, 2006)."""
    return -gumbel - catalogue.log(p)


def correlated(z: Value, mean: Value, factor: Value, scale: Value | None = None) -> Value:
    """Normal numbers of a mean and a covariance `factor @ diag(scale) @ factor.T`.

    Args:
        z: standard normal numbers.
        scale: squares of the factors' lengths; without it the factor is triangular.
    """
    if scale is not None:
        factor = factor * catalogue.expand_dims(catalogue.sqrt(scale), axis=-2)
    turned = catalogue.matmul(factor, catalogue.expand_dims(z, axis=-1))
    return mean + catalogue.squeeze(turned, axes=(-1,))
