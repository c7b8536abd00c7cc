"""`import weft.as_tensorflow`, a program's first line: Weft answers imports of TensorFlow 1.

From then on `tensorflow` is `weft.tf1`, with `tensorflow.contrib`, `tensorflow.compat.v1`,
`tensorflow.keras` and parts of `tensorflow.python`, as `torch` and others are Weft
(`weft.as_torch`). What Weft lacks raises where it is used. `weft run SCRIPT` does the same for a
program that is not changed.

>>> import weft.as_tensorflow
>>> import tensorflow as tf
>>> tf.__version__, tf.nn.relu.__name__
('1.15.5', 'relu')
"""

from __future__ import annotations

from weft.mirror import table
from weft.mirror.finder import install

__all__ = ["install"]

install(table.TENSORFLOW)
