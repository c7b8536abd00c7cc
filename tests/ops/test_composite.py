"""Every function composed of operations against NumPy, its gradients against differences."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from composite import Row, check_compiled, check_slopes, check_values
from slope import cotangents

from weft import ops
from weft.errors import GraphError, OutOfRangeError, ShapeError
from weft.ir.graph import Graph
from weft.runtime.engine import Function, State
from weft.transform.interpreter import evaluate

RNG = np.random.default_rng(0)
X = RNG.standard_normal((3, 4))
Y = RNG.standard_normal((3, 4))
V = np.array([0.75, -1.5, 2.0])
CUBE = RNG.standard_normal((2, 3, 2))
HOLES = np.array([[1.0, np.nan, -2.0], [np.nan, np.nan, np.nan], [0.5, 3.0, np.inf]])
SPECIAL = np.array([0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan])
GRID = np.broadcast_arrays(SPECIAL[:, None], SPECIAL)
COUNTS = np.array([[3, 0, -2], [7, 7, 1]], np.int32)

REAL = [
    Row("exp2", ops.exp2, np.exp2, (X,)),
    Row("exp2 of whole", ops.exp2, np.exp2, (np.arange(-8.0, 9),), rtol=0),
    Row("fmax", ops.fmax, np.fmax, (X, Y)),
    Row("fmin of specials", ops.fmin, np.fmin, tuple(GRID), slopes=False),
    Row("fmax of specials", ops.fmax, np.fmax, tuple(GRID), slopes=False),
    Row("fmax of integers", ops.fmax, np.fmax, (COUNTS, -COUNTS), slopes=False),
    Row("heaviside", ops.heaviside, np.heaviside, tuple(GRID), slopes=False),
    Row("heaviside's slopes", ops.heaviside, np.heaviside, (X, Y)),
    Row("deg2rad", ops.deg2rad, np.deg2rad, (X,)),
    Row("rad2deg", ops.rad2deg, np.rad2deg, (X,)),
    Row("sinc", ops.sinc, np.sinc, (X,)),
    Row("sinc near 0", ops.sinc, np.sinc, (np.array([0.0, 1e-9, -0.005, 0.0159, 0.0161]),)),
    Row("logit", ops.logit, lambda x: np.log(x / (1 - x)), (np.linspace(0.05, 0.95, 7),)),
    Row("logit at ends", ops.logit, lambda x: np.log(x / (1 - x)), ([0.0, 1.0, 2.0],), False),
    Row("logit clipped", lambda x: ops.logit(x, 0.25),
        lambda x: np.log(np.array([1 / 3, 1.0, 3.0])), ([0.0, 0.5, 1.0],), False),
    Row("lerp", lambda x, y: ops.lerp(x, y, 0.25), lambda x, y: x + (y - x) * 0.25, (X, Y)),
    Row("lerp by values", ops.lerp, lambda x, y, w: x + (y - x) * w, (X, Y, X[0])),
    Row("xlogy", ops.xlogy, lambda x, y: x * np.log(y), (X, np.exp(Y))),
    Row("xlogy at 0", ops.xlogy, lambda x, y: np.array([0, 0, np.nan]),
        ([0.0] * 3, [0, np.inf, np.nan]), False),
    Row("nan_to_num", ops.nan_to_num, np.nan_to_num, (SPECIAL,), False),
    Row("nan_to_num told", lambda x: ops.nan_to_num(x, 1, 2, 3),
        lambda x: np.nan_to_num(x, nan=1, posinf=2, neginf=3), (SPECIAL,), False),
    Row("sinc at whole numbers", ops.sinc, lambda x: x * 0, ([1.0, -2.0, 7.0, 1e6],), False, 0),
    Row("ndtr", ops.ndtr,
        np.vectorize(lambda x: math.erfc(-x / math.sqrt(2)) / 2, otypes=[float]), (X * 2,)),
    Row("i0", ops.i0, np.i0, (X * 4,)),
    Row("i1 at and near 0", ops.i1, lambda x: x / 2 * (1 + x * x / 8), ([0.0, 1e-5, -1e-4],),
        False),
    Row("betaln", ops.betaln, np.vectorize(lambda a, b: math.log(
        math.gamma(a) * math.gamma(b) / math.gamma(a + b)), otypes=[float]), (abs(X), abs(Y))),
    Row("isclose", ops.isclose, np.isclose, tuple(GRID), False),
    Row("isclose of NaN", lambda x, y: ops.isclose(x, y, equal_nan=True),
        lambda x, y: np.isclose(x, y, equal_nan=True), tuple(GRID), False),
    Row("isclose of integers", ops.isclose, np.isclose, (COUNTS, COUNTS * 2), False),
]  # fmt: skip

MOVEMENT = [
    Row("moveaxis", lambda x: ops.moveaxis(x, 0, -1), lambda x: np.moveaxis(x, 0, -1), (CUBE,)),
    Row("moveaxis of two", lambda x: ops.moveaxis(x, (0, 1), (-1, 0)),
        lambda x: np.moveaxis(x, (0, 1), (-1, 0)), (CUBE,)),
    Row("swapaxes", lambda x: ops.swapaxes(x, 0, -1), lambda x: np.swapaxes(x, 0, -1), (CUBE,)),
    *[Row(f"rot90 {k}", lambda x, k=k: ops.rot90(x, k, (1, 0)),
          lambda x, k=k: np.rot90(x, k, (1, 0)), (CUBE,)) for k in (-1, 0, 1, 2)],
    Row("repeat", lambda x: ops.repeat(x, 3, 1), lambda x: np.repeat(x, 3, 1), (X,)),
    Row("repeat all", lambda x: ops.repeat(x, 2), lambda x: np.repeat(x, 2), (X,)),
    Row("repeat each", lambda x: ops.repeat(x, (2, 0, 1), 0),
        lambda x: np.repeat(x, (2, 0, 1), 0), (X,)),
    Row("repeat a scalar", lambda x: ops.repeat(x, 3), lambda x: np.repeat(x, 3), (2.0,)),
    Row("meshgrid", ops.meshgrid, np.meshgrid, (V, X[0], X[0, :2])),
    Row("meshgrid ij", lambda *x: ops.meshgrid(*x, indexing="ij"),
        lambda *x: np.meshgrid(*x, indexing="ij"), (V, X[0], 1.5)),
    Row("meshgrid of one", ops.meshgrid, np.meshgrid, (V,)),
    Row("broadcast_arrays", ops.broadcast_arrays, np.broadcast_arrays, (X, X[:, :1], 1.0)),
    Row("vander", ops.vander, np.vander, (V,)),
    Row("vander up", lambda x: ops.vander(x, 2, True), lambda x: np.vander(x, 2, True), (V,)),
    Row("vander of nothing", lambda x: ops.vander(x, 0), lambda x: np.vander(x, 0), (V,), False),
    Row("linspace of values", lambda x, y: ops.linspace(x, y, 4, dtype=x.dtype),
        lambda x, y: np.linspace(x, y, 4), (X, Y[0])),
    Row("linspace of a value", lambda x: ops.linspace(0, x, 5, False, x.dtype),
        lambda x: np.linspace(0, x, 5, False), (2.5,)),
]  # fmt: skip

PRODUCT = [
    Row("outer", ops.outer, np.outer, (X, V)),
    Row("inner", ops.inner, np.inner, (X, Y)),
    Row("inner with a scalar", ops.inner, np.inner, (X, 2.5)),
    Row("dot of vectors", ops.dot, np.dot, (V, V)),
    Row("dot of cubes", ops.dot, np.dot, (CUBE, RNG.standard_normal((2, 2)))),
    Row("dot with a vector", ops.dot, np.dot, (CUBE, V[:2])),
    Row("dot with a scalar", ops.dot, np.dot, (2.0, X)),
    Row("vdot", ops.vdot, np.vdot, (X, Y)),
    Row("kron", ops.kron, np.kron, (X[:2, :2], CUBE)),
    Row("kron of integers", ops.kron, np.kron, (COUNTS, COUNTS), False),
    Row("cross", ops.cross, np.cross, (X[:, :3], V)),
    Row("cross by columns", lambda x, y: ops.cross(x, y, axis=0),
        lambda x, y: np.cross(x, y, axis=0), (X, Y)),
]  # fmt: skip

ZEROS = np.array([[0.0, 2.0, -3.0, 0.5], [0.0, 1.5, 0.0, 2.0]])

RUNNING = [
    Row("cummin", lambda x: ops.cummin(x, 1), lambda x: np.minimum.accumulate(x, 1), (X,)),
    Row("cummin of integers", ops.cummin, np.minimum.accumulate,
        (COUNTS + np.int32(-(2**31) + 2),), False),
    Row("cumlogsumexp", lambda x: ops.cumlogsumexp(x, 1),
        lambda x: np.logaddexp.accumulate(x, 1), (X,)),
    Row("cumlogsumexp of far numbers", ops.cumlogsumexp, np.logaddexp.accumulate,
        ([-np.inf, -1e4, -1e4, 0.0, 1e4, -np.inf],), False),
    Row("cumlogsumexp from the end", lambda x: ops.cumlogsumexp(x, 0, reverse=True),
        lambda x: np.logaddexp.accumulate(x[::-1], 0)[::-1], (X,)),
    Row("cumlogsumexp of nothing", ops.cumlogsumexp, lambda x: x, (np.zeros((0, 2)),), False),
    Row("cumprod with zeros", lambda x: ops.cumprod(x, axis=1), lambda x: np.cumprod(x, 1),
        (ZEROS,)),
    Row("prod with zeros", lambda x: ops.prod(x, axes=(1,)), lambda x: np.prod(x, 1), (ZEROS,)),
    Row("prod over outer axes", lambda x: ops.prod(x, axes=(0, 2)), lambda x: np.prod(x, (0, 2)),
        (ZEROS.reshape(2, 2, 2),)),
]  # fmt: skip

QUANTILE = [
    Row("median", ops.median, np.median, (X,)),
    Row("median of rows", lambda x: ops.median(x, -1, True),
        lambda x: np.median(x, -1, keepdims=True), (CUBE,)),
    Row("median with NaN", lambda x: ops.median(x, 1), lambda x: np.median(x, 1), (HOLES,), False),
    *[Row(f"quantile {m}", lambda x, m=m: ops.quantile(x, [0, 0.3, 0.5, 0.9, 1], (0, 2), method=m),
          lambda x, m=m: np.quantile(x, [0, 0.3, 0.5, 0.9, 1], (0, 2), method=m), (CUBE,))
      for m in ("linear", "lower", "higher", "nearest", "midpoint")],
    Row("ptp", lambda x: ops.ptp(x, 1), lambda x: np.ptp(x, 1), (X,)),
    Row("diff", ops.diff, np.diff, (X,)),
    Row("diff twice", lambda x: ops.diff(x, 2, 0), lambda x: np.diff(x, 2, 0), (X,)),
    Row("diff of booleans", ops.diff, np.diff, (COUNTS > 1,), False),
    Row("diff of nothing", ops.diff, np.diff, (np.zeros((2, 0)),), False),
    Row("count_nonzero", lambda x: ops.count_nonzero(x, 1), lambda x: np.count_nonzero(x, 1),
        (COUNTS,), False),
    Row("bincount", lambda x: ops.bincount(x, 6), lambda x: np.bincount(x.ravel(), minlength=6),
        (np.array([[1, 5], [1, 0]]),), False),
    Row("bincount by weight", lambda w: ops.bincount(ops.constant([2, 0, 2]), 3, w),
        lambda w: np.bincount([2, 0, 2], w), (V,)),
    *[Row(name, lambda x, f=name: getattr(ops, f)(x, 1, True),
          lambda x, f=name: getattr(np, f)(x, 1, keepdims=True), (HOLES[::2],), False)
      for name in ("nansum", "nanprod", "nanmean", "nanmax", "nanmin")],
    Row("nansum's slopes", ops.nansum, np.nansum, (X,)),
    Row("nanmax of integers", lambda x: ops.nanmax(x, 0), lambda x: np.nanmax(x, 0), (COUNTS,),
        False),
]  # fmt: skip

WIDE = np.array([[-20.0, -3.5, -2.25, -0.75], [-0.25, 0.25, 0.75, 1.5], [2.25, 3.5, 7.0, 20.0]])


def sigmoid(x: Any) -> Any:
    return 1 / (1 + np.exp(-x))


ACTIVATION = [
    Row("softsign", ops.softsign, lambda x: x / (1 + abs(x)), (WIDE,)),
    Row("tanhshrink", ops.tanhshrink, lambda x: x - np.tanh(x), (X,)),
    Row("log_sigmoid", ops.log_sigmoid, lambda x: np.log(sigmoid(x)), (WIDE,)),
    Row("log_sigmoid far out", ops.log_sigmoid, lambda x: np.minimum(x, 0), ([-1e3, 1e3],)),
    Row("mish", ops.mish, lambda x: x * np.tanh(np.log1p(np.exp(x))), (WIDE,)),
    Row("celu", lambda x: ops.celu(x, 2.5),
        lambda x: np.where(x > 0, x, 2.5 * np.expm1(x / 2.5)), (WIDE,)),
    Row("glu", ops.glu, lambda x: x[:, :2] * sigmoid(x[:, 2:]), (X,)),
    Row("prelu", ops.prelu, lambda x, w: np.where(x > 0, x, x * w), (WIDE, X[0])),
    Row("threshold", lambda x: ops.threshold(x, 1, 7), lambda x: np.where(x > 1, x, 7), (WIDE,)),
    Row("hardtanh", lambda x: ops.hardtanh(x, -3, 1), lambda x: np.clip(x, -3, 1), (WIDE,)),
    Row("hardshrink", ops.hardshrink, lambda x: np.where(abs(x) > 0.5, x, 0), (WIDE,)),
    Row("softshrink", ops.softshrink,
        lambda x: np.sign(x) * np.maximum(abs(x) - 0.5, 0), (WIDE,)),
    Row("hardsigmoid", ops.hardsigmoid, lambda x: np.clip(x + 3, 0, 6) / 6, (WIDE,)),
    Row("hardswish", ops.hardswish, lambda x: x * np.clip(x + 3, 0, 6) / 6, (WIDE,)),
]  # fmt: skip

FAMILIES = {
    "activation": ACTIVATION,
    "real": REAL,
    "movement": MOVEMENT,
    "product": PRODUCT,
    "quantile": QUANTILE,
}
ROWS = [row for rows in FAMILIES.values() for row in rows]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_values(row: Row) -> None:
    check_values(row)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_slopes(row: Row) -> None:
    check_slopes(row)


@pytest.mark.parametrize("family", FAMILIES)
def test_compiled(family: str) -> None:
    check_compiled(FAMILIES[family])


def test_numbers_without_inputs() -> None:
    with Graph().as_default() as graph:
        made = [
            (ops.tri(3, 4, -1), np.tri(3, 4, -1, np.float32)),
            (ops.tri(2, dtype="int32"), np.tri(2, dtype=np.int32)),
            (ops.linspace(0, 1, 5), np.linspace(0, 1, 5, dtype=np.float32)),
            (ops.linspace(3, -1, 7, False, "float64"), np.linspace(3, -1, 7, False)),
            (ops.linspace(-1, 1, 4, dtype="int32"), np.linspace(-1, 1, 4, dtype=np.int32)),
            (ops.linspace(2, 5, 1), np.array([2], np.float32)),
            (ops.linspace(2, 5, 0), np.zeros(0, np.float32)),
            (ops.logspace(0, 3, 4, dtype="float64"), np.logspace(0, 3, 4)),
        ]
        found = evaluate(graph, [value for value, _ in made])
    for y, (_, want) in zip(found, made, strict=True):
        assert y.dtype == want.dtype
        np.testing.assert_array_equal(y, want)


@pytest.mark.parametrize(
    ("build", "error", "message"),
    [
        (lambda x: ops.moveaxis(x, (0, 0), (0, 1)), ShapeError, "as many different sources"),
        (lambda x: ops.repeat(x, [1, 2], 0), ShapeError, "a number or 3 numbers"),
        (lambda x: ops.meshgrid(x), ShapeError, "meshgrid: expected rank 0 or 1, got (3, 4)"),
        (lambda x: ops.meshgrid(indexing="yx"), ShapeError, "expected order xy or ij, got 'yx'"),
        (
            lambda x: ops.glu(x, 0),
            ShapeError,
            "glu: expected an even size of dimension 0, got (3, 4)",
        ),
        (lambda x: ops.vander(x), ShapeError, "vander: expected x of rank 1, got shape (3, 4)"),
        (lambda x: ops.cross(x, x), ShapeError, "cross: expected 3 elements along axis -1"),
        (lambda x: ops.quantile(x, 1.5), GraphError, "quantile: expected parts between 0 and 1"),
        (lambda x: ops.quantile(x[:0], 0.5), ShapeError, "quantile: expected at least one element"),
        (lambda x: ops.roll(x, shifts=(1, 2), axes=0), ShapeError, "roll: shifts: expected one"),
    ],
)
def test_errors(build: Any, error: Any, message: str) -> None:
    with Graph().as_default(), pytest.raises(error) as caught:
        build(ops.placeholder(dtype="float32", shape=(3, 4)))
    assert message in str(caught.value)
    assert "(created at test_composite.py:" in str(caught.value)


@pytest.mark.parametrize(
    ("function", "at", "slopes"),
    [
        (ops.softsign, [0.0], [1.0]),
        (ops.celu, [0.0], [1.0]),
        (lambda x: ops.prelu(x, 0.25), [0.0, -0.0], [0.25, 0.25]),
        (lambda x: ops.threshold(x, 1, 7), [1.0, np.inf], [0.0, 1.0]),
        (ops.hardtanh, [-1.0, 1.0, np.inf], [0.0, 0.0, 0.0]),
        (ops.hardshrink, [-0.5, 0.5, 0.0], [0.0, 0.0, 0.0]),
        (ops.softshrink, [-0.5, 0.5, np.inf], [0.0, 0.0, 1.0]),
        (ops.hardsigmoid, [-3.0, 3.0], [0.0, 0.0]),
        (ops.hardswish, [-3.0, 3.0, -np.inf, np.inf], [0.0, 1.0, 0.0, 1.0]),
    ],
)
def test_slopes_at_kinks_are_pytorchs(function: Any, at: list[float], slopes: list[float]) -> None:
    (found,) = cotangents(function, [np.array(at)])
    assert found.tolist() == slopes


def test_bincount_checks_its_numbers() -> None:
    with Graph().as_default() as graph, pytest.raises(OutOfRangeError, match="index < 2, got 5"):
        evaluate(graph, [ops.bincount(ops.constant([1, 5]), 2)])


@pytest.mark.parametrize(
    ("function", "array"),
    [
        (ops.log2, np.ldexp(1.0, np.arange(-1022, 1024))),
        (ops.log10, np.array([float(f"1e{i}") for i in range(23)])),
        (ops.cbrt, np.arange(-50.0, 51) ** 3),
        (ops.exp2, np.arange(-100.0, 100)),
    ],
)
def test_what_is_exact_in_kernels(function: Any, array: Any) -> None:
    with Graph().as_default() as graph:
        x = ops.placeholder(dtype="float64", shape=array.shape)
        y = function(x)
    found = Function(graph, [y], feeds=[x])([array], State())[0]
    expected = {"log2": np.log2, "log10": np.log10, "cbrt": lambda a: np.rint(np.cbrt(a))}.get(
        y.node.op, np.exp2
    )
    np.testing.assert_array_equal(found, expected(array))
