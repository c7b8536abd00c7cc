"""Metrics of classification: accuracy, confusion matrix, precision, recall, F1."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any, ClassVar, Final, Literal, NamedTuple

import numpy as np

from weft.documentation import arguments_of
from weft.eager.functions.api import Tensor, cat, ones_like, sigmoid, where
from weft.eager.tensor.dispatch import recorded
from weft.errors import ArgumentError, OutOfRangeError, ShapeError
from weft.ir.dtype import int64
from weft.metrics.metric import (
    Array,
    Merge,
    Metric,
    Totals,
    given,
    number,
    whole,
)
from weft.ops.metric import decision
from weft.ops.metric.mean import average, quotient

__all__ = ["Accuracy", "ConfusionMatrix", "F1Score", "Precision", "Recall"]

Average = Literal["binary", "micro", "macro", "weighted"] | None
_AVERAGES: Final = ("binary", "micro", "macro", "weighted", None)


class _Labels(NamedTuple):
    """Predicted and true classes, flattened, and a mask of those that count."""

    predicted: Tensor
    true: Tensor
    counted: Tensor


def _checked(name: str, preds: Any, target: Any) -> tuple[Tensor, Tensor]:
    """Predictions and targets as tensors; checks that their shapes fit.

    Scores (N, 1) for targets (N,) are those of class 1.
    """
    p, t = given(preds), given(target)
    scores = p.ndim == t.ndim + 1
    if (p.shape[:1] + p.shape[2:] if scores else p.shape) != t.shape or not p.ndim:
        raise ShapeError.here(
            f"{name}: expected predictions of the targets' shape {tuple(t.shape)}, or with classes "
            f"as second dimension, got {tuple(p.shape)}"
        )
    return p.squeeze(1) if scores and p.shape[1] == 1 else p, t.to(int64)


def _labels(
    name: str, preds: Any, target: Any, threshold: float, ignore_index: int | None,
    classes: int | None = None,
) -> _Labels:  # fmt: skip
    """Classes from scores, from probabilities, or as given.

    Args:
        classes: their number; floating predictions of more than two are class numbers.
    """
    p, t = _checked(name, preds, target)
    if p.ndim > t.ndim:
        p = p.argmax(1)
    elif p.dtype.is_floating and (classes is None or classes <= 2):
        p = _decided(p, threshold)
    elif p.dtype.is_floating and p.ndim > 1:
        raise ShapeError.here(
            f"{name}: expected scores (N, {classes}, ...) for targets (N, ...), or class numbers "
            f"as integers, got scores and targets {tuple(t.shape)}; give each label alone, "
            f"preds[:, i] and target[:, i], to a {name} of 2 classes"
        )
    t = t.reshape(-1)
    return _Labels(p.to(int64).reshape(-1), t, _counted(t, ignore_index))


def _counted(t: Tensor, ignore_index: int | None) -> Tensor:
    """Which targets count."""
    return ones_like(t).bool() if ignore_index is None else t != ignore_index


def _decided(p: Tensor, threshold: float) -> Tensor:
    """Classes from floating predictions: probabilities, logits or class numbers.

    With a threshold between 0 and 1, numbers outside of that range are logits, as in torchmetrics,
    or class numbers if all of them are whole and none is negative.
    """
    above = p > threshold
    if not 0 < threshold < 1:
        return above.to(int64)
    outside = ((p < 0) | (p > 1)).any()
    found = where(outside, sigmoid(p) > threshold, above).to(int64)
    return where(outside & ((p >= 0) & (p == p.floor())).all(), p.to(int64), found)


class Accuracy(Metric):
    """The fraction of predictions that are right.

    Predictions (N, C, ...) are scores of classes for targets (N, ...). Predictions of the targets'
    shape are classes, or, if floating, scores of class 1 (of each label): probabilities; logits, if
    any number of the batch is outside of 0 to 1; or class numbers, if all are whole as well.

    Args:
        top_k: a prediction is right if the true class has one of the k best scores; of equal
            scores, the one of the smaller class number ranks higher.
        threshold: probabilities above it mean class 1; from 0 down or 1 up, that of logits.
        ignore_index: a target value that is not counted.

    Raises:
        OutOfRangeError: a target is not a class.

    >>> accuracy = Accuracy()
    >>> accuracy.update([[0.1, 0.9], [0.8, 0.2], [0.3, 0.7]], [1, 0, 0])
    >>> accuracy.update([[0.6, 0.4]], [0])
    >>> accuracy.compute()
    0.75
    """

    merges: ClassVar[Mapping[str, Merge]] = {"right": "sum", "count": "sum", "odd": "sum"}

    def __init__(
        self, top_k: int = 1, threshold: float = 0.5, ignore_index: int | None = None
    ) -> None:
        super().__init__()
        self.top_k, self.threshold = whole("Accuracy", "top_k", top_k), threshold
        self.ignore_index = ignore_index

    def part(self, preds: Any, target: Any) -> dict[str, Any]:
        """Scores or classes, and the true classes."""
        p, t = _checked("Accuracy", preds, target)
        if p.ndim == t.ndim + 1:
            return self._of_scores(p, t)
        if self.top_k > 1:
            raise ShapeError.here(
                f"Accuracy: expected scores (N, C, ...) with top_k={self.top_k}, got predictions "
                f"of the targets' shape {tuple(t.shape)}"
            )
        found = _labels("Accuracy", p, t, self.threshold, self.ignore_index)
        right = (found.predicted == found.true) & found.counted
        return {"right": right.sum(), "count": found.counted.sum(), "odd": 0}

    def _of_scores(self, p: Tensor, t: Tensor) -> dict[str, Any]:
        """Right if fewer than `top_k` classes rank above the true one; NaN always ranks above."""
        classes = p.shape[1]
        if self.top_k > classes:
            raise ArgumentError.here(
                f"Accuracy: expected top_k up to the number of classes {classes}, got {self.top_k}"
            )
        counted = _counted(t, self.ignore_index)
        right = _in_top_k(p.movedim(1, -1), t, k=self.top_k) & counted
        odd = _counts(t, counted.to(int64), size=classes)[-1]
        return {"right": right.sum(), "count": counted.sum(), "odd": odd}

    def check(self, totals: Totals) -> None:
        """Raise if a target is not a class."""
        _check_odd("Accuracy", totals["odd"].item())

    def value(self, totals: Totals) -> float:
        """The fraction that is right; 0 if nothing was counted."""
        return quotient(totals["right"], totals["count"]).item()


def _check_odd(name: str, odd: float) -> None:
    if odd:
        raise OutOfRangeError.here(
            f"{name}: expected classes from 0 on below their number, got {int(odd)} predictions or "
            f"targets that are none; set num_classes or ignore_index"
        )


_counts = recorded(decision.occurrences, differentiable=False)
_confusion = recorded(decision.confusion, differentiable=False)
_in_top_k = recorded(partial(decision.in_top_k, strict=True), differentiable=False)


class ConfusionMatrix(Metric):
    """Counts of pairs of classes: rows are true classes, columns predicted ones.

    Args:
        num_classes: the number of classes.
        threshold: as in `Accuracy`.
        ignore_index: a target value that is not counted.

    Raises:
        OutOfRangeError: a prediction or a target is not a class.

    >>> matrix = ConfusionMatrix(3)
    >>> matrix.update([0, 2, 1, 2], [0, 1, 1, 2])
    >>> matrix.compute()
    array([[1, 0, 0],
           [0, 1, 1],
           [0, 0, 1]])
    """

    merges: ClassVar[Mapping[str, Merge]] = {"counts": "sum"}

    def __init__(
        self, num_classes: int, threshold: float = 0.5, ignore_index: int | None = None
    ) -> None:
        super().__init__()
        self.num_classes = whole("ConfusionMatrix", "num_classes", num_classes)
        self.threshold, self.ignore_index = threshold, ignore_index

    def part(self, preds: Any, target: Any) -> dict[str, Any]:
        """Scores or classes, and the true classes."""
        n = self.num_classes
        p, t, counted = _labels(
            "ConfusionMatrix", preds, target, self.threshold, self.ignore_index, n
        )
        return {"counts": _confusion(t, p, counted.to(int64), classes=n)}

    def check(self, totals: Totals) -> None:
        """Raise if a prediction or a target is not a class."""
        _check_odd("ConfusionMatrix", totals["counts"][-1])

    def value(self, totals: Totals) -> Array:
        """The matrix, int64 (num_classes, num_classes)."""
        return totals["counts"][:-1].reshape(self.num_classes, self.num_classes).copy()


class _PerClass(Metric):
    """Metrics computed from how often a class was true, predicted, and both."""

    merges: ClassVar[Mapping[str, Merge]] = {"both": "sum", "predicted": "sum", "true": "sum"}

    def __init__(
        self,
        num_classes: int | None = None,
        average: Average | Literal["auto"] = "auto",
        threshold: float = 0.5,
        ignore_index: int | None = None,
    ) -> None:
        super().__init__()
        name = type(self).__name__
        if average not in ("auto", *_AVERAGES):
            raise ArgumentError.here(f"{name}: expected average of {_AVERAGES}, got {average!r}")
        default = "binary" if num_classes is None else "macro"
        self.average = default if average == "auto" else average
        self.num_classes = None
        if num_classes is not None:
            self.num_classes = whole(name, "num_classes", num_classes)
        self.threshold, self.ignore_index = threshold, ignore_index
        self._has_labels: bool | None = None

    def part(self, preds: Any, target: Any) -> dict[str, Any]:
        """Scores or classes, and the true classes; or scores (N, L) and labels (N, L)."""
        p, t = _checked(type(self).__name__, preds, target)
        labels = p.dtype.is_floating and p.ndim == t.ndim == 2 and p.shape[1] == self.num_classes
        self._keep_kind(labels)
        return self._of_labels(p, t) if labels else self._of_classes(p, t)

    def _keep_kind(self, labels: bool) -> None:
        if self._has_labels not in (None, labels):
            kinds = "labels (N, L)", "classes (N,)"
            raise ArgumentError.here(
                f"{type(self).__name__}: expected {kinds[labels]} as before, got "
                f"{kinds[not labels]}"
            )
        self._has_labels = labels

    def _of_classes(self, p: Tensor, t: Tensor) -> dict[str, Any]:
        n = self.num_classes or 2
        p, t, counted = _labels(type(self).__name__, p, t, self.threshold, self.ignore_index, n)
        marks = {"both": (t, counted & (p == t)), "predicted": (p, counted), "true": (t, counted)}
        return {name: _counts(x, w.to(int64), size=n) for name, (x, w) in marks.items()}

    def _of_labels(self, p: Tensor, t: Tensor) -> dict[str, Any]:
        if self.average == "binary":
            raise ArgumentError.here(
                f"{type(self).__name__}: expected another average of {tuple(t.shape)} labels than "
                f"'binary'"
            )
        counted = _counted(t, self.ignore_index)
        said, real = (_decided(p, self.threshold) == 1) & counted, (t == 1) & counted
        odd = (counted & (t != 0) & (t != 1)).sum().reshape(1)
        parts = {"both": said & real, "predicted": said, "true": real}
        return {name: cat([x.to(int64).sum(0), odd]) for name, x in parts.items()}

    def check(self, totals: Totals) -> None:
        """Raise if a prediction or a target is not a class."""
        _check_odd(type(self).__name__, totals["predicted"][-1] + totals["true"][-1])

    def value(self, totals: Totals) -> Any:
        """One number, or one for each class if `average` is `None`."""
        counts = [totals[name][:-1] for name in ("both", "predicted", "true")]
        if self.average == "micro":
            return number(self.figure(*[x.sum() for x in counts]))
        shares = self.figure(*counts)
        if self.average == "binary":
            return number(shares[1])
        if self.average is None:
            return shares
        return number(average(shares, self._weights(*counts[1:])))

    def _weights(self, predicted: Array, true: Array) -> Array:
        if self.average == "weighted":
            return true
        return np.ones_like(true) if self._has_labels else predicted + true > 0

    def reset(self) -> None:
        """Forget all batches."""
        super().reset()
        self._has_labels = None

    def join(self, other: Metric) -> None:
        """Require totals of the same kind."""
        kind = getattr(other, "_has_labels", None)
        if kind is not None:
            self._keep_kind(kind)

    def state_dict(self) -> dict[str, Any]:
        """The totals, to be saved."""
        return {**super().state_dict(), "has_labels": self._has_labels}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore the totals that `state_dict` returned."""
        super().load_state_dict(state)
        self._has_labels = state.get("has_labels")

    def figure(self, both: Any, predicted: Any, true: Any) -> Array:
        """The metric of each class."""
        raise NotImplementedError


class Precision(_PerClass):
    """The fraction of predictions of a class that are right; 0 if it was never predicted.

    Args:
        num_classes: the number of classes; without it, data is binary. Scores (N, num_classes)
            for targets of that shape are those of labels, each counted alone.
        average: `"macro"` is the mean over the classes that occur (over all labels), `"weighted"`
            that mean weighted by how often each is true, `"micro"` counts all classes together,
            `"binary"` is class 1 alone; `None` gives an array. By default `"binary"` without
            `num_classes`, else `"macro"`.
        threshold: as in `Accuracy`.
        ignore_index: a target value that is not counted.

    Raises:
        OutOfRangeError: a prediction or a target is not a class.

    >>> precision = Precision()
    >>> precision.update([0.9, 0.8, 0.7, 0.1], [1, 1, 0, 1])
    >>> precision.compute() == 2 / 3
    True
    """

    def figure(self, both: Any, predicted: Any, true: Any) -> Array:
        """Precision of each class."""
        return quotient(both, predicted)


@arguments_of(Precision)
class Recall(_PerClass):
    """The fraction of a class that is found; 0 if it never occurs."""

    def figure(self, both: Any, predicted: Any, true: Any) -> Array:
        """Recall of each class."""
        return quotient(both, true)


@arguments_of(Precision)
class F1Score(_PerClass):
    """The harmonic mean of precision and recall."""

    def figure(self, both: Any, predicted: Any, true: Any) -> Array:
        """F1 of each class."""
        return quotient(2 * both, np.add(predicted, true))
