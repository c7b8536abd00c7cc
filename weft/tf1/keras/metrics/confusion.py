"""Metrics from the confusion matrix: precision, recall, the area under the curve."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Final

import numpy as np

import weft.tf1 as tf
from weft.errors import ArgumentError
from weft.tf1.framework.graph import fail
from weft.tf1.keras.losses import weighted
from weft.tf1.keras.metrics.metric import Metric

_COUNTS: Final = ("true_positives", "false_positives", "true_negatives", "false_negatives")


class _Counts(Metric):
    """Counts decisions at thresholds; a subclass says which, and combines them."""

    counts: ClassVar[tuple[str, ...]] = _COUNTS

    def __init__(self, thresholds: Sequence[float], name: str | None, dtype: Any) -> None:
        super().__init__(name, dtype)
        self.thresholds = list(thresholds)
        self._held = {n: self.add_weight(n, (len(self.thresholds),)) for n in self.counts}

    def update_state(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> Any:
        """Accumulate a batch of predictions between 0 and 1."""
        p = tf.cast(y_pred, self.dtype)
        weights = tf.ones_like(p)
        if sample_weight is not None:
            weights = weighted(weights, sample_weight)
        flat = [tf.reshape(x, [1, -1]) for x in (p, tf.cast(y_true, self.dtype), weights)]
        levels = tf.constant(np.array(self.thresholds, np.float32)[:, None], self.dtype)
        said = tf.cast(flat[0] > levels, self.dtype)
        real = tf.cast(tf.not_equal(flat[1], 0.0), self.dtype)
        parts = {
            "true_positives": said * real, "false_positives": said * (1.0 - real),
            "true_negatives": (1.0 - said) * (1.0 - real), "false_negatives": (1.0 - said) * real,
        }  # fmt: skip
        return tf.group(*[
            held.assign_add(tf.reduce_sum(parts[n] * flat[2], axis=1))
            for n, held in self._held.items()
        ])  # fmt: skip

    def _share(self, part: str, other: str) -> Any:
        first, second = self._held[part].read_value(), self._held[other].read_value()
        return tf.div_no_nan(first, first + second)

    def _shown(self, found: Any) -> Any:
        """A number if there is one threshold."""
        return found[0] if len(self.thresholds) == 1 else found


def _levels(thresholds: Any) -> list[float]:
    levels = [0.5] if thresholds is None else np.atleast_1d(thresholds).tolist()
    if any(not 0 <= x <= 1 for x in levels):
        raise fail(ArgumentError, f"thresholds: expected numbers from 0 to 1, got {levels}")
    return levels


class _OneCount(_Counts):
    def __init__(self, thresholds: Any = None, name: str | None = None, dtype: Any = None) -> None:
        super().__init__(_levels(thresholds), name or self.counts[0], dtype)

    def result(self) -> Any:
        """The count."""
        return self._shown(self._held[self.counts[0]].read_value())

    def get_config(self) -> dict[str, Any]:
        """The constructor's arguments."""
        return {**super().get_config(), "thresholds": self.thresholds}


class TruePositives(_OneCount):
    """The number of true positives."""

    counts = ("true_positives",)


class FalsePositives(_OneCount):
    """The number of false positives."""

    counts = ("false_positives",)


class TrueNegatives(_OneCount):
    """The number of true negatives."""

    counts = ("true_negatives",)


class FalseNegatives(_OneCount):
    """The number of false negatives."""

    counts = ("false_negatives",)


class Precision(_OneCount):
    """True positives over predicted positives."""

    counts = ("true_positives", "false_positives")

    def __init__(self, thresholds: Any = None, name: str | None = None, dtype: Any = None) -> None:
        super().__init__(thresholds, name or "precision", dtype)

    def result(self) -> Any:
        """The fraction."""
        return self._shown(self._share(*self.counts))


class Recall(_OneCount):
    """True positives over actual positives."""

    counts = ("true_positives", "false_negatives")

    def __init__(self, thresholds: Any = None, name: str | None = None, dtype: Any = None) -> None:
        super().__init__(thresholds, name or "recall", dtype)

    def result(self) -> Any:
        """The fraction."""
        return self._shown(self._share(*self.counts))


class AUC(_Counts):
    """The area under the ROC curve, approximated from counts at thresholds.

    Args:
        num_thresholds: the number of thresholds.
        curve: `"ROC"`.
        summation_method: `"interpolation"`, the trapezoid rule.
    """

    def __init__(
        self, num_thresholds: int = 200, curve: str = "ROC",
        summation_method: str = "interpolation", name: str | None = "auc", dtype: Any = None,
    ) -> None:  # fmt: skip
        if curve != "ROC" or summation_method != "interpolation":
            raise fail(
                ArgumentError,
                f"AUC: expected curve 'ROC' by 'interpolation', got {curve!r} by "
                f"{summation_method!r}",
            )
        inner = [(i + 1) / (num_thresholds - 1) for i in range(num_thresholds - 2)]
        super().__init__([-1e-7, *inner, 1.0 + 1e-7], name, dtype)
        self.num_thresholds = num_thresholds

    def result(self) -> Any:
        """The area."""
        recall = self._share("true_positives", "false_negatives")
        fallout = self._share("false_positives", "true_negatives")
        widths = fallout[:-1] - fallout[1:]
        return tf.reduce_sum(widths * (recall[:-1] + recall[1:]) / 2.0)

    def get_config(self) -> dict[str, Any]:
        """The constructor's arguments."""
        return {**super().get_config(), "num_thresholds": self.num_thresholds}


CLASSES: Final = (
    AUC, FalseNegatives, FalsePositives, Precision, Recall, TrueNegatives, TruePositives,
)  # fmt: skip
