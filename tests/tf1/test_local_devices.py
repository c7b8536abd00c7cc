"""Sessions on several CPUs of a process: the results of one, and where everything is."""

import threading

import numpy as np
import pytest

import weft.tf1 as tf
from bench.cluster.partition import measure
from weft.runtime import local_devices
from weft.tf1.errors import FailedPreconditionError, InvalidArgumentError

CPU0, CPU1 = (f"/job:localhost/replica:0/task:0/device:CPU:{i}" for i in range(2))


@pytest.fixture(autouse=True)
def graph():
    with tf.Graph().as_default() as graph:
        yield graph


def sessions():
    """The same graph on one device and on two."""
    soft = tf.ConfigProto(allow_soft_placement=True, intra_op_parallelism_threads=1)
    two = tf.ConfigProto(device_count={"CPU": 2}, intra_op_parallelism_threads=1)
    return tf.Session(config=soft), tf.Session(config=two)


def network(x, labels):
    """Two layers on each device, with dropout, and a loss on none."""
    with tf.device("/cpu:0"):
        h = tf.nn.relu(tf.layers.batch_normalization(tf.layers.dense(x, 16), training=True))
        h = tf.nn.dropout(h, 0.7, seed=3)
    with tf.device("/cpu:1"):
        h = tf.layers.dense(tf.tanh(tf.layers.dense(h, 8)), 4)
    return tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=h))


def bytes_of(values):
    return [np.asarray(v).tobytes() for v in values]


@pytest.mark.parametrize(
    "optimizer",
    [
        lambda: tf.train.MomentumOptimizer(0.1, 0.9),
        lambda: tf.train.AdamOptimizer(0.01),
    ],
    ids=["momentum", "adam"],
)
def test_training_is_bitwise_that_of_one_device(optimizer):
    tf.set_random_seed(1)
    x, labels = tf.placeholder(tf.float32, (None, 5)), tf.placeholder(tf.int32, (None,))
    loss = network(x, labels)
    step = tf.train.get_or_create_global_step()
    updates = tf.get_collection(tf.GraphKeys.UPDATE_OPS)
    with tf.control_dependencies(updates):
        train = optimizer().minimize(loss, step)
    both = sessions()
    random = np.random.default_rng(0)
    variables = tf.global_variables()
    for session in both:
        session.run(tf.global_variables_initializer())
    for _ in range(4):
        feeds = {x: random.standard_normal((7, 5)), labels: random.integers(0, 4, 7)}
        one, two = (session.run([loss, train, step], feeds) for session in both)
        assert bytes_of((one[0], one[2])) == bytes_of((two[0], two[2]))
        assert bytes_of(both[0].run(variables)) == bytes_of(both[1].run(variables))
    states = both[1]._backend.state.states
    assert "dense/kernel" in states[CPU0] and "dense_1/kernel" in states[CPU1]
    slots = [key for key in states[CPU1] if key.startswith("dense_1/kernel/")]
    assert slots and not [key for key in states[CPU0] if key.startswith("dense_1/")]


def test_a_bad_index_changes_no_variable():
    ids, step = tf.placeholder(tf.int32, (2,)), tf.train.get_or_create_global_step()
    with tf.device("/cpu:1"):
        table = tf.Variable(np.ones((4, 3), np.float32), name="table")
        rows = tf.gather(table, ids)
    with tf.device("/cpu:0"):
        w = tf.Variable(np.ones((3, 1), np.float32), name="w")
        loss = tf.reduce_sum(tf.matmul(rows, w))
    train = tf.train.GradientDescentOptimizer(0.1).minimize(loss, step)
    texts = []
    for session in sessions():
        session.run(tf.global_variables_initializer())
        before = bytes_of(session.run(tf.global_variables()))
        with pytest.raises(InvalidArgumentError, match="9") as error:
            session.run(train, {ids: [1, 9]})
        texts.append(str(error.value))
        assert bytes_of(session.run(tf.global_variables())) == before
        session.run(train, {ids: [1, 3]})
        assert session.run(step) == 1
    assert texts[0] == texts[1]


def test_explain_says_where_and_why():
    x = tf.placeholder(tf.float32, (64, 64), name="x")
    with tf.device("/cpu:1"):
        v = tf.Variable(np.ones((64, 64), np.float32), name="v")
        y = tf.matmul(x, v, name="y")
    with tf.colocate_with(v.op):
        near = tf.tanh(y, name="near")
    free = tf.reduce_sum(near, name="free")
    session = sessions()[1]
    found = session.explain(free, {x: np.ones((64, 64), np.float32)})
    why = {place.node.rpartition("/")[2]: (place.device, place.why) for place in found.places}
    assert why["v"] == (CPU1, "asked for /device:CPU:1")
    assert why["near"] == (CPU1, "asked for /device:CPU:1")  # the device of what it is with
    assert why["free"] == (CPU1, "its inputs of 16,384 bytes are there, which saves 30 us")
    text = str(found)
    assert "receive v0: float32[64,64], 16,384 B from the caller" in text
    assert "stage 0 on /device:CPU:1" in text and "send v1: float32[], 4 B to the caller" in text


def test_a_variable_without_a_value_and_a_closed_session():
    with tf.device("/cpu:1"):
        v = tf.Variable(1.0, name="v")
    session = sessions()[1]
    with pytest.raises(FailedPreconditionError, match="'v' is used before it has a value"):
        session.run(v * 2)
    session.run(v.initializer)
    assert session.run(v.assign_add(2.0)) == 3 and session.state["v"] == 3
    session.close()
    with pytest.raises(RuntimeError, match="closed"):
        session.run(v)


def test_loops_lie_on_one_device_and_their_gradients_with_them():
    x = tf.placeholder(tf.float32, (3,))
    with tf.device("/cpu:1"):
        w = tf.Variable(np.full(3, 0.9, np.float32))
        _, y = tf.while_loop(
            lambda i, y: i < 4, lambda i, y: (i + 1, tf.tanh(y * w)), (0, x)
        )  # fmt: skip
    with tf.device("/cpu:0"):
        loss = tf.reduce_sum(tf.square(y))
    slope = tf.gradients(loss, [w, x])
    values = []
    for session in sessions():
        session.run(w.initializer)
        values.append(bytes_of(session.run([loss, *slope], {x: [0.1, 0.2, 0.3]})))
    assert values[0] == values[1]


def test_a_loop_with_effects_is_not_cut_from_its_gradient():
    x, calls = tf.placeholder(tf.float32, (3,)), []

    def body(y):
        z = tf.py_func(lambda a: calls.append(1) or a, [y], tf.float32)
        z.set_shape((3,))
        return tf.tanh(y) * tf.stop_gradient(z)

    with tf.device("/cpu:1"):  # only a run tells how often
        y = tf.while_loop(lambda y: tf.reduce_sum(y) > 1e-3, body, [x])
    with tf.device("/cpu:0"):
        slope = tf.gradients(tf.reduce_sum(tf.square(y)), [x])
    one, two = sessions()
    assert one.run(slope, {x: [0.1, 0.2, 0.3]}) and calls
    calls.clear()
    message = "acts outside the program, and of its results only a run tells how many rows"
    with pytest.raises(InvalidArgumentError, match=message):
        two.run(slope, {x: [0.1, 0.2, 0.3]})
    assert not calls


def test_a_body_that_asks_for_two_devices_is_refused():
    def body(i, x):
        with tf.device("/cpu:0"):
            x = tf.tanh(x)
        with tf.device("/cpu:1"):
            return i + 1, tf.exp(x)

    loop = tf.while_loop(lambda i, x: i < 3, body, (0, tf.constant(1.0)))
    with pytest.raises(InvalidArgumentError, match="a loop or a branch, is on one device"):
        sessions()[1].run(loop)


def test_checkpoints_do_not_depend_on_devices(tmp_path):
    with tf.device("/cpu:1"):
        v = tf.Variable(np.arange(3.0), name="v")
    w = tf.Variable(5, name="w")
    one, two = sessions()
    saver = tf.train.Saver()
    two.run(tf.global_variables_initializer())
    path = saver.save(two, str(tmp_path / "model"))
    saver.restore(one, path)
    assert np.array_equal(one.run(v), np.arange(3.0)) and one.run(w) == 5
    one.run(v.assign(v * 2))
    saver.restore(two, saver.save(one, str(tmp_path / "other")))
    assert np.array_equal(two.run(v), np.arange(3.0) * 2)
    assert "v" in two._backend.state.states[CPU1]


def test_python_and_a_feed_of_a_value_in_the_middle():
    x = tf.placeholder(tf.float32, (2,))
    with tf.device("/cpu:1"):
        y = tf.py_func(np.negative, [x], tf.float32)
        y.set_shape((2,))
        z = tf.exp(y, name="z")
    total = tf.reduce_sum(z)
    for session in sessions():
        assert np.allclose(session.run(total, {x: [0.0, 0.0]}), 2)
        assert session.run(total, {z: [1.0, 4.0]}) == 5
        assert np.array_equal(session.run([z, x], {x: [0, 0], z: [1, 2]})[0], [1, 2])


def test_python_may_run_another_step(monkeypatch):
    monkeypatch.setattr(local_devices, "WORTH_NS", -1.0)
    x, threads = tf.placeholder(tf.float32, ()), []
    with tf.device("/cpu:0"):
        inner = tf.exp(x)
    with tf.device("/cpu:1"):
        inner = inner * 2.0

    def function(value):
        threads.append(threading.current_thread())
        return session.run(inner, {x: value})

    y = tf.py_func(function, [inner], tf.float32)
    y.set_shape(())
    with tf.device("/cpu:0"):
        z = y + 1.0
    session = sessions()[1]
    assert np.isclose(session.run(z, {x: 0.0}), 2 * np.exp(2.0) + 1)
    assert threads == [threading.current_thread()]


@pytest.mark.slow
def test_resnet_50_trains_to_the_same_bits():
    measure(1, batch=2, size=64, rounds=2)  # raises if a loss differs
