"""Sums and means over batches, of values or of a function of targets and predictions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import weft.tf1 as tf
from weft.ops.metric.mean import weighted_total
from weft.tf1.keras.losses import weighted
from weft.tf1.keras.metrics.metric import Metric

__all__ = ["Mean", "MeanMetricWrapper", "RootMeanSquaredError", "Sum"]


class Sum(Metric):
    """The weighted sum of values."""

    def __init__(self, name: str | None = "sum", dtype: Any = None) -> None:
        super().__init__(name, dtype)
        self.total = self.add_weight("total")

    def update_state(self, values: Any, sample_weight: Any = None) -> Any:
        """Accumulate a batch."""
        values = tf.cast(tf.convert_to_tensor(values), self.dtype)
        if sample_weight is not None:
            values = weighted(values, sample_weight)
        return self.total.assign_add(tf.reduce_sum(values))

    def result(self) -> Any:
        """The sum."""
        return self.total.read_value()


class _Averaging(Metric):
    """A weighted mean."""

    def __init__(self, name: str | None, dtype: Any = None) -> None:
        super().__init__(name, dtype)
        self.total = self.add_weight("total")
        self.count = self.add_weight("count")

    def counted(self, values: Any, sample_weight: Any) -> Any:
        """Accumulate values."""
        values = tf.cast(tf.convert_to_tensor(values), self.dtype)
        inputs = [values]
        if sample_weight is not None:
            inputs.append(weighted(tf.ones_like(values), sample_weight))
        added = tf.get_default_graph().emit("Sum", inputs, weighted_total, name="Sum").outputs
        return tf.group(self.total.assign_add(added[0]), self.count.assign_add(added[1]))

    def result(self) -> Any:
        """The mean; 0 if nothing was counted."""
        return tf.div_no_nan(self.total.read_value(), self.count.read_value())


class Mean(_Averaging):
    """The weighted mean of values."""

    def __init__(self, name: str | None = "mean", dtype: Any = None) -> None:
        super().__init__(name, dtype)

    def update_state(self, values: Any, sample_weight: Any = None) -> Any:
        """Accumulate a batch."""
        return self.counted(values, sample_weight)


class MeanMetricWrapper(_Averaging):
    """The mean of a function of targets and predictions.

    Args:
        fn: gives one value per example.
        options: further arguments of `fn`.
    """

    def __init__(
        self, fn: Callable[..., Any], name: str | None = None, dtype: Any = None, **options: Any
    ) -> None:
        super().__init__(name, dtype)
        self._fn, self._options = fn, options

    def update_state(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> Any:
        """Accumulate a batch."""
        return self.counted(self._fn(y_true, y_pred, **self._options), sample_weight)

    def get_config(self) -> dict[str, Any]:
        """The constructor's arguments."""
        return {**super().get_config(), **self._options}


class RootMeanSquaredError(_Averaging):
    """The root of the mean squared error."""

    def __init__(self, name: str | None = "root_mean_squared_error", dtype: Any = None) -> None:
        super().__init__(name, dtype)

    def update_state(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> Any:
        """Accumulate a batch."""
        p = tf.cast(y_pred, self.dtype)
        return self.counted(tf.square(p - tf.cast(y_true, self.dtype)), sample_weight)

    def result(self) -> Any:
        """The root."""
        return tf.sqrt(super().result())
