"""Models with a `train_step` of their own, and what else TensorFlow 2 means otherwise.

Numbers are those of TensorFlow 2.21 with Keras 2.
"""

import numpy as np
import pytest

import weft.tf1 as tf

pytestmark = pytest.mark.usefixtures("eager")
keras = tf.keras
DRAWN = np.random.RandomState(0)
X = DRAWN.rand(70, 3).astype("float32")
Y = (X.sum(1, keepdims=True) > 1.5).astype("float32")
START = {"kernel_initializer": tf.constant_initializer(0.3)}


def layers(activation="tanh"):
    x = keras.Input((3,))
    decay = keras.regularizers.l2(0.01)
    y = keras.layers.Dense(4, activation=activation, kernel_regularizer=decay, **START)(x)
    return x, keras.layers.Dense(1, activation="sigmoid", **START)(y)


class Written(keras.Model):
    def train_step(self, data):
        x, y = data
        with tf.GradientTape() as tape:
            outputs = self(x, training=True)
            loss = self.compiled_loss(y, outputs, regularization_losses=self.losses)
        gradients = tape.gradient(loss, self.trainable_variables)
        self.optimizer.apply_gradients(zip(gradients, self.trainable_variables, strict=True))
        self.compiled_metrics.update_state(y, outputs)
        return {metric.name: metric.result() for metric in self.metrics}


class Reconstruction(keras.Model):
    def __init__(self):
        super().__init__()
        self.dense = keras.layers.Dense(3, **START)
        self.mean, self.half = keras.metrics.Mean("loss"), keras.metrics.Mean("half")

    def compile(self, rate):
        super().compile(run_eagerly=False)
        self.rule = keras.optimizers.Adam(rate)

    def call(self, x):
        return self.dense(x)

    def train_step(self, data):
        with tf.GradientTape() as tape:
            half = tf.reduce_mean(tf.reduce_sum(tf.square(self(data) - data), axis=-1))
            loss = 2 * half
        weights = self.trainable_weights
        self.rule.apply_gradients(zip(tape.gradient(loss, weights), weights, strict=True))
        self.mean.update_state(loss)
        self.half.update_state(half)
        return {"loss": self.mean.result(), "half": self.half.result()}

    def test_step(self, data):
        self.mean.update_state(tf.reduce_mean(tf.square(self(data) - data)))
        return {"loss": self.mean.result()}


class More(keras.Model):
    def train_step(self, data):
        figures = super().train_step(data)
        return {**figures, "twice": figures["loss"] * 2}


def told(history):
    return {name: np.round(values, 5).tolist() for name, values in history.history.items()}


def test_fit_takes_the_step_of_the_model_and_evaluates_by_its_own():
    model = Written(*layers())
    model.compile(keras.optimizers.SGD(0.5), "binary_crossentropy", metrics=["accuracy"])
    data = {"validation_data": (X, Y), "shuffle": False, "verbose": 0}
    assert told(model.fit(X, Y, epochs=3, **data)) == {
        "accuracy": [0.51429, 0.64286, 0.94286], "loss": [0.67309, 0.64967, 0.63736],
        "val_accuracy": [0.58571, 0.9, 0.98571], "val_loss": [0.64944, 0.6374, 0.62541],
    }  # fmt: skip


def test_a_model_may_have_both_steps_and_its_own_compile():
    model = Reconstruction()
    model.compile(0.05)
    history = model.fit(X, epochs=2, batch_size=16, shuffle=False, verbose=0)
    assert told(history) == {"loss": [0.25473, 0.10521], "half": [0.12737, 0.0526]}
    assert model.evaluate(X, verbose=0) == pytest.approx(0.00928491, rel=1e-4)
    again = model.fit(tf.data.Dataset.from_tensor_slices(X).batch(16), verbose=0)
    assert again.history["loss"] == pytest.approx([0.0333977], rel=1e-4)
    assert model.train_on_batch(X) == pytest.approx([0.0169043, 0.00845215], rel=1e-4)


def test_a_step_may_extend_the_step_of_keras():
    model = More(*layers())
    model.compile("sgd", "mse", metrics=["mae"])
    history = told(model.fit(X, Y, batch_size=35, shuffle=False, verbose=0))
    assert list(history) == ["loss", "mae", "twice"]
    assert history["twice"][0] == pytest.approx(2 * history["loss"][0], abs=1e-5)


def test_layers_that_prepare_images_and_numbers():
    images = (DRAWN.rand(6, 8, 10, 3) * 255).astype("float32")
    prepared = keras.Sequential([
        keras.layers.Rescaling(1 / 255, -0.1, input_shape=(8, 10, 3)),
        keras.layers.CenterCrop(4, 6), keras.layers.RandomFlip("horizontal"),
    ])  # fmt: skip
    middle = images[:, 2:6, 2:8] / 255 - 0.1
    np.testing.assert_allclose(prepared.predict(images, verbose=0), middle, rtol=1e-5, atol=1e-6)
    flipped = keras.layers.RandomFlip()(images, training=True).numpy()
    ways = [images, images[:, ::-1], images[:, :, ::-1], images[:, ::-1, ::-1]]
    assert all(any((way[i] == flipped[i]).all() for way in ways) for i in range(6))
    scaled = keras.layers.Normalization()
    scaled.adapt(images)
    assert abs(scaled(images).numpy().mean((0, 1, 2))).max() < 1e-5
    assert abs(scaled(images).numpy().std((0, 1, 2)) - 1).max() < 1e-5
    wide = keras.layers.Resizing(1, 6)(np.arange(4, dtype="float32").reshape(1, 1, 4, 1))
    assert np.allclose(wide.numpy().ravel(), [0, 0.5, 7 / 6, 11 / 6, 2.5, 3])


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, [1.1667, 3.1667, 6.5, 8.5, 11.8333, 13.8333]),
        ({"method": "nearest"}, [1, 3, 9, 11, 13, 15]),
        ({"method": "bicubic"}, [0.8241, 3.0006, 6.4118, 8.5882, 11.9994, 14.1759]),
        ({"antialias": True}, [1.914, 3.486, 6.714, 8.286, 11.514, 13.086]),
        ({"method": "bicubic", "antialias": True}, [1.347, 3.173, 6.587, 8.413, 11.827, 13.653]),
        ({"method": "lanczos3", "antialias": True}, [1.176, 3.099, 6.538, 8.462, 11.901, 13.824]),
    ],
)
def test_resized_pixels_have_centers(options, expected):
    image = np.arange(16, dtype="float32").reshape(1, 4, 4, 1)
    found = tf.image.resize_of_2(image, [3, 2], **options).numpy().ravel()
    np.testing.assert_allclose(found, expected, atol=1e-3)
