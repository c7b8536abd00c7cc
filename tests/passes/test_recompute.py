"""Values that a group recomputes instead of reading them, and values that it must read."""

import numpy as np
import pytest

from weft import ops
from weft.ir.graph import Graph
from weft.passes.pipeline import grouped
from weft.passes.step import Step
from weft.runtime.engine import Function, State
from weft.transform.interpreter import evaluate

LARGE, ROW = (256, 128), (128,)


def graph_of(build, *shapes):
    graph = Graph()
    with graph.as_default():
        feeds = [ops.placeholder(dtype="float32", shape=s) for s in shapes]
        found = build(*feeds)
        graph.outputs = found if isinstance(found, tuple) else (found,)
    return graph, feeds


def groups(build, *shapes):
    """The operations of every group, and the operations whose results are stored."""
    graph, feeds = graph_of(build, *shapes)
    fused = grouped(Step(graph, tuple(v.node.name for v in feeds), ())).groups
    names = [tuple(n.op for n in g.nodes if n.op != "constant") for g in fused]
    return names, [v.node.op for g in fused for v in g.outputs]


def normalized(x, g):
    """Columns with mean 0, and a sum with the same distances that comes later."""
    distance = x - ops.sum(x, axes=(0,)) * (1 / 256)
    y = ops.matmul(ops.exp(distance), g)
    return ops.sum(distance * y, axes=(0,))


def masked(x, w):
    """A ReLU that a matmul reads, and whose mask is needed beside its input."""
    y = ops.relu(x + 1.0)
    return ops.sum(ops.select(ops.greater(y, 0.0), ops.matmul(y, w), 0.0) * x, axes=(0,))


def test_a_distance_is_taken_again_and_never_stored():
    names, stored = groups(normalized, LARGE, (128, 128))
    assert names[1] == ("subtract", "exp")
    assert names[2] == ("matmul", "subtract", "multiply") and "subtract" not in stored


IMAGE, WEIGHTS = (2, 16, 16, 32), (1, 1, 32, 64)
PLAIN = {"strides": (1, 1), "padding": ((0, 0), (0, 0)), "dilation": (1, 1), "groups": 1}


def between(x, mean, w, g):
    """Batch norm and ReLU between two layers, read by the second one and by its gradient."""
    y = ops.relu((x - mean) * mean)
    return ops.conv(y, w, **PLAIN), ops.conv_grad_weight(y, g, shape=WEIGHTS, **PLAIN)


def test_a_layer_computes_what_it_reads():
    shapes = (IMAGE, (32,), WEIGHTS, (*IMAGE[:3], 64))
    names, stored = groups(between, *shapes)
    assert names == [("conv",), ("conv_grad_weight",)]
    assert stored == ["conv", "conv_grad_weight"]


def test_a_first_layer_reads_planes():
    def build(x, w):
        return ops.conv(ops.transpose(x, perm=(0, 2, 3, 1)), w, **PLAIN)

    names, stored = groups(build, (2, 3, 96, 96), (3, 3, 3, 32))
    assert names == [("conv",)] and stored == ["conv"]
    names, _ = groups(build, (2, 3, 96, 96), (1, 1, 3, 32))
    assert names == [("transpose",), ("conv",)]

    def gray(x, w):
        return build(ops.broadcast_to(x, shape=(2, 3, 96, 96)), w)

    names, _ = groups(gray, (2, 1, 96, 96), (3, 3, 3, 32))
    assert len(names) == 2 and names[-1] == ("conv",)

    def trained(x, w, g):
        y = ops.transpose(x, perm=(0, 2, 3, 1))
        return ops.conv(y, w, **PLAIN), ops.conv_grad_weight(y, g, shape=(3, 3, 3, 32), **PLAIN)

    names, _ = groups(trained, (2, 3, 96, 96), (3, 3, 3, 32), (2, 94, 94, 32))
    assert names[0] == ("transpose",)


def test_a_layer_of_one_tap_reads_its_weights_as_they_lie():
    def build(x, g, v):
        w = ops.transpose(v, perm=(2, 3, 1, 0))
        return ops.conv(x, w, **PLAIN), ops.conv_grad_input(g, w, shape=(2, 8, 8, 128), **PLAIN)

    shapes = (2, 8, 8, 128), (2, 8, 8, 160), (160, 128, 1, 1)
    names, stored = groups(build, *shapes)
    assert names == [("conv",), ("conv_grad_input",)] and stored == ["conv", "conv_grad_input"]

    def more(x, g, v):
        return *build(x, g, v), ops.transpose(v, perm=(2, 3, 1, 0)), x

    names, stored = groups(more, *shapes)
    assert len(names) == 3

    def grouped(x, g, v):
        w = ops.transpose(v, perm=(2, 3, 1, 0))
        return ops.conv(x, w, **PLAIN | {"groups": 2})

    names, stored = groups(grouped, (2, 8, 8, 256), (2, 8, 8, 160), (160, 128, 1, 1))
    assert names == [("transpose",), ("conv",)]


def test_a_layer_reads_what_is_in_memory_anyway():
    def build(x, mean, w):
        y = ops.relu((x - mean) * mean)
        return ops.conv(y, w, **PLAIN), y

    names, stored = groups(build, IMAGE, (32,), WEIGHTS)
    assert sum("relu" in n for n in names) == 1 and stored.count("relu") == 1

    def several(x, mean, w, v):
        y = ops.relu((x - mean) * mean)
        padded = PLAIN | {"padding": ((1, 1), (1, 1))}
        return ops.conv(y, w, **PLAIN), ops.conv(y, v, **padded)

    names, stored = groups(several, IMAGE, (32,), WEIGHTS, (3, 3, 32, 64))
    assert sum("relu" in n for n in names) == 1 and stored.count("relu") == 1


def test_a_value_that_is_in_memory_is_not_read_beside_what_it_follows_from():
    def build(x, w):
        y = ops.relu(x + 1.0)
        return ops.sum(ops.exp(x) * ops.reshape(ops.matmul(y, w), shape=LARGE) * y, axes=(0,)), y

    names, stored = groups(build, LARGE, (128, 128))
    assert names[-1].count("relu") == 1 and stored.count("relu") == 1
    names, stored = groups(masked, LARGE, (128, 128))
    assert all(n.count("relu") <= 1 for n in names) and stored.count("relu") == 1


def test_expensive_steps_are_not_taken_again():
    def build(x, g):
        distance = ops.tanh(x - ops.sum(x, axes=(0,)))
        return ops.sum(distance * ops.matmul(ops.exp(distance), g), axes=(0,))

    names, stored = groups(build, LARGE, (128, 128))
    assert sum("tanh" in n for n in names) == 1 and "tanh" in stored


def test_what_follows_from_two_large_values_is_stored():
    def build(x, y, g):
        both = (x - ops.sum(x, axes=(0,))) + y
        return ops.sum(both * ops.matmul(ops.exp(both), g), axes=(0,))

    names, stored = groups(build, LARGE, LARGE, (128, 128))
    assert sum("add" in n for n in names) == 1 and "add" in stored


def test_a_result_is_stored_all_the_same():
    def build(x, g):
        distance = x - ops.sum(x, axes=(0,))
        return distance, ops.sum(distance * ops.matmul(ops.exp(distance), g), axes=(0,))

    _, stored = groups(build, LARGE, (128, 128))
    assert "subtract" in stored


def test_reductions_of_the_same_array_share_a_pass():
    def build(x, g):
        y = ops.matmul(x, g)
        return ops.sum(y, axes=(0,)), ops.sum(y * x, axes=(0,))

    names, _ = groups(build, LARGE, (128, 128))
    assert names == [("matmul",), ("sum", "multiply", "sum")]


def test_other_reductions_do_not_share_a_pass():
    def build(x, g):
        y = ops.matmul(x, g)
        return ops.sum(y, axes=(0,)), ops.sum(y * x, axes=(1,))

    names, _ = groups(build, LARGE, (128, 128))
    assert ("sum",) in names and ("multiply", "sum") in names


@pytest.mark.parametrize("build", [normalized, masked])
def test_results_are_the_references(build):
    graph, feeds = graph_of(build, LARGE, (128, 128))
    draw = np.random.default_rng(0)
    arrays = [draw.normal(size=s).astype(np.float32) / 8 for s in (LARGE, (128, 128))]
    expected = evaluate(graph, graph.outputs, dict(zip(feeds, arrays, strict=True)))[0]
    actual = Function(graph, graph.outputs, feeds=feeds)(arrays, State())[0]
    np.testing.assert_allclose(actual, expected, rtol=1e-4, atol=1e-4)
