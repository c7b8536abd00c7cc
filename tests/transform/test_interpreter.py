"""The interpreter: depth, errors, and what it requires of references."""

from __future__ import annotations

import numpy as np
import pytest

from weft import ops
from weft.errors import GraphError, ShapeError
from weft.ir.graph import Graph
from weft.ops.declaration import REGISTRY, Elementwise, defop
from weft.transform.interpreter import evaluate


def test_a_long_chain_needs_no_recursion() -> None:
    with Graph().as_default() as graph:
        x = ops.placeholder(dtype="float32", shape=())
        y = x
        for _ in range(20000):
            y = ops.identity(y)
    assert evaluate(graph, [y], {x: 3.0}) == [3]


def test_only_what_is_needed_runs() -> None:
    with Graph().as_default() as graph:
        x = ops.placeholder(dtype="float32", shape=())
        y = x + 1.0
        ops.exp(ops.placeholder(dtype="float32", shape=()))
    assert evaluate(graph, [y], {x: 1.0}) == [2]


def test_shapes_that_meet_only_in_the_run() -> None:
    with Graph().as_default() as graph:
        x = ops.placeholder(dtype="float32", shape=(None,))
        y = ops.placeholder(dtype="float32", shape=(None,))
        z = ops.add(x, y, name="meet")
    text = r"add: shapes do not broadcast.*\(node meet, created at test_interpreter.py:\d+\)"
    with pytest.raises(ShapeError, match=text):
        evaluate(graph, [z], {x: [1.0, 2.0], y: [1.0, 2.0, 3.0]})


def test_half_precision_rounds_once_per_operation() -> None:
    with Graph().as_default() as graph:
        x = ops.placeholder(dtype="bfloat16", shape=(3,))
        y = ops.sum(x)
    ones = np.array([256, 1, 1], ops.placeholder.dtype(dtype="bfloat16", shape=()).numpy)
    assert evaluate(graph, [y], {x: ones})[0] == 258  # adding one by one in bfloat16 gives 256


@pytest.mark.parametrize(
    ("reference", "message"),
    [
        (lambda x: x.astype(np.float64), "expected the reference to give float32"),
        (lambda x: x[:1], "expected the reference to give float32"),
        (lambda x: x[7], "the reference failed: IndexError"),
    ],
)
def test_a_wrong_reference_is_caught(reference: object, message: str) -> None:
    like = REGISTRY["identity"]
    op = defop(
        "wrong", inputs="x", dtype=like.dtype, shape=like.shape, reference=reference,
        vjp=like.vjp, lower=Elementwise(lambda b, x: x), cases=lambda: (),
    )  # fmt: skip
    try:
        with Graph().as_default() as graph:
            y = op(np.zeros(3, np.float32))
        with pytest.raises(GraphError, match=message):
            evaluate(graph, [y])
    finally:
        del REGISTRY["wrong"]
