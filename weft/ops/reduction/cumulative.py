"""Cumulative sums, products, maxima, minima and log-sum-exp along an axis."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Final

import numpy as np

from weft.ir.dtype import int32
from weft.ir.node import Value
from weft.ir.shape import Shape, normal_axis
from weft.ops.declaration import Array, Case, Face, Op, Opaque, Takes, catalogue, defop
from weft.ops.declaration.example import ARITHMETIC, NUMBERS
from weft.ops.declaration.fact import AS_GIVEN, IN_FLOAT32, Autocast, Batching, Facts
from weft.ops.declaration.numeric import draw, widened
from weft.ops.declaration.rule import arithmetic, concrete, front_axis, numeric
from weft.ops.indexing.slicing import cut
from weft.ops.indexing.sort import scatter_along_axis
from weft.ops.shape.creation import iota
from weft.ops.shape.pad import moved
from weft.ops.shape.reshape import axis_of

__all__ = ["cumlogsumexp", "cummin"]


_WIDE: Final = {"f": np.dtype(np.float64), "c": np.dtype(np.complex128)}


def _shape(x: Shape, *, axis: int, **_: Any) -> Shape:
    assert x is not None
    normal_axis(axis, len(x))
    return x


def _sums(x: Array, axis: int, dtype: Any) -> Array:
    return np.cumsum(x, axis, dtype) + dtype.type(0)  # sums begin with 0: never -0


def _reference(accumulate: Any, neutral: Any) -> Any:
    """Carries float64, as the kernel does: in float32, a sum of ones would end at 2**24."""

    @widened
    def reference(x: Array, *, axis: int, exclusive: bool, reverse: bool) -> Array:
        at = normal_axis(axis, x.ndim)
        found = np.flip(x, at) if reverse else x
        y = accumulate(found, axis=at, dtype=_WIDE.get(x.dtype.kind, x.dtype))
        if exclusive and x.shape[at]:
            first = np.full_like(np.take(y, [0], at), neutral(y.dtype))
            y = np.concatenate([first, np.delete(y, -1, at)], at)
        return np.array(np.flip(y, at) if reverse else y, x.dtype, order="C")

    return reference


def _cases(finite: bool) -> Iterator[Case]:
    """Examples; if the first exclusive result is not `finite`, it has no gradient to check."""
    for dtype in ARITHMETIC if finite else NUMBERS:
        yield Case((draw((2, 4), dtype, 1, 5),), {"axis": 1})
    x = np.array([[1.5, -2.0, 0.5], [3.0, 0.25, -1.0]], np.float32)
    for axis in (0, 1, -1):
        for exclusive in (False, True):
            for reverse in (False, True):
                attrs = {"axis": axis, "exclusive": exclusive, "reverse": reverse}
                yield Case((x,), attrs, differentiate=finite or not exclusive)
    yield Case((np.zeros((2, 0), np.float32),), {"axis": 1, "exclusive": True})
    yield Case((np.linspace(0.5, 1.5, 67, dtype=np.float32),), {"axis": 0}, rtol=1e-5)


def _cumulative(
    name: str, combine: str, accumulate: Any, neutral: Any, vjp: Any, facts: Facts,
    face: Face | None = None,
) -> Op:  # fmt: skip
    return defop(
        name,
        inputs="x",
        attrs={"axis": 0, "exclusive": False, "reverse": False},
        dtype=numeric if name == "cummax" else arithmetic,
        shape=_shape,
        reference=_reference(accumulate, neutral),
        vjp=vjp,
        normal=front_axis,
        lower=Opaque("cumulative", combine=combine),
        cases=lambda: _cases(name != "cummax"),
        facts=replace(facts, batching=Batching.AXIS),
        face=face,
    )


def _sum_vjp(
    g: Value, y: Value, x: Value, *, axis: int, exclusive: bool, reverse: bool
) -> tuple[Value]:
    return (cumsum(g, axis=axis, exclusive=exclusive, reverse=not reverse),)


def _recurrence(a: Value, b: Value, axis: int, step: int) -> Value:
    """The linear recurrence `s[i] = b[i] + a[i] * s[i + step]`, in a logarithmic number of steps.

    It needs no division, so zeros are safe. After each round, `a` and `b` express `s[i]` by an `s`
    twice as far away.
    """
    distance = 1
    while distance < concrete(b)[axis]:
        b = b + a * moved(b, axis, -step * distance)
        a = a * moved(a, axis, -step * distance)
        distance *= 2
    return b


def _prod_vjp(
    g: Value, y: Value, x: Value, *, axis: int, exclusive: bool, reverse: bool
) -> tuple[Value]:
    at = normal_axis(axis, len(concrete(x)))
    step = -1 if reverse else 1
    if exclusive:
        g = moved(g, at, -step)
    # x[k] is a factor of y[k], y[k + step], ...; the factors before it are common to them.
    before = cumprod(x, axis=at, exclusive=True, reverse=reverse)
    return (before * _recurrence(moved(x, at, -step), g, at, step),)


def _max_vjp(
    g: Value, y: Value, x: Value, *, axis: int, exclusive: bool, reverse: bool
) -> tuple[Value]:
    dims = concrete(x)
    at = normal_axis(axis, len(dims))
    place = iota(shape=tuple(d if i == at else 1 for i, d in enumerate(dims)), axis=at, dtype=int32)
    if reverse:
        place = dims[at] - 1 - place  # relative to the current start of the cumulative maximum
    before = cummax(x, axis=at, exclusive=True, reverse=reverse)
    new = catalogue.logical_or(catalogue.greater(x, before), catalogue.equal(place, 0))
    zero = catalogue.multiply(place, 0)
    winner = cummax(catalogue.select(new, place, zero), axis=at, reverse=reverse)
    if reverse:
        winner = dims[at] - 1 - winner
    if exclusive:
        g = moved(g, at, 1 if reverse else -1)
    return (scatter_along_axis(g, winner, dims[at], at),)


def _lowest(dtype: Any) -> Any:
    return -np.inf if dtype.kind == "f" else np.iinfo(dtype).min


cumsum = _cumulative(
    "cumsum", "add", _sums, lambda _: 0, _sum_vjp,
    Facts(autocast=Autocast.FLOAT32, linear=True, cancels=True),
    face=Face("Cumulative sums along an axis; int64 for integers.", "[1, 2, 3], 0 -> [1, 3, 6]",
              torch="cumsum_", numpy="cumsum cumulative_sum", tf1="Cumsum", takes=Takes.ALONG),
)  # fmt: skip
cumprod = _cumulative(
    "cumprod", "multiply", np.cumprod, lambda _: 1, _prod_vjp, IN_FLOAT32,
    face=Face("Cumulative products along an axis; int64 for integers.", "[1, 2, 3], 0 -> [1, 2, 6]",
              torch="cumprod_", numpy="cumprod cumulative_prod", tf1="Cumprod", takes=Takes.ALONG),
)  # fmt: skip
cummax = _cumulative("cummax", "maximum", np.maximum.accumulate, _lowest, _max_vjp, AS_GIVEN)
"""The cumulative maximum; NaN stays. If `exclusive`, it starts at the dtype's lowest number."""


def cummin(x: Value, axis: int = 0, exclusive: bool = False, reverse: bool = False) -> Value:
    """The cumulative minimum; NaN stays. If `exclusive`, it starts at the largest number."""
    turn = catalogue.negative if x.dtype.is_floating else catalogue.bitwise_not
    return turn(cummax(turn(x), axis=axis, exclusive=exclusive, reverse=reverse))


def cumlogsumexp(x: Value, axis: int = 0, reverse: bool = False) -> Value:
    """The cumulative log-sum-exp, without overflow.

    It takes a logarithmic number of rounds, each of which doubles the range of an element.

    Raises:
        ShapeError: an axis outside the rank; the shape must be known.
    """
    at = axis_of("cumlogsumexp", x, axis)
    size, rank = concrete(x)[at], len(concrete(x))
    distance = 1
    while distance < size:
        start = distance if reverse else 0
        kept = cut(x, at, start, start + size - distance)
        pair = (0, distance) if reverse else (distance, 0)
        paddings = tuple(pair if i == at else (0, 0) for i in range(rank))
        x = catalogue.logaddexp(x, catalogue.pad(kept, paddings=paddings, value=-math.inf))
        distance *= 2
    return x


def product_of_logarithms(x: Value, *, axis: int, exclusive: bool, reverse: bool) -> Value:
    """Cumulative products of positive numbers by logarithms: no gradient divides by a product."""
    logs = cumsum(catalogue.log(x), axis=axis, exclusive=exclusive, reverse=reverse)
    return catalogue.exp(logs)
