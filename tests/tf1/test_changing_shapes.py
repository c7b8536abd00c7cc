"""Branches and turns of other shapes than the rest: only what a run takes has to fit.

Expected numbers are TensorFlow's.
"""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import weft.tf1 as tf
from weft.errors import ShapeError
from weft.runtime.engine import Function

Pair = tuple[Any, Any]


@pytest.fixture
def session() -> Iterator[Any]:
    with tf.Graph().as_default(), tf.Session() as session:
        yield session


def pad_or_cut(x: Any) -> Any:
    n = tf.size(x)
    return tf.cond(n < 4, lambda: tf.pad(x * x, [[0, 4 - n]]), lambda: x[:4])


def concat_or_cut(x: Any) -> Any:
    n = tf.size(x)
    return tf.cond(n < 4, lambda: tf.concat([x, tf.zeros([4 - n])], 0), lambda: x[:4])


def nested(x: Any) -> Any:
    n = tf.size(x)
    small = lambda: tf.cond(n < 2, lambda: tf.pad(x, [[0, 2 - n]]), lambda: x[:2] * x[1:])  # noqa: E731
    return tf.cond(n < 4, small, lambda: x[:4])


def case(x: Any) -> Any:
    n = tf.size(x)
    pairs = [
        (n < 2, lambda: tf.pad(x, [[0, 2 - n]])),
        (n < 4, lambda: tf.concat([x, tf.zeros([4 - n])], 0)),
    ]
    return tf.case(pairs, default=lambda: tf.reshape(x, [-1, 2])[0])


def pairs_or_triple(x: Any) -> Any:
    return tf.switch_case(tf.size(x) % 2, [lambda: tf.reshape(x * x, [-1, 2]), lambda: x * 3])


def rows_in_loop(x: Any) -> Any:
    even = tf.equal(tf.size(x) % 2, 0)
    pairs = lambda: tf.reduce_sum(tf.reshape(x * x, [-1, 2])) * 2  # noqa: E731
    f = lambda: tf.cond(even, pairs, lambda: tf.reduce_sum(x))  # noqa: E731
    return tf.while_loop(lambda i, a: i < 3, lambda i, a: (i + 1, a * 2 + f()), [0, 0.0])[1]


def turns_in_loop(x: Any) -> Any:
    def f(i: Any) -> Any:
        return tf.cond(i < 1, lambda: tf.pad(x, [[0, i]]), lambda: tf.pad(x * x, [[0, i - 1]]))

    body = lambda i, a: (i + 1, a * 2 + tf.reduce_sum(f(i)))  # noqa: E731
    return tf.while_loop(lambda i, a: i < 3, body, [0, 0.0])[1]


def first_slices(x: Any) -> Any:
    body = lambda i, a: (i + 1, a * 2 + tf.reduce_sum(x[: i + 1] * x[: i + 1]))  # noqa: E731
    return tf.while_loop(lambda i, a: i < tf.size(x), body, [0, 0.0])[1]


def growing(x: Any) -> Any:
    shapes = [tf.TensorShape([]), tf.TensorShape([None])]
    body = lambda i, a: (i + 1, tf.concat([a, a[-1:] * 2], 0))  # noqa: E731
    return tf.while_loop(lambda i, a: i < 4, body, [0, x], shapes)[1]


CASES: dict[str, tuple[Callable[[Any], Any], list[tuple[Any, Pair]]]] = {
    "pad or cut": (
        pad_or_cut,
        [([1, 2], ([1, 4, 0, 0], [2, 4])), ([1, 2, 3, 4, 5], ([1, 2, 3, 4], [1, 1, 1, 1, 0]))],
    ),
    "concat or cut": (
        concat_or_cut,
        [([1, 2], ([1, 2, 0, 0], [1, 1])), ([1, 2, 3, 4, 5], ([1, 2, 3, 4], [1, 1, 1, 1, 0]))],
    ),
    "nested": (
        nested,
        [([3], ([3, 0], [1])), ([1, 2, 3], ([2, 6], [2, 4, 2])), ([1] * 4, ([1] * 4, [1] * 4))],
    ),
    "case": (
        case,
        [
            ([5], ([5, 0], [1])),
            ([1, 2, 3], ([1, 2, 3, 0], [1] * 3)),
            ([1] * 4, ([1, 1], [1, 1, 0, 0])),
        ],
    ),
    "switch_case": (
        pairs_or_triple,
        [([1, 2, 3], ([3, 6, 9], [3, 3, 3])), ([1, 2], ([[1, 4]], [2, 4]))],
    ),
    "a branch in a loop": (
        rows_in_loop,
        [([0, 1, 2], (21, [7, 7, 7])), ([0, 1, 2, 3, 4, 5], (770, [0, 28, 56, 84, 112, 140]))],
    ),
    "a branch of the turn": (turns_in_loop, [([0], (0, [4])), ([0, 1, 2], (27, [4, 10, 16]))]),
    "slices of the turn": (first_slices, [([1, 2, 3, 4], (86, [30, 28, 18, 8]))]),
    "growing": (
        growing,
        [([3], ([3, 6, 12, 24, 48], [31])), ([1, 2], ([1, 2, 4, 8, 16, 32], [1, 31]))],
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_only_what_is_taken_must_fit(name: str, session: Any) -> None:
    function, runs = CASES[name]
    x = tf.placeholder(tf.float32, [None])
    y = function(x)
    (slope,) = tf.gradients(y, x)
    for given, (value, gradient) in [*runs, *runs]:
        found = session.run([y, slope], {x: given})
        assert [a.tolist() for a in found] == [value, gradient], given


def test_a_branch_that_follows_from_feeds_is_compiled(
    session: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Function, "_run_interpreted", None)
    x = tf.placeholder(tf.float32, [None])
    y = nested(x)
    found = [session.run([y, *tf.gradients(y, x)], {x: np.ones(k)})[1].size for k in (1, 3, 5)]
    assert found == [1, 3, 5]


@pytest.mark.parametrize(
    ("n", "size"),
    [
        (lambda i: tf.reduce_sum(tf.range(0, i + 1)), 10),
        (lambda i: tf.reduce_sum(tf.ones([i + 1], tf.int32)), 10),
        (lambda i: tf.size(tf.zeros([4, 4])[: i + 1, i:]), 20),
        (lambda i: tf.size(tf.reshape(tf.range(i * 2), [-1, 2])), 12),
    ],
)
def test_sizes_of_the_turn(n: Any, size: int, session: Any) -> None:
    found = tf.while_loop(lambda i, a: i < 4, lambda i, a: (i + 1, a + n(i)), [0, 0])
    assert session.run(found)[1] == size


def test_branches_of_other_shapes(session: Any) -> None:
    flag, x = tf.placeholder(tf.bool, []), tf.placeholder(tf.float32, [3])
    y = tf.cond(flag, lambda: x * x, lambda: x[:2] * 3)
    assert y.shape.as_list() == [None]
    assert tf.cond(flag, lambda: x, lambda: tf.zeros([2, 3])).shape.ndims is None
    (g,) = tf.gradients(tf.reduce_sum(y * y), x)
    run = lambda f: [a.tolist() for a in session.run([y, g], {flag: f, x: [1, 2, 3]})]  # noqa: E731
    assert run(True) == [[1, 4, 9], [4, 32, 108]]
    assert run(False) == [[3, 6], [18, 36, 0]]


@pytest.mark.parametrize("state", ["variable", "random"])
def test_a_branch_that_the_state_chooses(state: str, session: Any) -> None:
    """Shapes that no feed tells: the step is interpreted, and effects are as ever."""
    steps, x = tf.Variable(0), tf.placeholder(tf.float32, [3])
    flag = tf.equal(steps, 1) if state == "variable" else tf.random_uniform([], seed=4) < 0.5

    def counted() -> Any:
        with tf.control_dependencies([steps.assign_add(1)]):
            return x[:2] * 3

    y = tf.cond(flag, lambda: x * x, counted)
    session.run(tf.global_variables_initializer())
    found = [session.run([y, flag], {x: [1, 2, 3]}) for _ in range(8)]
    assert all([v.tolist() == ([1, 4, 9] if f else [3, 6]) for v, f in found])
    assert {len(v) for v, _ in found} == {2, 3}
    assert session.run(steps) == sum([len(v) == 2 for v, _ in found])


def test_training_through_sizes_of_the_turn(session: Any) -> None:
    v = tf.Variable([1.0, 2.0, 3.0, 4.0])
    body = lambda i, a: (i + 1, a + tf.reduce_sum(v[: i + 1]))  # noqa: E731
    loss = tf.while_loop(lambda i, a: i < 4, body, [0, 0.0])[1]
    step = tf.train.GradientDescentOptimizer(0.1).minimize(loss)
    session.run(tf.global_variables_initializer())
    session.run(step)
    assert session.run(v) == pytest.approx([0.6, 1.7, 2.8, 3.9])


def test_errors_of_what_is_taken(session: Any) -> None:
    x, y = tf.placeholder(tf.float32, [None]), tf.placeholder(tf.float32, [None])
    n = tf.size(x)
    bad = tf.cond(n < 4, lambda: tf.pad(x, [[0, 1 - n]]), lambda: x[:4])
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"pad: .*test_changing_shapes"):
        session.run(bad, {x: [1, 2, 3]})
    assert session.run(bad, {x: [1] * 5}).tolist() == [1] * 4
    loop = tf.while_loop(
        lambda i, a: i < 2, lambda i, a: (i + 1, a + tf.reduce_sum(x + y)), [0, 0.0]
    )
    with pytest.raises(
        tf.errors.InvalidArgumentError, match=r"do not broadcast: \(3,\) and \(2,\)"
    ):
        session.run(loop, {x: [1, 2, 3], y: [1, 2]})
    with pytest.raises(ShapeError, match="declared by shape_invariants="):
        tf.while_loop(lambda x: x[0] < 1, lambda x: tf.concat([x, x], 0), [tf.zeros([3])])


def captured(kind: str, a: Any) -> Any:
    x = tf.constant([1.0, 2.0, 3.0])
    yes = lambda: a * 3.0  # noqa: E731
    return {
        "while": lambda: tf.while_loop(lambda v: v < 100.0, lambda v: v * a, [2.0]),
        "counted": lambda: tf.while_loop(lambda i, v: i < 2, lambda i, v: (i + 1, v * a), [0, 2.0])[
            1
        ],
        "cond": lambda: tf.cond(tf.less(1, 2), yes, lambda: a * 5.0),
        "only": lambda: tf.cond(tf.less(1, 2), lambda: a, lambda: a * 5.0),
        "case": lambda: tf.case([(tf.less(1, 2), yes)], default=lambda: a * 5.0),
        "switch": lambda: tf.switch_case(tf.constant(0), [yes, lambda: a * 5.0]),
        "map": lambda: tf.map_fn(lambda v: v * a, x),
        "scan": lambda: tf.scan(lambda s, v: s + v * a, x, initializer=0.0),
        "foldl": lambda: tf.foldl(lambda s, v: s + v * a, x, initializer=0.0),
        "foldr": lambda: tf.foldr(lambda s, v: s + v * a, x, initializer=0.0),
    }[kind]()


SLOPES = {
    "while": 216, "counted": 12, "cond": 3, "only": 1, "case": 3, "switch": 3, "map": 6, "scan": 10,
    "foldl": 6, "foldr": 6,
}  # fmt: skip


@pytest.mark.parametrize("kind", SLOPES)
@pytest.mark.parametrize(
    "make", [lambda: tf.constant(3.0), lambda: tf.ones([]) * 3, lambda: tf.fill([], 3.0)]
)
def test_gradient_by_a_captured_constant(kind: str, make: Any, session: Any) -> None:
    a = make()
    (g,) = tf.gradients(captured(kind, a), a)
    assert session.run(g) == SLOPES[kind]


def test_a_fed_placeholder_that_only_orders(session: Any) -> None:
    b, c = tf.placeholder(tf.float32), tf.placeholder(tf.int32, [2])
    v = tf.Variable(1.0)
    with tf.control_dependencies([b, c]):
        r = tf.identity(tf.constant(3.0)) * 2
        add = v.assign_add(1.0)
        loop = tf.while_loop(lambda i: i < 3, lambda i: i + 1, [0])
    session.run(tf.global_variables_initializer())
    feeds = {b: 1.0, c: [1, 2]}
    assert session.run([r, add, loop, tf.group(b, c)], feeds) == [6, 2, 3, None]
    with pytest.raises(tf.errors.InvalidArgumentError, match="expected a feed for Placeholder_1"):
        session.run(r, {b: 1.0})


def test_scan_of_unknown_rank(session: Any) -> None:
    x = tf.placeholder(tf.float32)
    times = lambda a, b: a * b  # noqa: E731
    y = [tf.scan(times, x), tf.scan(times, x, reverse=True), tf.foldl(times, x), tf.foldr(times, x)]
    found = session.run(y, {x: [1, 2, 3]})
    assert [np.ravel(a).tolist() for a in found] == [[1, 2, 6], [6, 6, 3], [6], [6]]
    found = session.run(y, {x: [[1, 2], [3, 4]]})
    assert [a.tolist() for a in found] == [[[1, 2], [3, 8]], [[3, 8], [3, 4]], [3, 8], [3, 8]]


def test_case_checks_its_predicates(session: Any) -> None:
    x, y = tf.placeholder(tf.float32, []), tf.placeholder(tf.float32, [])
    one, two = (lambda: tf.constant(1)), (lambda: tf.constant(2))
    pairs = [(x < y, one), (x < 10.0, two)]
    alone, plain = tf.case(pairs, default=lambda: tf.constant(0), exclusive=True), tf.case(pairs)
    assert [session.run(alone, {x: v, y: 0.0}) for v in (1.0, 11.0)] == [2, 0]
    assert session.run(plain, {x: 1.0, y: 2.0}) == 1
    with pytest.raises(tf.errors.InvalidArgumentError, match="at most one true predicate"):
        session.run(alone, {x: 1.0, y: 2.0})
    with pytest.raises(tf.errors.InvalidArgumentError, match="no default="):
        session.run(plain, {x: 11.0, y: 2.0})


def test_tensor_array_elements_are_written_and_read_once(session: Any) -> None:
    x = tf.constant([1.0, 2.0, 3.0])
    array = tf.TensorArray(tf.float32, 3).unstack(x)
    first, again, other = array.read(0), array.read(0), array.read(1)
    assert session.run([again, other]) == [1, 2]
    with pytest.raises(tf.errors.InvalidArgumentError, match="index 0 was cleared"):
        session.run([first, other, again * 2])
    kept = tf.TensorArray(tf.float32, 3, clear_after_read=False).unstack(x)
    assert session.run([kept.read(0), kept.read(0)]) == [1, 1]
    for twice in (array.write(2, 1.0), tf.TensorArray(tf.float32, 2).write(0, 1.0).write(0, 2.0)):
        with pytest.raises(tf.errors.InvalidArgumentError, match="not written before"):
            session.run(twice.stack())
    (g,) = tf.gradients(other * first, x)
    assert session.run(g).tolist() == [2, 1, 0]


def test_second_derivatives_of_the_branch_taken(session: Any) -> None:
    x = tf.placeholder(tf.float32, [None])
    n = tf.size(x)
    y = tf.cond(n < 4, lambda: tf.pad(x * x * x, [[0, 4 - n]]), lambda: x[:4] * x[:4])
    (g,) = tf.gradients(y, x)
    second = tf.gradients(g, x)
    assert session.run(second, {x: [1, 2]})[0].tolist() == [6, 12]
    assert session.run(second, {x: [1, 2, 3, 4, 5]})[0].tolist() == [2, 2, 2, 2, 0]


def test_slices_mapped_to_sizes(session: Any) -> None:
    x = tf.placeholder(tf.float32, [None])
    y = tf.map_fn(lambda i: tf.reduce_sum(x[:i] * x[:i]), tf.constant([1, 3, 2]), dtype=tf.float32)
    z = tf.scan(lambda a, i: a * 2 + tf.reduce_sum(x[:i]), tf.constant([1, 2, 3]), initializer=0.0)
    found = session.run([y, z, *tf.gradients(y, x), *tf.gradients(z, x)], {x: [1, 2, 3, 4]})
    assert [a.tolist() for a in found] == [[1, 14, 5], [1, 5, 16], [6, 8, 6, 0], [11, 4, 1, 0]]
    apart = tf.map_fn(lambda i: tf.ones([i]), tf.constant([1, 2]), dtype=tf.float32)
    with pytest.raises(tf.errors.InvalidArgumentError, match="same shape"):
        session.run(apart)


def test_a_growing_variable_beside_a_growing_array(session: Any) -> None:
    shapes = [tf.TensorShape([]), tf.TensorShape([None]), None]

    def body(i: Any, a: Any, rows: Any) -> Any:
        return i + 1, tf.concat([a, a[-1:] * 2], 0), rows.write(i, tf.reduce_sum(a))

    rows = tf.TensorArray(tf.float32, 0, dynamic_size=True)
    _, a, rows = tf.while_loop(lambda i, *_: i < 3, body, [0, tf.ones([1]), rows], shapes)
    assert [x.tolist() for x in session.run([a, rows.stack()])] == [[1, 2, 4, 8], [1, 3, 7]]
    deep = tf.while_loop(
        lambda x: tf.rank(x) < 3,
        lambda x: tf.expand_dims(x, 0),
        [tf.ones([2])],
        tf.TensorShape(None),
    )
    assert session.run(deep).tolist() == [[[1, 1]]]


def test_an_array_grows_until_what_the_loop_computes_ends_it(session: Any) -> None:
    tf.set_random_seed(1)
    x, limit = tf.placeholder(tf.float32, [2]), tf.Variable(20.0)

    def body(i: Any, v: Any, rows: Any) -> Any:
        v = v * 1.5 + 1.0 + tf.random_uniform([2])
        return i + 1, v, rows.write(i, v)

    first = [0, x, tf.TensorArray(tf.float32, 0, dynamic_size=True, element_shape=[2])]
    count, last, rows = tf.while_loop(lambda _, v, __: tf.reduce_max(v) < limit, body, first)
    slope = tf.gradients(tf.reduce_sum(rows.stack()), x)[0]
    session.run(limit.initializer)
    for start in ([1.0, 2.0], [0.0, 0.0], [30.0, 1.0]):
        n, end, y, dx = session.run([count, last, rows.stack(), slope], {x: start})
        assert len(y) == n and (n == 0 or (np.array_equal(y[-1], end) and y[-1].max() >= 20))
        assert (y[:-1].max(1, initial=0) < 20).all()
        np.testing.assert_allclose(dx, [sum(1.5**k for k in range(1, n + 1))] * 2, rtol=1e-6)


def test_loops_of_fed_sizes_are_compiled(session: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Function, "_run_interpreted", None)
    x, n = tf.placeholder(tf.float32, [None, 3]), tf.placeholder(tf.int32, [])
    rows = tf.shape(x)[0]

    def body(i: Any, v: Any) -> Any:
        return i + 1, v * 2 + tf.zeros([rows, 3]) + tf.reduce_sum(tf.cast(tf.range(n), tf.float32))

    y = tf.while_loop(lambda i, _: i < n, body, [0, x])[1]
    z = tf.map_fn(tf.reduce_sum, x)
    for k in (2, 3):
        found = session.run([y, z, *tf.gradients(y, x)], {x: np.ones((k, 3)), n: k})
        assert [a.shape for a in found] == [(k, 3), (k,), (k, 3)]
        assert found[2].tolist() == [[2.0**k] * 3] * k


def test_a_batch_of_any_size_in_parts():
    x = tf.placeholder(tf.float32, [None, 3])
    z = tf.placeholder(tf.float32, [2, None, None])
    first, second = tf.split(x, 2, name="parts")
    assert second.name == "parts:1" and second.op.type == "Split"
    assert second.shape.as_list() == [None, 3]
    middle = tf.split(z, 3, axis=-2)
    (slope,) = tf.gradients(tf.reduce_sum(first) + tf.reduce_sum(2 * second), x)
    with tf.Session() as session:
        for rows in (4, 6, 0):
            a = np.arange(3.0 * rows).reshape(rows, 3)
            found = session.run([first, second, slope], {x: a})
            assert np.array_equal(np.concatenate(found[:2]), a)
            assert found[2][:, 0].tolist() == [1.0] * (rows // 2) + [2.0] * (rows // 2)
        b = np.arange(24.0).reshape(2, 6, 2)
        assert all(map(np.array_equal, session.run(middle, {z: b}), np.split(b, 3, 1)))
        with pytest.raises(tf.errors.InvalidArgumentError, match="parts"):
            session.run(first, {x: np.zeros((3, 3))})
