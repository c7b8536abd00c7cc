"""Compiled chains of movement, sorting, gathering and arithmetic, with gradients."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from weft import ops
from weft.ir.graph import Graph
from weft.ir.node import Value
from weft.ir.shape import known
from weft.runtime.engine import Function, State
from weft.transform.gradient import dense, gradients
from weft.transform.interpreter import evaluate

Step = Callable[[Value, np.random.Generator], Value]
SIZES = (1, 2, 3, 5, 8, 16, 17, 33)
MOST = 20000  # elements of a value


def axis_of(x: Value, rng: np.random.Generator) -> int:
    return int(rng.integers(len(known(x.shape))))


def cut(x: Value, rng: np.random.Generator) -> Value:
    starts, stops, steps = (None, 0, 1), (None, -1, 5), (1, 2, -1)
    pick = rng.integers(3, size=(len(known(x.shape)), 3))
    return x[tuple(slice(starts[i], stops[j], steps[k]) for i, j, k in pick)]


def shuffled(x: Value, rng: np.random.Generator) -> Value:
    return ops.transpose(x, perm=[int(i) for i in rng.permutation(len(known(x.shape)))])


def padded(x: Value, rng: np.random.Generator) -> Value:
    return ops.pad(x, paddings=rng.integers(0, 3, (len(known(x.shape)), 2)).tolist())


def looked_up(x: Value, rng: np.random.Generator) -> Value:
    size = known(x.shape)[0]
    return ops.gather(x, rng.integers(0, size, 3).astype(np.int32)) if size else x


def ordered(x: Value, rng: np.random.Generator) -> Value:
    places = ops.argsort(ops.stop_gradient(x), descending=bool(rng.integers(2)))
    return ops.take_along_axis(x, places, axis=-1)


def normalized(x: Value, rng: np.random.Generator) -> Value:
    return x - ops.max(x, axes=[axis_of(x, rng)], keepdims=True) if 0 not in known(x.shape) else x


STEPS: tuple[Step, ...] = (
    cut,
    shuffled,
    padded,
    looked_up,
    ordered,
    normalized,
    lambda x, rng: ops.tanh(x),
    lambda x, rng: x * ops.sin(x) + 0.5,
    lambda x, rng: ops.flip(x, axes=[axis_of(x, rng)]),
    lambda x, rng: ops.concatenate(x, x * 2.0, axis=axis_of(x, rng)),
    lambda x, rng: ops.stack(x, x + 1.0, axis=axis_of(x, rng)),
    lambda x, rng: ops.broadcast_to(x, shape=(2, *known(x.shape))),
    lambda x, rng: ops.tile(x, reps=[int(n) for n in rng.integers(1, 3, len(known(x.shape)))]),
    lambda x, rng: ops.reshape(x, shape=(known(x.shape)[0], -1)) if 0 not in known(x.shape) else x,
    lambda x, rng: ops.cumsum(x, axis=axis_of(x, rng), reverse=bool(rng.integers(2))) * 0.3,
    lambda x, rng: ops.dynamic_slice(
        x, [1] * len(known(x.shape)), sizes=[max(d - 1, 0) for d in known(x.shape)]
    ),
)


def drawn(x: Value, rng: np.random.Generator) -> Value:
    """Up to eight steps in a row."""
    for _ in range(int(rng.integers(2, 9))):
        y = STEPS[int(rng.integers(len(STEPS)))](x, rng)
        x = y if len(known(y.shape)) < 6 and np.prod(known(y.shape)) <= MOST else x
    return x


def compare(fetches: list[Value], graph: Graph, feeds: dict[Value, Any]) -> None:
    expected = evaluate(graph, fetches, feeds)
    found = Function(graph, fetches, (), tuple(feeds))(list(feeds.values()), State())
    for value, a, b in zip(fetches, found, expected, strict=True):
        assert np.shape(a) == b.shape
        np.testing.assert_allclose(a, b, rtol=1e-3, atol=1e-4, err_msg=value.name)


@pytest.mark.parametrize("seed", range(20))
def test_drawn_chains(seed: int) -> None:
    rng = np.random.default_rng(seed)
    shape = tuple(int(d) for d in rng.choice(SIZES, int(rng.integers(1, 4))))
    with Graph().as_default() as graph:
        x = ops.placeholder(dtype="float32", shape=shape)
        y = drawn(x, rng)
        (g,) = gradients([ops.sum(ops.tanh(y))], [x])
        fetches = [y] if g is None else [y, dense(g)]
        compare(fetches, graph, {x: rng.normal(size=shape).astype(np.float32)})


def test_the_comparison_can_fail(monkeypatch: pytest.MonkeyPatch) -> None:
    with Graph().as_default() as graph:
        x = ops.placeholder(dtype="float32", shape=(3,))
        y = x + 1.0
        monkeypatch.setattr("test_compiled_movement.evaluate", lambda *_: [np.zeros(3, np.float32)])
        with pytest.raises(AssertionError):
            compare([y], graph, {x: np.ones(3, np.float32)})
