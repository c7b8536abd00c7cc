"""Numbers of further distributions from uniform and normal ones, as graph nodes."""

from __future__ import annotations

from weft.ir.node import Value
from weft.ops.declaration import catalogue

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
