"""Branches and loops in TensorFlow 1 programs: results, order of effects, gradients, errors."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import weft.tf1 as tf
from weft.errors import ArgumentError, DTypeError, GraphError, ShapeError, TreeError
from weft.ir.graph import toposort
from weft.tf1.control.branch import cond_by_selection


@pytest.fixture
def session() -> Iterator[Any]:
    with tf.Graph().as_default(), tf.Session() as session:
        yield session


def ready(session: Any) -> None:
    session.run(tf.global_variables_initializer())


def test_cond_runs_one_branch(session: Any) -> None:
    v = tf.Variable(1.0)
    x = tf.placeholder(tf.float32, [None])
    big = tf.reduce_sum(x) > 3
    y = tf.cond(big, lambda: (x * v, v.assign_add(10.0)), lambda: (-x, v + 0))
    ready(session)
    assert [a.tolist() for a in session.run(y, {x: [1.0, 1.0]})] == [[-1.0, -1.0], 1.0]
    assert session.run(v) == 1.0
    assert [a.tolist() for a in session.run(y, {x: [1.0, 4.0]})] == [[1.0, 4.0], 11.0]
    assert session.run(v) == 11.0


def test_cond_of_operations(session: Any) -> None:
    v = tf.Variable(0)
    flag = tf.placeholder(tf.bool, [])
    op = tf.cond(flag, lambda: tf.assign(v, 5).op, tf.no_op)
    ready(session)
    session.run(op, {flag: False})
    assert session.run(v) == 0
    session.run(op, {flag: True})
    assert session.run(v) == 5


def test_cond_by_selection_changes_variables_in_one_branch(session: Any) -> None:
    v, count = tf.Variable([1.0, 2.0]), tf.Variable(0)
    flag, x = tf.placeholder(tf.bool, []), tf.placeholder(tf.float32, [2])
    called = []

    def note(value: Any) -> Any:
        called.append(value)
        return value

    def plain() -> Any:
        with tf.control_dependencies([tf.assign(v, v.read_value() / x)]):
            return count.assign_add(1, read_value=False)

    def noted() -> Any:
        return tf.assign(v, v.read_value() * tf.py_func(note, [x], tf.float32)).op

    quick = cond_by_selection(flag, plain, tf.no_op)
    slow = cond_by_selection(flag, noted, tf.no_op)
    kinds = [{n.op for n in toposort(op.graph.ir, op.nodes)} for op in (quick, slow)]
    assert ["switch" in each for each in kinds] == [False, True]
    ready(session)
    session.run(quick, {flag: False, x: [0.0, 4.0]})  # 1 / 0 goes nowhere
    assert session.run([v, count])[0].tolist() == [1.0, 2.0] and session.run(count) == 0
    session.run(quick, {flag: True, x: [2.0, 4.0]})
    assert session.run(v).tolist() == [0.5, 0.5] and session.run(count) == 1
    for value, calls in ((False, 0), (True, 1)):  # Python is called in the chosen branch alone
        session.run(slow, {flag: value, x: [2.0, 4.0]})
        assert len(called) == calls
    assert session.run(v).tolist() == [1.0, 2.0]


def test_case_and_switch_case(session: Any) -> None:
    x = tf.placeholder(tf.int32, [])
    found = tf.case([(x < 2, lambda: tf.constant(20)), (x < 5, lambda: x * 10)], lambda: x - 1)
    chosen = tf.switch_case(x, {1: lambda: x + 100, 0: lambda: x}, default=lambda: x - 7)
    assert [session.run([found, chosen], {x: n}) for n in (1, 3, 9, 0)] == [
        [20, 101], [30, -4], [8, 2], [20, 0],
    ]  # fmt: skip
    assert session.run(chosen, {x: -1}) == -8


def test_while_loops_of_structures(session: Any) -> None:
    n = tf.placeholder(tf.int32, [])

    def body(i: Any, state: Any) -> Any:
        return i + 1, {"a": state["a"] + state["b"][0], "b": [state["b"][0] * 2, state["b"][1]]}

    start = {"a": tf.constant(0.0), "b": [1.0, tf.zeros([3])]}
    i, state = tf.while_loop(lambda i, _: i < n, body, (0, start))
    assert session.run([i, state["a"], state["b"][0]], {n: 4}) == [4, 15.0, 16.0]
    capped = tf.while_loop(lambda i: i < 100, lambda i: i + 1, [0], maximum_iterations=n)
    assert session.run(capped, {n: 7}) == 7


def test_variables_change_in_every_turn(session: Any) -> None:
    v, count = tf.Variable(1.0), tf.Variable(0)

    def body(i: Any, x: Any) -> Any:
        with tf.control_dependencies([count.assign_add(1)]):
            new = v.assign(v * 2)
            return i + 1, x + new

    found = tf.while_loop(lambda i, _: i < 3, body, [0, 0.0])
    ready(session)
    assert session.run(found[1]) == 2 + 4 + 8
    assert session.run([v, count]) == [8.0, 3]
    with tf.control_dependencies([found[1]]):
        after = v.read_value()
    assert session.run(after) == 64.0


def test_nested_loops_capture_and_assign(session: Any) -> None:
    total = tf.Variable(0)
    base = tf.placeholder(tf.int32, [])

    def outer(i: Any) -> Any:
        def inner(j: Any) -> Any:
            step = tf.cond(
                tf.equal(j % 2, 0), lambda: total.assign_add(base + i), lambda: tf.identity(total)
            )
            with tf.control_dependencies([step]):
                return j + 1

        (j,) = tf.while_loop(lambda j: j < 4, inner, [0], return_same_structure=True)
        return i + j // 4

    found = tf.while_loop(lambda i: i < 3, outer, [0])
    ready(session)
    assert session.run(found, {base: 10}) == 3
    assert session.run(total) == 2 * (10 + 11 + 12)


def test_tensor_arrays_in_loops(session: Any) -> None:
    x = tf.placeholder(tf.float32, [None, 3])
    rows = tf.TensorArray(tf.float32, tf.shape(x)[0]).unstack(x)
    out = tf.TensorArray(tf.float32, tf.shape(x)[0])

    def body(i: Any, out: Any, state: Any) -> Any:
        state = tf.tanh(state + rows.read(i))
        return i + 1, out.write(i, state), state

    _, out, last = tf.while_loop(
        lambda i, *_: i < tf.shape(x)[0], body, [0, out, tf.zeros([3])], maximum_iterations=9
    )
    (slope,) = tf.gradients(tf.reduce_sum(out.stack() ** 2), x)
    xs = np.linspace(-1, 1, 12, dtype=np.float32).reshape(4, 3)
    ys, end, size, g = session.run([out.stack(), last, out.size(), slope], {x: xs})
    state, expected = np.zeros(3, np.float32), []
    for row in xs:
        state = np.tanh(state + row)
        expected.append(state)
    np.testing.assert_allclose(ys, expected, rtol=1e-5)
    np.testing.assert_allclose(end, state, rtol=1e-5)
    assert size == 4
    back, wanted = np.zeros(3), []
    for y in reversed(expected):
        back = (back + 2 * y) * (1 - y * y)
        wanted.append(back)
    np.testing.assert_allclose(g, wanted[::-1], rtol=1e-4, atol=1e-5)


def test_elements_of_unknown_shape_are_found_out(session: Any) -> None:
    x = tf.placeholder(tf.float32, [None, None])

    def body(i: Any, a: Any) -> Any:
        return i + 1, a.write(i, tf.reduce_sum(x, 1) * tf.to_float(i))

    _, found = tf.while_loop(lambda i, _: i < 3, body, [0, tf.TensorArray(tf.float32, 3)])
    assert session.run(found.stack(), {x: [[1.0, 2.0], [3.0, 4.0]]}).tolist() == [
        [0.0, 0.0], [3.0, 7.0], [6.0, 14.0],
    ]  # fmt: skip


def test_sizes_from_outside_are_shapes_inside(session: Any) -> None:
    x = tf.placeholder(tf.float32, [None, 2])
    n = tf.shape(x)[0]

    def inner(y: Any) -> Any:
        return tf.cond(tf.reduce_sum(y) > 0, lambda: y + tf.ones([n, 2]), lambda: tf.ones([n, 2]))

    _, y = tf.while_loop(lambda i, _: i < 3, lambda i, y: (i + 1, inner(y)), [0, tf.zeros([n, 2])])
    for rows in (2, 4):
        assert session.run(y, {x: np.zeros((rows, 2))}).tolist() == [[3.0, 3.0]] * rows


def test_tensor_array_methods(session: Any) -> None:
    a = tf.TensorArray(tf.float32, 3, element_shape=[2])
    a = a.scatter([2, 0], [[5.0, 6.0], [1.0, 2.0]]).identity()
    assert session.run(a.stack()).tolist() == [[1.0, 2.0], [0.0, 0.0], [5.0, 6.0]]
    assert session.run(a.concat()).tolist() == [1.0, 2.0, 0.0, 0.0, 5.0, 6.0]
    assert session.run(a.gather([2, 2])).tolist() == [[5.0, 6.0], [5.0, 6.0]]
    parts = tf.TensorArray(tf.float32, 2).split(tf.constant([1.0, 2.0, 3.0, 4.0]), [2, 2])
    assert session.run(parts.read(1)).tolist() == [3.0, 4.0]


def test_arrays_that_grow(session: Any) -> None:
    n, x = tf.placeholder(tf.int32, []), tf.placeholder(tf.float32, [3])
    empty = tf.TensorArray(tf.float32, 0, dynamic_size=True)
    end, a = tf.while_loop(
        lambda i, _: i < n, lambda i, a: (i + 2, a.write(i - 1, x * tf.to_float(i))), [1, empty]
    )
    (slope,) = tf.gradients(tf.reduce_sum(a.stack() ** 2), x)
    row = np.arange(3, dtype=np.float32)
    rows, size, last, g = session.run([a.stack(), a.size(), end, slope], {n: 6, x: row})
    np.testing.assert_array_equal(rows, np.outer([1, 0, 3, 0, 5], row))
    assert (size, last) == (5, 7)
    np.testing.assert_array_equal(g, 2 * row * (1 + 9 + 25))
    wider = a.write(4, x)  # after the end, outside of the loop
    np.testing.assert_array_equal(
        session.run(wider.stack(), {n: 2, x: row}), np.outer([1, 0, 0, 0, 1], row)
    )
    assert session.run(wider.scatter([1, 6], [row, row]).size(), {n: 2, x: row}) == 7


def test_growth_by_lengths_that_are_fed(session: Any) -> None:
    lengths = tf.placeholder(tf.int32, [None])

    def body(t: Any, a: Any, done: Any) -> Any:
        return t + 1, a.write(a.size(), t * 10), tf.logical_or(done, t + 1 >= lengths)

    a = tf.TensorArray(tf.int32, 0, dynamic_size=True, element_shape=[])
    _, a, _ = tf.while_loop(
        lambda t, a, done: tf.logical_not(tf.reduce_all(done)), body, [0, a, lengths <= 0]
    )
    for given in ([2, 4, 1], [1], [0, 0]):
        assert session.run(a.stack(), {lengths: given}).tolist() == [
            10 * t for t in range(max(given))
        ]


def test_growth_that_only_the_loop_knows(session: Any) -> None:
    x = tf.placeholder(tf.float32, [])
    empty = tf.TensorArray(tf.float32, 0, dynamic_size=True)

    def run(**options: Any) -> Any:
        return tf.while_loop(
            lambda i, v, a: v < 10, lambda i, v, a: (i + 1, v * 2, a.write(i, v)), [0, x, empty],
            **options,
        )  # fmt: skip

    _, _, grown = run()
    assert session.run(grown.stack(), {x: 3.0}).tolist() == [3.0, 6.0]
    held = tf.Variable(0.0)

    def assigns(i: Any, v: Any, a: Any) -> Any:
        with tf.control_dependencies([held.assign_add(v)]):
            return i + 1, v * 2, a.write(i, v)

    with pytest.raises(GraphError, match=r"depends on what it computes: give maximum_iterations="):
        tf.while_loop(lambda i, v, a: v < 10, assigns, [0, x, empty])
    _, _, a = run(maximum_iterations=6)
    rows, size = session.run([a.stack(), a.size()], {x: 1.0})
    assert (rows.tolist(), size) == ([1.0, 2.0, 4.0, 8.0, 0.0, 0.0], 4)


def test_an_index_behind_the_end_raises(session: Any) -> None:
    at = tf.placeholder(tf.int32, [])
    a = tf.TensorArray(tf.float32, 2, element_shape=[]).write(at, 1.0)
    assert session.run(a.stack(), {at: 1}).tolist() == [0.0, 1.0]
    for wrong in (2, -1):
        with pytest.raises(tf.errors.InvalidArgumentError, match="an index of an element"):
            session.run(a.stack(), {at: wrong})


def test_functional_loops(session: Any) -> None:
    x = tf.placeholder(tf.float32, [None, 2])
    data = np.arange(6, dtype=np.float32).reshape(3, 2)
    pair = tf.map_fn(lambda r: (r * 2, tf.reduce_sum(r)), x, dtype=(tf.float32, tf.float32))
    first, second = session.run(pair, {x: data})
    np.testing.assert_array_equal(first, data * 2)
    np.testing.assert_array_equal(second, data.sum(1))
    run = tf.scan(lambda a, r: a * 0.5 + r, x)
    back = tf.scan(lambda a, r: a * 0.5 + r, x, initializer=tf.ones([2]), reverse=True)
    state, expected = data[0], [data[0]]
    for row in data[1:]:
        state = state * 0.5 + row
        expected.append(state)
    np.testing.assert_allclose(session.run(run, {x: data}), expected)
    state, expected = np.ones(2), []
    for row in data[::-1]:
        state = state * 0.5 + row
        expected.append(state)
    np.testing.assert_allclose(session.run(back, {x: data}), expected[::-1])
    left = tf.foldl(lambda a, r: a - r, x)
    right = tf.foldr(lambda a, r: a - r, x, initializer=tf.zeros([2]))
    assert session.run(left, {x: data}).tolist() == (data[0] - data[1] - data[2]).tolist()
    assert session.run(right, {x: data}).tolist() == (-data.sum(0)).tolist()


def test_gradients_of_functional_loops(session: Any) -> None:
    x = tf.placeholder(tf.float32, [None, 2])
    w = tf.Variable([0.5, 2.0])
    mapped = tf.map_fn(lambda r: r * w * r, x)
    run = tf.scan(lambda a, r: a * w + r, x)
    slopes = tf.gradients(tf.reduce_sum(mapped), [x, w]) + tf.gradients(run[-1], [x, w])
    data = np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]], np.float32)
    ready(session)
    by_x, by_w, last_x, last_w = session.run(slopes, {x: data})
    np.testing.assert_allclose(by_x, 2 * data * [0.5, 2.0])
    np.testing.assert_allclose(by_w, (data**2).sum(0))
    np.testing.assert_allclose(last_x, np.array([0.5, 2.0]) ** [[2], [1], [0]])
    np.testing.assert_allclose(last_w, 2 * data[0] * [0.5, 2.0] + data[1])
    one = tf.scan(lambda a, r: a * r, x)
    assert session.run(one, {x: data[:1]}).tolist() == [[1.0, 2.0]]


def test_gradients_of_variables_in_bodies(session: Any) -> None:
    w = tf.Variable([[1.0, 2.0], [0.5, -1.0]])
    x = tf.constant([[1.0, 1.0]])
    _, y = tf.while_loop(lambda i, _: i < 3, lambda i, h: (i + 1, tf.tanh(tf.matmul(h, w))), [0, x])
    h = x
    for _ in range(3):
        h = tf.tanh(tf.matmul(h, w))
    looped, plain = tf.gradients(y, w)[0], tf.gradients(h, w)[0]
    chosen = tf.cond(tf.reduce_sum(x) > 0, lambda: tf.reduce_sum(w * w), lambda: tf.constant(0.0))
    ready(session)
    found, expected = session.run([looped, plain])
    np.testing.assert_allclose(found, expected, rtol=1e-5)
    np.testing.assert_allclose(session.run(tf.gradients(chosen, w)[0]), 2 * session.run(w))


def test_a_gradient_through_any_number_of_turns(session: Any) -> None:
    x = tf.placeholder(tf.float32, [])
    y = tf.while_loop(lambda y: y < 1000.0, lambda y: y * y * x, [x])
    slope = tf.gradients(y, x)[0]
    for value in (2.0, 3.0, 1500.0):
        power, y_ = 1, value
        while y_ < 1000:
            y_, power = y_ * y_ * value, 2 * power + 1
        np.testing.assert_allclose(
            session.run(slope, {x: value}), power * value ** (power - 1), rtol=1e-4
        )


def test_every_turn_draws_its_own_numbers(session: Any) -> None:
    out = tf.map_fn(lambda _: tf.random_uniform([4]), tf.zeros([20]))
    first, second = session.run(out), session.run(out)
    assert len(np.unique(np.concatenate([first, second]))) == 160


def test_variables_made_inside_are_made_once(session: Any) -> None:
    def body(i: Any, x: Any) -> Any:
        with tf.variable_scope("cell", reuse=tf.AUTO_REUSE):
            w = tf.get_variable("w", [3], initializer=tf.constant_initializer(2.0))
        return i + 1, x * w

    _, y = tf.while_loop(lambda i, _: i < 3, body, [0, tf.ones([3])])
    assert [v.name for v in tf.trainable_variables()] == ["cell/w:0"]
    ready(session)
    assert session.run(y).tolist() == [8.0, 8.0, 8.0]
    assert session.run(tf.gradients(y, tf.trainable_variables()))[0].tolist() == [12.0] * 3


def test_shape_invariants(session: Any) -> None:
    x = tf.placeholder(tf.float32, [2, None])
    found = tf.while_loop(
        lambda i, _: i < 2, lambda i, h: (i + 1, h * 2), [0, x],
        shape_invariants=[tf.TensorShape([]), tf.TensorShape([None, None])],
    )  # fmt: skip
    assert found[1].shape.ndims == 2
    assert session.run(found[1], {x: np.ones((2, 1))}).tolist() == [[4.0], [4.0]]
    with pytest.raises(ShapeError, match="does not fit loop variable 1"):
        tf.while_loop(
            lambda i, _: i < 2, lambda i, h: (i, h), [0, x], [None, tf.TensorShape([3, 3])]
        )


def test_errors() -> None:
    x = tf.zeros([3])
    with pytest.raises(DTypeError, match="got a Python bool"):
        tf.cond(True, lambda: x, lambda: x)
    with pytest.raises(TreeError, match=r"same structure, got\n  \[\(\., \.\)\]|\(\., \.\)\n  \."):
        tf.cond(x[0] > 0, lambda: x, lambda: (x, x))
    with pytest.raises(DTypeError, match=r"\n  0: int32\[3\] +\| float32\[3\]  <- differs"):
        tf.cond(x[0] > 0, lambda: x, lambda: tf.to_int32(x))
    with pytest.raises(ShapeError, match=r"0: float32\[3\] \| float32\[6\]  <- differs"):
        tf.while_loop(lambda x: x[0] < 1, lambda x: tf.concat([x, x], 0), [x])
    with pytest.raises(DTypeError, match="cond to give a boolean scalar"):
        tf.while_loop(lambda x: x, lambda x: x, [x])
    with pytest.raises(TreeError, match="as many tensors as loop_vars have"):
        tf.while_loop(lambda a, b: a < 1, lambda a, b: a, [0, 1])
    with pytest.raises(ArgumentError, match="expected a size"):
        tf.TensorArray(tf.float32)
    with pytest.raises(ArgumentError, match="rank 1 or more"):
        tf.map_fn(lambda x: x, tf.constant(1.0))
