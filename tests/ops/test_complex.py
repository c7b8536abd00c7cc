"""Complex numbers: dtypes, errors, and gradients against central differences."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from weft import ops
from weft.errors import DTypeError
from weft.ir.dtype import as_dtype, complex64, complex128, float32, float64, int32
from weft.ir.graph import Graph
from weft.ir.node import Value
from weft.runtime.engine import Function, State
from weft.transform.gradient import dense, gradients
from weft.transform.interpretation import Interpretation
from weft.transform.interpreter import evaluate, needs_interpreter

STEP = 1e-6
Rule = Callable[[Value], Value]


def _loss(y: Value) -> Value:
    """A real number that depends on every part of every element in its own way."""
    weights = np.cos(np.arange(np.prod(y.shape, dtype=int)).reshape(y.shape)) + 1.5
    parts = [ops.real(y), ops.imag(y)] if y.dtype.is_complex else [y]
    terms = [ops.sum(part * (weights * k)) for k, part in enumerate(parts, 1)]
    return ops.add_n(*terms)


def check(rule: Rule, z: np.ndarray[Any, Any]) -> None:
    """`dL = real(g * dz)`, by central differences in both directions of every element."""
    graph = Graph()
    with graph.as_default():
        x = ops.placeholder(dtype=as_dtype(z.dtype), shape=z.shape)
        loss = _loss(rule(x))
        (found,) = gradients([loss], [x])
        assert found is not None
        g = dense(found)
    assert g.type == x.type
    run = Interpretation(graph, [loss], [x])
    (slope,) = Interpretation(graph, [g], [x])([z])
    for place in np.ndindex(z.shape):
        for direction in (1, 1j) if z.dtype.kind == "c" else (1,):
            there, back = z.copy(), z.copy()
            there[place] += STEP * direction
            back[place] -= STEP * direction
            found = (float(run([there])[0]) - float(run([back])[0])) / (2 * STEP)
            expected = (slope[place] * direction).real
            assert np.isclose(found, expected, rtol=1e-5, atol=1e-6), (place, direction)


def draw(*shape: int, seed: int = 0) -> np.ndarray[Any, Any]:
    rng = np.random.default_rng(seed)
    return rng.uniform(0.3, 0.9, shape) * np.exp(1j * rng.uniform(-3, 3, shape))


UNARY = (
    "exp", "expm1", "log", "log1p", "log2", "log10", "sqrt", "rsqrt", "sin", "cos", "tan", "asin",
    "acos", "atan", "sinh", "cosh", "tanh", "asinh", "acosh", "atanh", "negative", "square",
    "reciprocal", "abs", "real", "imag", "conj", "sum", "prod", "mean", "cumsum", "cumprod",
    "angle",
)  # fmt: skip


@pytest.mark.parametrize("name", UNARY)
def test_gradients_of_one_input(name: str) -> None:
    check(getattr(ops, name), draw(2, 2))


@pytest.mark.parametrize("name", ["add", "subtract", "multiply", "divide", "power", "matmul"])
@pytest.mark.parametrize("side", [0, 1])
def test_gradients_of_two_inputs(name: str, side: int) -> None:
    op, other = getattr(ops, name), draw(2, 2, seed=1)
    check(lambda x: op(*((x, other) if side == 0 else (other, x))), draw(2, 2))


def test_gradients_of_movement() -> None:
    places = np.array([1, 0, 1], np.int32)
    check(lambda x: ops.transpose(ops.reshape(x, shape=(3, 2)), perm=(1, 0)), draw(2, 3))
    check(lambda x: ops.gather(x, places), draw(2, 3))
    check(lambda x: ops.select(np.array([True, False, True]), x, x * x), draw(2, 3))
    check(lambda x: ops.broadcast_to(x, shape=(4, 3)), draw(1, 3))
    check(lambda x: ops.power(x, 3), draw(2, 3))


def test_gradients_from_real_through_complex_to_real() -> None:
    x = np.linspace(0.2, 1.4, 6).reshape(2, 3)
    check(lambda v: ops.abs(ops.exp(ops.complex(v, v * v))), x)
    check(lambda v: ops.real(ops.square(ops.cast(v, dtype=complex128) * 1j + 2)), x)


def test_the_gradient_of_a_squared_magnitude_is_twice_the_conjugate() -> None:
    z = draw(4)
    with Graph().as_default() as graph:
        x = ops.placeholder(dtype=complex128, shape=(4,))
        y = ops.sum(ops.real(x * ops.conj(x)))
        (g,) = gradients([y], [x])
        assert isinstance(g, Value)
    np.testing.assert_allclose(evaluate(graph, [g], {x: z})[0], 2 * z.conj(), rtol=1e-12)


@given(
    st.sampled_from(["add", "multiply", "divide", "exp", "sqrt", "tanh", "sign", "abs", "isnan"]),
    st.lists(st.complex_numbers(max_magnitude=1e3), min_size=1, max_size=4),
    st.sampled_from([complex64, complex128]),
)
def test_values_are_numpys(name: str, numbers: list[complex], dtype: Any) -> None:
    array = np.array(numbers, dtype.numpy)
    arrays = (array, array[::-1].copy()) if name in ("add", "multiply", "divide") else (array,)
    with Graph().as_default() as graph:
        xs = [ops.placeholder(dtype=dtype, shape=array.shape) for _ in arrays]
        y = getattr(ops, name)(*xs)
    (found,) = Interpretation(graph, [y], xs)(arrays)
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(found, getattr(np, name)(*arrays))
    assert needs_interpreter(graph)


def test_types() -> None:
    with Graph().as_default() as graph:
        z = ops.constant(1 + 2j)
        assert z.dtype is complex64
        assert (z * 2).dtype is complex64 and (z + 1j).dtype is complex64
        assert ops.abs(z).dtype is float32 and ops.imag(z).dtype is float32
        assert ops.complex(ops.constant(1.0), 2).dtype is complex64
        assert ops.conj(ops.constant(3, int32)).dtype is int32
        assert ops.equal(z, z).dtype.name == "bool" and complex128.real is float64
        wide = ops.cast(z, dtype="complex128")
    assert evaluate(graph, [wide])[0] == 1 + 2j
    with Graph().as_default() as graph:
        assert not needs_interpreter(graph)


def test_errors() -> None:
    with Graph().as_default():
        z = ops.constant(1 + 2j)
        with pytest.raises(
            DTypeError, match=r"cast: expected a complex type or bool for complex64"
        ):
            ops.cast(z, dtype="float32")
        with pytest.raises(DTypeError, match="less: expected a numeric dtype, got complex64"):
            ops.less(z, z)
        with pytest.raises(DTypeError, match="constant: expected a number that float32 holds"):
            ops.constant(1.0) + 1j
        with pytest.raises(DTypeError, match="max: expected a real dtype, got complex64"):
            ops.max(z)


def test_programs_call_numpy_for_complex_numbers() -> None:
    with Graph().as_default() as graph:
        x = ops.placeholder(dtype=float32, shape=(2,))
        y = ops.abs(ops.complex(x + 2.0, x * 4.0, name="turn")) * 0.5
    program = Function(graph, [y], feeds=[x])
    (found,) = program([np.ones(2, np.float32)], State())
    np.testing.assert_array_equal(found, [2.5, 2.5])
    (again,) = program([np.zeros(2, np.float32)], State())
    np.testing.assert_array_equal(again, [1.0, 1.0])
