"""Logged values: the last one, and the epoch's mean weighted by batch sizes.

A value stays a tensor until it is computed for other reasons, so that logging neither splits a
step's program nor waits.
"""

from __future__ import annotations

import copy
import functools
import math
from collections.abc import Callable, Mapping
from typing import Any, Final

from weft.eager.functions.api import Tensor
from weft.errors import ArgumentError
from weft.metrics import Metric
from weft.torchmetrics import Metric as TorchMetric
from weft.train.strategy import Strategy

METRICS: Final = (Metric, TorchMetric)
MOST_WAITING: Final = 64  # values; then they are read, whether computed or not

REDUCTIONS: Final[dict[str, Callable[[float, float], float]]] = {
    "mean": lambda total, x: total + x, "sum": lambda total, x: total + x,
    "min": lambda total, x: math.nan if math.isnan(x) else min(total, x),
    "max": lambda total, x: math.nan if math.isnan(x) else max(total, x),
    "last": lambda total, x: x,
}  # fmt: skip
"""A NaN stays: `min(nan, x)` and `max(nan, x)` are nan if nan comes first."""


OPTIONS: Final = ("on_step", "on_epoch", "prog_bar", "logger", "reduce_fx", "sync_dist")


class Entry:
    """A logged name.

    Attributes:
        last: the last logged value.
        stamp: how many batches were trained before the step that logged it.
    """

    __slots__ = (
        "_strategy", "_total", "_waiting", "_weight", "last", "logger", "name", "on_epoch",
        "on_step", "prog_bar", "reduce_fx", "stamp", "sync_dist",
    )  # fmt: skip

    def __init__(
        self, name: str, on_step: bool, on_epoch: bool, prog_bar: bool, logger: bool,
        reduce_fx: str, sync_dist: bool = False, strategy: Strategy | None = None,
    ) -> None:  # fmt: skip
        self.sync_dist, self._strategy = sync_dist, strategy or Strategy()
        self.name, self.on_step, self.on_epoch = name, on_step, on_epoch
        self.prog_bar, self.logger, self.reduce_fx = prog_bar, logger, reduce_fx
        self.last: Any = None
        self._waiting: list[tuple[Any, float]] = []
        self._total: float | None = None
        self._weight = 0.0
        self.stamp = -1

    @property
    def has_values(self) -> bool:
        """Whether anything was logged in this epoch."""
        return bool(self._waiting) or self._total is not None

    def take(self, value: Any, weight: Callable[[], float]) -> None:
        """Store a value; `weight()` is its weight in the mean."""
        self.last = value
        if self.on_epoch and not isinstance(value, METRICS):
            waiting = self._waiting
            if waiting and (is_known(waiting[0][0]) or len(waiting) >= MOST_WAITING):
                self._reduce_waiting()
            waiting.append((value, weight() if self.reduce_fx == "mean" else 1.0))

    def _reduce_waiting(self) -> None:
        """Reduce the pending values."""
        reduce = REDUCTIONS[self.reduce_fx]
        for value, weight in self._waiting:
            x = number(value, self.name)
            x = x * weight if self.reduce_fx == "mean" else x
            self._total = x if self._total is None else reduce(self._total, x)
            self._weight += weight
        self._waiting.clear()

    @property
    def step_name(self) -> str:
        """The name of a step's value."""
        return f"{self.name}_step" if self.on_step and self.on_epoch else self.name

    @property
    def epoch_name(self) -> str:
        """The name of the epoch's value."""
        return f"{self.name}_epoch" if self.on_step and self.on_epoch else self.name

    @property
    def is_told(self) -> bool:
        """Whether there is a last value: a metric has none after its reset."""
        return self.last.updates > 0 if isinstance(self.last, METRICS) else self.last is not None

    def step_figure(self) -> Any:
        """The last value, read."""
        value = self.last
        if isinstance(value, METRICS):
            batch = getattr(value, "_forward_cache", None)
            value = value.compute() if batch is None else batch
        return number(value, self.name)

    def epoch_figure(self) -> Any:
        """The epoch's value; `None` if nothing was logged in it."""
        if isinstance(self.last, METRICS):
            if not self.last.updates:
                return None
            figure = self._of_all_ranks(self.last).compute()
            return number(figure, self.name) if isinstance(figure, Tensor) else figure
        self._reduce_waiting()
        total, weight = self._total, self._weight
        if self.sync_dist and self._strategy.world_size > 1:
            total, weight = self._sums_of_all_ranks()
        if total is None or self.reduce_fx != "mean":
            return total
        return total / weight if weight else float("nan")

    def _sums_of_all_ranks(self) -> tuple[float | None, float]:
        parts = self._strategy.gather((self._total, self._weight))
        totals = [total for total, _ in parts if total is not None]
        reduced = functools.reduce(REDUCTIONS[self.reduce_fx], totals) if totals else None
        return reduced, sum(weight for _, weight in parts)

    def _of_all_ranks(self, metric: Any) -> Any:
        """A metric reduced over all ranks."""
        if self._strategy.world_size == 1:
            return metric
        if isinstance(metric, TorchMetric):
            return metric.of_ranks(self._strategy.gather(metric.metric_state))
        whole = copy.deepcopy(metric)
        whole.reset()
        for state in self._strategy.gather(metric.state_dict()):
            part = copy.deepcopy(whole)
            part.load_state_dict(state)
            if part.updates:
                whole.merge(part)
        return whole

    def reset(self) -> None:
        """Start the next epoch."""
        self._waiting.clear()
        self._total, self._weight = None, 0.0
        if isinstance(self.last, METRICS) and self.on_epoch:
            self.last.reset()

    def state_dict(self) -> dict[str, Any]:
        """The reduction so far, and how the value is logged."""
        self._reduce_waiting()
        told = {n: getattr(self, n) for n in OPTIONS}
        return {**told, "total": self._total, "weight": self._weight}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore the reduction."""
        self._waiting.clear()
        self._total, self._weight = state["total"], state["weight"]


class Results:
    """All logged values of one kind of loop."""

    def __init__(self) -> None:
        self.entries: dict[str, Entry] = {}
        self.is_closed = False  # whether the epoch's values are those of the whole epoch
        self._states: Mapping[str, Any] = {}

    def entry(self, name: str, **options: Any) -> Entry:
        """The entry of a new name."""
        reduce_fx = _name_of(options.pop("reduce_fx"))
        found = self.entries[name] = Entry(name, reduce_fx=reduce_fx, **options)
        if name in self._states:
            found.load_state_dict(self._states[name])
        return found

    def step_figures(self, which: str = "logger", end: str = "") -> dict[str, Any]:
        """The last step's values by name; those for the progress bar, or for loggers.

        Args:
            end: of the names.
        """
        return {
            e.step_name: e.step_figure()
            for e in self.entries.values()
            if e.on_step and e.is_told and getattr(e, which) and e.name.endswith(end)
        }

    def plain_step_figures(self) -> dict[str, Any]:
        """The last step's values, in an epoch that goes on, of names logged for epochs as well."""
        if self.is_closed:
            return {}
        both = [e for e in self.entries.values() if e.on_step and e.on_epoch and e.has_values]
        return {e.name: e.step_figure() for e in both}

    def epoch_figures(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """The epoch's values by name: all, and those for loggers."""
        found: dict[str, Any] = {}
        logged: dict[str, Any] = {}
        for e in self.entries.values():
            figure = e.epoch_figure() if e.on_epoch else None
            if figure is not None:
                found[e.name] = found[e.epoch_name] = figure
                if e.logger:
                    logged[e.epoch_name] = figure
        return found, logged

    def reset(self) -> None:
        """Start the next epoch."""
        self._states, self.is_closed = {}, False
        for e in self.entries.values():
            e.reset()

    def state_dict(self) -> dict[str, Any]:
        """The reductions so far, by name; metrics keep their own state."""
        return {name: e.state_dict() for name, e in self.entries.items() if e.on_epoch}

    def load_state_dict(self, state: Mapping[str, Any], strategy: Strategy) -> None:
        """Restore the reductions; files of earlier versions do so as names are logged again."""
        self._states = state
        for name, saved in state.items():
            if name in self.entries:
                self.entries[name].load_state_dict(saved)
            elif "reduce_fx" in saved:
                self.entry(name, strategy=strategy, **{n: saved[n] for n in OPTIONS})


def is_known(value: Any) -> bool:
    """Whether a value can be read without computing anything."""
    return not isinstance(value, Tensor) or value.lazy.array is not None


def number(value: Any, name: str) -> float:
    """A logged value as a number.

    Raises:
        ArgumentError: it has several elements.
    """
    if not isinstance(value, Tensor):
        return float(value)
    array = value.array
    if array.size != 1:
        raise ArgumentError.here(
            f"log: expected one number for {name!r}, got shape {array.shape}; log its mean"
        )
    return float(array.item())


def _name_of(given: Any) -> str:
    """The name of a reduction, given as a name or as a function such as `weft.mean`."""
    name = given if isinstance(given, str) else getattr(given, "__name__", "")
    name = {"avg": "mean", "amin": "min", "amax": "max"}.get(name, name)
    if name not in REDUCTIONS:
        raise ArgumentError.here(f"log: expected reduce_fx of {sorted(REDUCTIONS)}, got {given!r}")
    return name
