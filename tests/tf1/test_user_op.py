"""Custom operations, and Python functions inside a graph."""

import numpy as np
import pytest

import weft.tf1 as tf
from weft import errors


class Add(tf.Operation):
    def __init__(self, a, b):
        super().__init__([a, b])

    def forward(self, a, b):
        return a + b

    def backward(self, upstream_grad):
        return upstream_grad, upstream_grad


class Multiply(tf.Operation):
    def __init__(self, a, b, name=None):
        super().__init__([a, b], name=name)

    def forward(self, a, b):
        self.a, self.b = a, b
        return a * b

    def backward(self, upstream_grad):
        return upstream_grad * self.b, upstream_grad * self.a


class Sigmoid(tf.Operation):
    def __init__(self, x):
        super().__init__([x])

    def forward(self, x):
        self.y = 1 / (1 + np.exp(-x))
        return self.y

    def backward(self, upstream_grad):
        return upstream_grad * self.y * (1 - self.y)


class SquaredNorm(tf.Operation):
    """Written with TensorFlow functions: it compiles."""

    def __init__(self, x):
        super().__init__([x])

    def build(self, x):
        return tf.reduce_sum(tf.square(x), 1)


class Divmod(tf.Operation):
    def __init__(self, x):
        super().__init__([x])

    def forward(self, x):
        return x // 2, (x % 2).astype(np.int32)


def test_a_graph_of_small_operations(session):
    x, y = tf.Placeholder(), tf.Placeholder([2])
    x.outputs[0].set_shape([2])
    two = tf.Constant([2.0, 3.0])
    z = Multiply(Add(x, y), two)
    assert session.run(z, {x: [1, 2], y: [3, 4]}).tolist() == [8.0, 18.0]
    assert [type(op).__name__ for op in tf.topology_sort(z)] == [
        "Placeholder", "Placeholder", "Add", "Operation", "Constant", "Multiply",
    ]  # fmt: skip
    assert z.inputs[1] is two.outputs[0] and (z.name, z.type) == ("Multiply", "Multiply")


def test_it_is_part_of_any_graph_and_differentiable(session):
    x = tf.placeholder(tf.float32, [None, 3])
    w = tf.Variable([1.0, 2.0, 3.0])
    hidden = Sigmoid(Multiply(x, w, name="scaled"))
    assert hidden.outputs[0].shape.as_list() == [None, 3]
    loss = tf.reduce_sum(hidden * 2.0 + 1.0)
    reference = tf.reduce_sum(tf.sigmoid(x * w) * 2.0 + 1.0)
    ours, theirs = tf.gradients(loss, [w, x]), tf.gradients(reference, [w, x])
    session.run(w.initializer)
    feeds = {x: np.random.default_rng(0).normal(size=(4, 3))}
    for a, b in zip(*session.run([[loss, *ours], [reference, *theirs]], feeds), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5)
    assert session.run("scaled:0", {x: [[1, 1, 1]]}).tolist() == [[1.0, 2.0, 3.0]]


def test_one_operation_used_twice_keeps_its_values_apart(session):
    a, b = tf.constant([2.0]), tf.constant([5.0])
    first = Multiply(a, b)
    second = Multiply(first, first)
    (g,) = tf.gradients(second, a)
    assert session.run(g).tolist() == [100.0]


def test_an_operation_that_compiles(session):
    x = tf.placeholder(tf.float32, [None, 2])
    y = SquaredNorm(x)
    (g,) = tf.gradients(y, x)
    assert session.run(y, {x: [[3, 4]]}).tolist() == [25.0]
    assert session.run(g, {x: [[3, 4]]}).tolist() == [[6.0, 8.0]]
    assert all(node.op != "host_call" for node in tf.get_default_graph().ir.nodes)


def test_several_outputs(session):
    pair = Divmod([5.0, 8.0])
    assert [t.dtype.name for t in pair.outputs] == ["float32", "int32"]
    assert [a.tolist() for a in session.run(pair.outputs)] == [[2.0, 4.0], [1, 0]]


def test_shapes_and_types_may_be_told(session):
    class Histogram(tf.Operation):
        def __init__(self, x):
            super().__init__([x], shape=[4], dtype=tf.int64)

        def forward(self, x):
            return np.histogram(x, 4)[0]

    assert session.run(Histogram(tf.placeholder_with_default([1.0, 2.0], None))).tolist() == [
        1,
        0,
        0,
        1,
    ]


def test_an_exception_inside_leaves_the_session_usable(session):
    class Picky(tf.Operation):
        def __init__(self, x):
            super().__init__([x])

        def forward(self, x):
            if x.any():
                raise KeyError("no")
            return x

    x = tf.placeholder(tf.float32, [2])
    v = tf.Variable(1.0)
    session.run(v.initializer)
    y = Picky(x)
    with pytest.raises(tf.errors.UnknownError, match="KeyError") as caught:
        session.run([y, v.assign(2.0)], {x: [1, 2]})
    assert isinstance(caught.value, errors.UserOpError)
    cause = caught.value
    while cause.__cause__ is not None:
        cause = cause.__cause__
    assert isinstance(cause, KeyError)
    assert session.run([y, v], {x: [0, 0]})[1] == 1.0


def test_errors():
    class Empty(tf.Operation):
        pass

    with pytest.raises(errors.GraphError, match="expected a method"):
        Empty([tf.constant(1.0)])
    with pytest.raises(errors.GraphError, match="write a subclass"):
        tf.Operation([1.0])
    with pytest.raises(
        errors.UserOpError, match=r"forward raised ValueError on zeros.*test_user_op"
    ):
        Add(tf.zeros([2]), tf.zeros([3]))
    with pytest.raises(errors.DTypeError, match="got operation"):
        tf.no_op() + 1


def test_py_func(session):
    x = tf.placeholder(tf.float32, [None, 2])
    y = tf.py_func(lambda a: a * 2, [x], tf.float32)
    z = tf.reduce_sum(y)  # of unknown shape: interpreted
    assert y.shape.ndims is None
    assert session.run([y, z], {x: [[1, 2]]})[1] == 6.0
    known = tf.py_func(lambda a: (a + 1, a.sum()), [x], [tf.float32, tf.float32])
    known[0].set_shape(x.shape)
    known[1].set_shape([])
    assert session.run(known[0] * known[1], {x: [[1, 2]]}).tolist() == [[6.0, 9.0]]
    assert session.run(known[0], {x: [[1, 2], [3, 4]]}).shape == (2, 2)


def test_interpreted_runs_keep_variables_and_counters(session):
    v = tf.Variable([1.0])
    noise = tf.random_uniform([1], seed=1)
    session.run(v.initializer)
    step = v.assign(tf.py_func(lambda a, n: a + 1 + 0 * n, [v, noise], tf.float32))
    first = session.run([step, noise])
    second = session.run([step, noise])
    assert (first[0].tolist(), second[0].tolist()) == ([2.0], [3.0])
    assert first[1] != second[1] != session.run(noise)
    assert session.run(v).tolist() == [3.0]


def test_print(session, capfd):
    x = tf.constant([1.0, 2.0, 3.0, 4.0])
    y = tf.Print(x, [x, tf.shape(x)], "values: ", first_n=2)
    (g,) = tf.gradients(y * y, x)
    for _ in range(3):
        assert session.run(g).tolist() == [2.0, 4.0, 6.0, 8.0]
    assert capfd.readouterr().err == "values: [1.0 2.0 3.0...][4]\n" * 2
