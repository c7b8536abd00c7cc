"""Elementwise operations: values at corners, gradients at kinks, errors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from slope import interpreted, slopes
from strategies import arrays, at_most, broadcastable, dtypes

from weft import ops
from weft.errors import DTypeError, ShapeError
from weft.ir.dtype import as_dtype, float32, float64
from weft.ir.graph import Graph
from weft.ops.declaration import REGISTRY, Elementwise
from weft.runtime.engine import Function, State
from weft.transform.gradient import gradients
from weft.transform.interpreter import evaluate


# Gradients at kinks and singular points: TensorFlow's
@pytest.mark.parametrize(
    ("name", "x", "expected"),
    [
        ("relu", [-1.0, 0.0, 2.0], [0.0, 0.0, 1.0]),
        ("relu6", [-1.0, 0.0, 3.0, 6.0, 7.0], [0.0, 0.0, 1.0, 0.0, 0.0]),
        ("abs", [-2.0, 0.0, 3.0], [-1.0, 0.0, 1.0]),
        ("sqrt", [0.0, 4.0], [np.inf, 0.25]),
        ("leaky_relu", [-1.0, 0.0, 1.0], [0.2, 0.2, 1.0]),
        ("softplus", [-1000.0, 0.0, 1000.0], [0.0, 0.5, 1.0]),
        ("sigmoid", [-1000.0, 1000.0], [0.0, 0.0]),
        ("tanh", [-1000.0, 1000.0], [0.0, 0.0]),
    ],
)
def test_slopes_at_corners(name: str, x: list[float], expected: list[float]) -> None:
    assert slopes(REGISTRY[name], x) == [expected]


def test_ties_of_extremes_go_to_x() -> None:
    assert slopes(ops.maximum, [1.0, 2.0], [1.0, 3.0]) == [[1.0, 0.0], [0.0, 1.0]]
    assert slopes(ops.minimum, [1.0, 2.0], [1.0, 3.0]) == [[1.0, 1.0], [0.0, 0.0]]


def test_clip_passes_the_slope_at_its_limits() -> None:
    found = slopes(ops.clip, [-2.0, -1.0, 0.0, 1.0, 2.0], [-1.0] * 5, [1.0] * 5)
    assert found == [[0, 1, 1, 1, 0], [1, 0, 0, 0, 0], [0, 0, 0, 0, 1]]


def test_power_is_safe_at_zero() -> None:
    dx, dy = slopes(ops.power, [0.0, 0.0, 2.0, -2.0], [0.0, 2.0, 0.0, 3.0])
    assert dx == [0.0, 0.0, 0.0, 12.0]
    np.testing.assert_array_equal(dy, [0.0, 0.0, np.log(2.0), np.nan])


@pytest.mark.parametrize("exponent", [0, 1, 2, 3, 0.5, -1])
def test_power_by_a_number(exponent: float) -> None:
    x = np.array([0.5, 2.0])
    (dx,) = slopes(lambda v: v**exponent, x)
    np.testing.assert_allclose(dx, exponent * x ** (exponent - 1.0))


def test_cotangents_are_summed_over_broadcast_axes() -> None:
    dx, dy = slopes(ops.multiply, np.ones((2, 3)), np.full((3,), 2.0))
    assert dx == [[2.0] * 3] * 2
    assert dy == [2.0] * 3
    (dz, _) = slopes(ops.add, np.array(1.0), np.ones((2, 3)))
    assert dz == 6.0


def test_gradients_with_unknown_batch_size() -> None:
    graph = Graph()
    with graph.as_default():
        x = ops.placeholder(dtype="float64", shape=(None, 3))
        w = ops.placeholder(dtype="float64", shape=None)
        dw = gradients([x * w], [w])[0]
    found = evaluate(graph, [dw], {x: np.ones((4, 3)), w: np.ones((3,))})[0]
    assert found.tolist() == [4.0] * 3


# Integers
def test_integer_division_by_zero_gives_zero() -> None:
    x = np.array([7, -7, 0, -(2**31)], np.int32)
    zero, minus_one = np.zeros(4, np.int32), np.full(4, -1, np.int32)
    for op in (ops.floor_divide, ops.remainder, ops.fmod):
        assert interpreted(op, x, zero).tolist() == [0, 0, 0, 0]
    assert interpreted(ops.floor_divide, x, minus_one).tolist() == [-7, 7, 0, -(2**31)]
    assert interpreted(ops.remainder, x, minus_one).tolist() == [0, 0, 0, 0]


def test_integer_powers() -> None:
    x = np.array([2, -3, 0, 1, -1, -1, 0, 5], np.int64)
    y = np.array([62, 3, 0, -4, -3, -2, -1, -2], np.int64)
    assert interpreted(ops.power, x, y).tolist() == [2**62, -27, 1, 1, -1, 1, 0, 0]


def test_casts_to_integers_saturate() -> None:
    x = np.array([1.9, -1.9, 300.0, -300.0, np.inf, -np.inf, np.nan], np.float32)
    assert interpreted(lambda v: ops.cast(v, dtype="int8"), x).tolist() == [
        1, -1, 127, -128, 127, -128, 0,
    ]  # fmt: skip
    assert interpreted(lambda v: ops.cast(v, dtype="uint64"), x).tolist() == [
        1, 0, 300, 0, 2**64 - 1, 0, 0,
    ]  # fmt: skip


def test_half_precision_is_rounded_once() -> None:
    x = np.array([1.0, 1.0], np.float16)
    tiny = np.array([2.0**-11, 2.0**-11 + 2.0**-20], np.float16)
    assert interpreted(ops.add, x, tiny).tolist() == [1.0, 1.0 + 2.0**-10]


# Errors
@pytest.mark.parametrize(
    ("build", "error", "text"),
    [
        (
            lambda x, i: ops.add(x, i), DTypeError,
            "add: expected one dtype, got float32 and int32",
        ),
        (
            lambda x, i: ops.divide(i, i), DTypeError,
            "divide: expected a floating-point dtype, got int32",
        ),
        (
            lambda x, i: ops.logical_and(x, x), DTypeError,
            "logical_and: expected a bool dtype, got float32",
        ),
        (
            lambda x, i: ops.select(x, x, x), DTypeError,
            "select: expected a bool condition, got float32",
        ),
        (
            lambda x, i: ops.bitcast(x, dtype="int64"), DTypeError,
            "bitcast: expected two numeric types of one size, got float32 and int64",
        ),
        (
            lambda x, i: ops.add(x, np.zeros((4,), np.float32)), ShapeError,
            r"add: shapes do not broadcast: \(2, 3\) and \(4,\)",
        ),
        (
            lambda x, i: ops.add_n(x, np.zeros((4,), np.float32)), ShapeError,
            r"add_n: shape: expected \(2, 3\), got \(4,\)",
        ),
    ],
)  # fmt: skip
def test_errors_say_what_was_expected(build: Any, error: Any, text: str) -> None:
    with Graph().as_default():
        x = ops.placeholder(dtype="float32", shape=(2, 3))
        i = ops.placeholder(dtype="int32", shape=(2, 3))
        with pytest.raises(error, match=text + r" \(created at test_elementwise\.py:\d+\)$"):
            build(x, i)


# Compiled code, over drawn shapes and values
ARITHMETIC = ("add", "subtract", "multiply", "maximum", "minimum", "floor_divide", "remainder")


@st.composite
def _operands(draw: st.DrawFn) -> tuple[str, list[np.ndarray[Any, Any]]]:
    name = draw(st.sampled_from(ARITHMETIC))
    dtype = draw(dtypes("iu") if name in ("floor_divide", "remainder") else dtypes("iuf"))
    shapes_ = draw(broadcastable(2, max_rank=3, max_size=600))
    specials = dtype.is_integer or name in ("maximum", "minimum")
    return name, [draw(arrays(dtype, s, specials=specials)) for s in shapes_]


@at_most(30)
@given(operands=_operands())
def test_compiled_arithmetic(operands: tuple[str, list[Any]]) -> None:
    name, inputs = operands
    graph = Graph()
    with graph.as_default():
        xs = [ops.placeholder(dtype=as_dtype(a.dtype), shape=a.shape) for a in inputs]
        y = REGISTRY[name](*xs)
    found = Function(graph, [y], feeds=xs)(inputs, State())[0]
    expected = REGISTRY[name].reference(*inputs)
    assert found.dtype == expected.dtype
    kind = np.float64 if as_dtype(found.dtype).is_floating else found.dtype
    np.testing.assert_array_equal(found.astype(kind), expected.astype(kind))


def test_every_elementwise_operation_takes_unknown_ranks() -> None:
    for op in REGISTRY.values():
        if isinstance(op.lower, Elementwise):
            assert op.partial, op.name


def test_bare_numbers_take_the_type_of_the_other_operand() -> None:
    with Graph().as_default():
        x = ops.placeholder(dtype="float64", shape=())
        assert (x + 1).dtype is float64
        assert (2 * ops.cast(x, dtype="float32")).dtype is float32
