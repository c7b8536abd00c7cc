"""Training under autocast: matmuls in half precision, weights and losses in float32."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest
from pairs import compiling_for
from pairwise import name_of, pairwise

from weft import config, ops
from weft.codegen import target
from weft.datasets.digits import load_digits
from weft.ir.dtype import DType, bfloat16, float16, float32, int32
from weft.ir.graph import Graph
from weft.ir.node import Value
from weft.ops.declaration import REGISTRY
from weft.ops.declaration.autocast import cast_inputs
from weft.runtime.engine import Function, State
from weft.transform.gradient import gradients

Array = np.ndarray[Any, Any]
Weights = Mapping[str, Value]
BATCH = 96
EPOCHS = 4
AVX512 = target.current().vector_bits == 512
# Without bfloat16 instructions, with their emulation, and with AVX2 alone.
TARGETS = ["x86-64-v4", "pairs", "x86-64-v3"] if AVX512 else ["native"]


class Caller:
    """The operations, with their inputs cast as it declares where `low` is given."""

    def __init__(self, low: DType | None) -> None:
        self.low = low

    def __getattr__(self, name: str) -> Callable[..., Any]:
        def run(*args: Any, **attrs: Any) -> Any:
            cast = args if self.low is None else cast_inputs(REGISTRY[name], args, self.low)
            return REGISTRY[name](*cast, **attrs)

        return run


def perceptron(c: Any, x: Value, w: Weights) -> Value:
    h = c.tanh(c.add(c.matmul(ops.reshape(x, shape=(-1, 64)), w["w1"]), w["b1"]))
    return c.matmul(h, w["w2"])


def convolution(c: Any, x: Value, w: Weights) -> Value:
    image = ops.reshape(x, shape=(-1, 8, 8, 1))
    h = c.relu(c.conv(image, w["k1"], padding=((1, 1), (1, 1))))
    h = c.relu(c.conv(h, w["k2"], strides=(2, 2), padding=((1, 1), (1, 1))))
    return c.matmul(ops.reshape(h, shape=(-1, 512)), w["w"])


def transformer(c: Any, x: Value, w: Weights) -> Value:
    """Rows of an image are words."""
    x = c.add(c.matmul(x, w["embed"]), w["place"])
    h = c.layer_norm(x, w["scale"], w["offset"])
    q, k, v = (c.matmul(h, w[name]) for name in ("q", "k", "v"))
    x = c.add(x, c.matmul(c.attention(q, k, v, causal=True), w["out"]))
    x = c.add(x, c.matmul(c.gelu(c.matmul(x, w["up"])), w["down"]))
    return c.matmul(c.mean(x, axes=(1,)), w["w"])


Model = Callable[[Any, Value, Weights], Value]
SHAPES: Mapping[Model, Mapping[str, tuple[int, ...]]] = {
    perceptron: {"w1": (64, 64), "b1": (64,), "w2": (64, 10)},
    convolution: {"k1": (3, 3, 1, 16), "k2": (3, 3, 16, 32), "w": (512, 10)},
    transformer: {
        "embed": (8, 32), "place": (8, 32), "scale": (32,), "offset": (32,), "q": (32, 32),
        "k": (32, 32), "v": (32, 32), "out": (32, 32), "up": (32, 64), "down": (64, 32),
        "w": (32, 10),
    },
}  # fmt: skip


def training(model: Model, low: DType | None, threads: int | None) -> tuple[Function, State]:
    """A step of stochastic gradient descent with momentum; weights stay float32."""
    rng = np.random.default_rng(0)
    state, graph, c = State(), Graph(), Caller(low)
    with graph.as_default():
        x = ops.placeholder(dtype=float32, shape=(BATCH, 8, 8))
        labels = ops.placeholder(dtype=int32, shape=(BATCH,))
        variables = {
            k: ops.variable(key=k, dtype=float32, shape=s) for k, s in SHAPES[model].items()
        }
        weights = {k: ops.read(v) for k, v in variables.items()}
        logits = model(c, x, weights)
        assert logits.dtype is (low or float32)
        loss = c.mean(c.sparse_softmax_cross_entropy(logits, labels))
        assert loss.dtype is float32
        steps = []
        for (key, w), g in zip(
            weights.items(), gradients([loss], list(weights.values())), strict=True
        ):
            assert isinstance(g, Value) and g.dtype is float32
            fan = int(np.prod(w.shape[:-1])) if len(w.shape) > 1 else 0
            start = rng.standard_normal(w.shape) / np.sqrt(max(fan, 1)) if fan else np.ones(w.shape)
            state[key] = start.astype(np.float32) * (key not in ("b1", "offset"))
            state[key + "/speed"] = np.zeros(w.shape, np.float32)
            speed = ops.variable(key=key + "/speed", dtype=float32, shape=w.shape)
            faster = ops.read(speed) * 0.9 + g
            steps += [ops.assign(speed, faster), ops.assign(variables[key], w - faster * 0.03)]
    return Function(graph, [loss], [step.node for step in steps], [x, labels], threads), state


def losses(model: Model, low: DType | None, threads: int | None = None) -> Array:
    """The mean loss of every epoch."""
    images, labels = load_digits()
    function, state = training(model, low, threads)
    found: list[float] = []
    for _ in range(EPOCHS):
        for start in range(0, len(images) - BATCH, BATCH):
            part = slice(start, start + BATCH)
            found.append(float(function([images[part], labels[part].astype(np.int32)], state)[0]))
    return np.array(found).reshape(EPOCHS, -1).mean(axis=1)


@functools.cache
def exact_losses(model: Model) -> Array:
    found = losses(model, None)
    assert found[-1] < 0.6 * found[0]
    return found


@pytest.mark.parametrize(
    ("model", "name", "low"),
    pairwise(SHAPES, TARGETS, (bfloat16, float16)),
    ids=name_of,
)
def test_half_precision_learns_like_float32(model: Model, name: str, low: DType) -> None:
    with compiling_for(name):
        found = losses(model, low)
    np.testing.assert_allclose(found, exact_losses(model), rtol=0.02)


def test_any_number_of_threads_learns_the_same() -> None:
    for name in TARGETS[:2]:
        with compiling_for(name):
            once, twice = (losses(transformer, bfloat16, threads) for threads in (1, 2))
        assert once.tobytes() == twice.tobytes()


@pytest.mark.parametrize("low", [bfloat16, float16], ids=str)
def test_every_value_of_a_step_equals_its_reference(low: DType) -> None:
    images, labels = load_digits()
    with config.override(reference=True):
        function, state = training(transformer, low, None)
        for _ in range(2):
            function([images[:BATCH], labels[:BATCH].astype(np.int32)], state)
