"""Programs of TensorFlow 2 whose Python looks at tensors, and the parts of a step that models own.

Numbers are those of TensorFlow 2.21 with Keras 2.
"""

import numpy as np
import pytest

import weft.tf1 as tf

pytestmark = pytest.mark.usefixtures("eager")
keras = tf.keras
DRAWN = np.random.default_rng(0)
X = DRAWN.normal(size=(20, 3)).astype("float32")
Y = (X.sum(1, keepdims=True) > 0).astype("float32")
FIT = {"batch_size": 10, "shuffle": False, "verbose": 0}


def compiled(kind=keras.Model, loss="binary_crossentropy", **options):
    x = keras.Input((3,))
    start = keras.initializers.Constant(0.3)
    y = keras.layers.Dense(1, kernel_initializer=start, activation="sigmoid")(x)
    model = kind(x, y)
    model.compile(keras.optimizers.SGD(0.1), loss, metrics=["accuracy"], **options)
    return model


def told(history):
    return {name: np.round(values, 5).tolist() for name, values in history.history.items()}


class Owner(keras.Model):
    """Overrides what Keras calls in a step."""

    def compute_loss(self, x=None, y=None, y_pred=None, sample_weight=None):
        return tf.reduce_mean(tf.square(y - y_pred)) * 10.0

    def compute_metrics(self, x, y, y_pred, sample_weight):
        found = super().compute_metrics(x, y, y_pred, sample_weight)
        return {**found, "total": tf.reduce_sum(y_pred)}

    def predict_step(self, data):
        return self(data, training=False) * 100

    def make_predict_function(self, force=False):
        return lambda iterator: self.predict_step(next(iterator)) + 1000


class Branching(keras.layers.Layer):
    def build(self, shape):
        self.w = self.add_weight("w", [shape[-1], 1], initializer="ones")

    def call(self, x):
        y = x @ self.w
        if tf.reduce_mean(y) > 0:
            y = y * 2.0
        for t in tf.range(2):
            y = y + tf.cast(t, tf.float32)
        return y


def doubled_above(y, p):
    return tf.reduce_mean(tf.square(y - p)) * (2.0 if float(tf.reduce_mean(p)) > 0.5 else 1.0)


def branching(y, p):
    if tf.reduce_mean(p) > 0.5:
        return tf.reduce_mean(tf.square(y - p)) * 2.0
    return tf.reduce_mean(tf.square(y - p))


def test_keras_calls_what_a_model_overrides():
    model = compiled(Owner)
    history = told(model.fit(X, Y, epochs=2, batch_size=20, verbose=0, validation_data=(X, Y)))
    assert history["accuracy"] == [1.0, 0.95] and len(history["val_total"]) == 2
    np.testing.assert_allclose(model.get_weights()[0][:, 0], [0.54842, 0.40045, 0.36076], atol=5e-6)
    expected = np.asarray(model(X[:4])) * 100 + 1000
    np.testing.assert_allclose(model.predict(X[:4], verbose=0), expected)
    np.testing.assert_allclose(model.predict(tf.data.Dataset.from_tensors(X[:4])), expected)
    np.testing.assert_allclose(model.predict_on_batch(X[:4]), expected)


def test_steps_that_run_in_python():
    for loss, eagerly in ((doubled_above, True), (branching, None)):
        model = compiled(loss=loss, run_eagerly=eagerly)
        assert told(model.fit(X, Y, epochs=2, **FIT))["loss"] == [0.23943, 0.23028]
    for eagerly in (True, False):
        model, weighed = compiled(run_eagerly=eagerly), {"class_weight": {0: 1.0, 1: 5.0}}
        history = model.fit(X, Y, **weighed, **{**FIT, "batch_size": 20})
        assert told(history) == {"loss": [1.62013], "accuracy": [1.0]}
        assert [type(x) for x in model.test_on_batch(X, Y)] == [float, float]


def test_a_layer_that_asks_for_values_is_trained_by_python():
    model = keras.Sequential([keras.layers.Dense(3, kernel_initializer="ones"), Branching()])
    model.compile("sgd", "mse", metrics=["mae"])
    assert told(model.fit(X, Y, epochs=2, validation_split=0.2, **FIT)) == {
        "loss": [44.0701, 0.78665], "mae": [5.18594, 0.63449],
        "val_loss": [2.03475, 0.94098], "val_mae": [0.95369, 0.78187],
    }  # fmt: skip
    np.testing.assert_allclose(model.predict(X[:2], verbose=0)[:, 0], [1.0791, 0.8866], atol=5e-5)
    np.testing.assert_allclose(model.evaluate(X, Y, verbose=0), [0.28182, 0.44904], atol=5e-6)
    np.testing.assert_allclose(
        model.layers[1].get_weights()[0], np.full((3, 1), 0.11822), atol=5e-6
    )


GRADIENTS = [
    [1e-4, -3e-4, 0.5, 1.0, 0.0],
    [2e-4, 1e-4, -0.3, 0.7, 1e-6],
    [-1e-4, 5e-4, 0.1, 0.2, 0.1],
]


@pytest.mark.parametrize(
    ("optimizer", "expected"),
    [
        (
            lambda: keras.optimizers.RMSprop(0.01),
            [-0.012341, 0.085094, 0.165714, 0.204112, 0.344298],
        ),
        (
            lambda: keras.optimizers.RMSprop(0.01, centered=True),
            [-0.012411, 0.084918, 0.162897, 0.191301, 0.340194],
        ),
        (lambda: keras.optimizers.Adagrad(0.1), [-0.000126, 0.09981, 0.108615, 0.020932, 0.340981]),
        (lambda: keras.optimizers.Nadam(0.01), [-0.027554, 0.094364, 0.18572, 0.261939, 0.368699]),
    ],
)
def test_optimizers_of_version_2_step_at_once(optimizer, expected):
    variable, rule = tf.Variable(np.arange(5, dtype="float32") / 10), optimizer()
    for gradient in GRADIENTS * 2:
        rule.apply_gradients([(tf.constant(gradient), variable)])
    np.testing.assert_allclose(variable, expected, atol=2e-6)


def test_tensors_compare_by_values_wherever_a_model_is_called():
    x = np.array([[0, 0, 1.0], [1, 1, 0]], "float32")

    def counts(x):
        zeros, others = tf.cast(x == 0.0, "float32"), tf.cast(x != 0.0, "float32")
        return tf.reduce_sum(zeros, 1) * 10 + tf.reduce_sum(others, 1)

    inputs = keras.Input((3,))
    for outputs in (counts(inputs), keras.layers.Lambda(counts)(inputs)):
        assert keras.Model(inputs, outputs).predict(x, verbose=0).tolist() == [21, 12]
    with tf.Graph().as_default():
        assert (tf.constant(1.0) == 1.0) is False


def sums(n):
    total = tf.constant(0, tf.int64)
    for i in tf.range(n):
        total += i
    while total > 4:
        total -= 1
    while not total < 4:  # never ends as long as its truth is not known
        total -= 1
    return total


def test_functions_of_elements_may_branch_on_them():
    numbers, limit = tf.data.Dataset.range(5), tf.constant(3, tf.int64)
    branched = numbers.map(lambda x: {"y": x * 10 if x % 2 == 0 else x})
    assert [int(e["y"]) for e in branched] == [0, 1, 20, 3, 40]
    pairs = numbers.map(sums, num_parallel_calls=2).batch(2)
    assert [e.tolist() for e in pairs.as_numpy_iterator()] == [[0, 0], [1, 3], [3]]
    assert pairs.element_spec == tf.TensorSpec([None], tf.int64)
    assert [int(e) for e in numbers.filter(lambda x: bool(x > limit))] == [4]
    grown = numbers.map(lambda x: tf.ones([2]) if x > limit else tf.ones([3]))
    assert grown.element_spec.shape.as_list() == [None]
    with pytest.raises(tf.errors.UnknownError, match="odd"):
        list(numbers.map(lambda x: x if x % 2 == 0 else (_ for _ in ()).throw(ValueError("odd"))))


def test_logits_behind_a_softmax_count_as_logits():
    inputs = keras.Input((3,))
    losses, spread = [], tf.constant_initializer([[0.1, -0.2], [0.3, 0.4], [-0.5, 0.6]])
    for activation, from_logits in (("softmax", True), ("softmax", False), (None, True)):
        dense = keras.layers.Dense(2, activation, kernel_initializer=spread)
        model = keras.Model(inputs, dense(inputs))
        model.compile("sgd", keras.losses.SparseCategoricalCrossentropy(from_logits=from_logits))
        losses.append(model.train_on_batch(X, Y))
    assert losses[0] == losses[1] == pytest.approx(losses[2], rel=1e-6)
