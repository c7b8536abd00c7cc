"""Variables, their scopes, initializers, and the order of reads and assignments."""

import numpy as np
import pytest

import weft.tf1 as tf
from weft import errors


def test_names_and_what_it_is():
    v = tf.Variable([[1.0, 2.0]], name="v")
    w = tf.Variable(lambda: tf.ones([2]), trainable=False)
    assert (v.name, w.name, v.op.type, v.dtype.name) == (
        "v:0",
        "Variable:0",
        "VariableV2",
        "float32_ref",
    )
    assert v.get_shape().as_list() == [1, 2] and v.shape[0].value == 1
    assert repr(v) == "<tf.Variable 'v:0' shape=(1, 2) dtype=float32_ref>"
    assert tf.trainable_variables() == [v] and tf.global_variables() == [v, w]
    assert [op.name for op in tf.get_default_graph().get_operations()] == [
        "v/initial_value", "v", "v/Assign", "v/read",
        "Variable/Initializer/ones", "Variable", "Variable/Assign", "Variable/read",
    ]  # fmt: skip


@pytest.mark.parametrize(
    "initial, dtype, expected",
    [
        (1, None, "int32"), (1.5, None, "float32"), (np.zeros(2), None, "float64"),
        (np.float16(1), None, "float16"), ([1, 2], tf.float32, "float32"), (True, None, "bool"),
        (np.arange(3), tf.int64, "int64"),
    ],
)  # fmt: skip
def test_types_of_initial_values(session, initial, dtype, expected):
    v = tf.Variable(initial, dtype=dtype)
    session.run(v.initializer)
    found = session.run(v)
    assert found.dtype == expected and np.array_equal(found, initial)


def test_assignments(session):
    v = tf.Variable([1.0, 2.0])
    session.run(v.initializer)
    assert session.run(tf.assign(v, [3.0, 4.0])).tolist() == [3.0, 4.0]
    assert session.run(v.assign_add([1.0, 1.0])).tolist() == [4.0, 5.0]
    assert session.run(tf.assign_sub(v, [1.0, 1.0])).tolist() == [3.0, 4.0]
    assert v.eval(session).tolist() == [3.0, 4.0]
    v.load(np.array([7.0, 8.0]), session)
    assert session.run(v + 1.0).tolist() == [8.0, 9.0]
    assert session.run(v.assign(v * 2.0).op) is None
    assert session.run(v.read_value()).tolist() == [14.0, 16.0]
    handle = tf.get_default_graph().get_tensor_by_name("Variable:0")
    assert session.run(handle).tolist() == [14.0, 16.0]
    assert session.run(tf.assign(handle, [0.0, 0.0]) + 1.0).tolist() == [1.0, 1.0]


def test_a_read_sees_the_value_before_the_step_unless_ordered(session):
    v = tf.Variable(1.0)
    session.run(v.initializer)
    old = v * 1.0
    step = tf.assign(v, v + 1.0)
    with tf.control_dependencies([step]):
        new = tf.identity(v)
        again = v.read_value()
    assert session.run([old, step, new, again]) == [1.0, 2.0, 2.0, 2.0]


def test_a_variable_that_is_fetched_gives_what_it_holds_after_the_step(session):
    v = tf.Variable([1.0])
    before = v + 0.0
    add = v.assign_add([1.0])
    session.run(v.initializer)
    for _ in range(2):
        session.run(v.initializer)
        found = session.run([v, add.op, before, "Variable:0"])
        assert [None if a is None else a.tolist() for a in found] == [[2.0], None, [1.0], [2.0]]
    assert session.run([v.initializer, v])[1].tolist() == [1.0]
    step = tf.Variable(0)
    session.run(step.initializer)
    count, _ = session.run((step, step.assign_add(1)))
    assert count == 1 and isinstance(count, np.int32)


def test_two_additions_in_one_step_both_count(session):
    v = tf.Variable(0)
    session.run(v.initializer)
    session.run([v.assign_add(1), v.assign_add(10)])
    assert session.run(v) == 11


def test_scattered_assignments(session):
    v = tf.Variable(tf.zeros([4, 2]))
    session.run(v.initializer)
    session.run(tf.scatter_add(v, [1, 1, 3], [[1.0, 1.0], [2.0, 2.0], [3.0, 3.0]]))
    assert session.run(v)[:, 0].tolist() == [0.0, 3.0, 0.0, 3.0]
    session.run(tf.scatter_update(v, [0, 3], [[5.0, 5.0], [6.0, 6.0]]))
    assert session.run(v)[:, 1].tolist() == [5.0, 3.0, 0.0, 6.0]
    session.run(tf.scatter_sub(v, [0], [[1.0, 2.0]]))
    assert session.run(v)[0].tolist() == [4.0, 3.0]


def test_uninitialized(session):
    v = tf.Variable(1.0, name="weights")
    w = tf.Variable(v.initialized_value() * 2.0, name="twice")
    report = tf.report_uninitialized_variables()
    flag = tf.is_variable_initialized(v)
    assert list(session.run(report)) == [b"weights", b"twice"]
    assert not session.run(flag)
    with pytest.raises(tf.errors.FailedPreconditionError, match="weights") as caught:
        session.run(v + 1.0)
    assert isinstance(caught.value, errors.UninitializedError)
    session.run(tf.global_variables_initializer())
    assert session.run([v, w]) == [1.0, 2.0]
    assert session.run(flag) and len(session.run(report)) == 0
    session.run(v.assign(5.0))
    session.run(w.initializer)  # from what v holds now
    assert session.run(w) == 10.0


def test_random_initial_values_are_shared_by_initialized_value(session):
    v = tf.Variable(tf.random_normal([5]))
    w = tf.Variable(v.initialized_value())
    session.run(tf.global_variables_initializer())
    first, second = session.run([v, w])
    assert np.array_equal(first, second)


def test_errors():
    v = tf.Variable([1.0, 2.0], name="v")
    with pytest.raises(
        errors.ShapeError, match=r"Assign: expected a value of shape \(2,\) for v:0, got \(3,\)"
    ):
        v.assign([1.0, 2.0, 3.0])
    with pytest.raises(errors.DTypeError, match="float32"):
        v.assign(tf.constant([1, 2]))
    with pytest.raises(errors.GraphError, match="expected an initial_value"):
        tf.Variable()
    with pytest.raises(errors.DTypeError, match="expected a variable"):
        tf.assign(tf.constant(1.0), 2.0)
    with pytest.raises(errors.ShapeError, match="known shape"):
        tf.Variable(tf.placeholder(tf.float32, [None]))


def test_a_variable_of_unknown_shape(session):
    v = tf.Variable(tf.placeholder_with_default([1.0], [None]), validate_shape=False)
    session.run(v.initializer)
    assert session.run(v * 2.0).tolist() == [2.0]


def test_local_variables(session):
    v = tf.get_local_variable("count", [], tf.int32)
    assert tf.local_variables() == [v] and not tf.global_variables()
    session.run(tf.local_variables_initializer())
    assert session.run(v) == 0


# Scopes
def test_name_scopes():
    with tf.name_scope("outer") as outer:
        a = tf.constant(1)
        with tf.name_scope("inner"):
            b = tf.constant(1)
        with tf.name_scope(None):
            c = tf.constant(1)
    with tf.name_scope("outer"):
        d = tf.constant(1)
    with tf.name_scope(outer):
        e = tf.constant(1, name="again")
    names = [t.op.name for t in (a, b, c, d, e)]
    assert names == ["outer/Const", "outer/inner/Const", "Const", "outer_1/Const", "outer/again"]
    assert [tf.constant(1, name="x").name, tf.constant(1, name="X").name] == ["x:0", "X_1:0"]


def test_variable_scopes_and_name_scopes():
    with tf.variable_scope("s") as scope:
        a = tf.get_variable("a", [3])
        first = tf.constant(1)
    with tf.variable_scope(scope, reuse=True):
        assert tf.get_variable("a", [3]) is a
        assert tf.get_variable_scope().reuse is True
        second = tf.constant(1)
    with tf.name_scope("n"), tf.variable_scope("s", reuse=tf.AUTO_REUSE):
        assert tf.get_variable("a") is a
        b = tf.get_variable("b", [1])
        third = tf.constant(1)
    assert (a.name, b.name) == ("s/a:0", "s/b:0")
    names = [first.op.name, second.op.name, third.op.name]
    assert names == ["s/Const", "s_1/Const", "n/s/Const"]
    with tf.variable_scope(None, "d") as one:
        pass
    with tf.variable_scope(None, "d") as two:
        pass
    assert (one.name, two.name, two.original_name_scope) == ("d", "d_1", "d_1/")


def test_settings_of_a_scope_are_inherited():
    half = tf.constant_initializer(0.5)

    def penalty(w):
        return tf.reduce_sum(w * w)

    outer = tf.variable_scope("a", initializer=half, regularizer=penalty, dtype=tf.float64)
    with outer, tf.variable_scope("b"):
        v = tf.get_variable("v", [2])
    assert v.name == "a/b/v:0" and v.dtype.base_dtype == tf.float64
    losses = tf.get_collection(tf.GraphKeys.REGULARIZATION_LOSSES)
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        assert sess.run(v).tolist() == [0.5, 0.5]
        assert sess.run(losses) == [0.5]


def test_custom_getter():
    def doubled(getter, name, *args, **kwargs):
        return getter(name, *args, **kwargs) * 2.0

    with tf.variable_scope("s", custom_getter=doubled):
        v = tf.get_variable("v", initializer=3.0)
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        assert sess.run(v) == 6.0


def test_get_variable_refuses():
    tf.get_variable("q", [2])
    with pytest.raises(errors.GraphError, match="'q' exists already"):
        tf.get_variable("q", [2])
    with pytest.raises(errors.GraphError, match="known shape"):
        tf.get_variable("r")
    with tf.variable_scope("", reuse=True):
        with pytest.raises(errors.GraphError, match="no variable 'nope' to reuse"):
            tf.get_variable("nope", [2])
        with pytest.raises(errors.GraphError, match=r"has shape \(2,\), expected \(3,\)"):
            tf.get_variable("q", [3])
        with pytest.raises(errors.GraphError, match="has type float32, expected int32"):
            tf.get_variable("q", [2], dtype=tf.int32)


# Initializers
@pytest.mark.parametrize(
    "initializer, low, high, deviation",
    [
        (tf.zeros_initializer(), 0, 0, 0),
        (tf.ones_initializer, 1, 1, 0),
        (tf.constant_initializer(3), 3, 3, 0),
        (tf.random_uniform_initializer(-1, 1), -1, 1, 3**-0.5),
        (tf.random_normal_initializer(0, 2), -14, 14, 2),
        (tf.truncated_normal_initializer(stddev=2), -4, 4, 2 * 0.8796),
        (tf.glorot_uniform_initializer(), -0.1226, 0.1226, 0.0707),
        (tf.initializers.he_normal(), -0.33, 0.33, (2 / 100) ** 0.5),
        (tf.variance_scaling_initializer(1, "fan_out"), -0.132, 0.132, 300**-0.5),
        (tf.orthogonal_initializer(), -1, 1, 300**-0.5),
    ],
)
def test_initializers(initializer, low, high, deviation):
    v = tf.get_variable("v", [100, 300], initializer=initializer)
    with tf.Session() as sess:
        sess.run(v.initializer)
        found = sess.run(v)
    assert found.shape == (100, 300) and found.min() >= low and found.max() <= high
    np.testing.assert_allclose(found.std(), deviation, rtol=0.03, atol=1e-6)


def test_orthogonal_rows():
    v = tf.get_variable("v", [4, 7], initializer=tf.orthogonal_initializer(seed=1))
    w = tf.get_variable("w", [2, 2, 3], initializer=tf.orthogonal_initializer(gain=2.0))
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        a, b = sess.run([v, w])
    np.testing.assert_allclose(a @ a.T, np.eye(4), atol=1e-5)
    np.testing.assert_allclose(b.reshape(4, 3).T @ b.reshape(4, 3), 4 * np.eye(3), atol=1e-5)
