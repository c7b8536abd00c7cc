"""Optimizers: four steps against TensorFlow's, slots, names, learning rates, clipping."""

import numpy as np
import pytest

import weft.tf1 as tf
from weft import errors

MAKE = {
    "gradient descent": lambda rate: tf.train.GradientDescentOptimizer(rate),
    "momentum": lambda rate: tf.train.MomentumOptimizer(rate, 0.9),
    "nesterov": lambda rate: tf.train.MomentumOptimizer(rate, 0.9, use_nesterov=True),
    "adagrad": lambda rate: tf.train.AdagradOptimizer(rate),
    "centered rmsprop": lambda rate: tf.train.RMSPropOptimizer(
        rate, momentum=0.5, centered=True, epsilon=1e-3
    ),
    "rmsprop": lambda rate: tf.train.RMSPropOptimizer(rate),
    "adam": lambda rate: tf.train.AdamOptimizer(rate),
}
# Optimizer, whether all rows get a gradient, and the variables w and u after four steps, by
# TensorFlow 2.21 in its version 1 mode
ROWS = [
    (
        "gradient descent",
        "sparse",
        [[[1.49573, 8.36713], [4.24038, 10.5465], [6.60007, 23.0689]], [-4.41247, -16.4661]],
    ),
    (
        "momentum",
        "sparse",
        [[[1.70778, 12.0721], [5.03581, 13.7115], [6.56252, 33.2578]], [-9.66052, -35.329]],
    ),
    (
        "nesterov",
        "sparse",
        [[[4.22961, 109.597], [11.2545, 95.3405], [14.4446, 137.736]], [-13.432, -118.545]],
    ),
    (
        "adagrad",
        "sparse",
        [[[0.89799, 2.10746], [2.93302, 4.06814], [4.90931, 6.09396]], [0.899718, -1.10276]],
    ),
    (
        "centered rmsprop",
        "sparse",
        [[[0.70954, 2.49562], [2.75022, 4.30722], [4.55018, 6.50774]], [0.39876, -1.63097]],
    ),
    (
        "rmsprop",
        "sparse",
        [[[0.804021, 2.30969], [2.81827, 4.21087], [4.72349, 6.30977]], [0.681103, -1.33417]],
    ),
    (
        "adam",
        "sparse",
        [[[0.859641, 2.14009], [2.92993, 4.07025], [4.86075, 6.1396]], [0.85534, -1.14556]],
    ),
    (
        "gradient descent",
        "dense",
        [[[1.39916, 8.34664], [4.23853, 10.546], [6.59854, 23.0676]], [-4.40427, -16.4628]],
    ),
    (
        "momentum",
        "dense",
        [[[1.52908, 13.8104], [5.31635, 15.4769], [9.08225, 52.6896]], [-9.68982, -35.79]],
    ),
    (
        "nesterov",
        "dense",
        [[[3.90891, 123.944], [12.1889, 107.31], [18.6645, 188.58]], [-13.6577, -120.895]],
    ),
    (
        "adagrad",
        "dense",
        [[[0.894248, 2.1073], [2.93141, 4.06792], [4.90931, 6.09396]], [0.899729, -1.10276]],
    ),
    (
        "centered rmsprop",
        "dense",
        [[[0.611572, 2.54109], [2.70871, 4.34942], [4.48209, 6.59142]], [0.399652, -1.63198]],
    ),
    (
        "rmsprop",
        "dense",
        [[[0.767056, 2.30923], [2.81366, 4.21292], [4.72349, 6.30977]], [0.681251, -1.33416]],
    ),
    (
        "adam",
        "dense",
        [[[0.856143, 2.13984], [2.87978, 4.02025], [4.86075, 6.1396]], [0.85545, -1.14548]],
    ),
]


@pytest.mark.parametrize("name, kind, expected", ROWS, ids=[f"{r[1]} {r[0]}" for r in ROWS])
def test_four_steps(session, name, kind, expected):
    w = tf.Variable([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]], name="w")
    u = tf.Variable([1.0, -1.0], name="u")
    step = tf.train.get_or_create_global_step()
    rows = tf.placeholder(tf.int32, [None])
    found = tf.nn.embedding_lookup(w, rows)
    loss = tf.reduce_sum(found * found * u) + tf.reduce_sum(u * u)
    if kind == "dense":
        loss = loss + tf.reduce_sum(tf.tanh(w))
    rate = tf.train.exponential_decay(0.05, step, 2, 0.5, staircase=True)
    train = MAKE[name](rate).minimize(loss, global_step=step)
    session.run(tf.global_variables_initializer())
    for batch in ([0, 2, 2], [1, 2, 0], [2, 2, 2], [0, 0, 1]):
        session.run(train, {rows: batch})
    assert session.run(step) == 4
    for variable, value in zip((w, u), expected, strict=True):
        np.testing.assert_allclose(session.run(variable), value, rtol=1e-4)


def test_slots_and_names():
    w = tf.Variable([1.0, 2.0], name="w")
    loss = tf.reduce_sum(w * w)
    step = tf.train.get_or_create_global_step()
    cases = {
        "GradientDescent": (tf.train.GradientDescentOptimizer(0.1), {}),
        "Momentum": (tf.train.MomentumOptimizer(0.1, 0.9), {"momentum": "w/Momentum:0"}),
        "Adagrad": (tf.train.AdagradOptimizer(0.1), {"accumulator": "w/Adagrad:0"}),
        "RMSProp": (
            tf.train.RMSPropOptimizer(0.1, centered=True),
            {"mg": "w/RMSProp_1:0", "momentum": "w/RMSProp_2:0", "rms": "w/RMSProp:0"},
        ),
        "Adam": (tf.train.AdamOptimizer(), {"m": "w/Adam:0", "v": "w/Adam_1:0"}),
    }
    for name, (optimizer, slots) in cases.items():
        train = optimizer.minimize(loss, global_step=step)
        assert (train.name, train.type) == (name, "AssignAdd")
        assert optimizer.get_slot_names() == list(slots)
        assert {n: optimizer.get_slot(w, n).name for n in slots} == slots
        made = sorted(slots.values())
        made = ["beta1_power:0", "beta2_power:0", *made] if name == "Adam" else made
        assert [v.name for v in optimizer.variables()] == made
    assert tf.trainable_variables() == [w]
    assert tf.train.GradientDescentOptimizer(0.1).minimize(loss).type == "NoOp"


def test_a_vector_loss_is_summed(session):
    w = tf.Variable([1.0, 2.0])
    train = tf.train.GradientDescentOptimizer(0.5).minimize(w * w)
    session.run(tf.global_variables_initializer())
    session.run(train)
    assert session.run(w).tolist() == [0.0, 0.0]


def test_gradients_may_be_changed_between(session):
    w, unused = tf.Variable([3.0, 4.0]), tf.Variable(1.0)
    optimizer = tf.train.GradientDescentOptimizer(lambda: 1.0)
    pairs = optimizer.compute_gradients(tf.reduce_sum(w * w), [w, unused])
    assert pairs[1] == (None, unused)
    clipped, norm = tf.clip_by_global_norm([g for g, _ in pairs], 5.0)
    train = optimizer.apply_gradients(zip(clipped, [w, unused], strict=True))
    session.run(tf.global_variables_initializer())
    assert session.run(norm) == 10.0
    session.run(train)
    np.testing.assert_allclose(session.run(w), [0.0, 0.0], atol=1e-6)


def test_constraints_are_applied(session):
    w = tf.Variable([1.0, 2.0], constraint=lambda v: tf.clip_by_value(v, 0.9, 1.5))
    train = tf.train.GradientDescentOptimizer(0.01).minimize(tf.reduce_sum(w))
    session.run(tf.global_variables_initializer())
    session.run(train)
    np.testing.assert_allclose(session.run(w), [0.99, 1.5], rtol=1e-6)


def test_sparse_gradients_are_rows(session):
    w = tf.Variable(tf.ones([5, 2]))
    (g,) = tf.gradients(tf.reduce_sum(tf.gather(w, [1, 3, 1])), w)
    assert isinstance(g, tf.IndexedSlices)
    session.run(w.initializer)
    found = session.run(g)
    assert found.indices.tolist() == [1, 3, 1] and found.values.tolist() == [[1.0, 1.0]] * 3
    assert np.array_equal(session.run(g.dense_shape), [5, 2])
    whole = tf.convert_to_tensor(g)
    assert whole.shape.as_list() == [5, 2]
    assert session.run(whole).tolist() == [[0.0, 0.0], [2.0, 2.0], [0.0, 0.0], [1.0, 1.0], [0, 0]]
    with pytest.raises(errors.DTypeError, match="expected IndexedSlices with a dense_shape"):
        tf.convert_to_tensor(tf.IndexedSlices(g.values, g.indices))


def test_rates_as_functions_of_the_step(session):
    step = tf.placeholder(tf.int64, [])
    rates = {
        "exponential": tf.train.exponential_decay(0.1, step, 10, 0.5),
        "staircase": tf.train.exponential_decay(0.1, step, 10, 0.5, staircase=True),
        "inverse": tf.train.inverse_time_decay(0.1, step, 10, 0.5),
        "natural": tf.train.natural_exp_decay(0.1, step, 10, 0.5),
        "polynomial": tf.train.polynomial_decay(0.1, step, 20, 0.01, power=2.0),
        "cosine": tf.train.cosine_decay(0.1, step, 30),
        "piecewise": tf.train.piecewise_constant(step, [15, 20], [3.0, 2.0, 1.0]),
    }
    expected = {
        "exponential": 0.1 * 0.5**1.5, "staircase": 0.05, "inverse": 0.1 / 1.75,
        "natural": 0.1 * np.exp(-0.75), "polynomial": 0.09 * 0.0625 + 0.01, "cosine": 0.05,
        "piecewise": 3.0,
    }  # fmt: skip
    found = session.run(rates, {step: 15})
    for name, value in expected.items():
        np.testing.assert_allclose(found[name], value, rtol=1e-5, err_msg=name)
    assert session.run(rates["piecewise"], {step: 21}) == 1.0


def test_exponential_moving_average(session):
    w = tf.Variable([10.0])
    average = tf.train.ExponentialMovingAverage(0.9)
    update = average.apply([w])
    session.run(tf.global_variables_initializer())
    session.run(w.assign([20.0]))
    session.run(update)
    assert average.average(w).op.name == "Variable/ExponentialMovingAverage"
    np.testing.assert_allclose(session.run(average.average(w)), [11.0], rtol=1e-6)
    other = tf.Variable(1.0, trainable=False, name="other")
    names = {"Variable/ExponentialMovingAverage": w, "other": other}
    assert average.variables_to_restore() == {**names, average.average(w).op.name: w}
    assert average.variables_to_restore([other]).keys() == {
        "Variable", "Variable/ExponentialMovingAverage", "other/ExponentialMovingAverage",
    }  # fmt: skip


def test_errors():
    a = tf.constant([1.0, 2.0])
    optimizer = tf.train.GradientDescentOptimizer(0.1)
    with pytest.raises(errors.GraphError, match="there are none"):
        optimizer.minimize(a)
    tf.Variable(1.0)
    with pytest.raises(errors.GraphError, match="depends on none of them"):
        optimizer.minimize(a)
    with pytest.raises(errors.GraphError, match="floating type"):
        optimizer.minimize(tf.constant(1))
    with pytest.raises(errors.GraphError, match="expected variables, got none"):
        optimizer.apply_gradients([])
    with pytest.raises(errors.DTypeError, match="expected variables"):
        optimizer.minimize(a, var_list=[a])
    with pytest.raises(errors.GraphError, match="initial_accumulator_value"):
        tf.train.AdagradOptimizer(0.1, 0.0)


def test_a_subclass_without_an_update_says_so():
    class Own(tf.train.Optimizer):
        def __init__(self):
            super().__init__(False, "Own")

    with tf.Graph().as_default():
        variable = tf.Variable([1.0])
        with pytest.raises(NotImplementedError):
            Own().minimize(tf.reduce_sum(variable))
