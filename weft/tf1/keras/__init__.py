"""`tf.keras` as in TensorFlow 1.15, on graphs and sessions.

>>> import weft.tf1 as tf
>>> from weft.datasets import load_digits
>>> images, labels = load_digits()
>>> model = tf.keras.Sequential([
...     tf.keras.layers.Dense(32, activation="relu", input_shape=(64,)),
...     tf.keras.layers.Dense(10, activation="softmax"),
... ])
>>> model.compile("adam", "sparse_categorical_crossentropy", metrics=["accuracy"])
>>> history = model.fit(images.reshape(-1, 64), labels, epochs=3, verbose=0)
>>> sorted(history.history)
['acc', 'loss']
"""

from weft.tf1.keras import (
    activations,
    backend,
    callbacks,
    constraints,
    datasets,
    initializers,
    layers,
    losses,
    metrics,
    models,
    optimizers,
    preprocessing,
    regularizers,
    utils,
)  # fmt: skip
from weft.tf1.keras.engine.input_layer import Input
from weft.tf1.keras.engine.model import Model, Sequential

__all__ = [
    "Input", "Model", "Sequential", "activations", "backend", "callbacks", "constraints",
    "datasets", "initializers", "layers", "losses", "metrics", "models", "optimizers",
    "preprocessing", "regularizers", "utils",
]  # fmt: skip
