"""Values that are computed twice to save memory, and values that are not."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from weft import ops
from weft.ir.dtype import float32
from weft.ir.graph import Graph
from weft.ir.node import TensorType, Value
from weft.ir.verify import verify
from weft.passes.pipeline import verify_types
from weft.passes.rematerialize import rematerialize
from weft.passes.specialize import specialize
from weft.passes.step import Request, Step
from weft.runtime.engine import Function, State
from weft.transform.gradient import gradients

ROWS, WIDTH, LAYERS = 512, 512, 4


def network(activation: Callable[[Value], Value], width: int = WIDTH) -> Request:
    """A training step of dense layers; the rows are few, but an activation has a megabyte."""
    graph = Graph()
    with graph.as_default():
        x = y = ops.placeholder(dtype="float32", shape=(ROWS, width))
        weights = [
            ops.variable(key=f"w{i}", dtype="float32", shape=(width, width)) for i in range(LAYERS)
        ]
        reads = [ops.read(w) for w in weights]
        for w in reads:
            y = activation(ops.matmul(y, w) + 1.0)
        loss = ops.mean(y)
        found = gradients([loss], reads)
        updates = [
            ops.assign(w, r - g * 0.1).node for w, r, g in zip(weights, reads, found, strict=True)
        ]
    return Request(graph, (loss,), tuple(updates), (x,))


def step_of(request: Request, width: int = WIDTH) -> Step:
    return specialize(request, [TensorType(float32, (ROWS, width))], {}, {})


def names(step: Step, op: str) -> list[str]:
    return [node.name for node in step.graph.nodes if node.op == op]


def test_an_activation_is_computed_again_for_the_gradient_of_the_next_weight() -> None:
    step = step_of(network(ops.gelu))
    after = rematerialize(step)
    verify(after.graph)
    verify_types(after.graph)
    again = [name for name in names(after, "gelu") if "/again/" in name]
    assert len(names(step, "gelu")) == LAYERS
    assert len(again) == LAYERS - 2  # the last two are read soon after they are made, or once


def test_what_the_gradient_needs_itself_is_kept() -> None:
    step = step_of(network(ops.tanh))  # its gradient is a function of its value
    assert rematerialize(step) is step


def test_small_values_are_kept() -> None:
    step = step_of(network(ops.gelu, 64), 64)
    assert rematerialize(step) is step


def test_the_step_computes_the_same() -> None:
    request = network(ops.gelu)
    rng = np.random.default_rng(0)
    x = rng.standard_normal((ROWS, WIDTH), np.float32)
    values = {f"w{i}": rng.standard_normal((WIDTH, WIDTH), np.float32) / 20 for i in range(LAYERS)}
    results: list[dict[str, np.ndarray]] = []
    for threads in (1, 2):
        function = Function(
            request.graph, request.fetches, targets=request.targets, feeds=request.feeds,
            threads=threads,
        )  # fmt: skip
        state = State()
        for key, value in values.items():
            state[key] = value
        function([x], state)
        results.append({key: state[key] for key in values})
    for key in values:
        assert results[0][key].tobytes() == results[1][key].tobytes()
        assert not np.array_equal(results[0][key], values[key])


def images() -> Step:
    """The same with convolutions, whose scaled and shifted results go through ReLU."""
    graph = Graph()
    with graph.as_default():
        x = y = ops.placeholder(dtype="float32", shape=(4, 32, 32, 64))
        cells = [ops.variable(key=f"w{i}", dtype="float32", shape=(3, 3, 64, 64)) for i in range(7)]
        reads = [ops.read(cell) for cell in cells]
        for w in reads:
            z = ops.conv(y, w, padding=((1, 1), (1, 1)))
            spread = ops.mean(ops.square(z), axes=(0, 1, 2), keepdims=True)
            y = ops.relu(z * ops.rsqrt(spread + 1.0) + 0.5)
        loss = ops.mean(y)
        found = gradients([loss], reads)
        updates = [
            ops.assign(w, r - g * 0.1).node for w, r, g in zip(cells, reads, found, strict=True)
        ]
    request = Request(graph, (loss,), tuple(updates), (x,))
    return specialize(request, [TensorType(float32, (4, 32, 32, 64))], {}, {})


def test_results_of_relu_are_computed_again_for_convolutions_and_masks() -> None:
    after = rematerialize(images())
    verify(after.graph)
    verify_types(after.graph)
    again = [node for node in after.graph.nodes if node.op == "relu" and "/again/" in node.name]
    assert again
    readers = {node.op for node in after.graph.nodes for v in node.inputs if v.node in set(again)}
    assert readers <= {"conv_grad_weight", "greater"}
