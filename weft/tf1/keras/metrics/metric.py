"""`Metric`: variables that each step updates, and the metric computed from them."""

from __future__ import annotations

from typing import Any

import numpy as np

import weft.tf1 as tf
from weft.errors import ArgumentError
from weft.tf1.framework.graph import fail
from weft.tf1.keras import initializers
from weft.tf1.keras.engine import sessions
from weft.tf1.keras.engine.graph_state import graph_state
from weft.tf1.keras.storage.serialization import Configured


class Metric(Configured):
    """Base class: a subclass creates variables by `add_weight`, and defines two methods.

    `update_state(y_true, y_pred, sample_weight=None)` returns the operation that accumulates a
    batch, `result()` the metric.

    Args:
        name: of the metric; derived from the class's name by default.
        dtype: of its variables.
        dynamic: whether `update_state` reads values, so that Python runs each step.
    """

    def __init__(
        self, name: str | None = None, dtype: Any = None, dynamic: bool = False, **options: Any
    ) -> None:
        if options:
            raise fail(
                ArgumentError,
                f"{type(self).__name__}: expected name and dtype, got {sorted(options)}",
            )
        self.name = name or graph_state().unique_name(type(self).__name__)
        self.dtype = tf.as_dtype(dtype or "float32").name
        self._weights: list[Any] = []
        self.dynamic = dynamic

    def update_state(self, *args: Any, **kwargs: Any) -> Any:
        """Accumulate a batch."""
        raise NotImplementedError

    def result(self) -> Any:
        """The metric over the accumulated batches."""
        raise NotImplementedError

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Accumulate a batch; returns the metric so far."""
        with tf.name_scope(self.name):
            update = self.update_state(*args, **kwargs)
            with tf.control_dependencies(update if isinstance(update, list) else [update]):
                return tf.identity(self.result())

    def add_weight(
        self, name: str, shape: Any = (), aggregation: Any = None, synchronization: Any = None,
        initializer: Any = "zeros", dtype: Any = None,
    ) -> Any:  # fmt: skip
        """A variable of the metric, which is reset in each epoch."""
        del aggregation, synchronization
        kind, dims = tf.as_dtype(dtype or self.dtype), [int(d) for d in shape]
        make = initializers.get(initializer)
        variable = tf.Variable(
            lambda: initializers.filled(make, dims, kind), name=f"{self.name}/{name}", dtype=kind,
            trainable=False, collections=[tf.GraphKeys.LOCAL_VARIABLES],
        )  # fmt: skip
        graph_state().variables.append(variable)
        self._weights.append(variable)
        return variable

    def reset_states(self) -> None:
        """Reset the variables."""
        pairs = [(v, np.zeros(v.shape.as_list())) for v in self._weights]
        if pairs:
            with self._weights[0].graph.as_default():
                sessions.assign_values(pairs)

    reset_state = reset_states

    @property
    def weights(self) -> list[Any]:
        """The variables."""
        return list(self._weights)

    variables = weights

    def get_config(self) -> dict[str, Any]:
        """The constructor's arguments."""
        return {"name": self.name, "dtype": self.dtype}
