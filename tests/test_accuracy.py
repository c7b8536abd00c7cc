"""Sums, products and scans of many float32 numbers are close to those in float64.

Every reduction and scan of the catalogue is tried along each place of an axis, as kernels and
references add along the last axis, along others, and over broadcast numbers in different ways.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import weft as wf
from weft import config
from weft.ir.dtype import float32
from weft.ir.graph import Graph
from weft.ir.node import Value
from weft.ops.declaration import REGISTRY, Array, Composite, Op, Opaque, Reduce, catalogue
from weft.ops.declaration.attribute import REQUIRED
from weft.ops.declaration.rule import boolean
from weft.runtime.engine import Function, State
from weft.transform.interpretation import Interpretation

LIMIT = 4e-6  # relative to the largest result; float32 numbers are exact to 6e-8


def _accumulates(op: Op) -> bool:
    """Whether an operation reduces or scans one floating input along an axis."""
    given = {"axes": (0,)} if "axes" in op.attrs else {"axis": 0}
    attrs = {**op.attrs, **given}
    if not {"axes", "axis"} & set(op.attrs) or REQUIRED in attrs.values():
        return False
    scans = isinstance(op.lower, Opaque) and op.lower.family == "cumulative"
    if not (isinstance(op.lower, Reduce | Composite) or scans) or op.dtype is boolean:
        return False
    return list(op.inputs) == ["x"] and op.dtype(float32, **attrs) is float32


OPS = [op for op in REGISTRY.values() if _accumulates(op)]
LAYOUTS = [((1,), 0), ((1, 3), 0), ((3, 1), 1), ((9, 1, 2), 1)]  # 1 becomes the axis


def test_the_catalogue_has_them() -> None:
    assert {op.name for op in OPS} >= {"sum", "prod", "mean", "variance", "cumsum", "softmax"}


def _both(op: Op, x: Array, axis: int) -> tuple[Array, list[Array]]:
    """The exact result, and those of a compiled and of an interpreted program."""
    given: dict[str, Any] = {"axes": (axis,)} if "axes" in op.attrs else {"axis": axis}
    graph = Graph()
    with graph.as_default():
        fed = catalogue.placeholder(dtype=float32, shape=x.shape)
        y: Value = op(fed, **given)
    exact = op.reference(x.astype(np.float64), **{**op.attrs, **given})
    compiled = Function(graph, [y], feeds=[fed])([x], State())
    return exact, [compiled[0], Interpretation(graph, [y], [fed])([x])[0]]


def _error(found: Array, exact: Array) -> float:
    return float(np.max(np.abs(found - exact)) / np.max(np.abs(exact)))


@pytest.mark.parametrize("op", [pytest.param(op, id=op.name) for op in OPS])
@pytest.mark.parametrize("size", [10_000, pytest.param(1_000_000, marks=pytest.mark.slow)])
def test_close_to_float64(op: Op, size: int) -> None:
    rng = np.random.default_rng(size)
    for dims, axis in LAYOUTS if size < 1_000_000 else LAYOUTS[:-1]:
        shape = tuple(size if i == axis else n for i, n in enumerate(dims))
        numbers = rng.random(shape, np.float32)
        if op.name in ("prod", "cumprod"):
            numbers = (1 + (numbers - 0.5) * np.float32(1e-3)).astype(np.float32)
        # Each factor of a product adds a rounding, in float32 as in PyTorch.
        limit = LIMIT if op.name != "prod" else 1e-6 * math.sqrt(size)
        exact, results = _both(op, numbers, axis)
        for found, how in zip(results, ("compiled", "interpreted"), strict=True):
            assert _error(found, exact) < limit, (op.name, shape, how)


SCANS = {
    "cumsum": (lambda x: wf.cumsum(x, 0), 0.1),
    "cumulative_trapezoid": (wf.cumulative_trapezoid, 0.1),
    "reversed": (lambda x: wf.flip(wf.cumsum(wf.flip(x, 0), 0), 0)[:1], 0.1),
    "weft.numpy": (lambda x: wf.numpy.cumulative_sum(wf.numpy.asarray(x)), 0.1),
    "gradient": (lambda x: _weighted_gradient(x), 0.1),
}


def _weighted_gradient(x: Any) -> Any:
    w = wf.zeros_like(x).requires_grad_()
    (wf.cumsum(w, 0) * x).sum().backward()
    return w.grad[:1]


@pytest.mark.parametrize("name", SCANS)
def test_long_scans_of_equal_numbers(name: str) -> None:
    scan, number = SCANS[name]
    size = 1 << 17
    x = wf.full((size,), number)
    exact = size * float(np.float32(number))
    for _ in range(4):  # interpreted, then compiled
        assert np.asarray(scan(x))[-1] == pytest.approx(exact, rel=1e-5 if "trap" in name else 1e-7)


@pytest.mark.parametrize("threads", [1, 2])
def test_scans_give_the_same_bits_on_any_tier(threads: int) -> None:
    rng = np.random.default_rng(0)
    for op in OPS:
        if not isinstance(op.lower, Opaque):
            continue
        for dtype in (np.float32, np.float16, np.float64):
            for shape, axis in (((3000,), 0), ((37, 101), 0), ((37, 101), 1)):
                x = (1 + 0.01 * rng.normal(size=shape)).astype(dtype)
                graph = Graph()
                with graph.as_default():
                    fed = catalogue.placeholder(dtype=x.dtype.name, shape=shape)
                    y = op(fed, axis=axis)
                with config.override(threads=threads):
                    compiled = Function(graph, [y], feeds=[fed])([x], State())[0]
                assert compiled.tobytes() == Interpretation(graph, [y], [fed])([x])[0].tobytes()


@pytest.mark.slow
@pytest.mark.parametrize("columns", [1, 2])
def test_numbers_that_float32_cannot_count(columns: int) -> None:
    size = 1 << 25
    for x in (wf.ones(size, columns), wf.from_numpy(np.ones((size, columns), np.float32))):
        for _ in range(4):
            assert x.sum(0)[0].item() == pytest.approx(size, rel=1e-5)
            assert wf.cumsum(x, 0)[-1, 0].item() == size
