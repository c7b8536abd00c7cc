"""Accumulators and barriers in the graph."""

import numpy as np
import pytest

import weft.tf1 as tf
from weft.errors import ArgumentError, ShapeError


@pytest.fixture(autouse=True)
def _graph():
    tf.reset_default_graph()


def test_gradients_of_two_steps_are_averaged_and_stale_ones_dropped():
    x = tf.placeholder(tf.float32, [2])
    step = tf.placeholder(tf.int64, [])
    a = tf.ConditionalAccumulator(tf.float32, [2], name="a")
    (g,) = tf.gradients(tf.reduce_sum(x * x), [x])
    apply, take = a.apply_grad(g, step), a.take_grad(2)
    assert take.shape.as_list() == [2] and a.name == "a"
    with tf.Session() as sess:
        for value in (1.0, 3.0):
            sess.run(apply, {x: [value, 0], step: 0})
        assert sess.run(a.num_accumulated()) == 2
        assert sess.run(take).tolist() == [4, 0]
        sess.run(apply, {x: [9, 9], step: 0})
        assert sess.run([a.num_accumulated(), a.num_stale()]) == [0, 1]
        sess.run(a.set_global_step(5))
        sess.run(apply, {x: [9, 9], step: 4})
        assert sess.run(a.num_stale()) == 2
        with pytest.raises(tf.errors.InvalidArgumentError, match="must be positive"):
            sess.run(a.take_grad(0))
    with pytest.raises(ShapeError):
        a.apply_grad(np.ones(3, np.float32))
    with pytest.raises(ArgumentError, match="MEAN or SUM"):
        tf.ConditionalAccumulator(tf.float32, reduction_type="MAX")


def test_sparse_gradients_are_indexed_slices():
    a = tf.SparseConditionalAccumulator(tf.float32, [4, 2], reduction_type="SUM")
    slices = tf.IndexedSlices(tf.ones([2, 2]), tf.constant([3, 1]), tf.constant([4, 2]))
    with tf.Session() as sess:
        sess.run(a.apply_indexed_slices_grad(slices))
        sess.run(a.apply_grad([1], [[5.0, 5.0]]))
        found = sess.run(a.take_indexed_slices_grad(2))
        assert found.indices.tolist() == [1, 3] and found.dense_shape.tolist() == [4, 2]
        assert found.values.tolist() == [[6, 6], [1, 1]]


def test_a_barrier_gives_what_is_complete():
    b = tf.Barrier((tf.string, tf.int32), shapes=((), ()))
    indices, keys, values = b.take_many(2)
    assert indices.shape.as_list() == [2]
    with tf.Session() as sess:
        sess.run(b.insert_many(0, ["k1", "k2"], ["a", "b"]))
        sess.run(b.insert_many(1, ["k2", "k1"], [2, 1]))
        assert sess.run([b.ready_size(), b.incomplete_size()]) == [2, 0]
        found = sess.run([indices, keys, *values])
        assert found[1].tolist() == [b"k2", b"k1"] and found[3].tolist() == [2, 1]
        assert found[0].tolist() == [-(2**63)] * 2
        sess.run(b.close())
        with pytest.raises(tf.errors.CancelledError, match="is closed"):
            sess.run(b.insert_many(0, ["k3"], ["c"]))
        with pytest.raises(tf.errors.OutOfRangeError, match="insufficient elements"):
            sess.run(keys)
    with pytest.raises(ArgumentError, match="Timeout not supported"):
        b.take_many(1, timeout=5)
    with pytest.raises(ShapeError, match="Empty tensors"):
        tf.Barrier(tf.int32, shapes=((0,),))
