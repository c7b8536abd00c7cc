"""`compile`, `fit`, `evaluate` and `predict` on the bundled digits and small data."""

import numpy as np
import pytest

import weft.tf1 as tf
from weft.datasets import load_digits
from weft.errors import ArgumentError, ShapeError, StateError, UnknownKeyError
from weft.tf1 import keras


@pytest.fixture(scope="module")
def digits():
    images, labels = load_digits()
    return images.reshape(-1, 64), labels


def small(loss="sparse_categorical_crossentropy", **options):
    model = keras.Sequential()
    model.add(keras.layers.Dense(32, activation="relu", input_shape=(64,)))
    model.add(keras.layers.Dense(10, activation="softmax"))
    model.compile(keras.optimizers.Adam(0.01), loss, **options)
    return model


def test_digits_are_learnt(digits):
    x, y = digits
    model = small(metrics=["accuracy"])
    history = model.fit(x, y, batch_size=64, epochs=3, validation_split=0.2, verbose=0)
    assert list(history.history) == ["loss", "acc", "val_loss", "val_acc"]
    assert history.epoch == [0, 1, 2] and history.model is model
    losses = history.history["loss"]
    assert losses == sorted(losses, reverse=True) and history.history["acc"][-1] > 0.85
    loss, accuracy = model.evaluate(x, y, batch_size=100, verbose=0)
    p = model.predict(x, batch_size=100)
    assert accuracy == pytest.approx((p.argmax(1) == y).mean(), rel=1e-6)
    assert loss == pytest.approx(-np.log(p[np.arange(len(y)), y]).mean(), rel=1e-4)


def test_a_step_is_that_of_the_formulas(digits):
    x, y = digits[0][:8], digits[1][:8]
    model = keras.Sequential([keras.layers.Dense(10, activation="softmax", input_shape=(64,))])
    model.compile(keras.optimizers.SGD(0.5), "sparse_categorical_crossentropy", metrics=["acc"])
    w, b = model.get_weights()
    weights = np.arange(8, dtype=np.float32)
    logits = x @ w + b
    p = np.exp(logits) / np.exp(logits).sum(1, keepdims=True)
    losses = -np.log(p[np.arange(8), y])
    loss, accuracy = model.train_on_batch(x, y, sample_weight=weights)
    assert loss == pytest.approx((losses * weights).mean(), rel=1e-5)
    assert accuracy == (p.argmax(1) == y).mean()
    g = (p - np.eye(10)[y]) * weights[:, None] / 8
    np.testing.assert_allclose(model.get_weights()[0], w - 0.5 * x.T @ g, rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(model.get_weights()[1], b - 0.5 * g.sum(0), rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize(
    ("act", "error", "text"),
    [
        (lambda x, y: keras.Sequential([keras.layers.Dense(1)]).fit(x, y), StateError,
         r"Sequential: expected compile\(\) before"),
        (lambda x, y: small().fit(x[:, :60], y, verbose=0), ShapeError,
         r"dense_input: expected data of shape \(None, 64\), got \(1797, 60\)"),
        (lambda x, y: small().fit(x, y[:9], verbose=0), ShapeError,
         r"dense_input has 1797, dense_1 \(targets\) has 9"),
        (lambda x, y: small("mse").fit(x, y, verbose=0), ShapeError,
         r"dense_1: expected targets of shape \(None, 10\), got \(1797, 1\)"),
        (lambda x, y: small("sparse"), UnknownKeyError, "loss: expected one of .*'mse'.*'sparse'"),
        (lambda x, y: small(metrics=["accurate"]), UnknownKeyError, "metric: expected one of"),
        (lambda x, y: small(loss_weights={"a": 1}), UnknownKeyError, r"outputs \['dense_1'\]"),
        (lambda x, y: small().fit(x, verbose=0), ArgumentError, "expected targets for"),
        (lambda x, y: keras.layers.Dense(3, relu=True), ArgumentError, r"got \['relu'\]"),
    ],
)  # fmt: skip
def test_errors(digits, act, error, text):
    with pytest.raises(error, match=text):
        act(*digits)


def test_a_dataset_of_tensors(digits):
    """They are computed once, in Keras's session."""
    scale = tf.Variable(2.0)
    tf.keras.backend.get_session().run(scale.initializer)
    x, y = (a[:32].astype("float32") for a in digits)
    data = tf.data.Dataset.from_tensor_slices((tf.cast(x * 0.5, tf.float32) * scale, y))
    weights = []
    for given, options in ((data.batch(16).repeat(), {"steps_per_epoch": 2}), (x, {"y": y})):
        model = small()
        model.set_weights([np.sin(np.arange(w.size)).reshape(w.shape) for w in model.get_weights()])
        options = {"batch_size": 16, "shuffle": False, **options} if given is x else options
        model.fit(given, epochs=2, verbose=0, **options)
        weights.append(model.get_weights())
    for one, another in zip(*weights, strict=True):
        np.testing.assert_allclose(one, another, rtol=1e-5, atol=1e-6)
    fed = tf.data.Dataset.from_tensors((tf.placeholder("float32", [2, 64]), y[:2]))
    with pytest.raises(tf.errors.InvalidArgumentError, match="Placeholder"):
        small().fit(fed, verbose=0)
