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

from weft import exports as _exports

_PARTS = (
    "activations", "applications", "backend", "callbacks", "constraints", "datasets",
    "initializers", "layers", "losses", "metrics", "models", "optimizers", "preprocessing",
    "regularizers", "utils",
)  # fmt: skip

# On first use, so that `tf.layers`, which is made of Keras's layers, loads no trainer
_exports.gather(globals(), "Input", "Model", "Sequential", *_PARTS)
_exports.lazy(
    globals(),
    {
        "weft.tf1.keras": _PARTS,
        "weft.tf1.keras.engine.input_layer": ["Input"],
        "weft.tf1.keras.engine.model": ["Model", "Sequential"],
    },
)
