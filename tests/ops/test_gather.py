"""Gather and scatter against NumPy, and their errors for indices out of range."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from running import run, same
from strategies import dtypes, shapes
from test_array import counting

from weft import ops
from weft.errors import OutOfRangeError, ShapeError
from weft.ir.dtype import DType
from weft.ir.graph import Graph
from weft.ops.indexing.gather_nd import gather_nd_of_batches


@st.composite
def indices(draw: st.DrawFn, size: int, shape: tuple[int, ...]) -> np.ndarray:
    rng = np.random.default_rng(draw(st.integers(0, 99)))
    kind = draw(st.sampled_from([np.int32, np.int64, np.uint8, np.int8]))
    return rng.integers(0, size, shape).astype(kind) if size else np.zeros(shape, kind)


@given(st.data(), dtypes(), st.booleans())
def test_gather_is_numpys_take(data: st.DataObject, dtype: DType, open_shapes: bool) -> None:
    shape = data.draw(shapes(min_rank=1, max_rank=3, high=5))
    axis = data.draw(st.integers(-len(shape), len(shape) - 1))
    places = data.draw(shapes(max_rank=2, low=0, high=4)) if shape[axis] else (0,)
    index = data.draw(indices(shape[axis], places))
    x = counting(shape, dtype)
    found = run(lambda v, i: ops.gather(v, i, axis=axis), x, index, open_shapes=open_shapes)
    same(found, np.take(x, index, axis))


@given(st.data(), dtypes())
def test_take_along_axis(data: st.DataObject, dtype: DType) -> None:
    shape = data.draw(shapes(min_rank=1, max_rank=3, low=1, high=5))
    axis = data.draw(st.integers(-len(shape), len(shape) - 1))
    places = list(shape)
    places[axis] = data.draw(st.integers(0, 4))
    x, index = counting(shape, dtype), data.draw(indices(shape[axis], tuple(places)))
    expected = np.take_along_axis(x, index.astype(np.int64), axis)
    same(run(lambda v, i: ops.take_along_axis(v, i, axis=axis), x, index), expected)
    expand = ops.take_along_axis.lower.expand
    same(run(lambda v, i: expand(v, i, axis=axis), x, index), expected)


@given(st.data(), dtypes("iuf"))
def test_scatter_add(data: st.DataObject, dtype: DType) -> None:
    shape = data.draw(shapes(min_rank=1, max_rank=3, low=1, high=5))
    index = data.draw(indices(shape[0], data.draw(shapes(max_rank=2, high=4))))
    x, updates = counting(shape, dtype) % 7, counting((*index.shape, *shape[1:]), dtype) % 5
    expected = x.copy()
    np.add.at(expected, index, updates)
    same(run(ops.scatter_add, x, index, updates), expected)


@given(st.data())
def test_gather_nd_and_scatter_nd(data: st.DataObject) -> None:
    shape = data.draw(shapes(min_rank=1, max_rank=3, low=1, high=4))
    depth = data.draw(st.integers(0, len(shape)))
    rows = data.draw(shapes(max_rank=2, high=4))
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    index = np.stack(
        [rng.integers(0, d, rows) for d in shape[:depth]] or [np.zeros((*rows, 0), int)],
        -1 if depth else 0,
    ).astype(np.int32)
    index = index.reshape(*rows, depth)
    x = counting(shape)
    places = tuple(index[..., i] for i in range(depth))
    expected = x[places] if depth else np.broadcast_to(x, (*rows, *shape))
    same(run(ops.gather_nd, x, index), expected)
    same(run(ops.gather_nd.lower.expand, x, index), expected)
    summed = np.zeros(shape, np.float32)
    if depth:
        np.add.at(summed, places, expected)
    else:
        summed = expected.reshape(-1, *shape).sum(0)
    same(run(lambda i, u: ops.scatter_nd(i, u, shape=shape), index, expected), summed)
    expand = ops.scatter_nd.lower.expand
    same(run(lambda i, u: expand(i, u, shape=shape), index, expected), summed)


@pytest.mark.parametrize("bad", [-1, 4, 100])
def test_a_position_outside_is_named(bad: int) -> None:
    index = np.array([[0, 1], [bad, 3]], np.int32)
    x = counting((4, 2))
    text = rf"gather: indices\[1, 0\]: expected 0 <= index < 4, got {bad} \(node gather, created at"
    with pytest.raises(OutOfRangeError, match=text):
        run(ops.gather, x, index)
    text = rf"scatter_add: indices\[1, 0\]: expected 0 <= index < 4, got {bad}"
    with pytest.raises(OutOfRangeError, match=text):
        run(ops.scatter_add, x, index, counting((2, 2, 2)))


def test_a_position_outside_is_named_in_whole() -> None:
    index = np.array([[0, 1], [1, 2]], np.int32)
    text = r"gather_nd: indices\[1\]: expected a position inside \(4, 2\), got \(1, 2\)"
    with pytest.raises(OutOfRangeError, match=text):
        run(ops.gather_nd, counting((4, 2)), index)


def test_shapes_that_do_not_fit() -> None:
    with Graph().as_default():
        x = ops.placeholder(dtype="float32", shape=(4, 2))
        with pytest.raises(ShapeError, match=r"updates: expected shape \(3, 2\)"):
            ops.scatter_add(x, [0, 1, 2], ops.placeholder(dtype="float32", shape=(3, 3)))
        with pytest.raises(ShapeError, match="batch_dims: expected 0 <= batch_dims"):
            ops.gather(x, [0], axis=0, batch_dims=1)


@given(st.integers(1, 200), st.sampled_from([1, 3, 40]), st.integers(0, 99))
def test_fast_scatter_adds_few_and_many_updates_of_a_row(count: int, rows: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    x, updates = rng.integers(-9, 9, (rows, 2)), rng.integers(-9, 9, (count, 2))
    index = rng.integers(0, rows, count)
    fast = ops.scatter_add.fast
    assert fast is not None
    same(fast(x, index, updates), ops.scatter_add.reference(x, index, updates))


def test_gather_nd_of_examples() -> None:
    x, index = counting((2, 3, 4)), np.array([[[0], [2]], [[1], [1]]], np.int32)
    taken = run(lambda a, b: gather_nd_of_batches(a, b, 1), x, index)
    same(taken, np.take_along_axis(x, index, 1))
