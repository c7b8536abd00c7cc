"""Tensors of all ranks share the kernels of elementwise operations."""

from __future__ import annotations

import numpy as np
import pytest

import weft as wf
from weft import ops
from weft.ir.dtype import float32
from weft.ir.graph import Graph
from weft.ir.node import TensorType
from weft.library.collapse import collapsed
from weft.library.form import form_of
from weft.library.literal import without_sizes
from weft.ops.declaration import op_of
from weft.passes.group import Group

CASES = [
    ([(3, 5, 7), (3, 5, 7)], [(105,), (105,)]),
    ([(3, 5, 7), ()], [(105,), ()]),
    ([(3, 5, 7), (7,)], [(15, 7), (7,)]),
    ([(3, 5, 7), (1, 7)], [(15, 7), (7,)]),
    ([(3, 5, 7), (3, 5, 1)], [(15, 7), (15, 1)]),
    ([(2, 3, 5, 7), (3, 1, 1)], [(2, 3, 35), (3, 1)]),
    ([(2, 3, 5, 7), (3, 5, 7)], [(2, 105), (105,)]),
    ([(1, 1, 7), (7,)], [(7,), (7,)]),
    ([(3, 1, 7), (3, 1, 7)], [(21,), (21,)]),
    ([(3, 5), (5,)], [(3, 5), (5,)]),
    ([(1, 1), (1,)], [(), ()]),
    ([(3, 1), (1,)], [(3,), ()]),
    ([(3, 1), (1, 5)], [(3, 1), (5,)]),
]


@pytest.mark.parametrize(("shapes", "wanted"), CASES)
def test_axes_that_broadcast_alike_become_one(shapes, wanted):
    with Graph().as_default():
        xs = [ops.placeholder(dtype="float32", shape=shape) for shape in shapes]
        y = xs[0] + xs[1]
    found = collapsed(Group((y.node,), tuple(xs), (y,)))
    assert [x.type.shape for x in found.inputs] == wanted
    assert found.outputs[0].type == TensorType(float32, np.broadcast_shapes(*wanted))


def test_other_operations_keep_their_axes():
    with Graph().as_default():
        x = ops.placeholder(dtype="float32", shape=(3, 5, 7))
        y = ops.sum(x * x, axes=(1,))
    group = Group((y.node.inputs[0].node, y.node), (x,), (y,))
    assert collapsed(group) is group


def _of(function, *shapes):
    """The group of what a function adds to a graph, with as few axes as it needs."""
    with (graph := Graph()).as_default():
        xs = [ops.placeholder(dtype="float32", shape=shape) for shape in shapes]
        y = function(*xs)
    nodes = tuple(graph.nodes[len(xs) :])
    return collapsed(without_sizes(Group(nodes, tuple(xs), (y,))))


MOVED = [
    (lambda x, y: ops.concatenate(x, y, axis=2), [(2, 3, 5, 7), (2, 3, 1, 7)],
     [(6, 5, 7), (6, 1, 7), (6, 6, 7)]),
    (lambda x, y: ops.concatenate(x, y, axis=3), [(1, 1, 1, 7), (1, 1, 1, 5)], [(7,), (5,), (12,)]),
    (lambda x: ops.slice(x, begin=(0, 0, 1), end=(2, 3, 4)), [(2, 3, 5)], [(6, 5), (6, 3)]),
    (lambda x, y: ops.slice_update(x, y, begin=(0, 1, 0), end=(1, 2, 5)), [(1, 3, 5), (1, 1, 5)],
     [(3, 5), (1, 5), (3, 5)]),
    (lambda x: ops.unslice(x, shape=(1, 3, 4, 5), begin=(0, 0, 1, 0), end=(1, 3, 3, 5)),
     [(1, 3, 2, 5)], [(3, 2, 5), (3, 4, 5)]),
    (lambda x: ops.any(ops.greater(x, 0), axes=(0, 2), keepdims=True), [(1, 5, 7)],
     [(5, 7), (5, 1)]),
    (lambda x: ops.argmax(x, axis=1), [(1, 7)], [(7,), ()]),
    (lambda x: ops.sum(x, axes=(0,)), [(1, 7)], [(1, 7), (7,)]),
    (lambda x, y: ops.sum(x, axes=(1,)) + y, [(1, 7), (1,)], [(1, 7), (1,), (1,)]),
]  # fmt: skip


@pytest.mark.parametrize(("function", "shapes", "wanted"), MOVED)
def test_parts_joints_and_single_rows_have_few_axes(function, shapes, wanted):
    found = _of(function, *shapes)
    assert [x.type.shape for x in (*found.inputs, *found.outputs)] == wanted
    for node in found.nodes:  # the types are those that its operation derives
        assert op_of(node).types([x.type for x in node.inputs], dict(node.attrs)) == node.types


def test_numbers_like_sizes_are_inputs():
    def mean(size):
        return form_of(_of(lambda x: ops.sum(x, axes=(1,)) / float(size), (3, size))).key

    assert mean(5) == mean(7) != mean(1)
    halved = _of(lambda x: ops.exp(x * 0.5), (3,))
    assert len(halved.inputs) == 1


@pytest.mark.parametrize("shapes", [shapes for shapes, _ in CASES])
def test_values_are_those_of_numpy(shapes):
    rng = np.random.default_rng(0)
    x, y = (rng.standard_normal(shape, np.float32) for shape in shapes)
    found = (wf.tensor(x) * 2 - wf.tensor(y)).numpy()
    np.testing.assert_array_equal(found, x * 2 - y)
