"""Staging areas: between steps, limited, looked into, emptied."""

import threading

import numpy as np
import pytest
from patience import LIMIT

import weft.tf1 as tf
from weft.errors import ArgumentError, DTypeError, TreeError

StagingArea = tf.contrib.staging.StagingArea


@pytest.fixture(autouse=True)
def _graph():
    tf.reset_default_graph()


def test_a_step_takes_what_the_step_before_has_left():
    x = tf.placeholder(tf.float32, [2])
    area = StagingArea([tf.float32, tf.int32], shapes=[[2], []], names=["x", "n"])
    put = area.put({"n": 7, "x": x * 2})
    taken = area.get()
    with tf.Session() as sess:
        sess.run(put, {x: [1, 2]})
        for step in range(3):  # both in one run
            found, _ = sess.run([{"y": taken["x"] + 1, "n": taken["n"]}, put], {x: [step, 0]})
            expected = [3, 5] if step == 0 else [(step - 1) * 2 + 1, 1]
            assert found["y"].tolist() == expected and found["n"] == 7
        assert sess.run(area.size()) == 1


def test_elements_are_looked_at_and_removed():
    area = StagingArea(tf.int32)
    n = tf.placeholder(tf.int32, [])
    put, look = area.put(n), area.peek(n)[0]
    with tf.Session() as sess:
        for number in range(4):
            sess.run(put, {n: number * 10})
        assert [sess.run(look, {n: i}) for i in (3, 0)] == [30, 0]
        sess.run(area.clear())
        assert sess.run(area.size()) == 0
        with pytest.raises(tf.errors.InvalidArgumentError, match="an index >= 0, got -1"):
            sess.run(look, {n: -1})


@pytest.mark.parametrize("limits", [{"capacity": 2}, {"memory_limit": 24}])
def test_a_full_area_lets_puts_wait(limits):
    area = StagingArea(tf.float32, **limits)
    put, get = area.put(np.zeros(3, np.float32)), area.get()
    with tf.Session() as sess:
        sess.run([put])
        sess.run([put])
        waiting = threading.Thread(target=lambda: sess.run(put))
        waiting.start()
        waiting.join(0.05)
        assert waiting.is_alive() and sess.run(area.size()) == 2
        sess.run(get)
        waiting.join(LIMIT)
        assert not waiting.is_alive() and sess.run(area.size()) == 2
        if "memory_limit" in limits:
            with pytest.raises(tf.errors.InvalidArgumentError, match="memory limit of '24'"):
                sess.run(area.put(np.zeros(7, np.float32)))


@pytest.mark.parametrize(
    ("error", "make"),
    [
        (ArgumentError, lambda: StagingArea(tf.int32, capacity=-1)),
        (TreeError, lambda: StagingArea([tf.int32] * 2).put([1])),
        (TreeError, lambda: StagingArea(tf.int32, names=["a"]).put({"b": 1})),
        (DTypeError, lambda: StagingArea(tf.int32).put(tf.constant(1.0))),
    ],
)
def test_what_does_not_fit_is_refused_when_it_is_built(error, make):
    with pytest.raises(error):
        make()
