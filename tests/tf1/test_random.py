"""Random tensors: reproducible by seed, new in every run, correct distributions."""

import numpy as np
import pytest

import weft.tf1 as tf
from weft import errors


def sequence(tensor, runs=3):
    with tf.Session() as sess:
        return [sess.run(tensor) for _ in range(runs)]


def test_every_run_draws_again_and_a_seed_repeats_in_every_session():
    x = tf.random_uniform([4], seed=7)
    first, second = sequence(x), sequence(x)
    assert np.array_equal(first, second)
    assert not np.array_equal(first[0], first[1])
    y = tf.random_uniform([4])
    assert not np.array_equal(sequence(y), sequence(y)) or len({*map(bytes, sequence(y))}) == 3


def test_the_seed_of_a_graph():
    def build():
        graph = tf.Graph()
        with graph.as_default():
            tf.set_random_seed(3)
            return graph, [tf.random_normal([3]), tf.random_normal([3])]

    results = []
    for _ in range(2):
        graph, tensors = build()
        with tf.Session(graph=graph) as sess:
            results.append(sess.run(tensors))
    assert np.array_equal(results[0], results[1])
    assert not np.array_equal(results[0][0], results[0][1])


def test_unseeded_operations_differ():
    a, b = tf.random_uniform([8]), tf.random_uniform([8])
    with tf.Session() as sess:
        assert not np.array_equal(*sess.run([a, b]))


def test_distributions(session):
    n = 40000
    found = session.run(
        {
            "unit": tf.random_uniform([n]),
            "wide": tf.random_uniform([n], -3.0, 5.0),
            "ints": tf.random_uniform([n], 2, 7, tf.int32),
            "normal": tf.random_normal([n], 1.0, 2.0),
            "cut": tf.truncated_normal([n], stddev=1.0),
            "double": tf.random_normal([n], dtype=tf.float64),
            "half": tf.random_uniform([n], dtype=tf.float16),
        }
    )
    assert found["unit"].min() >= 0 and found["unit"].max() < 1
    np.testing.assert_allclose(found["unit"].mean(), 0.5, atol=0.01)
    assert found["wide"].min() >= -3 and found["wide"].max() < 5
    assert np.bincount(found["ints"]).tolist()[:2] == [0, 0]
    np.testing.assert_allclose(np.bincount(found["ints"])[2:] / n, 0.2, atol=0.01)
    np.testing.assert_allclose([found["normal"].mean(), found["normal"].std()], [1, 2], atol=0.05)
    assert np.abs(found["cut"]).max() <= 2
    np.testing.assert_allclose(found["cut"].std(), 0.8796, atol=0.02)
    assert found["double"].dtype == np.float64 and found["half"].dtype == np.float16


def test_shapes_that_only_a_run_tells(session):
    x = tf.placeholder(tf.float32, [None, 3])
    noise = tf.random_normal(tf.shape(x))
    assert session.run(noise, {x: np.zeros((5, 3))}).shape == (5, 3)
    assert session.run(noise, {x: np.zeros((2, 3))}).shape == (2, 3)


@pytest.mark.parametrize("kind", [tf.int32, tf.int64])
def test_integers_between_bounds_that_only_a_run_tells(kind, session):
    low, high = tf.placeholder(kind, [2, 1]), tf.placeholder(kind, [])
    drawn = tf.random_uniform([2, 4000], low, high, kind, seed=1)
    found = session.run(drawn, {low: [[-3], [1]], high: 3})
    assert [set(row) for row in found.tolist()] == [{-3, -2, -1, 0, 1, 2}, {1, 2}]
    assert np.bincount(found[0] + 3).min() > 550
    with pytest.raises(tf.errors.InvalidArgumentError, match="minval < maxval"):
        session.run(drawn, {low: [[-3], [3]], high: 3})


def test_shuffle_and_multinomial(session):
    rows = tf.random_shuffle(tf.range(50), seed=1)
    found = session.run(rows)
    assert sorted(found) == list(range(50)) and found.tolist() != list(range(50))
    drawn = session.run(tf.multinomial([[0.0, np.log(3.0), -1e9]], 20000, seed=2))
    assert drawn.shape == (1, 20000) and drawn.dtype == np.int64
    np.testing.assert_allclose(
        np.bincount(drawn[0], minlength=3) / 20000, [0.25, 0.75, 0], atol=0.02
    )


def test_dropout(session):
    x = tf.ones([1000, 10])
    keep = tf.placeholder(tf.float32)
    dropped = tf.nn.dropout(x, keep, seed=1)
    (gradient,) = tf.gradients(dropped, x)
    y, g = session.run([dropped, gradient], {keep: 0.25})
    assert set(np.unique(y)) == {0.0, 4.0} and np.array_equal(y, g)
    np.testing.assert_allclose((y > 0).mean(), 0.25, atol=0.02)
    assert np.array_equal(session.run(dropped, {keep: 1.0}), np.ones((1000, 10)))
    rows = session.run(tf.nn.dropout(x, rate=0.5, noise_shape=[1000, 1]))
    assert (rows.std(axis=1) == 0).all() and 0.4 < (rows[:, 0] > 0).mean() < 0.6
    with pytest.raises(errors.GraphError, match="keep_prob in"):
        tf.nn.dropout(x, 0.0)
    assert tf.nn.dropout(x, 1.0) is x


def test_errors():
    with pytest.raises(errors.GraphError, match="maxval"):
        tf.random_uniform([2], dtype=tf.int32)
    with pytest.raises(errors.DTypeError, match="floating"):
        tf.random_normal([2], dtype=tf.int32)
    with pytest.raises(errors.GraphError, match="minval < maxval"):
        tf.random_uniform([2], 3, 3, tf.int32)


def test_dropout_by_a_placeholder_of_unknown_rank_keeps_the_shape(session):
    keep = tf.placeholder(tf.float32)
    dropped = tf.nn.dropout(tf.ones([4, 3]), keep)
    assert dropped.shape.as_list() == [4, 3]
    assert session.run(dropped, {keep: 1.0}).tolist() == [[1.0] * 3] * 4
    with pytest.raises(ValueError, match="expected keep_prob to be a scalar"):
        tf.nn.dropout(tf.ones([4, 3]), tf.constant([0.5, 0.5]))


def test_sessions_draw_other_numbers_unless_there_is_a_seed():
    with tf.Graph().as_default():
        free, fixed = tf.random_uniform([3]), tf.random_uniform([3], seed=5)
        found = []
        for _ in range(2):
            with tf.Session() as session:
                found.append(session.run([free, fixed]))
    assert not np.array_equal(found[0][0], found[1][0])
    assert np.array_equal(found[0][1], found[1][1])
