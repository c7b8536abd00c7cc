"""Requests and steps as messages: they describe the same programs afterwards."""

from typing import Any

import numpy as np
import pytest

import weft.tf1 as tf
from weft.cluster.wire import request_head, request_of, step_head, step_of
from weft.cluster.worker.program import digests_of, packed, unpacked
from weft.codegen.target import current
from weft.errors import GraphError
from weft.ir.dtype import float32
from weft.ir.node import TensorType
from weft.passes import pipeline
from weft.passes.step import Request
from weft.runtime.compilation.fingerprint import fingerprint
from weft.runtime.engine import Function
from weft.runtime.memory.state import State


def model():
    x = tf.placeholder(tf.float32, [None, 20])
    labels = tf.placeholder(tf.float32, [None, 10])
    w, b = tf.Variable(tf.ones([20, 10])), tf.Variable(tf.zeros([10]))
    large = np.random.RandomState(0).rand(20, 20).astype(np.float32)
    logits = tf.matmul(tf.matmul(x, large), w) + b
    loss = tf.reduce_mean(tf.nn.softmax_cross_entropy_with_logits(labels=labels, logits=logits))
    train = tf.train.AdamOptimizer().minimize(loss)
    feeds = (x.value, labels.value)
    return Request(x.graph.ir, (loss.value,), tuple(train.nodes), feeds)


def specialized(request):
    kinds = [TensorType(float32, (5, 20)), TensorType(float32, (5, 10))]
    return pipeline.optimize(pipeline.specialize(request, kinds, {}, {}, {}))


def test_programs_are_the_same_on_the_other_side():
    with tf.Graph().as_default():
        request = model()
    aside = []
    head = request_head(request, aside)
    assert [array.shape for array in aside] == [(20, 20)]  # not as text
    received = request_of(head, aside)
    assert len(received.graph.nodes) < len(request.graph.nodes)  # without initializers
    steps = [specialized(request), specialized(received)]
    aside = []
    steps.append(step_of(step_head(steps[0], aside), aside))
    assert len({fingerprint(step, 2, current()) for step in steps}) == 1


def test_values_inside_a_graph_are_fed():
    with tf.Graph().as_default() as graph:
        x = tf.placeholder(tf.float32, [2])
        inside = tf.exp(x)
        both = tf.nn.top_k(inside * 2.0)
        y = both.values + tf.cast(both.indices, tf.float32)
        # the values are fed, the indices are computed, from a fed value of their own
        request = Request(graph.ir, (y.value, inside.value), (), (inside.value, both.values.value))
        received = request_of(request_head(request, []), [])
    kinds = [TensorType(float32, (2,)), TensorType(float32, (1,))]
    steps = [pipeline.specialize(r, kinds, {}, {}, {}) for r in (request, received)]
    assert len({fingerprint(step, 2, current()) for step in steps}) == 1


def test_what_lapack_computes_is_the_same_on_the_other_side():
    with tf.Graph().as_default():
        x = tf.placeholder(tf.float64, [None, 3, 3])
        y = tf.while_loop(lambda i, _: i < 3, lambda i, y: (i + 1, tf.cholesky(y)), (0, x))[1]
        slope = tf.gradients(tf.cholesky(x), x)[0]
        request = Request(x.graph.ir, (y.value, slope.value), (), (x.value,))
    received = request_of(request_head(request, []), [])
    matrices = 4 * np.eye(3) + np.ones((2, 3, 3))
    both = [Function(r.graph, list(r.fetches), feeds=list(r.feeds)) for r in (request, received)]
    for found, wanted in zip(*[f([matrices], State()) for f in both], strict=True):
        np.testing.assert_array_equal(found, wanted)


def test_python_functions_stay_at_home():
    with tf.Graph().as_default() as graph:
        y = tf.py_func(np.sin, [tf.constant(1.0)], tf.float32, name="mine")
        request = Request(graph.ir, (y.value,), (), ())
        with pytest.raises(
            GraphError, match=r"cannot be sent to another task.*mine.*test_graphs_on"
        ):
            request_head(request, [])


def test_large_constants_that_overtake_each_other():
    """Two threads register programs with one constant; the second message arrives first."""
    shared, one, other = (np.full((200, 200), k, np.float64) for k in (1, 2, 3))
    sent: set[str] = set()
    first = packed([shared, one], sent)
    second = packed([other, shared, np.ones(3)], sent)
    constants: dict[str, Any] = {}
    for told, expected in ((second, [other, shared, np.ones(3)]), (first, [shared, one])):
        found = unpacked(*told, constants)
        assert all(map(np.array_equal, found, expected))
    sent |= digests_of(first[0])  # the task has answered
    assert packed([one, shared], sent)[1] == []
