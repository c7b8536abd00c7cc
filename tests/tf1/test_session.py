"""Sessions: nested fetches, feeds, plans, threads, errors."""

import collections
import threading

import numpy as np
import pytest

import weft.tf1 as tf
from weft import errors


def test_fetches_keep_their_nesting(session):
    pair = collections.namedtuple("pair", "left right")
    x = tf.placeholder(tf.float32, [], name="x")
    y = x * 2.0
    found = session.run({"a": y, "b": [x, (y, "x:0")], "c": pair(y, tf.no_op()), "d": []}, {x: 3})
    assert found == {"a": 6.0, "b": [3.0, (6.0, 3.0)], "c": pair(6.0, None), "d": []}
    assert isinstance(found["c"], pair) and isinstance(found["b"][1], tuple)
    assert isinstance(session.run(y, {x: 1}), np.float32)
    ordered = collections.OrderedDict([("z", x), ("a", y)])
    assert isinstance(session.run(ordered, {x: 1}), collections.OrderedDict)


def test_like_fetches_of_other_kinds_are_distinguished(session):
    pair = collections.namedtuple("pair", "left right")
    a, b = tf.constant(1), tf.constant(2)
    for _ in range(2):
        assert session.run([a, b]) == [1, 2]
        assert session.run((a, b)) == (1, 2)
        assert isinstance(session.run(pair(a, b)), pair)
        assert type(session.run((a, b))) is tuple
        assert session.run(([a], b)) == ([1], 2)
        assert type(session.run((a, pair(a, b)))[1]) is pair
        assert type(session.run((a, (a, b)))[1]) is tuple


def test_feeds_of_every_kind(session):
    x = tf.placeholder(tf.float32, [None, 2], name="x")
    s = tf.placeholder(tf.float32, name="s")
    y = tf.multiply(x, s, name="y")
    z = y + 1.0
    expected = [[3.0, 5.0]]
    assert session.run(z, {x: [[1, 2]], s: 2}).tolist() == expected
    assert (
        session.run(z, {"x:0": np.array([[1.0, 2.0]]), "s:0": np.float64(2)}).tolist() == expected
    )
    assert session.run("add:0", {x: ((1, 2),), s: np.int8(2)}).tolist() == expected
    assert (
        session.run(z, {x: np.array([[1, 9, 2, 9]], np.float32)[:, ::2], s: 2}).tolist() == expected
    )
    assert session.run(z, {x: np.asfortranarray([[1.0, 2.0], [3.0, 4.0]]), s: 1}).tolist() == [
        [2.0, 3.0], [4.0, 5.0]
    ]  # fmt: skip
    assert session.run(z, {y: [[2, 4]]}).tolist() == expected  # an intermediate tensor
    assert session.run([y, z], {y: [[0, 0]]})[0].tolist() == [[0.0, 0.0]]


def test_feeding_one_of_two_equal_tensors_leaves_the_other():
    a = tf.constant(1.0)
    first, second = tf.identity(a), tf.identity(a)
    with tf.Session() as sess:
        assert sess.run([first, second, a], {first: 5.0}) == [5.0, 1.0, 1.0]
        assert sess.run([first, second], {a: 7.0}) == [7.0, 7.0]


def test_feeding_a_variable(session):
    v = tf.Variable([1.0, 2.0])
    y = v * 2.0
    session.run(v.initializer)
    assert session.run(y, {v: [10, 20]}).tolist() == [20.0, 40.0]
    assert session.run(y).tolist() == [2.0, 4.0]


def test_placeholder_with_default(session):
    x = tf.placeholder_with_default([1.0, 2.0], [None])
    y = x + 1.0
    assert session.run(y).tolist() == [2.0, 3.0]
    assert session.run(y, {x: [5]}).tolist() == [6.0]


def test_the_graph_may_grow_between_runs(session):
    x = tf.placeholder(tf.float32, [])
    y = x + 1.0
    assert session.run(y, {x: 1}) == 2.0
    z = y * y
    assert session.run([y, z], {x: 1}) == [2.0, 4.0]
    v = tf.Variable(z)  # an initial value that depends on a feed
    session.run(v.initializer, {x: 2})
    assert session.run(v) == 9.0


def test_make_callable(session):
    x, y = tf.placeholder(tf.float32, []), tf.placeholder(tf.float32, [])
    call = session.make_callable(x - y, [x, y])
    assert call(5, 2) == 3.0
    assert session.make_callable([tf.constant(1)])() == [1]
    with pytest.raises(errors.GraphError, match="expected 2 values, got 1"):
        call(1)


def test_sessions_do_not_share_variables():
    v = tf.Variable(1.0)
    add = v.assign_add(1.0)
    one, two = tf.Session(), tf.Session()
    for sess in (one, two):
        sess.run(v.initializer)
    one.run(add)
    assert (one.run(v), two.run(v)) == (2.0, 1.0)


def test_results_are_fresh_arrays(session):
    v = tf.Variable([1.0, 2.0])
    session.run(v.initializer)
    before = session.run(v)
    session.run(v.assign([5.0, 6.0]))
    assert before.tolist() == [1.0, 2.0]
    before[0] = 99
    assert session.run(v).tolist() == [5.0, 6.0]


def test_default_graph_and_session_in_with_blocks():
    graph = tf.Graph()
    with graph.as_default():
        a = tf.constant(3.0)
    with tf.Session(graph=graph) as sess:
        assert tf.get_default_graph() is graph
        assert tf.get_default_session() is sess
        assert a.eval() == 3.0
        b = a + 1.0  # added to `graph`
    assert b.graph is graph
    assert tf.get_default_session() is None


def test_threads_over_overlapping_subgraphs():
    x = tf.placeholder(tf.float32, [None, 8])
    w = tf.Variable(tf.ones([8, 8]))
    shared = tf.matmul(x, w)
    heads = [tf.reduce_sum(shared) * float(i) for i in range(4)]
    count = tf.Variable(0)
    step = tf.assign_add(count, 1)
    failures = []
    with tf.Session(config=tf.ConfigProto(intra_op_parallelism_threads=2)) as sess:
        sess.run(tf.global_variables_initializer())

        def work(i):
            try:
                for n in range(1, 30):
                    rows = n % 5 + 1
                    found = sess.run(heads[i], {x: np.ones((rows, 8), np.float32)})
                    assert found == 64.0 * rows * i, (found, rows, i)
                    sess.run(step)
            except BaseException as error:
                failures.append(error)

        threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not failures
        assert sess.run(count) == 4 * 29


# What must raise; the session continues
def test_a_missing_feed_is_named(session):
    x = tf.placeholder(tf.float32, [None, 3], name="x")
    y = x + 1.0
    with pytest.raises(
        tf.errors.InvalidArgumentError, match=r"expected a feed for x:0 of float32 \(\?, 3\)"
    ):
        session.run(y)
    assert session.run(y, {x: np.zeros((1, 3))}).shape == (1, 3)


@pytest.mark.parametrize(
    "value, message",
    [
        (np.zeros((2, 4)), r"x.*expected.*shape \(\?, 3\), got \(2, 4\)"),
        (np.zeros((2, 4), np.float32), r"x.*expected.*shape \(\?, 3\), got \(2, 4\)"),
        (np.zeros(3), r"x.*expected.*shape \(\?, 3\), got \(3,\)"),
        ([["a", "b", "c"]], "expected numbers of type float32"),
        (None, "expected numbers of type float32"),
        ([[1, 2], [3]], "expected numbers of type float32"),
    ],
)
def test_feeds_that_do_not_fit(session, value, message):
    x = tf.placeholder(tf.float32, [None, 3], name="x")
    y = x * 2.0
    with pytest.raises(tf.errors.InvalidArgumentError, match=message) as caught:
        session.run(y, {x: value})
    assert isinstance(caught.value, errors.FeedError) and isinstance(caught.value, ValueError)
    assert session.run(y, {x: [[1, 2, 3]]}).tolist() == [[2.0, 4.0, 6.0]]


@pytest.mark.parametrize(
    "value", [float("nan"), float("inf"), 2**40, -(2**31) - 1, [1.0, float("nan")]]
)
def test_what_an_integer_placeholder_cannot_hold(session, value):
    i = tf.placeholder(tf.int32, name="i")
    with pytest.raises(tf.errors.InvalidArgumentError, match="i:0: expected"):
        session.run(i + 1, {i: value})


def test_fetches_that_are_none(session):
    other = tf.Graph()
    with other.as_default():
        foreign = tf.constant(1)
    with pytest.raises(errors.GraphError, match="not an element of this graph"):
        session.run(foreign)
    with pytest.raises(errors.GraphError, match="no operation 'nope'"):
        session.run("nope:0")
    with pytest.raises(errors.DTypeError, match="got 3"):
        session.run(3)
    with pytest.raises(TypeError, match="got None"):
        session.run([None])
    a = tf.constant(1)
    with pytest.raises(errors.DTypeError, match="expected a number, a list or an array as feed"):
        session.run(a, {a: tf.constant(2)})
    with pytest.raises(TypeError, match="cannot interpret the key"):
        session.run(a, {3: 2})


def test_a_closed_session():
    a = tf.constant(1)
    sess = tf.Session()
    assert sess.run(a) == 1
    sess.close()
    with pytest.raises(RuntimeError, match="expected an open session"):
        sess.run(a)


def test_a_cycle_of_control_dependencies(session):
    a = tf.constant(1.0) + 1.0
    b = a * 2.0
    assert session.run(b) == 4.0
    a.op._add_control_input(b.op)
    with pytest.raises(errors.GraphError, match="cycle"):
        session.run(b)
    assert session.run(tf.constant(1) + 1) == 2


def test_config_is_checked():
    with pytest.raises(TypeError, match="ConfigProto"):
        tf.Session(config=3)
    with pytest.raises(TypeError, match=r"tf\.Graph"):
        tf.Session(graph="g")
    with pytest.raises(errors.ConfigError):
        tf.Session(config=tf.ConfigProto(intra_op_parallelism_threads=-1))


def test_eval_without_a_session():
    with pytest.raises(ValueError, match="no default session"):
        tf.constant(1).eval()


def test_more_threads_than_a_team_can_have():
    x = tf.placeholder(tf.float32, [300, 300])
    y = tf.matmul(x, x)
    many = tf.Session(config=tf.ConfigProto(intra_op_parallelism_threads=1000))
    assert many.run(y, {x: np.ones((300, 300))})[0, 0] == 300.0
