"""Checks of distribution parameters (probabilities, weights, deviations) when the graph runs."""

from __future__ import annotations

from weft.ir.node import Value
from weft.ir.shape import known, size
from weft.ops.boundary.check import check, count_not, count_outside
from weft.ops.declaration import catalogue, constant_of
from weft.ops.elementwise.compare import (
    greater,
    greater_equal,
    isfinite,
    less,
    logical_and,
    logical_not,
)

INFINITE = float("inf")


def chances(p: Value, name: str) -> Value:
    """Probabilities, each between 0 and 1.

    Raises:
        OutOfRangeError: when run, one is not.
    """
    return check(p, count_outside(p, 0, 1), text=f"{name}: expected probabilities from 0 to 1")


def deviations(std: Value, name: str) -> Value:
    """Standard deviations, never negative or NaN.

    Raises:
        OutOfRangeError: when run, one is.
    """
    return check(std, count_outside(std, 0, INFINITE), text=f"{name}: expected std >= 0")


def rates(x: Value, name: str) -> Value:
    """Rates, never negative or NaN.

    Raises:
        OutOfRangeError: when run, one is.
    """
    return check(x, count_outside(x, 0, INFINITE), text=f"{name}: expected rates >= 0")


def weights(x: Value, name: str) -> Value:
    """Rows of weights: finite, not negative, and not all zero.

    Raises:
        OutOfRangeError: when run, some are not.
    """
    if not size(known(x.shape)):
        return x
    least, most = (extreme(x, axes=(-1,)) for extreme in (catalogue.min, catalogue.max))
    some = logical_and(isfinite(most), greater(most, constant_of(0, x.dtype)))
    wrong = count_not(logical_and(some, greater_equal(least, constant_of(0, x.dtype))))
    text = f"{name}: expected rows of finite weights, none negative and a weight above 0 in each"
    return check(x, wrong, text=text)


def shares(x: Value, name: str) -> Value:
    """Weights, never negative.

    Raises:
        OutOfRangeError: when run, one is.
    """
    wrong = count_not(logical_not(less(x, constant_of(0, x.dtype))))
    return check(x, wrong, text=f"{name}: expected weights that are not negative")
