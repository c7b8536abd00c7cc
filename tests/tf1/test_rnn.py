"""Recurrent cells and networks of TensorFlow 1: equations, names, lengths, gradients."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import weft.tf1 as tf
from weft.errors import ArgumentError


@pytest.fixture
def session() -> Iterator[Any]:
    with tf.Graph().as_default(), tf.Session() as session:
        tf.set_random_seed(1)
        yield session


def ready(session: Any) -> None:
    session.run(tf.global_variables_initializer())


def names() -> list[str]:
    return [v.op.name for v in tf.trainable_variables()]


def sigmoid(x: Any) -> Any:
    return 1 / (1 + np.exp(-x))


X = np.random.default_rng(0).normal(size=(3, 5, 4)).astype(np.float32)


def test_an_lstm_is_its_equations(session: Any) -> None:
    cell = tf.nn.rnn_cell.LSTMCell(
        6, use_peepholes=True, num_proj=2, forget_bias=0.5, cell_clip=0.4, name="unit"
    )
    ys, state = tf.nn.dynamic_rnn(cell, tf.constant(X), dtype=tf.float32)
    ready(session)
    assert names() == [
        "rnn/unit/kernel", "rnn/unit/bias", "rnn/unit/w_f_diag", "rnn/unit/w_i_diag",
        "rnn/unit/w_o_diag", "rnn/unit/projection/kernel",
    ]  # fmt: skip
    kernel, bias, wf, wi, wo, projection = session.run(tf.trainable_variables())
    c, h, expected = np.zeros((3, 6)), np.zeros((3, 2)), []
    for t in range(5):
        i, j, f, o = np.split(np.concatenate([X[:, t], h], 1) @ kernel + bias, 4, 1)
        c = sigmoid(f + 0.5 + wf * c) * c + sigmoid(i + wi * c) * np.tanh(j)
        c = np.clip(c, -0.4, 0.4)
        h = (sigmoid(o + wo * c) * np.tanh(c)) @ projection
        expected.append(h)
    found, last = session.run([ys, state])
    np.testing.assert_allclose(found, np.stack(expected, 1), rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(last.c, c, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(last.h, h, rtol=1e-4, atol=1e-5)


def cells() -> list[Any]:
    c = tf.nn.rnn_cell
    return [
        c.BasicRNNCell(4), c.GRUCell(4), c.BasicLSTMCell(4, state_is_tuple=False),
        c.MultiRNNCell([c.GRUCell(4), c.ResidualWrapper(c.BasicLSTMCell(4))]),
    ]  # fmt: skip


@pytest.mark.parametrize("which", range(4))
def test_dynamic_is_static(session: Any, which: int) -> None:
    cell = cells()[which]
    x = tf.placeholder(tf.float32, [None, 5, 4])
    lengths = tf.constant([5, 0, 3])
    ys, state = tf.nn.dynamic_rnn(cell, x, lengths, dtype=tf.float32)
    rows, end = tf.nn.static_rnn(
        cell, tf.unstack(x, axis=1), dtype=tf.float32, sequence_length=lengths
    )
    total = tf.reduce_sum(ys * ys)
    plain = tf.reduce_sum(tf.stack(rows, 1) ** 2)
    variables = tf.trainable_variables()
    slopes = [tf.gradients(loss, variables) for loss in (total, plain)]
    ready(session)
    flat = [*tf.nn.rnn_cell.LSTMStateTuple(state, end)]
    found = session.run([ys, tf.stack(rows, 1), slopes, flat], {x: X})
    np.testing.assert_allclose(found[0], found[1], rtol=1e-5, atol=1e-6)
    assert not found[0][1].any() and not found[0][2, 3:].any()
    for a, b in zip(*found[2], strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5)


def test_multi_layer_names(session: Any) -> None:
    c = tf.contrib.rnn
    cell = c.MultiRNNCell([c.BasicLSTMCell(2), c.GRUCell(2)])
    tf.nn.dynamic_rnn(cell, tf.constant(X), dtype=tf.float32, time_major=True)
    front = "rnn/multi_rnn_cell/cell_"
    assert names() == [
        front + "0/basic_lstm_cell/kernel", front + "0/basic_lstm_cell/bias",
        front + "1/gru_cell/gates/kernel", front + "1/gru_cell/gates/bias",
        front + "1/gru_cell/candidate/kernel", front + "1/gru_cell/candidate/bias",
    ]  # fmt: skip


def test_both_directions(session: Any) -> None:
    c = tf.nn.rnn_cell
    lengths = [5, 2, 4]
    x = tf.placeholder(tf.float32, [None, None, 4])
    (fw, bw), (_, first) = tf.nn.bidirectional_dynamic_rnn(
        c.GRUCell(3), c.GRUCell(3), x, lengths, dtype=tf.float32
    )
    turned = tf.reverse_sequence(x, lengths, seq_axis=1)
    with tf.variable_scope("bidirectional_rnn", reuse=True):
        other, end = tf.nn.dynamic_rnn(
            c.GRUCell(3, name="gru_cell"), turned, lengths, dtype=tf.float32, scope="bw"
        )
    ready(session)
    a, b, state, same = session.run(
        [bw, tf.reverse_sequence(other, lengths, 1), first, end], {x: X}
    )
    np.testing.assert_allclose(a, b, rtol=1e-5)
    np.testing.assert_allclose(state, same, rtol=1e-5)
    assert session.run(fw, {x: X}).shape == (3, 5, 3)
    row = session.run(turned, {x: X})[1]
    np.testing.assert_array_equal(row, X[1][[1, 0, 2, 3, 4]])


def test_your_own_cell_learns(session: Any) -> None:
    class Cell(tf.nn.rnn_cell.RNNCell):
        @property
        def state_size(self) -> int:
            return 3

        @property
        def output_size(self) -> int:
            return 1

        def call(self, inputs: Any, state: Any) -> Any:
            w = tf.get_variable("w", [4, 3])
            u = tf.get_variable("u", [3, 3])
            state = tf.tanh(tf.matmul(inputs, w) + tf.matmul(state, u))
            return tf.reduce_sum(state, 1, keepdims=True), state

    ys, _ = tf.nn.dynamic_rnn(Cell(), tf.constant(X), dtype=tf.float32)
    wanted = tf.cumsum(tf.constant(X[:, :, :1]), axis=1) * 0.2
    loss = tf.reduce_mean((ys - wanted) ** 2)
    train = tf.train.AdamOptimizer(0.05).minimize(loss)
    ready(session)
    assert names() == ["rnn/cell/w", "rnn/cell/u"]
    before = session.run(loss)
    for _ in range(60):
        session.run(train)
    assert session.run(loss) < before / 4


def test_dropout_is_drawn_in_every_step(session: Any) -> None:
    c = tf.nn.rnn_cell
    cell = c.DropoutWrapper(c.BasicRNNCell(50, activation=tf.identity), output_keep_prob=0.5)
    ys, _ = tf.nn.dynamic_rnn(cell, tf.ones([1, 6, 1]), dtype=tf.float32)
    ready(session)
    kept = session.run(ys)[0] != 0
    assert 0.2 < kept.mean() < 0.8
    assert len({tuple(row) for row in kept}) == 6


def test_raw_rnn_is_dynamic_rnn(session: Any) -> None:
    cell = tf.nn.rnn_cell.LSTMCell(5)
    x, lengths = tf.placeholder(tf.float32, [None, None, 4]), tf.placeholder(tf.int32, [None])
    steps = tf.transpose(x, [1, 0, 2])
    rows = tf.TensorArray(tf.float32, tf.shape(steps)[0]).unstack(steps)
    batch = tf.shape(lengths)[0]

    def loop_fn(time: Any, output: Any, state: Any, count: Any) -> Any:
        state = cell.zero_state(batch, tf.float32) if output is None else state
        done = time >= lengths
        row = tf.cond(tf.reduce_all(done), lambda: tf.zeros([batch, 4]), lambda: rows.read(time))
        row.set_shape([None, 4])
        return done, row, state, output, tf.constant(0) if count is None else count + 1

    emitted, state, count = tf.nn.raw_rnn(cell, loop_fn)
    found = tf.transpose(emitted.stack(), [1, 0, 2])
    ys, last = tf.nn.dynamic_rnn(cell, x, lengths, dtype=tf.float32)
    variables = tf.trainable_variables()
    slopes = [tf.gradients(tf.reduce_sum(y**2), variables) for y in (found, ys)]
    ready(session)
    a, b, c, d, (g, h), n = session.run(
        [found, ys, state, last, slopes, count], {x: X, lengths: [2, 4, 1]}
    )
    assert a.shape == (3, 4, 5) and n == 4
    np.testing.assert_allclose(a, b[:, :4], rtol=1e-5, atol=1e-6)
    for p, q in zip([*c, *g], [*d, *h], strict=True):
        np.testing.assert_allclose(p, q, rtol=1e-4, atol=1e-5)


def test_raw_rnn_emits_what_the_function_says(session: Any) -> None:
    cell = tf.nn.rnn_cell.GRUCell(2)
    start = tf.placeholder(tf.float32, [2, 2])

    def loop_fn(time: Any, output: Any, state: Any, more: Any) -> Any:
        if output is None:
            example = {"n": tf.constant(0), "s": tf.zeros([2])}
            return tf.fill([2], False), tf.ones([2, 1]), start, example, None
        done = tf.stack([time >= 4, time >= 2])
        return done, tf.ones([2, 1]), state + 1, {"n": tf.fill([2], time), "s": state}, None

    emitted, state, _ = tf.nn.raw_rnn(cell, loop_fn, maximum_iterations=5)
    ready(session)
    numbers, _, end = session.run(
        [emitted["n"].stack(), emitted["s"].stack(), state], {start: np.zeros((2, 2))}
    )
    assert numbers[:, 1].tolist() == [1, 2, 0, 0]  # zeros once it has finished
    assert numbers[:, 0].tolist()[:2] == [1, 2] and end.shape == (2, 2)
    emitted, state, _ = tf.nn.raw_rnn(cell, loop_fn)
    found, last = session.run([emitted["n"].stack(), state], {start: np.zeros((2, 2))})
    np.testing.assert_array_equal(found, numbers)
    np.testing.assert_array_equal(last, end)


def test_errors() -> None:
    cell = tf.nn.rnn_cell.GRUCell(2)
    with pytest.raises(ArgumentError, match="an initial_state, or a dtype"):
        tf.nn.dynamic_rnn(cell, tf.zeros([1, 2, 3]))
    with pytest.raises(ArgumentError, match="at least one input"):
        tf.nn.static_rnn(cell, [], dtype=tf.float32)
    with pytest.raises(ArgumentError, match="at least one cell"):
        tf.nn.rnn_cell.MultiRNNCell([])
    with pytest.raises(ArgumentError, match="expected a seq_axis"):
        tf.reverse_sequence(tf.zeros([2, 3]), [1, 2])


CELLS = {
    "basic": lambda r: r.BasicRNNCell(4),
    "lstm": lambda r: r.LSTMCell(4, use_peepholes=True, num_proj=3, cell_clip=1.0, proj_clip=0.5),
    "concatenated": lambda r: r.LSTMCell(4, state_is_tuple=False),
    "basic lstm": lambda r: r.BasicLSTMCell(4),
    "several": lambda r: r.MultiRNNCell([r.GRUCell(5), r.BasicRNNCell(4)]),
    "wrapped": lambda r: r.ResidualWrapper(
        r.DropoutWrapper(r.DeviceWrapper(r.GRUCell(4), "cpu"), 0.5)
    ),
}


@pytest.mark.parametrize("name", CELLS)
@pytest.mark.parametrize("kind", [tf.float64, tf.float16])
def test_weights_have_the_type_of_the_inputs(name: str, kind: Any) -> None:
    make = lambda: CELLS[name](tf.nn.rnn_cell)  # noqa: E731
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.ones([2, 3, 4], kind)
        y, _ = tf.nn.dynamic_rnn(make(), x, [3, 1], dtype=kind)
        z = tf.nn.static_rnn(make(), tf.unstack(x, axis=1), dtype=kind, scope="z")[0][-1]
        both, _ = tf.nn.bidirectional_dynamic_rnn(make(), make(), x, [3, 1], dtype=kind)
        slopes = tf.gradients(tf.reduce_sum(y) + tf.reduce_sum(z), tf.trainable_variables("rnn"))
        found = [*tf.trainable_variables(), y, z, *both, *slopes]
        assert {v.dtype.base_dtype for v in found} == {kind}
        if name == "wrapped":
            session.run(tf.global_variables_initializer())
            assert np.isfinite(session.run(y)).all()


def test_a_state_that_the_examples_share() -> None:
    class Counter(tf.nn.rnn_cell.RNNCell):
        output_size, state_size = 1, tf.TensorShape([])

        def zero_state(self, batch_size: Any, dtype: Any) -> Any:
            return tf.zeros([], tf.int32)

        def call(self, inputs: Any, state: Any) -> Any:
            return inputs, state + 1

    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.ones([1, 4, 1])
        steps = [tf.nn.dynamic_rnn(Counter(), x, [4], dtype=tf.float32)[1]]
        steps.append(tf.nn.static_rnn(Counter(), tf.unstack(x, axis=1), None, tf.float32, [3])[1])
        assert session.run(steps) == [4, 3]
