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

import importlib as _importlib
import typing as _typing

if _typing.TYPE_CHECKING:
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
    )
    from weft.tf1.keras.engine.input_layer import Input
    from weft.tf1.keras.engine.model import Model, Sequential

__all__ = [
    "Input", "Model", "Sequential", "activations", "backend", "callbacks", "constraints",
    "datasets", "initializers", "layers", "losses", "metrics", "models", "optimizers",
    "preprocessing", "regularizers", "utils",
]  # fmt: skip

_CLASSES = {
    "Input": "weft.tf1.keras.engine.input_layer", "Model": "weft.tf1.keras.engine.model",
    "Sequential": "weft.tf1.keras.engine.model",
}  # fmt: skip


def __getattr__(name: str) -> _typing.Any:
    """Loaded on first use, so that `tf.layers`, which is made of layers, loads no trainer."""
    if name in _CLASSES:
        return getattr(_importlib.import_module(_CLASSES[name]), name)
    if name in __all__:
        return _importlib.import_module(f"weft.tf1.keras.{name}")
    raise AttributeError(f"module 'weft.tf1.keras' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
