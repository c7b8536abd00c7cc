"""Counts of decisions of one kind of data: binary, of classes or of labels.

Unlike `Accuracy` and its like, these are told what predictions are; torchmetrics' names are made of
them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, ClassVar, Final

import numpy as np

from weft.eager.functions.api import Tensor, sigmoid, softmax, where
from weft.eager.tensor.dispatch import recorded
from weft.errors import ArgumentError, OutOfRangeError, ShapeError
from weft.ir.dtype import int64
from weft.metrics.metric import Merge, Metric, Totals, given
from weft.ops.metric import curve, decision, figure

Figure = Callable[..., Any]
KINDS: Final = ("binary", "multiclass", "multilabel")
_class_counts = recorded(decision.class_counts, differentiable=False)
_label_counts = recorded(decision.label_counts, differentiable=False)
_confusion = recorded(decision.confusion, differentiable=False)


def _in_top(scores: Tensor, target: Tensor, k: int) -> Tensor:
    found: Any = recorded(decision.in_top_k, differentiable=False)(scores, target, k=k, strict=True)
    return found


def _probability(p: Tensor) -> Tensor:
    """Probabilities; logits, if any number of the batch is outside of 0 to 1, after sigmoid."""
    return where(((p < 0) | (p > 1)).any(), sigmoid(p), p)


class Decided(Metric):
    """Base class of metrics of one kind of data.

    Args:
        kind: `"binary"`, `"multiclass"` or `"multilabel"`.
        size: the number of classes or labels.
        threshold: probabilities above it are 1.
        ignore_index: a target value that is not counted.
        top_k: a prediction is right if the true class has one of the k best scores.
    """

    merges: ClassVar[Mapping[str, Merge]] = {"counts": "sum", "odd": "sum"}

    def __init__(
        self, kind: str, size: int | None = None, threshold: float = 0.5,
        ignore_index: int | None = None, top_k: int = 1,
    ) -> None:  # fmt: skip
        super().__init__()
        if kind != "binary" and (not isinstance(size, int) or size < 1):
            name = "num_labels" if kind == "multilabel" else "num_classes"
            raise ArgumentError.here(f"{kind} metric: expected {name} from 1 on, got {size!r}")
        self.kind, self.size, self.threshold = kind, size or 2, threshold
        self.ignore_index, self.top_k = ignore_index, top_k

    def decided(self, preds: Any, target: Any) -> tuple[Tensor, Tensor, Tensor]:
        """Decisions, targets and which of them count: flat, or (items, labels)."""
        p, t = given(preds), given(target)
        if self.kind == "multiclass":
            return self._classes(p, t)
        if p.shape != t.shape:
            raise ShapeError.here(
                f"{self.kind} metric: expected predictions and targets of one shape, got "
                f"{tuple(p.shape)} and {tuple(t.shape)}"
            )
        if p.dtype.is_floating:
            p = _probability(p) > self.threshold
        if self.kind == "multilabel":
            p, t = (x.movedim(1, -1).reshape(-1, self.size) for x in (p, t))
        else:
            p, t = p.reshape(-1), t.reshape(-1)
        return p.to(int64), t.to(int64), self._counted(t)

    def _counted(self, t: Tensor) -> Tensor:
        return (t == t) if self.ignore_index is None else t != self.ignore_index

    def _classes(self, p: Tensor, t: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        if p.ndim == t.ndim + 1:
            if p.shape[:1] + p.shape[2:] != t.shape or p.shape[1] != self.size:
                raise ShapeError.here(
                    f"multiclass metric: expected scores (N, {self.size}, ...) for targets "
                    f"{tuple(t.shape)}, got {tuple(p.shape)}"
                )
            best = p.argmax(1)
            if self.top_k > 1:
                best = where(_in_top(p.movedim(1, -1), t.to(int64), self.top_k), t.to(int64), best)
            p = best
        elif p.shape != t.shape:
            raise ShapeError.here(
                f"multiclass metric: expected predictions {tuple(t.shape)}, or scores with classes "
                f"as second dimension, got {tuple(p.shape)}"
            )
        t = t.reshape(-1)
        return p.reshape(-1).to(int64), t.to(int64), self._counted(t)

    def check(self, totals: Totals) -> None:
        """Raise if a prediction or a target is not a class."""
        if totals["odd"]:
            raise OutOfRangeError.here(
                f"{self.kind} metric: expected classes from 0 to {self.size - 1}, got "
                f"{int(totals['odd'])} predictions or targets that are none; set num_classes or "
                f"ignore_index"
            )


class Counts(Decided):
    """A figure of true and false positives and negatives.

    Args:
        figure: of these counts.
        average: `"micro"`, `"macro"`, `"weighted"` or `None`.
        options: of the figure.
        leaves_out: whether the class `ignore_index` is left out of averages.
    """

    def __init__(
        self, kind: str, figure: Figure, size: int | None = None, average: str | None = "macro",
        options: Mapping[str, Any] | None = None, leaves_out: bool = False, **told: Any,
    ) -> None:  # fmt: skip
        super().__init__(kind, size, **told)
        is_class = kind == "multiclass" and 0 <= (-1 if self.ignore_index is None else
                                                  self.ignore_index) < self.size  # fmt: skip
        self._leaves_out = self.ignore_index if leaves_out and is_class else None
        if average not in ("micro", "macro", "weighted", "none", None):
            raise ArgumentError.here(
                f"{kind} metric: expected average 'micro', 'macro', 'weighted' or None, got "
                f"{average!r}"
            )
        self.figure, self.average, self.options = figure, average, dict(options or {})

    def part(self, preds: Any, target: Any) -> dict[str, Any]:
        """Predictions and targets of the kind of data."""
        p, t, counted = self.decided(preds, target)
        if self.kind == "multiclass":
            if self.average == "micro":  # a prediction that is no class is one of a wrong class
                p = where((p >= 0) & (p < self.size), p, (t + 1) % self.size)
            found = _class_counts(p, t, counted.to(int64), size=self.size)
        else:
            found = _label_counts(p, t, counted.to(int64))
        return dict(zip(self.merges, found, strict=True))

    def value(self, totals: Totals) -> Any:
        """The figure; of each class if `average` is `None`."""
        cells = figure.cells(totals["counts"])
        if self._leaves_out is not None:
            for cell in cells:
                cell[self._leaves_out] = 0
        of: Figure = partial(self.figure, **self.options)
        if self.kind == "binary":
            return of(*cells)
        return figure.of_each(cells, of, self.average, self.kind == "multilabel", self.top_k == 1)


class Scores(Counts):
    """The counts themselves: true and false positives, true and false negatives, support."""

    def value(self, totals: Totals) -> Any:
        """The five counts; of each class if `average` is `None`."""
        return figure.scores(figure.cells(totals["counts"]), self.average)


class Matrix(Decided):
    """A figure of the confusion matrix: true classes are rows; of labels, a matrix for each.

    Args:
        figure: of the matrix; the matrix itself by default.
        normalize: `"true"`, `"pred"` or `"all"`: what the entries are divided by.
    """

    def __init__(
        self, kind: str, size: int | None = None, figure: Figure | None = None,
        normalize: str | None = None, **told: Any,
    ) -> None:  # fmt: skip
        super().__init__(kind, size, **told)
        if normalize not in ("true", "pred", "all", "none", None):
            raise ArgumentError.here(
                f"ConfusionMatrix: expected normalize 'true', 'pred', 'all' or None, got "
                f"{normalize!r}"
            )
        self.figure, self.normalize = figure, normalize

    def part(self, preds: Any, target: Any) -> dict[str, Any]:
        """Predictions and targets of the kind of data."""
        p, t, counted = self.decided(preds, target)
        if self.kind == "multilabel":
            return dict(zip(self.merges, _label_counts(p, t, counted.to(int64)), strict=True))
        found = _confusion(t, p, counted.to(int64), classes=self.size)
        return {"counts": found[:-1].reshape(self.size, self.size), "odd": found[-1]}

    def value(self, totals: Totals) -> Any:
        """The matrix, or its figure."""
        matrix = totals["counts"]
        if self.kind == "multilabel":
            matrix = figure.matrices(figure.cells(matrix))
        if self.figure is not None:
            flat = matrix.sum(0) if matrix.ndim == 3 else matrix
            return self.figure(flat)
        axes = {"true": -1, "pred": -2, "all": (-2, -1)}.get(self.normalize or "")
        if axes is None:
            return matrix.copy()
        return figure.share(matrix, matrix.sum(axes, keepdims=True))


class Ranked(Decided):
    """A figure of scores and targets, which are kept until `reset`.

    Args:
        figure: of scores, of which are positive, and of thresholds.
        average: over classes: `"macro"`, `"weighted"`, or `None` for an array; `"micro"` takes all
            labels together.
        thresholds: a number of them, or numbers, in place of all scores.
    """

    merges: ClassVar[Mapping[str, Merge]] = {"scores": "concatenate", "targets": "concatenate"}

    def __init__(
        self, kind: str, figure: Figure, size: int | None = None, average: str | None = "macro",
        thresholds: Any = None, **told: Any,
    ) -> None:  # fmt: skip
        super().__init__(kind, size, **told)
        if average not in ("macro", "weighted", "none", None) and (kind, average) != (
            "multilabel", "micro",
        ):  # fmt: skip
            raise ArgumentError.here(
                f"{kind} metric: expected average 'macro', 'weighted' or None, got {average!r}"
            )
        self.figure, self.average = figure, average
        even = isinstance(thresholds, int)
        levels: Any = np.linspace(0, 1, thresholds) if even else thresholds
        self.levels = None if thresholds is None else np.asarray(levels, np.float32)

    def part(self, preds: Any, target: Any) -> dict[str, Any]:
        """Scores (N,), (N, C) or (N, L), with any further dimensions, and targets."""
        p, t = given(preds), given(target)
        if self.kind == "multiclass":
            if p.ndim != t.ndim + 1 or p.shape[1] != self.size:
                raise ShapeError.here(
                    f"multiclass metric: expected scores (N, {self.size}, ...) for targets "
                    f"{tuple(t.shape)}, got {tuple(p.shape)}"
                )
            p = p.movedim(1, -1).reshape(-1, self.size)
            p = where(((p < 0) | (p > 1)).any(), softmax(p, 1), p)
            return {"scores": p.clone(), "targets": t.reshape(-1).to(int64).clone()}
        if p.shape != t.shape:
            raise ShapeError.here(
                f"{self.kind} metric: expected scores and targets of one shape, got "
                f"{tuple(p.shape)} and {tuple(t.shape)}"
            )
        p = _probability(p) if p.dtype.is_floating else p.float()
        if self.kind == "multilabel":
            p, t = (x.movedim(1, -1).reshape(-1, self.size) for x in (p, t))
        else:
            p, t = p.reshape(-1), t.reshape(-1)
        return {"scores": p.clone(), "targets": t.to(int64).clone()}

    def check(self, totals: Totals) -> None:
        """Raise if a target is not a class."""
        most = self.size if self.kind == "multiclass" else 2
        targets = totals["targets"]
        odd = ((targets < 0) | (targets >= most)) & (targets != self.ignore_index)
        super().check({"odd": odd.sum()})

    def value(self, totals: Totals) -> Any:
        """The figure, or that of each class."""
        scores, targets = totals["scores"], totals["targets"]
        counted = np.ones(targets.shape, bool)
        if self.ignore_index is not None:
            counted = targets != self.ignore_index
        if self.kind == "binary":
            return self.figure(scores[counted], targets[counted] == 1, self.levels)
        if self.kind == "multiclass":
            scores, targets = scores[counted], targets[counted]
            positive = targets[:, None] == np.arange(self.size)
            counted = np.ones(positive.shape, bool)
        else:
            positive = targets == 1
        if self.average == "micro":
            return self.figure(scores[counted], positive[counted], self.levels)
        found = [
            self.figure(scores[c, i], positive[c, i], self.levels) for i, c in enumerate(counted.T)
        ]
        if isinstance(found[0], tuple):
            parts = list(zip(*found, strict=True))
            if self.levels is None:
                return tuple(map(list, parts))
            return np.stack(parts[0]), np.stack(parts[1]), parts[2][0]
        areas = np.array(found)
        if self.average in (None, "none"):
            return areas
        known, support = ~np.isnan(areas), positive.sum(0)
        return figure.averaged(np.where(known, areas, 0), self.average, support * known, known)


class Calibration(Ranked):
    """How far confidence is from the share of right decisions.

    Args:
        bins: the number of bins of equal width.
        norm: `"l1"`, `"l2"` or `"max"`.
    """

    def __init__(self, kind: str, size: int | None = None, bins: int = 15, norm: str = "l1",
                 **told: Any) -> None:  # fmt: skip
        super().__init__(kind, curve.roc, size, **told)
        self.bins, self.norm = bins, norm

    def value(self, totals: Totals) -> float:
        """The error."""
        scores, targets = totals["scores"], totals["targets"]
        counted = targets != self.ignore_index
        scores, targets = scores[counted], targets[counted]
        right = targets == 1 if self.kind == "binary" else scores.argmax(1) == targets
        confidence = scores if self.kind == "binary" else scores.max(1)
        return figure.calibration_error(confidence, right, self.bins, self.norm)
