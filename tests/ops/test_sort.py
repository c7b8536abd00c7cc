"""Sorting, selection and cumulative sums against NumPy, NaN and ties included."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from running import run, same
from running import widened as as_numbers
from strategies import arrays, dtypes, shapes

from weft import ops
from weft.errors import ShapeError
from weft.ir.graph import Graph

ROWS = shapes(min_rank=1, max_rank=3, high=20, max_size=300)
NUMBERS = arrays(dtype=dtypes(), shape=ROWS, specials=True)


@given(st.data(), NUMBERS)
def test_sort_is_stable_and_numpys(data: st.DataObject, x: Any) -> None:
    axis = data.draw(st.integers(-x.ndim, x.ndim - 1))
    values, places = run(lambda v: ops.sort.all(v, axis=axis), x)
    expected = np.argsort(as_numbers(x), axis, kind="stable")
    same(places, expected.astype(np.int32))
    same(values, np.take_along_axis(x, expected, axis))
    values, places = run(lambda v: ops.sort.all(v, axis=axis, descending=True), x)
    same(as_numbers(values), np.flip(np.sort(as_numbers(x), axis), axis))
    if not x.size:
        return
    rows = np.moveaxis(as_numbers(values), axis, -1).reshape(-1, x.shape[axis])
    found = np.moveaxis(places, axis, -1).reshape(-1, x.shape[axis])
    for row, place in zip(rows, found, strict=True):
        for i in range(len(row) - 1):
            tie = row[i] == row[i + 1] or (np.isnan(row[i]) and np.isnan(row[i + 1]))
            assert not tie or place[i] < place[i + 1]


@given(st.data(), NUMBERS)
def test_top_k_begins_a_descending_sort(data: st.DataObject, x: Any) -> None:
    k = data.draw(st.integers(0, x.shape[-1]))
    values, places = run(lambda v: ops.top_k.all(v, k=k), x)
    everything, order = run(lambda v: ops.sort.all(v, descending=True), x)
    same(places, order[..., :k])
    same(values, everything[..., :k])


@given(st.data(), NUMBERS, st.booleans())
def test_argmax_and_argmin(data: st.DataObject, x: Any, keepdims: bool) -> None:
    axis = data.draw(st.integers(-x.ndim, x.ndim - 1))
    if not x.shape[axis]:
        with pytest.raises(ShapeError, match="expected a non-empty axis"):
            run(lambda v: ops.argmax(v, axis=axis), x)
        return
    for op, function in ((ops.argmax, np.argmax), (ops.argmin, np.argmin)):
        found = run(lambda v, op=op: op(v, axis=axis, keepdims=keepdims), x)
        same(found, function(as_numbers(x), axis, keepdims=keepdims).astype(np.int64))


@given(st.data(), arrays(dtype=dtypes("iuf"), shape=ROWS), st.booleans(), st.booleans())
def test_cumulative(data: st.DataObject, x: Any, exclusive: bool, reverse: bool) -> None:
    axis = data.draw(st.integers(-x.ndim, x.ndim - 1))
    attrs = {"axis": axis, "exclusive": exclusive, "reverse": reverse}
    wide = np.moveaxis(as_numbers(x), axis, 0)
    wide = wide[::-1] if reverse else wide
    for op, combine, start in (
        (ops.cumsum, np.add, 0),
        (ops.cumprod, np.multiply, 1),
        (ops.cummax, np.maximum, None),
    ):
        running: list[Any] = []
        total = np.full(wide.shape[1:], 0 if start is None else start, wide.dtype)
        with np.errstate(all="ignore"):
            for i, row in enumerate(wide):
                before = total
                total = row if start is None and i == 0 else combine(total, row)
                running.append(before if exclusive else total)
        expected = np.array(running, wide.dtype).reshape(wide.shape)
        expected = np.moveaxis(expected[::-1] if reverse else expected, 0, axis)
        found = run(lambda v, op=op: op(v, **attrs), x)
        if start is None and exclusive and wide.shape[0]:
            found, expected = (
                np.delete(np.moveaxis(a, axis, 0), -1 if reverse else 0, 0)
                for a in (found, expected)
            )
        assert found.dtype == x.dtype
        np.testing.assert_allclose(
            as_numbers(found), expected.astype(x.dtype).astype(expected.dtype), rtol=1e-5, atol=1e-5
        )


@given(arrays(dtype=dtypes("iuf"), shape=(9,)), arrays(dtype=dtypes("f"), shape=(2, 3)))
def test_searchsorted(line: Any, values: Any) -> None:
    line = np.sort(as_numbers(line)).astype(line.dtype)
    values = np.round(values.astype(np.float32)).astype(line.dtype)
    for side in ("left", "right"):
        expected = np.searchsorted(as_numbers(line), as_numbers(values), side).astype(np.int32)
        same(run(lambda a, v, side=side: ops.searchsorted(a, v, side=side), line, values), expected)
        expand = partial(ops.searchsorted.lower.expand, side=side)
        same(run(expand, line, values), expected)


@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize("line", [[1, 2, 3], [1, 2, np.nan], [1, np.nan, np.nan], [np.nan] * 3])
def test_nan_is_searched_as_numpy_does(line: list[float], side: str) -> None:
    row, values = (np.array(x, np.float32) for x in (line, [np.nan, 2, 5, 0]))
    expected = np.searchsorted(row, values, side).astype(np.int32)  # type: ignore[call-overload]
    same(run(lambda a, v: ops.searchsorted(a, v, side=side), row, values), expected)
    same(run(partial(ops.searchsorted.lower.expand, side=side), row, values), expected)


def test_k_beyond_the_row() -> None:
    with Graph().as_default(), pytest.raises(ShapeError, match=r"top_k: k: expected 0 <= k <="):
        ops.top_k(ops.placeholder(dtype="float32", shape=(2, 3)), k=4)
