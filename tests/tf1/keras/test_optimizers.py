"""Optimizers against formulas in NumPy; learning rates that change between steps."""

import numpy as np
import pytest

import weft.tf1 as tf
from weft.errors import ArgumentError, UnknownKeyError
from weft.tf1 import keras

O = keras.optimizers
STEPS = 3
RATE = 0.1


def sgd(g, s, t, momentum=0.0, nesterov=False):
    s["v"] = momentum * s.get("v", 0) - RATE * g
    return momentum * s["v"] - RATE * g if nesterov else s["v"]


def rmsprop(g, s, t):
    s["a"] = 0.9 * s.get("a", 0) + 0.1 * g**2
    return -RATE * g / (np.sqrt(s["a"]) + 1e-7)


def adagrad(g, s, t):
    s["a"] = s.get("a", 0.1) + g**2
    return -RATE * g / (np.sqrt(s["a"]) + 1e-7)


def adadelta(g, s, t):
    s["a"] = 0.95 * s.get("a", 0) + 0.05 * g**2
    change = g * np.sqrt(s.get("d", 0) + 1e-7) / np.sqrt(s["a"] + 1e-7)
    s["d"] = 0.95 * s.get("d", 0) + 0.05 * change**2
    return -RATE * change


def moments(g, s):
    s["m"] = 0.9 * s.get("m", 0) + 0.1 * g
    s["v"] = 0.999 * s.get("v", 0) + 0.001 * g**2
    return s["m"], s["v"]


def adam(g, s, t, amsgrad=False):
    m, v = moments(g, s)
    s["top"] = np.maximum(s.get("top", 0), v)
    rate = RATE * np.sqrt(1 - 0.999**t) / (1 - 0.9**t)
    return -rate * m / (np.sqrt(s["top"] if amsgrad else v) + 1e-7)


def adamax(g, s, t):
    m, _ = moments(g, s)
    s["u"] = np.maximum(0.999 * s.get("u", 0), np.abs(g))
    return -RATE / (1 - 0.9**t) * m / (s["u"] + 1e-7)


def nadam(g, s, t):
    m, v = moments(g, s)
    now, later = (0.9 * (1 - 0.5 * 0.96 ** (0.004 * i)) for i in (t, t + 1))
    s["p"] = s.get("p", 1.0) * now
    bar = (1 - now) * g / (1 - s["p"]) + later * m / (1 - s["p"] * later)
    return -RATE * bar / (np.sqrt(v / (1 - 0.999**t)) + 1e-7)


RULES = {
    O.SGD(RATE): sgd,
    O.SGD(RATE, momentum=0.9): lambda g, s, t: sgd(g, s, t, 0.9),
    O.SGD(RATE, momentum=0.9, nesterov=True): lambda g, s, t: sgd(g, s, t, 0.9, True),
    O.SGD(lr=RATE, decay=0.5): lambda g, s, t: sgd(g, s, t) / (1 + 0.5 * (t - 1)),
    O.SGD(RATE, clipnorm=0.1): lambda g, s, t: sgd(g / max(np.linalg.norm(g) / 0.1, 1), s, t),
    O.SGD(RATE, clipvalue=0.01): lambda g, s, t: sgd(np.clip(g, -0.01, 0.01), s, t),
    O.SGD(O.schedules.ExponentialDecay(RATE, 1, 0.5)):
        lambda g, s, t: sgd(g, s, t) * 0.5 ** (t - 1),
    O.RMSprop(RATE): rmsprop,
    O.Adagrad(RATE): adagrad,
    O.Adadelta(RATE): adadelta,
    O.Adam(RATE): adam,
    O.Adam(RATE, amsgrad=True): lambda g, s, t: adam(g, s, t, True),
    O.Adamax(RATE): adamax,
    O.Nadam(RATE): nadam,
}  # fmt: skip


def test_optimizers_are_their_formulas():
    """The gradient of each variable's loss is the variable minus a target, in one program."""
    rng = np.random.default_rng(0)
    first, target = rng.standard_normal((2, 4)).astype(np.float32)
    variables, steps = [], []
    for given in RULES:
        v = tf.Variable(first)
        loss = 0.5 * tf.reduce_sum(tf.square(v - target))
        optimizer = given if callable(given.get_config()["learning_rate"]) else type(
            given).from_config(given.get_config())  # fmt: skip
        steps.append(optimizer.minimize(loss, [v]))
        variables.append(v)
    session = keras.backend.get_session()
    session.run(tf.variables_initializer(variables))
    step = tf.group(*steps)
    for _ in range(STEPS):
        session.run(step)
    for rule, found in zip(RULES.values(), session.run(variables), strict=True):
        w, state = first.astype(np.float64), {}
        for t in range(1, STEPS + 1):
            w = w + rule(w - target, state, t)
        np.testing.assert_allclose(found, w, rtol=1e-4, atol=1e-6)


def test_rates_state_and_names():
    model = keras.Sequential([keras.layers.Dense(1, input_shape=(2,), kernel_constraint="NonNeg")])
    model.compile(O.Adam(0.5), "mae")
    x, y = np.ones((4, 2), np.float32), -np.ones(4, np.float32)
    model.train_on_batch(x, y)
    assert (model.get_weights()[0] >= 0).all()
    held = model.optimizer.get_weights()
    assert held[0] == 1 and len(held) == 5
    model.optimizer.lr = 0.0  # no new program: the rate is a variable
    keras.backend.set_value(model.optimizer.beta_1, 0.0)
    before = model.get_weights()
    model.train_on_batch(x, y)
    assert all(np.array_equal(a, b) for a, b in zip(before, model.get_weights(), strict=True))
    assert model.optimizer.get_config()["learning_rate"] == 0.0
    model.optimizer.set_weights(held)
    assert keras.backend.get_value(model.optimizer.iterations) == 1
    assert O.get("Adagrad").get_config()["initial_accumulator_value"] == 0.1
    for wrong in (lambda: O.get("adams"), lambda: O.get(3), lambda: O.SGD(rate=1)):
        with pytest.raises((UnknownKeyError, ArgumentError), match="expected"):
            wrong()


def test_nadam_carries_the_product_of_its_momenta():
    v, copy = (tf.Variable([3.0, -2.0]) for _ in range(2))
    first, second = O.Nadam(0.05), O.Nadam(0.05)
    steps = [o.apply_gradients([(2 * x, x)]) for o, x in ((first, v), (second, copy))]
    session = keras.backend.get_session()
    session.run(tf.variables_initializer([v, copy]))
    for i in range(5):
        if i == 2:  # figures of TensorFlow
            keras.backend.set_value(first.learning_rate, 0.01)
            keras.backend.set_value(first.beta_1, 0.7)
        session.run(steps[0])
    np.testing.assert_allclose(session.run(v), [2.8821979, -1.8825268], rtol=1e-6)
    held = first.get_weights()
    assert held[0] == 5
    np.testing.assert_allclose(held[1], 0.008703465, rtol=1e-5)
    session.run(tf.assign(copy, v))
    second.set_weights(held)
    keras.backend.set_value(second.learning_rate, 0.01)
    keras.backend.set_value(second.beta_1, 0.7)
    session.run(steps)
    np.testing.assert_array_equal(*session.run([v, copy]))
    second.set_weights([held[0], *held[2:]])  # a file without it
    product = np.prod([0.7 * (1 - 0.5 * 0.96 ** (0.004 * t)) for t in range(1, 6)])
    np.testing.assert_allclose(second.get_weights()[1], product, rtol=1e-6)
