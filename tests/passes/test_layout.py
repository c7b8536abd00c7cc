"""Every layout rule that moves transposes: where it fires, and where it must not."""

import numpy as np
import pytest

from weft import ops
from weft.ir.graph import Graph
from weft.ops.call import barrier
from weft.passes.layout import layout
from weft.passes.pipeline import verify_types
from weft.passes.prune import prune
from weft.passes.step import Step
from weft.transform.interpreter import evaluate

FIRST, LAST = (0, 3, 1, 2), (0, 2, 3, 1)
IMAGE = np.random.default_rng(0).normal(size=(2, 3, 4, 5)).astype(np.float32)
CHANNELS = np.arange(5, dtype=np.float32)


def first(x):
    """An image, channels first."""
    return ops.transpose(x, perm=FIRST)


def last(x):
    return ops.transpose(x, perm=LAST)


def run(build, *arrays):
    """The operations that are left, in order; the results are checked."""
    graph = Graph()
    with graph.as_default():
        feeds = [ops.placeholder(dtype=a.dtype, shape=a.shape) for a in arrays]
        found = build(*feeds)
        graph.outputs = found if isinstance(found, tuple) else (found,)
    before = Step(graph, tuple(v.node.name for v in feeds), ())
    after = prune(layout(before))
    verify_types(after.graph)
    results = []
    for step in (before, after):
        values = {step.graph.find(n).outputs[0]: a for n, a in zip(step.feeds, arrays, strict=True)}
        results.append(evaluate(step.graph, step.graph.outputs, values))
    for expected, actual in zip(*results, strict=True):
        np.testing.assert_array_equal(actual, expected)
    return [n.op for n in after.graph.nodes if n.op not in ("placeholder", "constant")]


CASES = {
    # what it computes between channels first and channels last, and what remains of it
    "unary": (lambda x: ops.relu(x), ["relu"]),
    "scalar": (lambda x: x * 2.0, ["multiply"]),
    "cast": (lambda x: ops.cast(ops.greater(x, 0.0), dtype="float32"), ["greater", "cast"]),
    "channels": (
        lambda x: x + ops.reshape(ops.constant(CHANNELS), shape=(5, 1, 1)),
        ["reshape", "reshape", "add"],
    ),
    "row": (lambda x: x + ops.constant(CHANNELS[:4]), ["reshape", "add"]),
    "broadcast": (
        lambda x: x + ops.broadcast_to(ops.constant(np.float32(2)), shape=(2, 5, 3, 4)),
        ["broadcast_to", "add"],
    ),
    "reduced": (lambda x: x - ops.max(x, axes=(1,), keepdims=True), ["max", "subtract"]),
    "broadcast_to": (
        lambda x: ops.broadcast_to(ops.max(x, axes=(1, 2), keepdims=True), shape=(2, 5, 3, 4)),
        ["max", "broadcast_to"],
    ),
    "concatenate": (lambda x: ops.concatenate(x, ops.exp(x), axis=1), ["exp", "concatenate"]),
    "pad": (lambda x: ops.pad(x, paddings=((0, 0), (1, 2), (0, 0), (0, 3))), ["pad"]),
    "slice": (
        lambda x: ops.slice(x, begin=(0, 1, 0, 3), end=(2, 5, 3, 0), strides=(1, 2, 1, -1)),
        ["slice"],
    ),
    "unslice": (
        lambda x: ops.unslice(x, shape=(2, 9, 3, 4), begin=(0, 3, 0, 0), end=(2, 8, 3, 4)),
        ["unslice"],
    ),
    "flip": (lambda x: ops.flip(x, axes=(1, 3)), ["flip"]),
    "barrier": (lambda x: barrier.all(x)[0], ["barrier"]),
}


@pytest.mark.parametrize("name", CASES)
def test_what_images_pass_on_their_way_is_computed_as_they_are(name):
    build, expected = CASES[name]
    assert run(lambda x: last(build(first(x))), IMAGE) == expected


@pytest.mark.parametrize("axes", [(0, 2, 3), (1,), (1, 2), (0,), ()])
def test_reductions_whose_order_does_not_matter_take_images_as_they_are(axes):
    left = run(lambda x: ops.max(first(x), axes=axes), IMAGE)
    assert left == (["max"] if axes in ((0, 2, 3), (1,), (1, 2)) else ["max", "transpose"])
    left = run(lambda x: ops.sum(first(x), axes=axes), IMAGE)
    assert left == ["transpose", "sum"]


def test_all_operands_are_images():
    assert run(lambda x, y: last(first(x) + first(y)), IMAGE, -IMAGE) == ["add"]


NOT = {
    "a large operand in the user's order": (
        lambda x, y: first(x) * y, (IMAGE, np.ones((2, 5, 3, 4), np.float32)),
    ),
    "a result of another rank": (
        lambda x, y: first(x) * y, (IMAGE, np.ones((2, 2, 5, 3, 4), np.float32)),
    ),
    "another transpose": (
        lambda x, _: ops.relu(ops.transpose(x, perm=(0, 2, 1, 3))), (IMAGE, CHANNELS),
    ),
    "a matrix": (lambda x, _: ops.relu(ops.transpose(x, perm=(1, 0))), (IMAGE[0, 0], CHANNELS)),
    "some of what is joined": (
        lambda x, y: ops.concatenate(first(x), y, axis=1), (IMAGE, np.ones((2, 1, 3, 4), "f")),
    ),
    "what asks for memory in order": (
        lambda x, _: ops.reshape(first(x), shape=(2, 60)), (IMAGE, CHANNELS),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", NOT)
def test_elsewhere_a_transpose_stays_where_it_is(name):
    build, arrays = NOT[name]
    assert run(build, *arrays)[0] == "transpose"
