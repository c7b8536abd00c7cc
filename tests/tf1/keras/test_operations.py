"""Operations between layers: models wrap them as layers, call them, save and load them."""

import numpy as np
import pytest

import weft.tf1 as tf
from weft.errors import StateError
from weft.tf1 import keras

L = keras.layers
X = np.random.default_rng(0).standard_normal((5, 4)).astype(np.float32)


def ops_of(model):
    return [x.kind for x in model.layers if type(x).__name__ == "TensorFlowOpLayer"]


def relu_plus_one(x):
    return tf.nn.relu(x) + 1


def halves(x):
    a, b = tf.split(x, 2, axis=1)
    return tf.concat([b * 2.0, a], axis=1)


def rows_and_slices(x):
    return tf.reshape(x[:, 1:3], [tf.shape(x)[0], 2]) - tf.reduce_mean(x, axis=1, keepdims=True)


@pytest.mark.parametrize("function", [relu_plus_one, halves, rows_and_slices, abs, tf.nn.softmax])
def test_operations_are_layers(function, tmp_path):
    x = keras.Input([4])
    first, last = L.Dense(4, activation="tanh"), L.Dense(2)
    model = keras.Model(x, last(function(first(x))))
    wrapped = keras.Model(x, last(L.Lambda(function)(first(x))))
    expected = wrapped.predict(X)
    assert ops_of(model) and not ops_of(wrapped)
    np.testing.assert_array_equal(model.predict(X), expected)
    assert len(model.trainable_weights) == 4
    again = keras.Input([4])
    np.testing.assert_allclose(keras.Model(again, model(again)).predict(X[:3]), expected[:3], 1e-6)
    model.save(str(tmp_path / "a.h5"))
    copies = [
        keras.models.load_model(str(tmp_path / "a.h5")),
        keras.models.model_from_json(model.to_json()),
        keras.models.clone_model(model),
    ]  # fmt: skip
    for copy in copies:
        assert ops_of(copy) == ops_of(model)
        copy.set_weights(model.get_weights())
        np.testing.assert_allclose(copy.predict(X), expected, 1e-6)


def test_operations_as_outputs_are_trained_through():
    x = keras.Input([4])
    model = keras.Model(x, tf.square(L.Dense(1, kernel_initializer="ones")(x)) + 0.5)
    model.compile("sgd", "mse")
    before = model.evaluate(X, np.ones((5, 1)), verbose=0)
    model.fit(X, np.ones((5, 1)), epochs=3, verbose=0)
    assert model.evaluate(X, np.ones((5, 1)), verbose=0) < before
    assert len(ops_of(model)) == 2


def test_variables_are_read_where_they_are():
    x = keras.Input([4])
    scale = tf.Variable(np.float32(3.0))
    keras.backend.get_session().run(scale.initializer)
    model = keras.Model(x, L.Flatten()(x * scale))
    np.testing.assert_allclose(model.predict(X), 3 * X, 1e-6)
    again = keras.Input([4])
    np.testing.assert_allclose(keras.Model(again, model(again)).predict(X), 3 * X, 1e-6)
    with pytest.raises(StateError, match="read variables inside of a layer"):
        model.to_json()


def test_what_follows_from_no_input_is_no_layer():
    plain = tf.placeholder(tf.float32, [None, 4])
    x = keras.Input([4])
    y = L.Dense(2)(tf.nn.relu(plain))
    model = keras.Model(x, L.Dense(2)(x))
    assert len(model.layers) == 2 and y.shape.as_list() == [None, 2]
