"""Steps of the Runge-Kutta method of order 5 by Dormand and Prince, with control of its error.

Sources: Dormand and Prince, "A family of embedded Runge-Kutta formulae", 1980; the middle of a step
from Shampine, "Some Practical Runge-Kutta Formulas", 1986; Hairer, Norsett and Wanner, "Solving
Ordinary Differential Equations I", 1993, II.4.
"""

from __future__ import annotations

from typing import Final

from weft.ir.node import Value
from weft.ops.declaration import catalogue

TIMES: Final = (1 / 5, 3 / 10, 4 / 5, 8 / 9, 1.0, 1.0)
"""Where in a step each stage is, as a part of it."""
STAGES: Final = (
    (1 / 5,),
    (3 / 40, 9 / 40),
    (44 / 45, -56 / 15, 32 / 9),
    (19372 / 6561, -25360 / 2187, 64448 / 6561, -212 / 729),
    (9017 / 3168, -355 / 33, 46732 / 5247, 49 / 176, -5103 / 18656),
    (35 / 384, 0.0, 500 / 1113, 125 / 192, -2187 / 6784, 11 / 84),
)
"""The weights of slopes in each stage; the last one's state is that after the step."""
_ERROR: Final = (
    35 / 384 - 1951 / 21600, 0.0, 500 / 1113 - 22642 / 50085, 125 / 192 - 451 / 720,
    -2187 / 6784 + 12231 / 42400, 11 / 84 - 649 / 6300, -1 / 60,
)  # fmt: skip
_MIDDLE: Final = (
    6025192743 / 30085553152 / 2, 0.0, 51252292925 / 65400821598 / 2,
    -2691868925 / 45128329728 / 2, 187940372067 / 1594534317056 / 2, -1776094331 / 19743644256 / 2,
    11237099 / 235043384 / 2,
)  # fmt: skip
_SAFETY, _GROWTH, _SHRINKING, _ORDER = 0.9, 10.0, 0.2, 5.0


def _weighted(weights: tuple[float, ...], k: tuple[Value, ...]) -> Value:
    parts = [slope * w for w, slope in zip(weights, k, strict=True) if w]
    found = parts[0]
    for part in parts[1:]:
        found = found + part
    return found


def stage(y: Value, t: Value, dt: Value, *k: Value) -> tuple[Value, Value]:
    """The state and the time of the stage after those with slopes `k`."""
    number = len(k) - 1
    return y + dt * _weighted(STAGES[number], k), t + dt * TIMES[number]


def curve(y0: Value, y1: Value, dt: Value, *k: Value) -> Value:
    """The polynomial of degree 4 through a step, the highest power first."""
    middle = y0 + dt * _weighted(_MIDDLE, k)
    d0, d1 = k[0], k[-1]
    return catalogue.stack(
        -2.0 * dt * d0 + 2.0 * dt * d1 - 8.0 * y0 - 8.0 * y1 + 16.0 * middle,
        5.0 * dt * d0 - 3.0 * dt * d1 + 18.0 * y0 + 14.0 * y1 - 32.0 * middle,
        -4.0 * dt * d0 + dt * d1 - 11.0 * y0 - 5.0 * y1 + 16.0 * middle,
        dt * d0,
        y0,
        axis=0,
    )


def at(curve: Value, end: Value, last: Value, t: Value) -> Value:
    """The polynomial of a step from `last` to `t`, at a time within it."""
    place = (end - last) / catalogue.select(catalogue.equal(t, last), 1.0, t - last)
    found, *rest = catalogue.split.all(curve, sizes=(1,) * 5, axis=0)
    for row in rest:
        found = found * place + row
    return catalogue.squeeze(found, axes=(0,))


def error_ratio(y0: Value, y1: Value, dt: Value, *k: Value, rtol: float, atol: float) -> Value:
    """The error of a step over what is allowed."""
    allowed = atol + rtol * catalogue.maximum(catalogue.abs(y0), catalogue.abs(y1))
    return catalogue.sqrt(catalogue.mean(catalogue.square(dt * _weighted(_ERROR, k) / allowed)))


def next_step(dt: Value, ratio: Value, *, longest: float) -> Value:
    """The length of the next step."""
    zero = catalogue.equal(ratio, 0.0)
    least = catalogue.select(catalogue.less(ratio, 1.0), 1.0, ratio * 0.0 + _SHRINKING)
    safe = catalogue.select(zero, 1.0, ratio)
    factor = catalogue.maximum(catalogue.power(safe, -1.0 / _ORDER) * _SAFETY, least)
    factor = catalogue.select(zero, _GROWTH, catalogue.minimum(factor, _GROWTH))
    return catalogue.minimum(catalogue.maximum(dt * factor, 0.0), longest)


def trial(y: Value, slope: Value, t: Value, *, rtol: float, atol: float) -> tuple[Value, ...]:
    """A first guess of a step: its length, and the state and time after it by Euler's method."""
    scale = atol + catalogue.abs(y) * rtol
    d0, d1 = catalogue.norm(y / scale), catalogue.norm(slope / scale)
    small = catalogue.logical_or(catalogue.less(d0, 1e-5), catalogue.less(d1, 1e-5))
    h0 = 0.01 * d0 / catalogue.select(catalogue.equal(d1, 0.0), 1.0, d1)
    h0 = catalogue.select(small, 1e-6, h0)
    return h0, y + h0 * slope, t + h0


def first_step(
    y: Value, slope: Value, h0: Value, moved: Value, *, rtol: float, atol: float, longest: float
) -> Value:
    """The length of the first step, from the slope after the trial."""
    scale = atol + catalogue.abs(y) * rtol
    d2 = catalogue.norm((moved - slope) / scale) / h0
    most = catalogue.maximum(catalogue.norm(slope / scale), d2)
    flat = catalogue.less_equal(most, 1e-15)
    steep = catalogue.power(0.01 / catalogue.select(flat, 1.0, most), 1.0 / _ORDER)
    h1 = catalogue.select(flat, catalogue.maximum(h0 * 1e-3, 1e-6), steep)
    found = catalogue.minimum(100.0 * h0, h1)
    return catalogue.minimum(catalogue.maximum(found, 0.0), longest)
