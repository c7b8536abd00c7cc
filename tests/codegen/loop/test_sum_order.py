"""The order of a row's sum follows from its length, not from what else its kernel computes."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from weft import config, ops
from weft.ir.graph import Graph
from weft.ir.node import Value
from weft.passes import pipeline
from weft.runtime.engine import Function, State


def long(x: Value) -> Value:
    """So much arithmetic that a loop is unrolled less."""
    for _ in range(4):
        x = ops.tanh(x) * 1.5 + ops.sigmoid(x)
    return x


def wide(x: Value) -> Value:
    """Arithmetic on wider numbers, of which fewer fit a register."""
    return ops.select(ops.less(ops.cast(x, dtype="int64"), 3), x, x * 0.5)


def sums(x: np.ndarray, beside: Callable[[Value], Value] | None) -> tuple[bytes, int]:
    """The bits of the rows' sums, and how many kernels there are."""
    graph = Graph()
    with graph.as_default():
        v = ops.placeholder(dtype=x.dtype.name, shape=x.shape)
        fetches = [ops.sum(v * 1.25, axes=(1,))]
        if beside is not None:
            fetches.append(ops.sum(beside(v), axes=(1,)))
    function = Function(graph, fetches, feeds=[v], threads=1)
    program = function.program([x], State())
    assert not isinstance(program, str)
    return function([x], State())[0].tobytes(), len(pipeline.grouped(program.step).groups)


@pytest.mark.parametrize("target", ["native", "x86-64-v3"])
@pytest.mark.parametrize("length", [9, 47, 64, 127, 1003])
def test_a_sum_is_the_same_beside_others(length: int, target: str) -> None:
    x = np.random.default_rng(length).standard_normal((5, length)).astype(np.float32)
    with config.override(target=target):
        alone, _ = sums(x, None)
        for beside in (long, wide):
            found, groups = sums(x, beside)
            assert groups == 1  # in one kernel
            assert found == alone
