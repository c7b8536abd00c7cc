"""What runs on the host of a session whose programs run in other processes."""

import numpy as np
import pytest

import weft.tf1 as tf


def programs(target, place):
    """What a session with this target gives for texts, functions, datasets and summaries."""
    with tf.Graph().as_default():
        x = tf.placeholder(tf.float32, [None], name="x")
        with tf.device(place):
            w = tf.Variable(2.0, name="of_phases")
            twice = tf.py_func(lambda a: np.concatenate([a, a]), [x * w], tf.float32)
            shifted = tf.py_func(lambda a: a + 1, [x], tf.float32)
            shifted.set_shape([2])
            total, text = tf.reduce_sum(twice * w), tf.string_join(["w=", tf.as_string(w)])
            element = tf.data.Dataset.range(5).make_one_shot_iterator().get_next() * 2
            update = tf.assign_add(w, tf.string_to_number("0.5"))
            missing, seen = tf.report_uninitialized_variables(), tf.summary.scalar("w", w)
        with tf.Session(target) as session:
            feed = {x: np.array([1, 2], np.float32)}
            before = session.run(missing).tolist()
            session.run(w.initializer)
            found = [session.run([total, shifted * 2, element, text, seen], feed) for _ in "12"]
            return before, [session.run([update, w]), *found]


def same(a, b):
    if isinstance(a, list | tuple):
        return len(a) == len(b) and all(map(same, a, b))
    return np.array_equal(a, b)


@pytest.mark.parametrize("place", ["/job:ps/task:0", "/job:worker/task:0"])
def test_results_are_those_of_one_process(cluster, place):
    tf.Session.reset(cluster.target("worker"))
    before, found = programs(cluster.target("worker"), place)
    assert before == [b"of_phases"]
    here = programs("", None)
    assert same(found, here[1])


def test_a_server_with_one_device():
    server = tf.train.Server.create_local_server()
    assert same(programs(server.target, None)[1], programs("", None)[1])
