"""Slices of contiguous elements are copied by one kernel, at any offset."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from strategies import at_most

from weft import config, ops
from weft.ir.graph import Graph
from weft.runtime.engine import Function
from weft.runtime.memory.state import State


@at_most(25)
@given(st.data())
def test_drawn_slices(data: st.DataObject) -> None:
    shape = tuple(data.draw(st.lists(st.integers(1, 4), min_size=1, max_size=4)))
    dtype = data.draw(st.sampled_from(("float32", "bool", "float64", "int32")))
    begin = tuple(data.draw(st.integers(0, d - 1)) for d in shape)
    end = tuple(data.draw(st.integers(b + 1, d)) for b, d in zip(begin, shape, strict=True))
    with Graph().as_default() as graph:
        x = ops.placeholder(dtype=dtype, shape=shape)
        y = ops.slice(x, begin=begin, end=end)
    array = (np.arange(np.prod(shape)) % 7).astype(dtype).reshape(shape)
    (found,) = Function(graph, [y], feeds=[x])([array], State())
    np.testing.assert_array_equal(found, array[tuple(map(slice, begin, end))])


def test_an_unrolled_loop_has_as_many_kernels_as_a_short_one(tmp_path: Path) -> None:
    def kernels(steps: int) -> set[str]:
        with Graph().as_default() as graph:
            xs = ops.placeholder(dtype="float32", shape=(steps, 2, 8))
            w = ops.placeholder(dtype="float32", shape=(8, 8))
            h = ops.zeros_like(xs[0])
            for t in range(steps):
                h = ops.tanh(xs[t] @ w + h @ w)
        function = Function(graph, [h], feeds=[xs, w])
        arrays = [np.zeros((steps, 2, 8), np.float32), np.zeros((8, 8), np.float32)]
        calls = function.program(arrays, State()).program.calls
        return {call.function.ir for call in calls}  # pyright: ignore

    with config.override(cache=str(tmp_path)):  # kernels from a disk have no text
        assert len(kernels(12)) == len(kernels(4)) > 1
