"""TensorFlow 1's API: define a graph, then run it in a session.

>>> import weft.tf1 as tf
>>> x = tf.placeholder(tf.float32, [None, 3])
>>> y = tf.reduce_sum(x * 2.0, reduction_indices=[1])
>>> with tf.Session() as sess:
...     sess.run(y, {x: [[1, 2, 3], [4, 5, 6]]})
array([12., 30.], dtype=float32)

Names, defaults, element types, operation names and errors follow TensorFlow 1.15. Absent: complex
numbers.
Random numbers come from own streams: reproducible, but other numbers than TensorFlow's.
"""

from __future__ import annotations

import importlib
from typing import Any


def __getattr__(name: str) -> Any:
    """A name, looked up in `weft.tf1.api`, which is loaded by the first: `import` stays instant."""
    if name == "__path__" or (name.startswith("__") and name not in ("__all__", "__version__")):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module("weft.tf1.api"), name)
    globals()[name] = value  # so that Python asks once
    return value


def __dir__() -> list[str]:
    return dir(importlib.import_module("weft.tf1.api"))
