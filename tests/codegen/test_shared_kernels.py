"""Groups with the same structure share kernels; groups that compute different things do not."""

from __future__ import annotations

import numpy as np

from weft import ops
from weft.ir.graph import Graph
from weft.runtime.engine import Function, State


def test_constants_of_one_value_are_part_of_what_a_group_computes() -> None:
    x = np.arange(3, dtype=np.float32)
    for factor in (1.0, 2.0, -1.0):
        graph = Graph()
        with graph.as_default():
            v = ops.placeholder(dtype="float32", shape=(3,))
            y = v * np.full(3, factor, np.float32)
        assert Function(graph, [y], feeds=[v])([x], State())[0].tolist() == [0, factor, 2 * factor]


def test_attributes_are_part_of_what_a_group_computes() -> None:
    x = np.array([-1.0, 2.0], np.float32)
    for alpha in (0.5, 0.25):
        graph = Graph()
        with graph.as_default():
            v = ops.placeholder(dtype="float32", shape=(2,))
            y = ops.leaky_relu(v, alpha=alpha)
        assert Function(graph, [y], feeds=[v])([x], State())[0].tolist() == [-alpha, 2.0]
