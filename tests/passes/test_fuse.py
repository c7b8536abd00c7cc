"""Fusion: nodes that share a kernel, and nodes that must not."""

import numpy as np
import pytest

from weft import ops
from weft.codegen.lower import structure
from weft.ir.graph import Graph, current_graph
from weft.passes.group import MOST_NODES
from weft.passes.pipeline import grouped, optimize
from weft.passes.schedule import schedule
from weft.passes.step import Step


def groups(build, *shapes, dtype="float32", has=None):
    """The fused groups of a function of placeholders, as tuples of operation names."""
    graph = Graph()
    with graph.as_default():
        feeds = [ops.placeholder(dtype=dtype, shape=s) for s in shapes]
        result = build(*feeds)
        graph.outputs = result if isinstance(result, tuple) else (result,)
    step = Step(graph, tuple(v.node.name for v in feeds), ())
    return grouped(step, has)


def names(fused):
    return [tuple(n.op for n in g.nodes if n.op != "constant") for g in fused.groups]


def test_a_chain_is_one_kernel():
    fused = groups(lambda x: ops.tanh(ops.exp(x) * 2.0 + 1.0), (3, 4))
    assert names(fused) == [("exp", "multiply", "add", "tanh")]
    assert len(fused.groups[0].outputs) == 1


def test_a_value_that_is_fetched_is_also_stored():
    def build(x):
        y = ops.exp(x)
        return y, ops.tanh(y)

    (group,) = groups(build, (3,)).groups
    assert [v.node.op for v in group.outputs] == ["exp", "tanh"]


def test_siblings_meet_in_one_kernel():
    def build(x, g):
        m, v = x * 0.9 + g, x * 0.99 + ops.square(g)
        return m, v, m / (ops.sqrt(v) + 1e-8)

    fused = groups(build, (5,), (5,))
    assert len(fused.groups) == 1 and len(fused.groups[0].outputs) == 3


def test_rows_of_a_softmax_are_one_kernel():
    def build(x):
        e = ops.exp(x - ops.max(x, axes=(1,), keepdims=True))
        return e / ops.sum(e, axes=(1,), keepdims=True)

    assert names(groups(build, (4, 6))) == [("max", "subtract", "exp", "sum", "divide")]


def test_after_a_column_reduction_the_rows_need_a_second_kernel():
    def build(x):
        return x - ops.max(x, axes=(0,), keepdims=True)

    assert names(groups(build, (4, 6))) == [("max",), ("subtract",)]


def test_two_different_reductions_do_not_share():
    fused = groups(lambda x: (ops.sum(x * 2.0, axes=(0,)), ops.sum(x * 2.0, axes=(1,))), (4, 6))
    assert sorted(map(len, names(fused))) == [2, 2]


def test_bias_activation_and_update_are_a_products_epilogue():
    fused = groups(lambda x, w, b: ops.relu(ops.matmul(x, w) + b), (3, 4), (4, 5), (5,))
    assert names(fused) == [("matmul", "add", "relu")]


def _gradient(x, w, m):
    """What batch norm's gradient asks of a convolution's."""
    rules = {"strides": (1, 1), "padding": ((0, 0), (0, 0)), "dilation": (1, 1), "groups": 1}
    g = ops.relu(ops.conv_grad_input(x, w, shape=(2, 4, 4, 5), **rules))
    slope = ops.sum(g * m, axes=(0, 1, 2))
    return g, ops.sum(g, axes=(0, 1, 2)), slope, g * slope


def test_sums_are_not_taken_where_a_convolution_stores():
    """Their order would follow from its tiles."""
    shapes = ((2, 4, 4, 3), (1, 1, 5, 3), (2, 4, 4, 5))
    fused = names(groups(_gradient, *shapes))
    assert not any("sum" in n for n in fused if "conv_grad_input" in n)


def test_two_products_never_share():
    fused = groups(lambda x: ops.matmul(x, x) + ops.matmul(x, ops.exp(x)), (4, 4))
    assert [n[0] for n in names(fused)].count("matmul") == 2


def test_a_value_read_elsewhere_closes_its_group():
    def build(x, w):
        y = ops.exp(x)
        z = ops.matmul(y, w)
        return z, ops.tanh(y)

    assert names(groups(build, (4, 4), (4, 4))) == [("exp",), ("matmul",), ("tanh",)]


def test_movement_is_computed_where_it_is_read():
    fused = groups(lambda x: ops.exp(ops.transpose(x, perm=(1, 0))), (3, 4))
    assert names(fused) == [("transpose", "exp")]


def test_a_moved_value_is_not_read_from_registers():
    fused = groups(lambda x: ops.exp(x) + ops.transpose(ops.exp(x), perm=(1, 0)), (4, 4))
    assert all(n != ("exp", "exp", "transpose", "add") for n in names(fused))


def test_a_group_knows_which_inputs_last():
    graph = Graph()
    with graph.as_default():
        x, w = (ops.placeholder(dtype="float32", shape=(4, 4), name=n) for n in "xw")
        graph.outputs = (ops.matmul(x, ops.cumsum(w)),)
    fused = grouped(Step(graph, ("x", "w"), (), lasting=frozenset("w")))
    (product,) = [g for g in fused.groups if g.nodes[0].op == "matmul"]
    assert product.lasting == {product.inputs[1]}


def test_reshapes_are_views():
    fused = groups(lambda x: ops.reshape(ops.exp(x), shape=(12,)), (3, 4))
    assert names(fused) == [("exp",)] and len(fused.aliases) == 1


def test_long_chains_are_cut():
    def build(x):
        for _ in range(3 * MOST_NODES):
            x = ops.tanh(x)
        return x

    assert len(groups(build, (5,)).groups) == 3


@pytest.mark.parametrize("count", [500, 1000])
def test_kernels_of_many_inputs_read_a_few_arrays_each(count):
    with Graph().as_default() as graph:
        feeds = [ops.placeholder(dtype="float32", shape=(2,)) for _ in range(count)]
        total = ops.add_n(*[ops.exp(x) for x in feeds])
        graph.outputs = (total, ops.concatenate(*[ops.exp(x) for x in feeds], axis=0))
    step = optimize(Step(graph, tuple(x.node.name for x in feeds), ()))
    found = grouped(step).groups
    assert max(len(g.inputs) for g in found) <= 64
    assert len({structure(g) for g in found}) < 200  # as many kernels are compiled
    assert len(found) < 2 * count


def test_without_fusion_each_node_is_alone():
    fused = groups(lambda x: ops.tanh(ops.exp(x)), (3,), has=lambda group: False)
    assert names(fused) == [("exp",), ("tanh",)]


def test_groups_come_after_what_they_read():
    def build(x, w):
        y = ops.exp(ops.matmul(x, w))
        return ops.sum(y * x, axes=(1,)), ops.tanh(y)

    fused = groups(build, (4, 4), (4, 4))
    ready = set()
    for group in fused.groups:
        for value in group.inputs:
            root = fused.root(value)
            assert root.node.op in ("placeholder", "constant") or root in ready
        ready.update(group.outputs)


def test_writers_wait_for_readers_and_a_cycle_is_reported():
    def build(v, x):
        new = ops.exp(v)
        return new, ops.matmul(v, x)

    fused = groups(build, (4, 4), (4, 4))
    v = fused.groups[0].inputs[0]
    new = fused.groups[0].outputs[0]
    plan = schedule(fused, [(v, new)])
    assert [g.nodes[0].op for g in plan.groups] == ["matmul", "exp"] and new in plan.in_place

    def circular(v, x):
        new = ops.exp(v)
        return new, ops.matmul(v, new)

    fused = groups(circular, (4, 4), (4, 4))
    plan = schedule(fused, [(fused.groups[0].inputs[0], fused.groups[0].outputs[0])])
    assert plan.in_place == frozenset()


@pytest.mark.parametrize("size", [1, 2])
def test_reductions_over_axes_of_size_one_or_more(size):
    fused = groups(lambda x: ops.exp(ops.sum(x, axes=(1,), keepdims=True)), (3, size))
    assert names(fused) == [("sum", "exp")]
    assert np.prod(fused.groups[0].outputs[0].shape) == 3


def test_a_kernel_family_reads_a_small_constant_from_memory():
    """A constant of one element is written into loops, but scatter_add needs it as an array."""

    def build(x):
        return ops.scatter_add(ops.constant([0.0]), [0, 0, 0], x)

    (group,) = groups(build, (3,)).groups
    assert [v.node.op for v in group.inputs] == ["constant", "constant", "placeholder"]


@pytest.mark.parametrize(("rows", "deep"), [(2048, 128), (3, 5)])
def test_an_update_is_an_epilogue_whatever_its_size(rows, deep):
    def build(x, g, p, m, v):
        step = ops.matmul(x, g, transpose_x=True)
        m = m * 0.9 + step
        v = v * 0.99 + ops.square(step)
        return p - m / (ops.sqrt(v) + 1e-8), m, v

    assert len(groups(build, (deep, rows), (deep, 1024), *[(rows, 1024)] * 3).groups) == 1


def test_what_asks_for_different_devices_shares_no_kernel():
    def build(x, w):
        graph = current_graph()
        with graph.device("/cpu:1"):
            y = ops.tanh(x) * 2.0
            far = ops.conv(w, np.ones((1, 1, 8, 8), np.float32))
        near = ops.exp(y) + ops.transpose(y, perm=(1, 0))  # recomputed by no other device
        with graph.device("/cpu:1"):
            moved = ops.transpose(y, perm=(1, 0))
        return near, ops.sum(far, axes=(0, 1, 2)), ops.sum(y), ops.tanh(moved), ops.sum(moved)

    fused = groups(build, (6, 6), (2, 4, 4, 8))
    for group in fused.groups:
        assert len({n.device for n in group.nodes if n.op != "constant"}) == 1
    assert {g.device for g in fused.groups} == {"", "/cpu:1"}


def test_large_siblings_of_different_devices_stay_apart():
    def build(x):
        y = ops.sum(ops.exp(x), axes=(1,))
        with current_graph().device("/cpu:1"):
            return y, ops.tanh(x) * x

    whole = groups(lambda x: (ops.sum(ops.exp(x), axes=(1,)), ops.tanh(x) * x), (1024, 1024))
    apart = groups(build, (1024, 1024))
    assert len(whole.groups) == 1 and [g.device for g in apart.groups] == ["", "/cpu:1"]
