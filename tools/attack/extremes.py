"""Subnormal, largest and infinite numbers, NaN, zeros and ties: every tier gives the same.

The comparison of elementwise operations is that of the tests: `tests/test_extremes.py`.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from typing import Any

import ml_dtypes
import numpy as np

from tools.attack.graphs import TESTS, judged
from tools.attack.verdict import Case, Verdict
from weft.ir.dtype import as_dtype
from weft.ops.declaration import REGISTRY
from weft.runtime.engine import Function, State
from weft.transform.interpretation import Interpretation

SUMS = (
    "cumprod", "cumsum", "logsumexp", "log_softmax", "mean", "norm", "prod", "softmax", "std",
    "sum", "variance",
)  # fmt: skip
PICKS = (
    "all", "any", "argmax", "argmin", "cummax", "max", "min", "segment_max", "segment_min", "sort",
    "top_k",
)  # fmt: skip
LOOSE = 2.0**15  # roundings of sums and derivatives
TIERS = ("interpreted", "compiled", "many sizes")
Random = np.random.Generator


def begin() -> Case:
    """Loads the comparison, and finds the operations."""
    sys.path.insert(0, str(TESTS))
    library: Any = importlib.import_module("test_extremes")
    elements, rows = list(library.calls()), list(_of_rows(library))

    def case(random: Random) -> Verdict:
        tier, order = TIERS[random.integers(3)], int(random.integers(3))
        elementwise = tier == "many sizes" or bool(random.integers(2))
        size = int(random.integers(1, 400)) if elementwise else 0
        calls = [c for c in (elements if elementwise else rows) if not order or _is_wide(c)]
        chosen = [calls[i] for i in random.integers(len(calls), size=random.integers(1, 7))]
        ordinary = bool(random.random() < 0.4)
        group = [_elements(library, random, c, size, ordinary) if size else _rows(random, c, order)
                 for c in chosen]  # fmt: skip

        def check() -> None:
            floor = 1.0 if order or (elementwise and ordinary) else 0.0
            strict = elementwise and not floor
            differing = library.differing if strict else partial(loosely, floor)
            with suppress(library.UncoveredError):  # which has a program of its own
                found = _found(library, group, tier, order, size)
                library.compare(group, found, tier, order, differing)

        names = ", ".join(f"{c.op.name} of {c.inputs[0].dtype}" for c in group)
        return judged(check, f"{tier}, derivatives up to {order}, {names}")

    return case


def _is_wide(call: Any) -> bool:
    """Whether intermediate values are rounded alike in every tier."""
    return not any(as_dtype(x.dtype).name in ("float16", "bfloat16") for x in call.inputs)


def _of_rows(library: Any) -> Iterator[Any]:
    """Reductions, scans and sorts."""
    for name in (*SUMS, *PICKS):
        op = REGISTRY[name]
        for case in op.cases():
            if not library.is_complex(op, case):
                yield library.Call(op, library.attributes(op, case), case.inputs)


def _elements(library: Any, random: Random, call: Any, size: int, ordinary: bool) -> Any:
    """A call on vectors of extreme numbers, and of some ordinary ones."""
    drawn = [_vector(library, random, x, size, ordinary) for x in call.inputs]
    return call._replace(inputs=tuple(drawn))


def _vector(library: Any, random: Random, x: Any, size: int, mixed: bool) -> Any:
    values = random.choice(library.extremes(x.dtype, library.MOST), size)
    if not (mixed and as_dtype(x.dtype).is_floating):
        return values
    ordinary = random.standard_normal(size) * 10 ** random.uniform(-3, 3, size)
    return np.where(random.random(size) < 0.7, values, ordinary.astype(x.dtype))


def _values(random: Random, dtype: Any, sums: bool, order: int) -> Any:
    """Few numbers; if `sums`, such that sums and products do not depend on how they are grouped.

    Of them, squares are 0 where numbers are subnormal, so norms have no common derivative there.
    """
    limits = ml_dtypes.finfo(dtype)
    least, top = float(limits.smallest_subnormal), float(limits.max)
    pools: list[list[float]] = [
        [1.0, 2.0, 2.0, -1.0], [0.0, -0.0], [0.0, 1.0, -2.0, np.inf], [1.0, 2.0, np.nan],
        [np.inf, -np.inf, 1.0], [-np.inf, -np.inf, 1.0], [-np.inf], [np.nan, np.inf, -np.inf, 0.0],
        *([] if sums and order else [[least, 3 * least, 0.0], [least, -least]]),
        *([] if sums else [[top, -top], [-top, 0.0]]),
    ]  # fmt: skip
    return np.array(pools[random.integers(len(pools))])


def _rows(random: Random, call: Any, order: int) -> Any:
    """A call on arrays of few different numbers."""

    def other(x: Any) -> Any:
        if not as_dtype(x.dtype).is_floating:
            return x
        values = _values(random, x.dtype, call.op.name in SUMS, order)
        return random.choice(values, x.shape).astype(x.dtype)

    return call._replace(inputs=tuple(map(other, call.inputs)))


def _found(library: Any, group: list[Any], tier: str, order: int, size: int) -> list[Any]:
    """Results and derivatives of a tier."""
    if tier == TIERS[2]:
        return library.for_many_sizes(group, size, order)[1]
    graph, results, feeds = library.build(group, order=order)
    fetches = [y for ys in results for y in ys]
    arrays = [x for call in group for x in call.inputs]
    if tier == TIERS[0]:
        return Interpretation(graph, fetches, feeds)(arrays)
    run: Callable[..., Any] = Function(graph, fetches, feeds=feeds)
    return run(arrays, State())


def loosely(floor: float, found: Any, wanted: Any) -> Any:
    """Where numbers differ by more than roundings, or in infinity or NaN; zeros have no sign.

    Errors are relative to the number, or to `floor` where it is smaller: differences cancel. Then
    numbers beyond the square root of the largest one need only be finite: 1 / x**2 - 1 / x**2.
    """
    if not as_dtype(wanted.dtype).is_floating:
        return found != wanted
    limits = ml_dtypes.finfo(wanted.dtype)
    with np.errstate(all="ignore"):
        y, z = found.astype(np.longdouble), wanted.astype(np.longdouble)
        scale = np.abs(z) + max(floor, float(limits.smallest_normal))
        near = np.abs(y - z) <= LOOSE * float(limits.eps) * scale
        if floor:
            near |= np.maximum(np.abs(y), np.abs(z)) > float(limits.max) ** 0.5
    return ~((y == z) | (np.isnan(y) & np.isnan(z)) | (near & np.isfinite(z) & np.isfinite(y)))
