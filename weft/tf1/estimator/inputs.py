"""Input functions of arrays in memory."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

import weft.tf1 as tf
from weft.errors import ArgumentError
from weft.tf1.framework.graph import fail

__all__ = ["numpy_input_fn", "pandas_input_fn"]


def numpy_input_fn(
    x: Any, y: Any = None, batch_size: int = 128, num_epochs: int | None = 1,
    shuffle: bool | None = None, queue_capacity: int = 1000, num_threads: int = 1,
) -> Callable[[], Any]:  # fmt: skip
    """An input function of arrays.

    Args:
        x: features: an array, or a dict of arrays with an example a row.
        y: labels, likewise, or `None`.
        batch_size: the number of rows in a batch.
        num_epochs: how many times all rows come; without end for `None`.
        shuffle: whether rows come in random order; required.
        queue_capacity, num_threads: accepted.

    Raises:
        ArgumentError: `shuffle` is missing, or numbers of rows differ.
    """
    del queue_capacity, num_threads
    if shuffle is None:
        raise fail(ArgumentError, "numpy_input_fn: shuffle must be provided and explicitly set")
    arrays = [np.asarray(a) for part in (x, y) if part is not None
              for a in (part.values() if isinstance(part, Mapping) else [part])]  # fmt: skip
    rows = {len(a) for a in arrays}
    if len(rows) != 1:
        raise fail(ArgumentError, f"numpy_input_fn: expected arrays of one length, got {rows}")

    def input_fn() -> Any:
        data = tf.data.Dataset.from_tensor_slices(x if y is None else (x, y))
        if shuffle:
            data = data.shuffle(max(rows.copy().pop(), 1))
        iterator = data.repeat(num_epochs).batch(batch_size).make_initializable_iterator()
        tf.add_to_collection(tf.GraphKeys.TABLE_INITIALIZERS, iterator.initializer)
        return iterator.get_next()

    return input_fn


def pandas_input_fn(
    x: Any, y: Any = None, batch_size: int = 128, num_epochs: int | None = 1,
    shuffle: bool | None = None, queue_capacity: int = 1000, num_threads: int = 1,
    target_column: str = "target",
) -> Callable[[], Any]:  # fmt: skip
    """An input function of a pandas DataFrame, whose columns are features.

    Args:
        x: a DataFrame.
        y: a Series or a DataFrame of labels, or `None`.
        batch_size, num_epochs, shuffle, queue_capacity, num_threads: as in `numpy_input_fn`.
        target_column: unused.
    """
    del target_column
    features = {name: _array(x[name]) for name in x.columns}
    labels = None if y is None else np.asarray(y)
    return numpy_input_fn(
        features, labels, batch_size, num_epochs, shuffle, queue_capacity, num_threads
    )


def _array(column: Any) -> Any:
    array = np.asarray(column)
    return array.astype(str) if array.dtype == object else array
