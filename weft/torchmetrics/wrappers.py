"""Wrappers of metrics: over epochs, over the last batches, and their extremes."""

from __future__ import annotations

import copy
from collections import deque
from typing import Any

from weft.eager.functions.api import stack, tensor
from weft.errors import ArgumentError, StateError
from weft.metrics.metric import Metric as Counts
from weft.nn import ModuleList
from weft.torchmetrics.aggregation import MeanMetric, SumMetric
from weft.torchmetrics.collection import MetricCollection
from weft.torchmetrics.metric import Counted, Metric, tensors

__all__ = ["MetricTracker", "MinMaxMetric", "Running", "RunningMean",
           "RunningSum"]  # fmt: skip


class MetricTracker(ModuleList):
    """A metric or a collection of each epoch, which `increment` begins.

    Args:
        metric: a copy of it is used for each epoch.
        maximize: whether larger values are better, for each of a collection if a list; by default
            as the metrics say.

    Raises:
        ArgumentError: it is not known whether larger values are better.

    >>> import weft as wf
    >>> tracker = MetricTracker(wf.torchmetrics.MeanSquaredError(), maximize=False)
    >>> for x in (3.0, 1.0, 2.0):
    ...     tracker.increment()
    ...     tracker.update(wf.tensor([x]), wf.tensor([0.0]))
    >>> tracker.best_metric(return_step=True), tracker.n_steps
    ((1.0, 1), 3)
    """

    def __init__(self, metric: Any, maximize: bool | list[bool] | None = None) -> None:
        super().__init__()
        several = isinstance(metric, MetricCollection)
        if not isinstance(metric, Metric | MetricCollection):
            raise ArgumentError.here(
                f"MetricTracker: expected a Metric or a MetricCollection, got {metric!r:.60}"
            )
        own = [m.higher_is_better for m in (metric.values() if several else [metric])]
        if maximize is None and None in own:
            raise ArgumentError.here(
                "MetricTracker: expected maximize, as a metric does not say whether larger values "
                "are better, got None"
            )
        self.maximize: Any = maximize if maximize is not None else own if several else own[0]
        self.base = [metric]  # in a list, which keeps it from being one of the epochs

    @property
    def n_steps(self) -> int:
        """The number of epochs."""
        return len(self)

    def increment(self) -> None:
        """Begin an epoch."""
        self.append(copy.deepcopy(self.base[0]))

    def _last(self) -> Any:
        if not len(self):
            raise StateError.here("MetricTracker: expected increment() before it")
        return self[-1]

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Add a batch to the epoch; returns the metric of this batch alone."""
        return self._last()(*args, **kwargs)

    def update(self, *args: Any, **kwargs: Any) -> None:
        """Add a batch to the epoch."""
        self._last().update(*args, **kwargs)

    def compute(self) -> Any:
        """The metric of the epoch."""
        return self._last().compute()

    def compute_all(self) -> Any:
        """The metrics of all epochs, (epochs, ...); by name for a collection."""
        self._last()
        found: list[Any] = [metric.compute() for metric in self]
        if isinstance(found[0], dict):
            return {name: stack([each[name] for each in found]) for name in found[0]}
        return stack(found)

    def best_metric(self, return_step: bool = False) -> Any:
        """The best value of all epochs, and the index of its epoch if `return_step`."""
        found = self.compute_all()
        if not isinstance(found, dict):
            best = found.max(0) if self.maximize else found.min(0)
            return (best[0].item(), best[1].item()) if return_step else best[0].item()
        is_list = isinstance(self.maximize, list)
        ups = self.maximize if is_list else [self.maximize] * len(found)
        best = {
            k: v.max(0) if up else v.min(0) for (k, v), up in zip(found.items(), ups, strict=True)
        }
        values = {k: v[0].item() for k, v in best.items()}
        return (values, {k: v[1].item() for k, v in best.items()}) if return_step else values

    def reset(self) -> None:
        """Forget the epoch's batches."""
        self._last().reset()

    def reset_all(self) -> None:
        """Forget the batches of all epochs."""
        for metric in self:
            metric.reset()


class MinMaxMetric(Metric):
    """A metric with the least and the largest value that `compute` has given."""

    full_state_update = True

    def __init__(self, base_metric: Metric, **options: Any) -> None:
        super().__init__(**options)
        self._base_metric = base_metric
        self._extremes()

    def _extremes(self) -> None:
        self.min_val, self.max_val = tensor(float("inf")), tensor(float("-inf"))

    def update(self, *args: Any, **kwargs: Any) -> None:
        """Add a batch."""
        self._base_metric.update(*args, **kwargs)

    def compute(self) -> dict[str, Any]:
        """The value as `"raw"`, and `"max"` and `"min"`.

        Raises:
            ArgumentError: the metric gives more than one number.
        """
        value = self._base_metric.compute()
        if value.numel() != 1:
            raise ArgumentError.here(f"MinMaxMetric: expected a metric of one number, got {value}")
        self.max_val, self.min_val = value.maximum(self.max_val), value.minimum(self.min_val)
        return {"raw": value, "max": self.max_val, "min": self.min_val}

    def forward(self, *args: Any, **kwargs: Any) -> dict[str, Any]:
        """Add a batch; returns the value of this batch, and the extremes with it."""
        whole, self._base_metric = self._base_metric, self._base_metric.clone()
        self._base_metric.reset()
        self._base_metric.update(*args, **kwargs)
        found, self._base_metric = type(self).compute.__wrapped__(self), whole  # type: ignore[attr-defined]
        self.update(*args, **kwargs)
        return found

    def reset(self) -> None:
        """Forget all batches and extremes."""
        super().reset()
        self._base_metric.reset()
        self._extremes()


class Running(Metric):
    """A metric of the last batches.

    Args:
        base_metric: one of torchmetrics' names, which counts.
        window: the number of batches.

    Raises:
        ArgumentError: the metric has states of its own, or the window is empty.
    """

    def __init__(self, base_metric: Any, window: int = 5) -> None:
        super().__init__()
        if not isinstance(base_metric, Counted) or window < 1:
            raise ArgumentError.here(
                f"Running: expected a metric of torchmetrics' names and a window from 1 on, got "
                f"{type(base_metric).__name__} and {window}"
            )
        self.base_metric, self.window = base_metric, window
        self._last: deque[Counts] = deque(maxlen=window)

    def update(self, *args: Any, **kwargs: Any) -> None:
        """Add a batch, and forget the oldest."""
        self.base_metric.reset()
        self.base_metric.update(*args, **kwargs)
        self._last.append(copy.deepcopy(self.base_metric.counts))

    def compute(self) -> Any:
        """The metric of the batches in the window."""
        whole = copy.deepcopy(self._last[0])
        return tensors(whole.merge(*list(self._last)[1:]).compute())

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Add a batch; returns the metric of this batch alone."""
        self.update(*args, **kwargs)
        return self.base_metric.compute()

    def reset(self) -> None:
        """Forget all batches."""
        super().reset()
        self._last.clear()


class RunningMean(Running):
    """The mean of the numbers of the last batches."""

    def __init__(self, window: int = 5, nan_strategy: str | float = "warn", **options: Any) -> None:
        super().__init__(MeanMetric(nan_strategy, **options), window)


class RunningSum(Running):
    """The sum of the numbers of the last batches."""

    def __init__(self, window: int = 5, nan_strategy: str | float = "warn", **options: Any) -> None:
        super().__init__(SumMetric(nan_strategy, **options), window)
