"""Checks of distribution parameters (probabilities, weights, deviations) when the graph runs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache, partial
from typing import Any

import numpy as np

from weft.errors import OutOfRangeError
from weft.ir.node import Value
from weft.ir.shape import known
from weft.ops.boundary.host import call
from weft.ops.declaration import Array


def chances(p: Value, name: str) -> Value:
    """Probabilities, each between 0 and 1.

    Raises:
        OutOfRangeError: when run, one is not.
    """
    return _checked(p, _check_of_each(name, "probabilities from 0 to 1", _is_chance))


def deviations(std: Value, name: str) -> Value:
    """Standard deviations, never negative or NaN.

    Raises:
        OutOfRangeError: when run, one is.
    """
    return _checked(std, _check_of_each(name, "std >= 0", _is_from_0))


def rates(x: Value, name: str) -> Value:
    """Rates, never negative or NaN.

    Raises:
        OutOfRangeError: when run, one is.
    """
    return _checked(x, _check_of_each(name, "rates >= 0", _is_from_0))


def weights(x: Value, name: str) -> Value:
    """Rows of weights: finite, not negative, and not all zero.

    Raises:
        OutOfRangeError: when run, some are not.
    """
    return _checked(x, _check_of_rows(name))


def shares(x: Value, name: str) -> Value:
    """Weights, never negative.

    Raises:
        OutOfRangeError: when run, one is.
    """
    return _checked(x, _check_of_each(name, "weights that are not negative", _is_share))


def _checked(x: Value, check: Callable[[Array], Array]) -> Value:
    kind = (x.dtype, known(x.shape))
    return call(check, x, types_of=[kind], gradient=_passed_on, wide=True)[0]


def _passed_on(g: Sequence[Value], *_: Any) -> list[Value]:
    return [g[0]]


# Equal checks are one object, so that graphs that differ only in sizes are recognized.


@cache
def _check_of_each(
    name: str, expected: str, fits: Callable[[Any], Any]
) -> Callable[[Array], Array]:
    return partial(_each, name, expected, fits)


@cache
def _check_of_rows(name: str) -> Callable[[Array], Array]:
    return partial(_rows, name)


def _is_chance(p: Any) -> Any:
    return (p >= 0) & (p <= 1)


def _is_from_0(x: Any) -> Any:
    return x >= 0


def _is_share(x: Any) -> Any:
    return ~(x < 0)


def _is_weight(x: Any) -> Any:
    return (x >= 0) & np.isfinite(x)


def _each(name: str, expected: str, fits: Callable[[Any], Any], x: Array) -> Array:
    good = np.asarray(fits(x))
    if not good.all():
        raise OutOfRangeError(f"{name}: expected {expected}, got {x[~good].ravel()[0]}")
    return x


def _rows(name: str, x: Array) -> Array:
    _each(name, "finite weights that are not negative", _is_weight, x)
    if x.size and not x.any(axis=-1).all():
        raise OutOfRangeError(f"{name}: expected a weight above 0 in each row, got zeros alone")
    return x
