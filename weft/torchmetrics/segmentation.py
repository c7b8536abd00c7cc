"""Metrics of segmentation: how well masks of classes overlap."""

from __future__ import annotations

from typing import Any, Literal

from weft.eager.functions.api import Tensor, as_tensor, cat, zeros
from weft.eager.tensor.dispatch import recorded
from weft.errors import ArgumentError, ShapeError
from weft.ir.dtype import float32, int64
from weft.ops.metric.overlap import dice, masks, sums_of_overlap
from weft.torchmetrics.metric import Metric

__all__ = ["DiceScore", "MeanIoU"]
_sums = recorded(sums_of_overlap, differentiable=False)
_masks = recorded(masks, differentiable=False)
Format = Literal["one-hot", "index", "mixed"]


class _Overlap(Metric):
    """Base class: masks of classes, of each image.

    Args:
        num_classes: the number of classes.
        include_background: whether class 0 counts.
        input_format: `"one-hot"` masks or scores (N, C, ...), `"index"` class numbers (N, ...), or
            `"mixed"`: one of each.
    """

    def __init__(
        self, num_classes: int | None, include_background: bool, input_format: Format, options: Any
    ) -> None:
        super().__init__(**options)
        if input_format not in ("one-hot", "index", "mixed"):
            raise ArgumentError.here(
                f"{type(self).__name__}: expected input_format 'one-hot', 'index' or 'mixed', got "
                f"{input_format!r}"
            )
        if num_classes is None and input_format == "index":
            raise ArgumentError.here(f"{type(self).__name__}: 'index' needs num_classes")
        self.num_classes, self.include_background = num_classes, include_background
        self.input_format = input_format

    def sums(self, preds: Any, target: Any) -> tuple[Tensor, Tensor, Tensor]:
        """Of each image and class (N, C): what both masks have, the one, and the other."""
        x, y = as_tensor(preds), as_tensor(target)
        indexed = {"one-hot": (False, False), "index": (True, True)}.get(
            self.input_format, (x.ndim < y.ndim, y.ndim < x.ndim)
        )
        classes = self.num_classes or int((y if indexed[0] else x).shape[1])
        found = [
            _masks(v.to(int64) if i else v, classes=classes, indexed=i)
            for v, i in zip((x, y), indexed, strict=True)
        ]
        if found[0].shape != found[1].shape or found[0].ndim < 3:
            raise ShapeError.here(
                f"{type(self).__name__}: expected masks of one shape, {classes} classes, got "
                f"{tuple(x.shape)} and {tuple(y.shape)}"
            )
        sums = _sums(*found)
        return sums if self.include_background else tuple([s[:, 1:] for s in sums])


class MeanIoU(_Overlap):
    """The mean, over images and the classes in them, of intersection over union.

    Args:
        num_classes: the number of classes; by default that of the masks.
        include_background: whether class 0 counts.
        per_class: whether the mean is over images alone.
        input_format: `"one-hot"`, `"index"` or `"mixed"`.

    Raises:
        ArgumentError: the format is unknown, or numbers of classes lack `num_classes`.

    >>> import weft as wf
    >>> MeanIoU(2, input_format="index")(wf.tensor([[0, 1, 1]]), wf.tensor([[0, 0, 1]]))
    tensor(0.5000)
    """

    def __init__(
        self, num_classes: int | None = None, include_background: bool = True,
        per_class: bool = False, input_format: Format = "one-hot", **options: Any,
    ) -> None:  # fmt: skip
        super().__init__(num_classes, include_background, input_format, options)
        self.per_class = per_class
        if per_class and num_classes is None:
            raise ArgumentError.here("MeanIoU: per_class=True needs num_classes")
        size = (num_classes or 0) - (not include_background)
        start = zeros(size) if per_class else zeros(())
        self.add_state("score", start, "sum")
        self.add_state("num_batches", start, "sum")

    def update(self, preds: Any, target: Any) -> None:
        """Add a batch of images."""
        both, x, y = self.sums(preds, target)
        union = x + y - both
        there = (union > 0).to(float32)
        found = both / union.clamp(min=1) * there
        self.score = self.score + (found.sum(0) if self.per_class else found.sum())
        self.num_batches = self.num_batches + (there.sum(0) if self.per_class else there.sum())

    def compute(self) -> Any:
        """The mean; of each class, -1 for those in no image."""
        found = self.score / self.num_batches
        return found.nan_to_num(-1.0) if self.per_class else found


class DiceScore(_Overlap):
    """The mean over images of twice the intersection over the sum of both masks.

    Args:
        num_classes: the number of classes.
        include_background: whether class 0 counts.
        average: over classes: `"macro"`, `"micro"`, `"weighted"` or `"none"`.
        aggregation_level: `"samplewise"`, or `"global"`: all images are one.
        input_format: `"one-hot"`, `"index"` or `"mixed"`.

    Raises:
        ArgumentError: an argument is not among these.
    """

    def __init__(
        self, num_classes: int, include_background: bool = True, average: str | None = "macro",
        aggregation_level: str = "samplewise", input_format: Format = "one-hot", **options: Any,
    ) -> None:  # fmt: skip
        super().__init__(num_classes, include_background, input_format, options)
        if average not in ("micro", "macro", "weighted", "none", None):
            raise ArgumentError.here(f"DiceScore: got unknown average {average!r}")
        if aggregation_level not in ("samplewise", "global"):
            raise ArgumentError.here(f"DiceScore: got unknown level {aggregation_level!r}")
        self.average, self.aggregation_level = average or "none", aggregation_level
        for name in ("both", "preds", "target"):
            self.add_state(name, [], "cat")

    def update(self, preds: Any, target: Any) -> None:
        """Add a batch of images."""
        for name, part in zip(("both", "preds", "target"), self.sums(preds, target), strict=True):
            setattr(self, name, [*getattr(self, name), part])

    def compute(self) -> Any:
        """The score."""
        sums = [cat(x) for x in (self.both, self.preds, self.target)]
        if self.aggregation_level == "global":
            sums = [x.sum(0, keepdim=True) for x in sums]
        found = dice(*[x.numpy() for x in sums], average=self.average)
        return as_tensor(found).to(float32)
