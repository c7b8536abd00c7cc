"""Names, dtypes and values of single expressions, as in TensorFlow."""

import numpy as np
import pytest

import weft.tf1 as tf
from weft.runtime.interpreted import Interpreted
from weft.tf1.session import backend

from .expressions import ROWS


@pytest.fixture(autouse=True)
def _interpreted(monkeypatch):
    def function(graph, fetches, targets, feeds, threads=None, done=(), **_):
        return Interpreted(graph, fetches, targets, feeds, done)

    monkeypatch.setattr(backend, "Function", function)


def names():
    """What expressions may use; all in the default graph, under names that no operation takes."""
    image = np.arange(2 * 8 * 8 * 3).reshape(2, 8, 8, 3) / 100.0
    return {
        "tf": tf,
        "np": np,
        "a": tf.constant([[1.0, 2.0], [3.0, 4.0]], name="in_a"),
        "b": tf.constant([[0.5, 0.25], [0.125, 2.0]], name="in_b"),
        "c": tf.constant([1.0, 2.0], name="in_c"),
        "c3": tf.constant([1.0, 2.0, 3.0], name="in_c3"),
        "i": tf.constant([0, 1], name="in_i"),
        "j": tf.constant([3, 2], name="in_j"),
        "p": tf.constant([[True, False], [False, True]], name="in_p"),
        "q": tf.constant([[True, True], [False, False]], name="in_q"),
        "k0": tf.constant(1, name="in_k0"),
        "u": tf.placeholder(tf.float32, [None, 4], name="in_u"),
        "im": tf.constant(image, tf.float32, name="in_im"),
        "imd": tf.zeros([2, 8, 8, 4], name="in_imd"),
        "im1": tf.zeros([2, 8, 3], name="in_im1"),
        "w1": tf.zeros([3, 3, 4], name="in_w1"),
        "im3": tf.zeros([2, 4, 4, 4, 3], name="in_im3"),
        "w3": tf.zeros([3, 3, 3, 3, 4], name="in_w3"),
        "w": tf.constant(np.ones((3, 3, 3, 4)), tf.float32, name="in_w"),
        "wt": tf.ones([3, 3, 4, 3], name="in_wt"),
        "wd": tf.ones([3, 3, 3, 2], name="in_wd"),
        "wp": tf.ones([1, 1, 6, 5], name="in_wp"),
        "v": tf.Variable([1.0, 2.0], name="in_v"),
        "g": tf.Variable(3, name="in_g", trainable=False),
    }


def record(made):
    if isinstance(made, list | tuple):
        return [record(item) for item in made]
    if isinstance(made, tf.Operation):
        return [made.name, made.type]
    shape = made.get_shape()
    dims = None if shape.ndims is None else shape.as_list()
    return [made.name, made.op.type, made.dtype.name, dims]


@pytest.mark.parametrize("expression, expected, value", ROWS, ids=[row[0] for row in ROWS])
def test_expression(expression, expected, value):
    scope = names()
    made = eval(expression, scope)
    assert record(made) == expected
    if value is ...:
        return
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        feeds = {scope["u"]: np.arange(8).reshape(2, 4)}
        found = sess.run(made, feeds)
    check(found, value)


def check(found, value):
    if isinstance(found, list | tuple):
        assert len(found) == len(value)
        for f, v in zip(found, value, strict=True):
            check(f, v)
        return
    np.testing.assert_allclose(found, np.array(value), rtol=2e-4)
    assert np.shape(found) == np.shape(value)


def test_the_check_can_fail():
    with pytest.raises(AssertionError):
        check(np.array([1.0, 2.0]), [1.0, 2.1])
