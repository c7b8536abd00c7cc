"""Variables that become zeros are taken out of a step; nothing else is."""

from __future__ import annotations

import numpy as np
import pytest

from weft import ops
from weft.ir.dtype import as_dtype
from weft.ir.graph import Graph
from weft.ir.node import TensorType
from weft.passes.pipeline import optimize, specialize
from weft.passes.step import Request
from weft.passes.zeroed import zeroed

SHAPE = (300, 300)  # larger constants are not folded


def step_of(value, dtype="float32"):
    with Graph().as_default() as graph:
        new = ops.broadcast_to(ops.constant(np.asarray(value, dtype)), shape=SHAPE)
        assigned = ops.assign(ops.variable(key="v", dtype=dtype, shape=SHAPE), new)
        ones = ops.broadcast_to(ops.constant(np.ones((), dtype)), shape=SHAPE)
        other = ops.assign(ops.variable(key="w", dtype=dtype, shape=SHAPE), ones)
    request = Request(graph, (), (assigned.node, other.node))
    return optimize(specialize(request, [], {}, {}, {}))


@pytest.mark.parametrize("dtype", ["float32", "int64", "bool"])
def test_large_zeros_are_taken_out(dtype):
    step = step_of(0, dtype)
    rest, found = zeroed(step, 90_000)
    assert found == {"v": TensorType(as_dtype(np.dtype(dtype)), SHAPE)}
    assert rest.new_values.keys() == {"w"}
    assert len(rest.graph.nodes) < len(step.graph.nodes)


@pytest.mark.parametrize("value", [1, -0.0])
def test_other_values_stay(value):
    step = step_of(value)
    assert zeroed(step, 90_000) == (step, {})


def test_small_zeros_stay():
    step = step_of(0)
    assert zeroed(step, 1 << 20) == (step, {})
