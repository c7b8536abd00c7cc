"""The exception tree: TensorFlow's names and Weft's catch the same errors."""

import doctest

import numpy as np
import pytest

import weft.tf1 as tf
from weft import errors
from weft.ops.boundary.state import LinAlgError

NAMES = [
    "CancelledError", "UnknownError", "InvalidArgumentError", "DeadlineExceededError",
    "NotFoundError", "AlreadyExistsError", "PermissionDeniedError", "ResourceExhaustedError",
    "FailedPreconditionError", "AbortedError", "OutOfRangeError", "UnimplementedError",
    "InternalError", "UnavailableError", "DataLossError",
]  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
def test_every_error_has_a_code_and_belongs_to_both_trees(name):
    kind = getattr(tf.errors, name)
    error = kind(None, None, "text")
    assert isinstance(error, tf.OpError) and isinstance(error, errors.WeftError)
    assert (error.message, error.op, error.node_def, str(error)) == ("text", None, None, "text")
    assert isinstance(error.error_code, int) and error.error_code > 0


@pytest.mark.parametrize(
    "raised, kinds",
    [
        (errors.UninitializedError, (tf.errors.FailedPreconditionError, RuntimeError)),
        (errors.UserOpError, (tf.errors.UnknownError,)),
        (LinAlgError, (tf.errors.InvalidArgumentError, np.linalg.LinAlgError)),
        (errors.FeedError, (tf.errors.InvalidArgumentError, ValueError)),
        (errors.ShapeError, (tf.errors.InvalidArgumentError, errors.ShapeError)),
        (errors.OutOfRangeError, (tf.errors.InvalidArgumentError, IndexError)),
        (errors.CompileError, (tf.errors.InternalError,)),
        (errors.GraphError, (tf.errors.InvalidArgumentError, errors.GraphError)),
    ],
)
def test_errors_of_a_run_are_translated(raised, kinds):
    translated = tf.errors.translate(raised("text"))
    assert isinstance(translated, raised) and str(translated) == "text"
    assert all(isinstance(translated, kind) for kind in kinds)
    assert tf.errors.translate(translated) is translated
    assert type(translated) is type(tf.errors.translate(raised("again")))


def test_other_errors_pass():
    error = errors.MismatchError("text")
    assert tf.errors.translate(error) is error


def test_an_index_out_of_bounds_changes_nothing(session):
    rows = tf.placeholder(tf.int32, [None])
    v = tf.Variable(tf.ones([3, 2]))
    train = tf.train.GradientDescentOptimizer(0.1).minimize(tf.reduce_sum(tf.gather(v, rows)))
    session.run(v.initializer)
    with pytest.raises(tf.errors.InvalidArgumentError):
        session.run(train, {rows: [0, 7]})
    assert np.array_equal(session.run(v), np.ones((3, 2)))
    session.run(train, {rows: [0]})
    assert session.run(v)[0].tolist() == [np.float32(0.9)] * 2


def test_shapes_that_only_a_run_tells_are_checked_then(session):
    a, b = tf.placeholder(tf.float32, [None]), tf.placeholder(tf.float32, [None])
    c = a + b
    with pytest.raises(tf.errors.InvalidArgumentError, match="broadcast"):
        session.run(c, {a: [1, 2], b: [1, 2, 3]})
    assert session.run(c, {a: [1, 2], b: [3]}).tolist() == [4.0, 5.0]


def test_errors_tell_their_operation(session):
    queue, absent = tf.FIFOQueue(1, tf.float32, [()], name="q"), tf.Variable(1.0, name="absent")
    enqueue = queue.enqueue(1.0, name="fill")
    picked = tf.gather(tf.ones([3]), [0, 5], name="picked")
    session.run(queue.close())
    message = r"^enqueue: FIFOQueue 'q' is closed\. \(node fill, created at test_errors\.py:\d+\)$"
    with pytest.raises(tf.errors.CancelledError, match=message) as closed:
        session.run(enqueue)
    with pytest.raises(tf.errors.InvalidArgumentError) as outside:
        session.run(picked)
    with pytest.raises(tf.errors.FailedPreconditionError) as missing:
        session.run(absent)
    assert closed.value.op is enqueue
    assert outside.value.op is picked.op
    assert missing.value.op is absent.op


def test_division_of_integers_by_zero_does_not_end_the_process(session):
    x = tf.placeholder(tf.int32, [2])
    found = session.run([x // 0, x % 0, tf.truncatediv(x, 0)], {x: [7, -7]})
    assert all(a.shape == (2,) for a in found)


def test_the_example_of_the_package():
    assert doctest.testmod(tf).failed == 0


def test_messages_name_the_users_line_through_context_managers_and_folding(session):
    with tf.Graph().as_default():
        foreign = tf.constant(1.0)
    with pytest.raises(ValueError, match=r"different graphs \(created at test_errors\.py:\d+\)"):
        tf.add(foreign, tf.constant(2.0))
    picked = tf.gather(tf.ones([3]), [0, 5], name="picked")
    message = r"gather: indices\[1\]: expected 0 <= index < 3, got 5 \(node picked, created at test"
    with pytest.raises(tf.errors.InvalidArgumentError, match=message):
        session.run(picked)
    message = r"gather: indices\[1\]: .* \(node whole, created at test_errors"
    with pytest.raises(tf.errors.InvalidArgumentError, match=message):
        session.run(tf.gather(tf.constant([1, 2, 3]), [0, 5], name="whole"))


@pytest.mark.parametrize("function", [np.array, np.sum, np.square, float, int, list])
def test_what_needs_numbers_refuses_a_symbolic_tensor(function):
    for symbolic in (tf.ones([3]), tf.Variable(tf.ones([3]))):
        with pytest.raises(TypeError):
            function(symbolic)
    with pytest.raises(NotImplementedError, match=r"cannot convert the symbolic <tf.Tensor 'ones"):
        np.mean(tf.ones([3]))
    with pytest.raises(tf.errors.InvalidArgumentError, match="expected numbers of type float32"):
        tf.Session().run(x := tf.placeholder(tf.float32), {x: [tf.ones([])]})


def test_fetches_and_axes_are_checked(session):
    with pytest.raises(TypeError, match=r"fetches: expected a tensor, .*, got array"):
        session.run(np.ones(3))
    with pytest.raises(TypeError, match=r"fetches: expected a tensor, .*, got array"):
        session.run([tf.ones([3]), np.ones(3)])
    with pytest.raises(TypeError, match=r"Sum: expected integers as axes, got 1\.5"):
        tf.reduce_sum(tf.ones([2, 3]), 1.5)
    assert session.run(tf.reduce_sum(tf.ones([2, 3]), [])).shape == (2, 3)
