"""What only a control dependency or a fetched operation asks for is run if a run is felt."""

import numpy as np
import pytest

import weft.tf1 as tf

CALLS = []


def python(known):
    """A call of Python, whose results have a shape that is known before it, or not."""

    def called(a):
        CALLS.append(a.tolist())
        return a

    y = tf.py_func(called, [tf.constant([1.0, 2.0])], tf.float32)
    if known:
        y.set_shape([2])
    return y


REFUSALS = {
    "check_numerics": lambda: tf.check_numerics(tf.constant([1.0]) / 0.0, "bad"),
    "gather": lambda: tf.gather([1.0, 2.0], tf.placeholder_with_default([5], [None])),
    "cholesky": lambda: tf.linalg.cholesky(-tf.eye(2)),
    "case": lambda: tf.case([(tf.constant(False), lambda: tf.constant(1.0))], exclusive=True),
    "assert": lambda: tf.assert_less(tf.placeholder_with_default([5], [None]), 3),
}
WAYS = {
    "operation": lambda y: getattr(y, "op", y),
    "group": lambda y: tf.group(y),
    "control dependency": lambda y: after(y),
}


def after(y):
    with tf.control_dependencies([y]):
        return tf.constant(1.0) + 1.0


@pytest.fixture
def session():
    CALLS.clear()
    with tf.Graph().as_default(), tf.Session() as session:
        yield session


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("known", [True, False])
def test_python_is_called_once(known, way, session):
    session.run(WAYS[way](python(known)))
    assert CALLS == [[1.0, 2.0]]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", REFUSALS)
def test_a_check_refuses(name, way, session):
    with pytest.raises(tf.errors.InvalidArgumentError):
        session.run(WAYS[way](REFUSALS[name]()))


def test_what_is_read_anyway_is_run_once_and_fetches_are_as_asked(session):
    y = python(True)
    assert [v.tolist() for v in session.run([y, after(y) + tf.zeros([1])])] == [[1, 2], [2]]
    assert CALLS == [[1.0, 2.0]]
    assert np.array(session.run([after(y)])).tolist() == [2.0]
