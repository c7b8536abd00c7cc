"""`Metric`: torchmetrics' base class, a module with states that are added up over batches."""

from __future__ import annotations

import copy
import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, Final, Self

import numpy as np

from weft.documentation import Reads
from weft.eager.functions.api import (
    Tensor,
    as_tensor,
    cat,
    device,
    get_default_dtype,
    is_grad_enabled,
    no_grad,
    set_grad_enabled,
    stack,
)
from weft.errors import ArgumentError, StateError
from weft.host.nested import NESTED
from weft.ir.dtype import float32
from weft.metrics import metric as counted
from weft.nn import Module
from weft.ops.warning import warn
from weft.torchmetrics.plotting import plotted

OPTIONS: Final = frozenset({
    "compute_on_cpu", "dist_sync_on_step", "process_group", "dist_sync_fn",
    "distributed_available_fn", "sync_on_compute", "compute_with_cache", "validate_args",
})  # fmt: skip
"""Arguments of all metrics, about processes and memory, that change no value here."""


def dim_zero_cat(parts: Any) -> Any:
    """A list of tensors as one, along the first dimension; a tensor as it is."""
    if isinstance(parts, Tensor):
        return parts
    each = [x if x.ndim else x.reshape(1) for x in map(as_tensor, parts)]
    return cat(each) if each else parts


def check_same_shape(preds: Any, target: Any) -> None:
    """Refuse predictions and targets of different shapes.

    Raises:
        RuntimeError: the shapes differ.
    """
    if preds.shape != target.shape:
        raise RuntimeError(
            "Predictions and targets are expected to have the same shape, but got "
            f"{tuple(preds.shape)} and {tuple(target.shape)}."
        )


REDUCTIONS: Final[dict[str, Callable[[Any], Any]]] = {
    "cat": dim_zero_cat, "sum": lambda x: stack(list(x)).sum(0),
    "mean": lambda x: stack(list(x)).float().mean(0),
    "min": lambda x: stack(list(x)).amin(0), "max": lambda x: stack(list(x)).amax(0),
}  # fmt: skip


def _counting(update: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(update)
    def run(self: Any, *args: Any, **kwargs: Any) -> None:
        self._computed = None
        self._update_count += not self._depth  # not for the update of a base class
        self._depth += 1
        try:
            with set_grad_enabled(self._differentiates and is_grad_enabled()):
                update(self, *args, **kwargs)
        finally:
            self._depth -= 1

    return run


def _caching(compute: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(compute)
    def run(self: Any) -> Any:
        if self._depth:
            return compute(self)
        if not self._update_count:
            if self.requires_update:
                raise StateError.here(
                    f"{type(self).__name__}.compute: expected update() before it, got no batch "
                    f"since the last reset()"
                )
            warn(f"{type(self).__name__}.compute: update() was not called before")
        if self._computed is None:
            self._depth += 1
            try:
                self._computed = compute(self)
            finally:
                self._depth -= 1
        return self._computed

    return run


class Metric(Module):
    """Base class: a subclass adds states, and defines `update` and `compute`.

    A call updates the states with a batch, and gives the metric of this batch alone.

    Args:
        options: torchmetrics' about processes and memory; they change no value.

    Attributes:
        requires_update: whether `compute` without a batch is an error, not a warning.

    Raises:
        ArgumentError: another option.

    >>> import weft as wf
    >>> class Total(Metric):
    ...     def __init__(self):
    ...         super().__init__()
    ...         self.add_state("total", wf.tensor(0.0), dist_reduce_fx="sum")
    ...     def update(self, x):
    ...         self.total += x.sum()
    ...     def compute(self):
    ...         return self.total
    >>> total = Total()
    >>> total(wf.ones(2)), total(wf.ones(3)), total.compute()
    (tensor(2.), tensor(3.), tensor(5.))
    """

    is_differentiable: ClassVar[bool | None] = None
    higher_is_better: ClassVar[bool | None] = None
    full_state_update: ClassVar[bool | None] = None
    requires_update: ClassVar[bool] = False

    def __init__(self, **options: Any) -> None:
        super().__init__()
        if odd := sorted(options.keys() - OPTIONS):
            raise ArgumentError.here(f"{type(self).__name__}: got unknown arguments {odd}")
        self._defaults: dict[str, Any] = {}
        self._reductions: dict[str, Any] = {}
        self._dtype = get_default_dtype()
        self._update_count = 0
        self._depth = 0
        self._differentiates = False  # whether the batch's own value may have gradients
        self._computed: Any = None
        self._forward_cache: Any = None

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        for name, wrapped in (("update", _counting), ("compute", _caching)):
            if name in vars(cls):
                setattr(cls, name, wrapped(vars(cls)[name]))

    def add_state(
        self, name: str, default: Any, dist_reduce_fx: Any = None, persistent: bool = False
    ) -> None:
        """Add a state, an attribute.

        Args:
            default: a tensor, or an empty list to which batches are appended.
            dist_reduce_fx: `"sum"`, `"mean"`, `"cat"`, `"min"`, `"max"`, or a function of stacked
                states: how those of processes become one.
            persistent: whether it is part of `state_dict`.

        Raises:
            ArgumentError: the default is neither, or the reduction is unknown.
        """
        if not isinstance(default, Tensor) and default != []:
            raise ArgumentError.here(
                f"add_state: expected a tensor or an empty list for {name!r}, got {default!r}"
            )
        if isinstance(dist_reduce_fx, str) and dist_reduce_fx not in REDUCTIONS:
            raise ArgumentError.here(
                f"add_state: expected dist_reduce_fx of {sorted(REDUCTIONS)}, a function or None, "
                f"got {dist_reduce_fx!r}"
            )
        self._defaults[name], self._reductions[name] = default, dist_reduce_fx
        if persistent and isinstance(default, Tensor):
            self.register_buffer(name, default.clone())
        else:
            setattr(self, name, _copied(default))

    # -- what a subclass defines

    def update(self, *args: Any, **kwargs: Any) -> None:
        """Add a batch to the states."""
        raise NotImplementedError(f"{type(self).__name__}: update is not defined")

    def compute(self) -> Any:
        """The metric, from the states."""
        raise NotImplementedError(f"{type(self).__name__}: compute is not defined")

    # -- states

    update_count = Reads[int]("_update_count", "The number of batches since `reset`.")
    updates = Reads[int]("_update_count", "The number of batches since `reset`.")

    @property
    def update_called(self) -> bool:
        """Whether there were batches since `reset`."""
        return self._update_count > 0

    @property
    def device(self) -> Any:
        """The device of its states: the CPU."""
        return device("cpu")

    @property
    def dtype(self) -> Any:
        """The element type of its states, as `set_dtype` sets it."""
        return self._dtype

    @property
    def metric_state(self) -> dict[str, Any]:
        """The states by name."""
        return {name: getattr(self, name) for name in self._defaults}

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Add a batch; returns the metric of this batch alone, which may have gradients."""
        before, count = self.metric_state, self._update_count
        self.reset()
        self._differentiates = True
        try:
            self.update(*args, **kwargs)
            found = self.compute()
        finally:
            self._differentiates = False
        reductions = self._reductions.values()
        if self.full_state_update or not all(isinstance(x, str) for x in reductions):
            self._restore(before, count)
            self.update(*args, **kwargs)
        else:
            with no_grad():
                self._merge(before, count)
        self._computed, self._forward_cache = None, found
        return found

    def _restore(self, states: Mapping[str, Any], count: int) -> None:
        for name, value in states.items():
            setattr(self, name, value)
        self._update_count = count

    def _merge(self, before: Mapping[str, Any], count: int) -> None:
        for name, old in before.items():
            new, how = NESTED.mapped(_detached, getattr(self, name)), self._reductions[name]
            if isinstance(old, list) or how == "cat":
                merged = old + new if isinstance(old, list) else dim_zero_cat([old, new])
            elif how == "mean":
                merged = (count * old + new) / (count + 1)
            else:
                merged = REDUCTIONS[how]([old, new])
            setattr(self, name, merged)
        self._update_count = count + 1

    def reset(self) -> None:
        """Forget all batches."""
        for name, default in self._defaults.items():
            setattr(self, name, _copied(default))
        self._update_count, self._computed, self._forward_cache = 0, None, None

    def of_ranks(self, states: Sequence[Mapping[str, Any]]) -> Metric:
        """The metric of several processes, whose states are given."""
        whole = self.clone()
        for name, how in self._reductions.items():
            parts = [state[name] for state in states]
            if isinstance(self._defaults[name], list):
                value: Any = [x for part in parts for x in part]
            else:
                value = REDUCTIONS[how](parts) if isinstance(how, str) else stack(parts)
                value = how(value) if callable(how) else value
            setattr(whole, name, value)
        return whole

    def plot(
        self, val: Any = None, ax: Any = None, add_text: bool = True,
        labels: Sequence[str] | None = None, cmap: Any = None,
    ) -> tuple[Any, Any]:  # fmt: skip
        """Draw the metric with Matplotlib; returns the figure and its axes.

        Args:
            val: a value, or a list of values of several batches; by default that of all batches.
            ax: axes to draw on.
            add_text: whether a matrix has its numbers.
            labels: of classes.
            cmap: the colors of a matrix.

        Raises:
            ArgumentError: a curve, or several matrices.
        """
        value = self.compute() if val is None else val
        return plotted(value, ax, type(self).__name__, add_text, labels, cmap)

    def clone(self) -> Self:
        """A copy with its own states."""
        return copy.deepcopy(self)

    def persistent(self, mode: bool = False) -> None:
        """Set whether states are part of `state_dict`: for all of them."""
        for name, default in self._defaults.items():
            if mode and isinstance(default, Tensor) and name not in self._buffers:
                value = getattr(self, name)
                delattr(self, name)
                self.register_buffer(name, value)

    def set_dtype(self, dst_type: Any) -> Self:
        """Convert floating states."""
        self._dtype = dst_type
        for name, value in self.metric_state.items():
            if isinstance(value, Tensor) and value.dtype.is_floating:
                setattr(self, name, value.to(dst_type))
        return self

    def __hash__(self) -> int:
        return id(self)


class Counted(Metric):
    """A metric that one of `weft.metrics` computes.

    Attributes:
        counts: that one.
    """

    requires_update: ClassVar[bool] = True

    def __init__(self, counts: counted.Metric, **options: Any) -> None:
        super().__init__(**options)
        self.counts = counts

    def update(self, *args: Any, **kwargs: Any) -> None:
        """Add a batch."""
        self.counts.update(*args, **kwargs)

    def compute(self) -> Any:
        """The metric of all batches."""
        return tensors(self.counts.compute())

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Add a batch; returns the metric of this batch alone."""
        found = self._forward_cache = tensors(self.counts(*args, **kwargs))
        self._update_count, self._computed = self._update_count + 1, None
        return found

    def reset(self) -> None:
        """Forget all batches."""
        super().reset()
        self.counts.reset()

    @property
    def metric_state(self) -> dict[str, Any]:
        """The totals by name."""
        return {"counts": self.counts.state_dict()}

    def of_ranks(self, states: Sequence[Mapping[str, Any]]) -> Metric:
        """The metric of several processes, whose states are given."""
        whole = self.clone()
        whole.reset()
        for state in states:
            part = copy.deepcopy(whole.counts)
            part.load_state_dict(state["counts"])
            if part.updates:
                whole.counts.merge(part)
        return whole


def tensors(value: Any) -> Any:
    """A metric's value as tensors: floats as float32."""
    if isinstance(value, dict):
        found: dict[str, Any] = value
        return {name: tensors(x) for name, x in found.items()}
    if isinstance(value, tuple):
        return tuple(map(tensors, value))
    if isinstance(value, list):
        return list(map(tensors, value))
    array = np.asarray(value)
    return as_tensor(array).to(float32) if array.dtype.kind == "f" else as_tensor(array)


def _copied(default: Any) -> Any:
    return default.clone() if isinstance(default, Tensor) else []


def _detached(x: Any) -> Any:
    return x.detach() if isinstance(x, Tensor) else x
