"""Aggregates of numbers, with what to do about NaN; a wrapper of metrics of classes."""

from __future__ import annotations

from typing import Any

from weft import metrics
from weft.eager.functions.api import Tensor, as_tensor, cat, where, zeros_like
from weft.errors import ArgumentError
from weft.ops.warning import warn
from weft.torchmetrics.metric import Counted, Metric

__all__ = ["CatMetric", "ClasswiseWrapper", "MaxMetric", "MeanMetric", "MinMetric", "SumMetric"]


class _Aggregate(Counted):
    """Base class: an aggregate of numbers of any shape.

    Args:
        nan_strategy: `"error"`, `"warn"` or `"ignore"`, which leave NaN out, `"disable"`, which
            keeps it, or a number that takes its place.
    """

    def __init__(self, counts: Any, nan_strategy: str | float, **options: Any) -> None:
        super().__init__(counts, **options)
        known = ("error", "warn", "ignore", "disable")
        if nan_strategy not in known and not isinstance(nan_strategy, float | int):
            raise ArgumentError.here(
                f"{type(self).__name__}: expected nan_strategy of {known} or a number, got "
                f"{nan_strategy!r}"
            )
        self.nan_strategy = nan_strategy

    def numbers(self, value: Any) -> Tensor:
        """The numbers without NaN, or with another number in its place."""
        x = value if isinstance(value, Tensor) else as_tensor(value).float()
        if self.nan_strategy == "disable" or not x.dtype.is_floating:
            return x
        odd = x.isnan()
        if not isinstance(self.nan_strategy, str):
            return where(odd, zeros_like(x) + self.nan_strategy, x)
        if not odd.any():
            return x
        if self.nan_strategy == "error":
            raise ArgumentError.here(f"{type(self).__name__}: expected numbers, got NaN")
        if self.nan_strategy == "warn":
            warn(f"{type(self).__name__}: NaN is left out")
        return x[~odd]

    def update(self, value: Any) -> None:
        """Add numbers."""
        x = self.numbers(value)
        if x.numel():
            self.counts.update(x)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Add numbers; returns their own aggregate."""
        alone = self.clone()
        alone.reset()
        alone.update(*args, **kwargs)
        self.update(*args, **kwargs)
        self._forward_cache = alone.compute()
        return self._forward_cache


class MeanMetric(_Aggregate):
    """The weighted mean of numbers."""

    def __init__(self, nan_strategy: str | float = "warn", **options: Any) -> None:
        super().__init__(metrics.Mean(), nan_strategy, **options)

    def update(self, value: Any, weight: Any = None) -> None:
        """Add numbers, with one weight or one for each."""
        if weight is None:
            super().update(value)
        else:
            x = value if isinstance(value, Tensor) else as_tensor(value).float()
            self.counts.update(x, as_tensor(weight).float().broadcast_to(x.shape))


class SumMetric(_Aggregate):
    """The sum of numbers."""

    def __init__(self, nan_strategy: str | float = "warn", **options: Any) -> None:
        super().__init__(metrics.Sum(), nan_strategy, **options)


class MaxMetric(_Aggregate):
    """The largest number."""

    def __init__(self, nan_strategy: str | float = "warn", **options: Any) -> None:
        super().__init__(metrics.Max(), nan_strategy, **options)


class MinMetric(_Aggregate):
    """The smallest number."""

    def __init__(self, nan_strategy: str | float = "warn", **options: Any) -> None:
        super().__init__(metrics.Min(), nan_strategy, **options)


class CatMetric(Metric):
    """All numbers, as one vector."""

    def __init__(self, nan_strategy: str | float = "disable", **options: Any) -> None:
        super().__init__(**options)
        if nan_strategy != "disable":
            raise ArgumentError.here(
                f"CatMetric: expected nan_strategy='disable', got {nan_strategy!r}"
            )
        self.add_state("value", [], "cat")

    def update(self, value: Any) -> None:
        """Add numbers."""
        self.value.append(as_tensor(value).reshape(-1))

    def compute(self) -> Any:
        """The numbers."""
        return cat(self.value) if self.value else []


class ClasswiseWrapper(Metric):
    """A metric that gives one number for each class, as a dictionary.

    Args:
        metric: with `average=None`.
        labels: names of the classes; by default their numbers.
        prefix: before each name; by default the metric's.
        postfix: after each name.
    """

    def __init__(
        self, metric: Metric, labels: list[str] | None = None, prefix: str | None = None,
        postfix: str | None = None,
    ) -> None:  # fmt: skip
        super().__init__()
        self.metric, self.labels = metric, labels
        own = "" if postfix else f"{type(metric).__name__.lower()}_"
        self._prefix, self._postfix = own if prefix is None else prefix, postfix or ""

    def _by_class(self, values: Any) -> dict[str, Any]:
        names = self.labels or range(len(values))
        pairs = zip(names, values, strict=True)
        return {f"{self._prefix}{name}{self._postfix}": value for name, value in pairs}

    def update(self, *args: Any, **kwargs: Any) -> None:
        """Add a batch."""
        self.metric.update(*args, **kwargs)

    def compute(self) -> Any:
        """The metric of each class by name."""
        return self._by_class(self.metric.compute())

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Add a batch; returns the metric of this batch alone."""
        self._update_count += 1
        return self._by_class(self.metric(*args, **kwargs))

    def reset(self) -> None:
        """Forget all batches."""
        super().reset()
        self.metric.reset()
