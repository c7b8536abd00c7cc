"""TensorFlow 1's Keras classifies handwritten digits: a small residual network, saved and loaded.

Plain operations are used between layers (`tf.nn.relu(y + x)`). Data are the digits bundled with
Weft, or MNIST from the folder in `WEFT_DATA`. Prints the accuracy. On 2 cores: 7 s.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from typing import Any

import numpy as np
from common import load_digits, options

import weft.tf1 as tf
from weft.tf1 import keras

CHANNELS, BATCH = 16, 100


def residual(x: Any, channels: int) -> Any:
    """Two convolutions, the first with stride 2, and a 1x1 convolution as the shortcut."""
    y = keras.layers.Conv2D(channels, 3, strides=2, padding="same", use_bias=False)(x)
    y = tf.nn.relu(keras.layers.BatchNormalization(momentum=0.9)(y))
    y = keras.layers.Conv2D(channels, 3, padding="same", use_bias=False)(y)
    y = keras.layers.BatchNormalization(momentum=0.9)(y)
    return tf.nn.relu(y + keras.layers.Conv2D(channels, 1, strides=2)(x))


def network() -> Any:
    """From pixels in [0, 1] to logits of ten digits."""
    x = keras.Input([28, 28, 1])
    y = residual(residual(2 * x - 1, CHANNELS), 2 * CHANNELS)
    scores = keras.layers.Dense(10)(keras.layers.Flatten()(y))
    return keras.Model(x, tf.nn.softmax(scores))


def main(arguments: Sequence[str] | None = None) -> float:
    """Train, save, load, test; returns the accuracy."""
    chosen = options(__doc__, steps=300).parse_args(arguments)
    digits = load_digits()
    parts = [x.numpy().reshape(-1, 28, 28, 1) for x in (digits.images, digits.test_images)]
    labels = [y.numpy() for y in (digits.labels, digits.test_labels)]
    tf.set_random_seed(0)
    rows = np.random.default_rng(0).integers(0, len(labels[0]), chosen.steps * BATCH)
    model = network()
    model.compile("adam", "sparse_categorical_crossentropy", metrics=["accuracy"])
    model.fit(parts[0][rows], labels[0][rows], BATCH, shuffle=False, verbose=0)
    with tempfile.TemporaryDirectory() as folder:
        model.save_weights(f"{folder}/weights")
        again = keras.models.model_from_json(model.to_json())
        again.load_weights(f"{folder}/weights")
    again.compile("adam", "sparse_categorical_crossentropy", metrics=["accuracy"])
    accuracy = again.evaluate(parts[1], labels[1], verbose=0)[1]
    print(f"accuracy {accuracy:.3f}")
    return float(accuracy)


if __name__ == "__main__":
    main()
