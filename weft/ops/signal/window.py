"""Window functions: weights that fade out to both ends, at i = 0, 1, 2, ... up to n.

A single weight is 1.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import Final

import numpy as np

from weft.ir.dtype import DType
from weft.ir.node import Value
from weft.ops.declaration import catalogue, constant_of
from weft.ops.special.bessel import i0

_TURN: Final = 2 * math.pi


def cosines(i: Value, *, n: float, weights: Sequence[float]) -> Value:
    """A cosine-sum window, with these weights and alternating signs."""
    if not n:
        return i + 1.0
    parts = [
        catalogue.cos(i * (_TURN * k / n)) * ((-1) ** k * float(w)) for k, w in enumerate(weights)
    ]
    return functools.reduce(lambda a, b: a + b, parts)


def raised_cosine(*, size: int, periodic: bool, first: float, dtype: DType) -> Value:
    """A window of two cosines, of which the first has this weight.

    Args:
        periodic: of even sizes: the first weight follows the last one.
    """
    i = constant_of(np.arange(size).astype(dtype.numpy))
    last = size - 1 + int(periodic and size % 2 == 0)
    return cosines(i, n=last if size > 1 else 0, weights=(first, 1.0 - first))


def triangle(i: Value, *, n: float) -> Value:
    """The Bartlett window: a triangle, 0 at both ends."""
    if not n:
        return i + 1.0
    return 1.0 - catalogue.abs(i * (2.0 / n) - 1.0)


def bessel(i: Value, *, n: float, beta: float) -> Value:
    """The Kaiser window: `i0(beta * sqrt(1 - x ** 2)) / i0(beta)`, x from -1 to 1."""
    if not n:
        return i + 1.0
    rest = 1.0 - catalogue.square(i * (2.0 / n) - 1.0)
    below = catalogue.sqrt(catalogue.maximum(rest, constant_of(0.0, i.dtype)))
    return i0(below * beta) / i0(constant_of(beta, i.dtype))


def half_wave(i: Value, *, n: float) -> Value:
    """The cosine window: half a wave of the sine."""
    return catalogue.sin((i + 0.5) * (math.pi / (n + 1)))


def exponential(i: Value, *, n: float, center: float | None, tau: float) -> Value:
    """`exp(-|i - center| / tau)`; the center is the middle by default."""
    return catalogue.exp(catalogue.abs(i - (n / 2 if center is None else center)) * (-1 / tau))


def gaussian(i: Value, *, n: float, std: float) -> Value:
    """The Gaussian window with this standard deviation, around the middle."""
    return catalogue.exp(catalogue.square((i - n / 2) / std) * -0.5)
