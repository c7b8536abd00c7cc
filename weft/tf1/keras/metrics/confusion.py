"""Metrics from the confusion matrix: precision, recall, the area under the curve."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar, Final

import numpy as np

import weft.tf1 as tf
from weft.errors import ArgumentError
from weft.ir.node import Value
from weft.ops.declaration import catalogue
from weft.ops.metric import curve as curves
from weft.ops.metric import decision
from weft.tf1.framework.graph import emit, fail
from weft.tf1.keras.losses import weighted
from weft.tf1.keras.metrics.metric import Metric

__all__ = [
    "AUC", "FalseNegatives", "FalsePositives", "MeanIoU", "Precision", "Recall", "TrueNegatives",
    "TruePositives",
]  # fmt: skip

_COUNTS: Final = ("true_positives", "false_positives", "true_negatives", "false_negatives")


class _Counts(Metric):
    """Counts decisions at thresholds; a subclass says which, and a formula that combines them."""

    counts: ClassVar[tuple[str, ...]] = _COUNTS
    _formula: ClassVar[Callable[..., Value]] = catalogue.identity

    def __init__(self, thresholds: Sequence[float], name: str | None, dtype: Any) -> None:
        super().__init__(name, dtype)
        self.thresholds = list(thresholds)
        self._held = [self.add_weight(n, (len(self.thresholds),)) for n in self.counts]

    def update_state(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> Any:
        """Accumulate a batch of predictions between 0 and 1."""
        p = tf.cast(y_pred, self.dtype)
        inputs = [tf.cast(tf.not_equal(tf.cast(y_true, self.dtype), 0.0), self.dtype), p]
        if sample_weight is not None:
            inputs.append(weighted(tf.ones_like(p), sample_weight))
        added = tf.get_default_graph().emit(
            "Sum", inputs, decision.counts_at, name="Sum", thresholds=self.thresholds,
            cells=self.counts,
        )  # fmt: skip
        pairs = zip(self._held, added.outputs, strict=True)
        return tf.group(*[held.assign_add(new) for held, new in pairs])

    def result(self) -> Any:
        """The count, share or area; of several thresholds, one for each."""
        counts, formula = [held.read_value() for held in self._held], type(self)._formula
        value = emit("DivNoNan", counts, formula, name="value")
        return value[0] if len(self.thresholds) == 1 else value


def _levels(thresholds: Any) -> list[float]:
    levels = [0.5] if thresholds is None else np.atleast_1d(thresholds).tolist()
    if any(not 0 <= x <= 1 for x in levels):
        raise fail(ArgumentError, f"thresholds: expected numbers from 0 to 1, got {levels}")
    return levels


class _AtThresholds(_Counts):
    _name: ClassVar[str] = ""

    def __init__(self, thresholds: Any = None, name: str | None = None, dtype: Any = None) -> None:
        """Set the thresholds.

        Args:
            thresholds: a number from 0 to 1 or a list of them; predictions above count as
                positive. By default 0.5.
            name: the metric's name.
            dtype: the type of the counts, float32 by default.
        """
        super().__init__(_levels(thresholds), name or self._name or self.counts[0], dtype)

    def get_config(self) -> dict[str, Any]:
        """The constructor's arguments."""
        return {**super().get_config(), "thresholds": self.thresholds}


class TruePositives(_AtThresholds):
    """The number of true positives."""

    counts = ("true_positives",)


class FalsePositives(_AtThresholds):
    """The number of false positives."""

    counts = ("false_positives",)


class TrueNegatives(_AtThresholds):
    """The number of true negatives."""

    counts = ("true_negatives",)


class FalseNegatives(_AtThresholds):
    """The number of false negatives."""

    counts = ("false_negatives",)


class Precision(_AtThresholds):
    """True positives over predicted positives."""

    counts = ("true_positives", "false_positives")
    _name, _formula = "precision", decision.share


class Recall(_AtThresholds):
    """True positives over actual positives."""

    counts = ("true_positives", "false_negatives")
    _name, _formula = "recall", decision.share


class AUC(_Counts):
    """The area under the ROC curve, approximated from counts at thresholds.

    Args:
        num_thresholds: the number of thresholds.
        curve: `"ROC"`.
        summation_method: `"interpolation"`, the trapezoid rule.
        name: the metric's name.
        dtype: the type of the counts, float32 by default.
    """

    @staticmethod
    def _formula(tp: Value, fp: Value, tn: Value, fn: Value) -> Value:
        return curves.roc_area(tp, fn, tn, fp)

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
        super().__init__(curves.even_thresholds(num_thresholds), name, dtype)
        self.num_thresholds = num_thresholds

    def get_config(self) -> dict[str, Any]:
        """The constructor's arguments."""
        return {**super().get_config(), "num_thresholds": self.num_thresholds}


class MeanIoU(Metric):
    """The mean over the classes that occur of intersection over union.

    Args:
        num_classes: the number of classes; targets and predictions are integers below it, and
            fractions are cut off.
        name: the metric's name.
        dtype: the type of the counts, float32 by default.
    """

    def __init__(self, num_classes: int, name: str | None = None, dtype: Any = None) -> None:
        super().__init__(name or "mean_io_u", dtype)
        self.num_classes = num_classes
        self._total = self.add_weight("total_confusion_matrix", (num_classes, num_classes))

    def update_state(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> Any:
        """Accumulate a batch."""
        y, p = (tf.reshape(tf.cast(x, tf.int64), [-1]) for x in (y_true, y_pred))
        scale = None if sample_weight is None else tf.reshape(sample_weight, [-1])
        added = tf.math.confusion_matrix(y, p, self.num_classes, dtype=self.dtype, weights=scale)
        return self._total.assign_add(added)

    def result(self) -> Any:
        """The mean."""
        return emit("DivNoNan", [self._total.read_value()], decision.mean_iou, name="value")

    def get_config(self) -> dict[str, Any]:
        """The constructor's arguments."""
        return {**super().get_config(), "num_classes": self.num_classes}


CLASSES: Final = (
    AUC, FalseNegatives, FalsePositives, MeanIoU, Precision, Recall, TrueNegatives, TruePositives,
)  # fmt: skip
