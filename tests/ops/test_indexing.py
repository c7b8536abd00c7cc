"""NumPy's advanced indexing and item assignment, values and gradients."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from running import run, same
from slope import cotangents
from strategies import at_most, dtypes
from test_array import counting

from weft import ops
from weft.errors import GraphError, OutOfRangeError, ShapeError
from weft.ir.dtype import DType
from weft.ir.graph import Graph
from weft.runtime.engine import Function, State
from weft.transform.check import check_gradients
from weft.transform.interpreter import evaluate

Key = tuple[Any, ...]


@st.composite
def keys(draw: st.DrawFn, shape: tuple[int, ...]) -> Key:
    """Any mix of index arrays that broadcast, a mask, integers, slices, None and an ellipsis."""
    wide = draw(st.sampled_from([(), (3,), (2, 3)]))
    rng = np.random.default_rng(draw(st.integers(0, 999)))
    items: list[Any] = []
    for d in shape[: draw(st.integers(0, len(shape)))]:
        kind = draw(st.sampled_from(["array", "array", "slice", "integer", "mask", "list"]))
        if kind == "array":
            narrow = wide[draw(st.integers(0, len(wide))) :]
            items.append(rng.integers(-d, d, narrow).astype(rng.choice([np.int32, np.int8])))
        elif kind == "list" and wide:
            items.append(rng.integers(-d, d, wide[-1]).tolist())
        elif kind == "mask" and wide and d >= 3:
            items.append(rng.permutation(np.arange(d) < 3))
        elif kind == "integer":
            items.append(draw(st.integers(-d, d - 1)))
        else:
            cut = st.sampled_from([slice(None), slice(1, None), slice(None, None, -1)])
            items.append(draw(cut))
    if draw(st.booleans()):
        items.insert(draw(st.integers(0, len(items))), None)
    if draw(st.booleans()):
        items = [*items[: draw(st.integers(0, len(items)))], ...]
    return tuple(items)


SHAPES = st.sampled_from([(5,), (4, 3), (3, 4, 5), (2, 3, 1, 4)])


@given(st.data(), SHAPES, dtypes())
def test_subscript_is_numpys(data: st.DataObject, shape: tuple[int, ...], dtype: DType) -> None:
    key = data.draw(keys(shape))
    x = counting(shape, dtype)
    same(run(lambda v: v[key], x), x[key])


@given(st.data(), SHAPES, dtypes())
def test_item_assignment_is_numpys(
    data: st.DataObject, shape: tuple[int, ...], dtype: DType
) -> None:
    key = data.draw(keys(shape))
    x = counting(shape, dtype)
    part = x[key].shape
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    narrow = tuple(1 if data.draw(st.booleans()) else d for d in part)
    narrow = narrow[data.draw(st.integers(0, len(narrow))) :]
    value = rng.integers(0, 100, narrow).astype(dtype.numpy)
    expected = x.copy()
    expected[key] = value
    same(run(lambda v, u: ops.subscript_update(v, key, u), x, value), expected)


@given(st.data(), SHAPES, st.sampled_from(["add", "multiply", "max", "min"]))
def test_combined_assignment(data: st.DataObject, shape: tuple[int, ...], combine: str) -> None:
    key = data.draw(keys(shape))
    x = counting(shape)
    value = np.float32(data.draw(st.integers(-3, 3)))
    ufunc = {"add": np.add, "multiply": np.multiply, "max": np.maximum, "min": np.minimum}[combine]
    expected = x.copy()
    ufunc.at(expected, key, value)
    same(run(lambda v, u: ops.subscript_update(v, key, u, combine), x, value), expected)


EXAMPLES: list[Key] = [
    (slice(1, None), [2, 0, 2]),
    ([0, -1, 0], slice(None), [1, 1, 3]),
    (0, slice(None), [1, 1, 3]),
    (np.array([[1], [0]]), [0, -1, 0]),
    (..., np.array([1, -1]), None),
    (np.arange(6).reshape(2, 3) % 3 == 1,),
    (-1, slice(None, None, -2)),
]


@pytest.mark.parametrize("key", EXAMPLES, ids=str)
def test_gradients_and_compiled_values(key: Key) -> None:
    x = np.random.default_rng(0).standard_normal((2, 3, 4))
    value = -np.arange(1.0, x[key].size + 1).reshape(x[key].shape)
    check_gradients(lambda v: v[key], [x], order=2)
    check_gradients(lambda v, u: ops.subscript_update(v, key, u), [x, value], order=2)
    with Graph().as_default() as graph:
        v = ops.placeholder(dtype="float64", shape=x.shape)
        u = ops.placeholder(dtype="float64", shape=value.shape)
        fetches = [v[key], ops.subscript_update(v, key, u)]
    found = Function(graph, fetches, feeds=[v, u])([x, value], State())
    expected = x.copy()
    expected[key] = value
    np.testing.assert_array_equal(found[0], x[key])
    np.testing.assert_array_equal(found[1], expected)


HOLES = np.array([[True, False, True], [False, True, True]])
EDGES: list[tuple[tuple[int, ...], Key]] = [
    ((3, 4), ([],)),
    ((3, 4), (slice(None), [])),
    ((3, 4), (np.zeros(3, np.bool_),)),
    ((3, 4), (np.ones((3, 4), np.bool_),)),
    ((0, 4), ([],)),
    ((0, 4), (slice(None), [1, 2])),
    ((), ()),
    ((), (..., None)),
    ((3,), (np.array(1),)),
    ((3, 4), (np.int64(-1), np.array([0, 1]))),
    ((3, 4), (np.uint8(2),)),
    ((2, 3, 4), ([0, 1], ..., [1, 2])),
    ((2, 3, 4), ([[0], [1]], None, [0, 2])),
    ((2, 3, 4), (slice(None), slice(5, 2), 0)),
    ((2, 3, 4), (HOLES, [0, 3, 1, 2])),
    ((2, 3, 4), (0, [True, False, True])),
]


def test_edges_interpreted_and_compiled() -> None:
    for shape, key in EDGES:
        x = counting(shape)
        value = -np.asarray(x[key]) - 1
        expected = [x[key], x.copy(), x.copy()]
        expected[1][key] = value
        np.add.at(expected[2], key, 2.0)
        with Graph().as_default() as graph:
            v = ops.placeholder(dtype="float32", shape=shape)
            u = ops.placeholder(dtype="float32", shape=value.shape)
            fetches = [v[key], ops.subscript_update(v, key, u)]
            fetches.append(ops.subscript_update(v, key, 2.0, "add"))
        interpreted = evaluate(graph, fetches, {v: x, u: value})
        for found in (interpreted, Function(graph, fetches, feeds=[v, u])([x, value], State())):
            for y, want in zip(found, expected, strict=True):
                np.testing.assert_array_equal(np.asarray(y), want, strict=True, err_msg=str(key))


def test_the_last_of_equal_positions_wins_and_takes_the_gradient() -> None:
    x, u = np.zeros(3), np.array([1.0, 2.0, 3.0])
    update = lambda v, w: ops.subscript_update(v, ([1, 2, 1],), w)  # noqa: E731
    same(run(update, x, u), np.array([0.0, 3.0, 2.0]))
    gx, gu = cotangents(update, [x, u])
    assert gx.tolist() == [1, 0, 0]
    assert gu.tolist() == [0, 1, 1]


def test_scatter_products_share_gradients_exactly_at_zeros() -> None:
    x, u = np.array([2.0, 0.0, 0.0]), np.array([0.0, 3.0, 5.0, 0.0])
    put = lambda v, w: ops.scatter_multiply(v, [0, 0, 1, 2], w)  # noqa: E731
    gx, gu = cotangents(put, [x, u])
    assert gx.tolist() == [0, 5, 0]
    assert gu.tolist() == [6, 0, 0, 0]


@at_most(30)
@given(st.data(), st.sampled_from(["set", "add", "max"]))
def test_put_along_axis(data: st.DataObject, combine: str) -> None:
    axis = data.draw(st.integers(-2, 1))
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    x = rng.standard_normal((4, 5))
    places = (2, 5) if axis % 2 == 0 else (4, 3)
    index = rng.integers(-x.shape[axis], x.shape[axis], places)
    value = rng.standard_normal(places)
    expected = x.copy()
    for i, j in np.ndindex(places):
        at = (index[i, j], j) if axis % 2 == 0 else (i, index[i, j])
        old, new = expected[at], value[i, j]
        expected[at] = {"set": new, "add": old + new, "max": max(old, new)}[combine]

    def put(v: Any, i: Any, u: Any) -> Any:
        return ops.put_along_axis(v, i, u, axis=axis, combine=combine)

    np.testing.assert_allclose(run(put, x, index, value), expected, rtol=1e-15)


@pytest.mark.parametrize("combine", ["set", "add", "multiply", "max", "min"])
def test_gradients_of_put_along_axis(combine: str) -> None:
    x = np.array([[0.5, 1.5, -2.0], [3.0, 0.25, 1.0]])
    index = np.array([[2, 0], [1, 1]])
    value = np.array([[1.25, -0.5], [2.0, 0.75]])
    check_gradients(
        lambda v, u: ops.put_along_axis(v, ops.constant(index), u, axis=1, combine=combine),
        [x, value],
        order=2,
    )


def test_a_boolean_value_as_mask_for_assignment() -> None:
    x, mask = counting((3, 2)), np.array([True, False, True])
    expected = x.copy()
    expected[mask] = [7, 8]
    value = np.array([7, 8], np.float32)
    found = run(ops.subscript_update, x, mask, value)
    same(found, expected)
    same(run(lambda v, m: ops.subscript_update(v, m, 1, "add"), x, mask), x + mask[:, None])


def test_leading_ones_of_a_value_are_forgiven() -> None:
    x = counting((2, 3))
    value = np.ones((1, 1, 3), np.float32)
    for key in ((0,), ([0],), (slice(None), None)):
        expected = x.copy()
        expected[key] = value if len(key) == 2 else value[0]
        same(run(lambda v, u, key=key: ops.subscript_update(v, key, u), x, value), expected)


def placeholder(*shape: int | None, dtype: str = "float32") -> Any:
    return ops.placeholder(dtype=dtype, shape=shape)


@pytest.mark.parametrize(
    ("build", "error", "message"),
    [
        (lambda: placeholder(3)[[1, 3]], OutOfRangeError, "expected -3 <= index < 3 on axis 0"),
        (lambda: placeholder(3)[[True, False]], ShapeError, "a mask of 3 entries along axis 0"),
        (lambda: placeholder(3)[placeholder(3, dtype="bool")], GraphError, "select keeps"),
        (lambda: placeholder(3)[[0.5]], GraphError, "expected an integer, a slice"),
        (lambda: placeholder(2, 2)[[0], [0], [0]], ShapeError, "at most 2 subscripts, got 3"),
        (
            lambda: ops.subscript_update(placeholder(2, 2), 0, placeholder(2, 2)),
            ShapeError,
            r"subscript_update: expected a value of rank at most 1, got shape \(2, 2\)",
        ),
        (
            lambda: ops.subscript_update(placeholder(2), 0, 1, "mean"),
            GraphError,
            "combine: expected one of set, add, multiply, max, min, got 'mean'",
        ),
        (
            lambda: ops.put_along_axis(placeholder(2, 2), placeholder(3, 1), 0.0, axis=1),
            ShapeError,
            r"put_along_axis: expected indices that fit into \(2, 2\)",
        ),
    ],
)
def test_errors_of_construction(build: Any, error: Any, message: str) -> None:
    with Graph().as_default(), pytest.raises(error, match=message) as caught:
        build()
    assert "(created at test_indexing.py:" in str(caught.value)


@pytest.mark.parametrize("bad", [-4, 3])
def test_an_index_outside_is_found_when_running(bad: int) -> None:
    x, index = counting((3, 3)), np.array([0, bad])
    for function in (
        lambda v, i: v[i],
        lambda v, i: v[:, i],
        lambda v, i: v[i, i],
        lambda v, i: ops.subscript_update(v, i, 0),
    ):
        with pytest.raises(OutOfRangeError, match=r"indices\[1\]: expected 0 <= index <"):
            run(function, x, index)
