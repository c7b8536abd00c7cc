"""Static shape inference."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from weft import ops
from weft.ir.graph import Graph
from weft.ir.node import Value
from weft.ops.declaration.attribute import UNKNOWN, known_value

HIDDEN = "a dimension that is not known"


@pytest.mark.parametrize(
    ("build", "expected"),
    [
        (lambda s, n: s, (None, 28, 3)),
        (lambda s, n: s[1], 28),
        (lambda s, n: s[0], UNKNOWN),
        (lambda s, n: s[1:], (28, 3)),
        (lambda s, n: s[::-1], (3, 28, None)),
        (lambda s, n: ops.stack(s[0], 784), (None, 784)),
        (lambda s, n: ops.concatenate(s[:1], [-1], axis=0), (None, -1)),
        (lambda s, n: ops.prod(s[1:]), 84),
        (lambda s, n: ops.prod(s), UNKNOWN),
        (lambda s, n: ops.max(s[1:], keepdims=True), (28,)),
        (lambda s, n: ops.unstack.all(s, count=3)[2] * 2 + 1, 7),
        (lambda s, n: ops.split.all(s, sizes=(1, 2))[1], (28, 3)),
        (lambda s, n: s // 2, (None, 14, 1)),
        (lambda s, n: s % 0, (None, None, None)),
        (lambda s, n: -ops.cast(s, dtype="int64"), (None, -28, -3)),
        (lambda s, n: ops.cast(s * 100, dtype="uint8"), (None, None, None)),
        (lambda s, n: ops.gather(s, [2, 1]), (3, 28)),
        (lambda s, n: ops.maximum(s, 5), (None, 28, 5)),
        (lambda s, n: ops.arange(stop=s[2]), (0, 1, 2)),
        (lambda s, n: ops.full([2], s[1]), (28, 28)),
        (lambda s, n: n, (None, None)),
        (lambda s, n: ops.tile(s[2:], reps=(2,)), (3, 3)),
    ],
)
def test_known_value(build: Callable[[Value, Value], Value], expected: Any) -> None:
    with Graph().as_default():
        x = ops.placeholder(dtype="float32", shape=(None, 28, 3))
        n = ops.placeholder(dtype="int32", shape=(2,))
        assert known_value(build(ops.shape_of(x), n)) == expected


@pytest.mark.parametrize(
    ("build", "expected"),
    [
        (lambda x, s, n: ops.reshape(x, shape=[s[0], 84]), (None, 84)),
        (lambda x, s, n: ops.reshape(x, shape=[-1, ops.prod(s[1:])]), (None, 84)),
        (lambda x, s, n: ops.reshape(x, shape=[s[0], -1]), (None, None)),
        (lambda x, s, n: ops.tile(x, reps=[s[0], 1, 2]), (None, 28, 6)),
        (lambda x, s, n: ops.full([s[0], 3], 0.0), (None, 3)),
        (lambda x, s, n: x[:, : s[1] - 4, 1:n], (None, 24, None)),
        (lambda x, s, n: x[n], (28, 3)),
        (lambda x, s, n: ops.sum(x, axes=n), None),
        (lambda x, s, n: ops.concatenate(x, x, axis=n), (None, None, None)),
        (lambda x, s, n: ops.pad(x, paddings=[[0, 0], [1, 1], [n, 0]]), (None, 30, None)),
        (lambda x, s, n: ops.one_hot([1, 2], depth=n), (2, None)),
        (lambda x, s, n: ops.broadcast_to(1.0, shape=s), (None, 28, 3)),
    ],
)
def test_shapes_of_operations_with_computed_attributes(build: Any, expected: Any) -> None:
    with Graph().as_default():
        x = ops.placeholder(dtype="float32", shape=(None, 28, 3))
        n = ops.placeholder(dtype="int32", shape=())
        assert build(x, ops.shape_of(x), n).shape == expected


def test_shared_and_deep_arithmetic_stays_cheap() -> None:
    with Graph().as_default():
        s = ops.shape_of(ops.placeholder(dtype="float32", shape=(2, 3)))
        for _ in range(30):
            s = s + s  # 2**30 paths; each node is looked at once
        assert known_value(s) == (None, None)  # 3 * 2**30 does not fit, so nothing is said
        for _ in range(3000):
            s = s * 1
        assert known_value(s) == (None, None)
