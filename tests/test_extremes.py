"""Interpreted and compiled programs agree at the ends of each type's range; no operation is named.

Both must give zero, infinity or NaN in the same places, with the same sign, and subnormal numbers
that are as exact as others.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np
import pytest
from catalogue import attributes, is_complex, types_of

from weft import config
from weft.codegen.target import current
from weft.eager.record.run.stitch import computing
from weft.ir.dtype import as_dtype
from weft.ir.extent import Extents
from weft.ir.graph import Graph
from weft.ir.node import TensorType, Value
from weft.library.case import Case as Sized
from weft.library.case import Made
from weft.library.formula import Formula, packed
from weft.library.routine import routine
from weft.ops.declaration import NO_GRADIENT, REGISTRY, Array, Case, Elementwise, Op, catalogue
from weft.runtime.engine import Function, State
from weft.transform.gradient import dense, gradients
from weft.transform.interpretation import Interpretation
from weft.transform.interpreter import evaluate

OTHERS = ("x86-64-v2", "x86-64-v3")
SIZE = 1700  # that a routine for many sizes is made for
MOST = 41  # elements along an axis of a grid of numbers
PROGRAM = 48  # calls compiled as one program


class Call(NamedTuple):
    """An operation on a grid of extreme numbers."""

    op: Op
    attrs: dict[str, Any]
    inputs: tuple[Array, ...]


def extremes(dtype: np.dtype[Any], most: int) -> Array:
    """Zeros, subnormal, smallest, ordinary and largest numbers, infinities and NaN."""
    kind = as_dtype(dtype)
    if kind.kind == "b":
        return np.array([False, True])
    if kind.is_integer:
        limits = np.iinfo(dtype)
        return np.array([limits.min, 0, 1, 2, 3, limits.max - 1, limits.max], dtype)
    limits = ml_dtypes.finfo(dtype)
    least, normal, top = (
        float(limits.smallest_subnormal), float(limits.smallest_normal), float(limits.max)
    )  # fmt: skip
    sizes = [
        0.0, least, 3 * least, normal / 4, normal / 2, normal - least, normal, normal * 1.5,
        normal / float(limits.eps), 0.5, 1.0, 1 + float(limits.eps), 2.0, 3.0, top**0.5, top / 4,
        top / 2, top, np.inf,
    ]  # fmt: skip
    return np.array([*sizes, np.nan, *np.negative(sizes)])[:: -(-MOST // most)].astype(dtype)


def grid(dtypes: list[np.dtype[Any]]) -> tuple[Array, ...]:
    """All combinations of extremes; fewer of each where there are three or more inputs."""
    rank = len(dtypes)
    most = {1: MOST, 2: MOST, 3: 14}.get(rank, 6)
    axes = [[-1 if n == i else 1 for n in range(rank)] for i in range(rank)]
    found = [extremes(d, most).reshape(axis) for d, axis in zip(dtypes, axes, strict=True)]
    return tuple(map(np.ascontiguousarray, np.broadcast_arrays(*found)))  # some do not broadcast


def calls() -> Iterator[Call]:
    """The elementwise operations, once for each combination of types and attributes."""
    for op in REGISTRY.values():
        seen = set[Any]()
        for case in op.cases():
            kinds = types_of(case.inputs)
            key = tuple(kind.dtype for kind in kinds), repr(dict(case.attrs))
            floating = any(kind.dtype.is_floating for kind in kinds)
            if isinstance(op.lower, Elementwise) and floating and key not in seen:
                seen.add(key)
                call = Call(op, attributes(op, case), grid([kind.dtype.numpy for kind in kinds]))
                if not is_complex(op, Case(call.inputs, case.attrs)):
                    yield call


@functools.cache
def groups() -> list[list[Call]]:
    found = list(calls())
    return [found[i : i + PROGRAM] for i in range(0, len(found), PROGRAM)]


def derivatives(op: Op, ys: tuple[Value, ...], xs: list[Value], order: int) -> tuple[Value, ...]:
    """Results, and the derivatives of their sum up to an order."""
    found, last = list(ys), list(ys)
    by = [x for x in xs if x.dtype.is_floating]
    for _ in range(0 if op.vjp is NO_GRADIENT else order):
        slopes = gradients([y for y in last if y.dtype.is_floating], by)
        last = [dense(g) for g in slopes if g is not None]
        found += last
    return tuple(found)


def build(
    group: list[Call], size: int = 0, order: int = 0
) -> tuple[Graph, list[tuple[Value, ...]], list[Value]]:
    """A graph of calls and their derivatives, on vectors of a size if it is not 0."""
    graph, results, feeds = Graph(), list[tuple[Value, ...]](), list[Value]()
    with graph.as_default():
        for call in group:
            xs = [
                catalogue.placeholder(dtype=as_dtype(a.dtype), shape=(size,) if size else a.shape)
                for a in call.inputs
            ]
            results.append(derivatives(call.op, call.op.all(*xs, **call.attrs), xs, order))
            feeds += xs
    return graph, results, feeds


class UncoveredError(Exception):
    """A routine for many sizes is not for this one."""


def for_many_sizes(
    group: list[Call], length: int = MOST**2, order: int = 0
) -> tuple[list[Call], list[Array]]:
    """The calls on vectors, and what a routine for many sizes gives."""
    vectors = [
        call._replace(inputs=tuple(np.resize(x, length) for x in call.inputs)) for call in group
    ]
    extents = Extents()
    graph, results, feeds = build(group, extents.base(SIZE), order)
    fetches = [y for ys in results for y in ys]
    made = Made(routine(graph, fetches, feeds, current()))
    formula, sizes = Formula(extents.state, [0]), packed([length])
    formula.guard()
    case = Sized(made, formula)
    if not case.holds(sizes):
        raise UncoveredError(f"not for {length} elements")
    arrays = [x for call in vectors for x in call.inputs]
    types = [TensorType(y.type.dtype, (length,)) for y in fetches]
    found = computing(case, sizes, arrays, types).run().arrays
    return vectors, found


def kinds(x: Array) -> Array:
    """NaN, or zero, number or infinity with its sign."""
    wide = x.astype(np.longdouble)
    kind = np.select([np.isnan(wide), wide == 0, np.isinf(wide)], [0, 1, 3], 2)
    return kind * np.where(np.signbit(wide), -1, 1)


def differing(found: Array, wanted: Array) -> Array:
    """Where a result is of another kind, or further off than some rounding errors."""
    if not as_dtype(wanted.dtype).is_floating:
        return found != wanted
    limits = ml_dtypes.finfo(wanted.dtype)
    eps, least = float(limits.eps), float(limits.smallest_subnormal)
    normal, top = float(limits.smallest_normal), float(limits.max) * (1 - 8 * float(limits.eps))
    with np.errstate(all="ignore"):
        y, z = found.astype(np.longdouble), wanted.astype(np.longdouble)
        # Next to a zero of a function, errors are relative to its argument.
        slack = np.where(np.abs(z) > normal / eps, 8 * eps, 4 * least)
        far = ~(np.abs(y - z) <= 64 * eps * np.abs(z) + slack) & np.isfinite(y) & np.isfinite(z)
        rounded = (np.abs(y) <= least) & (np.abs(z) <= least)  # to 0, or to the smallest number
        rounded |= (np.abs(y) >= top) & (np.abs(z) >= top)  # to infinity, or to the largest
        rounded &= np.signbit(y) == np.signbit(z)
    return ((kinds(found) != kinds(wanted)) & ~rounded) | far


Differing = Callable[[Array, Array], Array]


def check(
    call: Call, found: list[Any], wanted: list[Any], how: str, differing: Differing = differing
) -> None:
    for y, z in zip(found, wanted, strict=True):
        bad = np.argwhere(differing(np.asarray(y), np.asarray(z)))
        if len(bad):
            at = tuple(bad[0])
            inputs = [float(x[at]) for x in call.inputs if x.shape == z.shape]
            raise AssertionError(
                f"{call.op.name}{inputs} of {call.inputs[0].dtype} {call.attrs}, {how}: expected "
                f"{z[at]}, got {y[at]}, and {len(bad) - 1} more"
            )


def compare(
    group: list[Call], found: list[Array], how: str, order: int = 0,
    differing: Differing = differing,
) -> None:  # fmt: skip
    """Compare the results of calls, and derivatives, with the references."""
    graph, results, feeds = build(group, order=order)
    fetches = [y for ys in results for y in ys]
    arrays = [a for call in group for a in call.inputs]
    with np.errstate(all="ignore"):
        wanted = evaluate(graph, fetches, dict(zip(feeds, arrays, strict=True)))
    first = 0
    for call, ys in zip(group, results, strict=True):
        end = first + len(ys)
        check(call, found[first:end], wanted[first:end], how, differing)
        first = end


TARGETS = ["native", pytest.param(OTHERS[0], marks=pytest.mark.slow)]
"""`make test-target` compiles for the other."""
GROUPS = pytest.mark.parametrize("number", range(len(groups())))


@GROUPS
def test_prepared_interpretation(number: int) -> None:
    group = groups()[number]
    graph, results, feeds = build(group)
    run = Interpretation(graph, [y for ys in results for y in ys], feeds)
    compare(group, run([a for call in group for a in call.inputs]), "interpreted")


@GROUPS
@pytest.mark.parametrize("target", TARGETS)
def test_compiled(number: int, target: str) -> None:
    group = groups()[number]
    graph, results, feeds = build(group)
    with config.override(target=target):
        run = Function(graph, [y for ys in results for y in ys], feeds=feeds)
        found = run([a for call in group for a in call.inputs], State())
    compare(group, found, target)


@pytest.mark.slow
@GROUPS
@pytest.mark.parametrize("target", ["native", *OTHERS])
def test_compiled_for_many_sizes(number: int, target: str) -> None:
    with config.override(target=target):
        group, found = for_many_sizes(groups()[number])
    compare(group, found, f"{target}, many sizes")
