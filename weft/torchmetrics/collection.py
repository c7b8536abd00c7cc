"""`MetricCollection`: several metrics that are updated together."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Iterator, Mapping
from typing import Any, Self

from weft.errors import ArgumentError
from weft.nn import ModuleDict
from weft.torchmetrics.metric import Metric


class MetricCollection(ModuleDict):
    """Metrics by name, called and computed as one.

    Args:
        metrics: a metric, a list, whose names are those of the classes, or a dictionary; of metrics
            or collections.
        additional_metrics: further metrics after one or a list.
        prefix: before each name in results.
        postfix: after each name in results.
        compute_groups: taken for programs that give it: each metric has its own states.

    Raises:
        ArgumentError: a name occurs twice, or something is no metric.

    >>> import weft as wf
    >>> found = MetricCollection({"mse": wf.torchmetrics.MeanSquaredError()}, prefix="val_")
    >>> found(wf.tensor([1.0, 2.0]), wf.tensor([1.0, 4.0]))
    {'val_mse': tensor(2.)}
    """

    def __init__(
        self, metrics: Any, *additional_metrics: Any, prefix: str | None = None,
        postfix: str | None = None, compute_groups: Any = True,
    ) -> None:  # fmt: skip
        super().__init__()
        self.prefix, self.postfix = prefix or "", postfix or ""
        self.add_metrics(metrics, *additional_metrics)

    def add_metrics(self, metrics: Any, *additional_metrics: Any) -> None:
        """Add metrics."""
        if isinstance(metrics, Mapping) and not isinstance(metrics, MetricCollection):
            pairs = list(metrics.items())
        else:
            one = isinstance(metrics, Metric | MetricCollection)
            several = [*([metrics] if one else metrics), *additional_metrics]
            pairs = [(type(m).__name__, m) for m in several]
        for name, each in pairs:
            metric: Any = each
            if isinstance(metric, MetricCollection):
                inner = {metric._name(k): m for k, m in metric.items(keep_base=True)}
                named = isinstance(metrics, Mapping)
                self.add_metrics({f"{name}_{k}" if named else k: m for k, m in inner.items()})
                continue
            if not isinstance(metric, Metric) or name in self:
                raise ArgumentError.here(
                    f"MetricCollection: expected metrics of different names, got {name!r}: "
                    f"{type(metric).__name__}"
                )
            self[name] = metric

    def _name(self, base: str) -> str:
        return f"{self.prefix}{base}{self.postfix}"

    def _of(self, metric: Any, kwargs: Mapping[str, Any]) -> dict[str, Any]:
        """Those of the named arguments that a metric's `update` takes."""
        parameters = inspect.signature(metric.update).parameters
        if any(p.kind is p.VAR_KEYWORD for p in parameters.values()) or not kwargs:
            return dict(kwargs)
        return {k: v for k, v in kwargs.items() if k in parameters}

    def _results(self, found: Mapping[str, Any]) -> dict[str, Any]:
        """Results by name; a metric that gives a dictionary gives its entries."""
        flat: dict[str, Any] = {}
        for name, value in found.items():
            each = value if isinstance(value, dict) else {name: value}
            flat.update({self._name(k): v for k, v in each.items()})
        return flat

    def forward(self, *args: Any, **kwargs: Any) -> dict[str, Any]:
        """Add a batch to all; returns their metrics of this batch alone."""
        pairs = self.items(keep_base=True)
        return self._results({k: m(*args, **self._of(m, kwargs)) for k, m in pairs})

    def update(self, *args: Any, **kwargs: Any) -> None:
        """Add a batch to all."""
        for metric in self.values():
            metric.update(*args, **self._of(metric, kwargs))

    def compute(self) -> dict[str, Any]:
        """The metrics of all batches."""
        return self._results({k: m.compute() for k, m in self.items(keep_base=True)})

    def reset(self) -> None:
        """Forget all batches."""
        for metric in self.values():
            metric.reset()

    def clone(self, prefix: str | None = None, postfix: str | None = None) -> Self:
        """A copy with its own states, and another prefix or postfix if given."""
        found = copy.deepcopy(self)
        found.prefix = self.prefix if prefix is None else prefix
        found.postfix = self.postfix if postfix is None else postfix
        return found

    def keys(self, keep_base: bool = False) -> Any:
        """The names; without prefix and postfix if `keep_base`."""
        return [k if keep_base else self._name(k) for k in self._modules]

    def items(self, keep_base: bool = False, copy_state: bool = True) -> Any:
        """The metrics by name; without prefix and postfix if `keep_base`."""
        return [(k if keep_base else self._name(k), m) for k, m in super().items()]

    def values(self, copy_state: bool = True) -> Any:
        """The metrics."""
        return super().values()

    def __iter__(self) -> Iterator[str]:
        return iter(self.keys())

    def __getitem__(self, key: str) -> Any:
        base = key.removeprefix(self.prefix).removesuffix(self.postfix)
        return super().__getitem__(base if base in self._modules else key)
