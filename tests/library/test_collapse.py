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
from weft.passes.group import Group

CASES = [
    ([(3, 5, 7), (3, 5, 7)], [(105,), (105,)]),
    ([(3, 5, 7), ()], [(105,), ()]),
    ([(3, 5, 7), (7,)], [(15, 7), (7,)]),
    ([(3, 5, 7), (1, 7)], [(15, 7), (1, 7)]),
    ([(3, 5, 7), (3, 5, 1)], [(15, 7), (15, 1)]),
    ([(2, 3, 5, 7), (3, 1, 1)], [(2, 3, 35), (3, 1)]),
    ([(2, 3, 5, 7), (3, 5, 7)], [(2, 105), (105,)]),
    ([(1, 1, 7), (7,)], [(7,), (7,)]),
    ([(3, 1, 7), (3, 1, 7)], [(21,), (21,)]),
    ([(3, 5), (5,)], [(3, 5), (5,)]),
    ([(1, 1), (1,)], [(), ()]),
    ([(3, 1), (1,)], [(3,), ()]),
    ([(3, 1), (1, 5)], [(3, 1), (1, 5)]),
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


@pytest.mark.parametrize("shapes", [shapes for shapes, _ in CASES])
def test_values_are_those_of_numpy(shapes):
    rng = np.random.default_rng(0)
    x, y = (rng.standard_normal(shape, np.float32) for shape in shapes)
    found = (wf.tensor(x) * 2 - wf.tensor(y)).numpy()
    np.testing.assert_array_equal(found, x * 2 - y)
