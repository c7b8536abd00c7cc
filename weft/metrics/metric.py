"""`Metric`: totals that are accumulated over batches, and the metric computed from them."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, Final, Literal, Self

import numpy as np

from weft.eager.functions.api import Tensor, as_tensor, no_grad, tensor
from weft.errors import ArgumentError, StateError

Array = np.ndarray[Any, Any]
Totals = Mapping[str, Array]
Merge = Literal["sum", "min", "max", "concatenate"]

MOST_WAITING: Final = 64  # in batches; then their parts are added up, which frees the memory


_MERGES: Final[dict[str, Callable[[Sequence[Array]], Array]]] = {
    "sum": lambda parts: np.array(functools.reduce(np.add, parts)),
    "min": lambda parts: np.array(functools.reduce(np.minimum, parts)),
    "max": lambda parts: np.array(functools.reduce(np.maximum, parts)),
    "concatenate": np.concatenate,
}


class Metric:
    """Base class: a subclass defines what a batch adds, and how the metric follows from the totals.

    Totals are integers or float64, so the metric over many batches is that of all their elements at
    once, however uneven the batches are. `update` only records what a batch adds: inside a training
    step, the step stays one program.

    Metrics of several processes are combined by `merge`, or by adding up their `state_dict`s.
    """

    merges: ClassVar[Mapping[str, Merge]]
    """Totals by name, and how two parts of each are combined."""

    def __init__(self) -> None:
        self._waiting: list[dict[str, Any]] = []
        self._totals: dict[str, Array] = {}
        self.updates = 0

    # -- what a subclass defines

    def part(self, *args: Any, **kwargs: Any) -> dict[str, Any]:
        """What a batch adds to the totals; called without gradients."""
        raise NotImplementedError

    def value(self, totals: Totals) -> Any:
        """The metric, computed from the totals."""
        raise NotImplementedError

    def check(self, totals: Totals) -> None:
        """Raise if the totals show a wrong argument; called before `value`."""

    def join(self, other: Metric) -> None:
        """Check that the totals of another metric of the class mean the same; called by `merge`."""

    # -- public methods

    def update(self, *args: Any, **kwargs: Any) -> None:
        """Accumulate a batch."""
        with no_grad():
            self._waiting.append(self.part(*args, **kwargs))
        self.updates += 1
        if len(self._waiting) > MOST_WAITING:
            self._add_up()

    def compute(self) -> Any:
        """The metric over all batches since the last `reset`.

        Raises:
            StateError: there were no batches.
        """
        totals = self.totals()
        if not totals:
            raise StateError.here(
                f"{type(self).__name__}.compute: expected update() before it, got no batch since "
                f"the last reset()"
            )
        self.check(totals)
        return self.value(totals)

    def reset(self) -> None:
        """Forget all batches."""
        self._waiting, self._totals, self.updates = [], {}, 0

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Accumulate a batch; returns the metric of this batch alone."""
        whole, self._waiting = self._waiting, []
        totals, self._totals = self._totals, {}
        try:
            self.update(*args, **kwargs)
            found = self.compute()
        finally:
            own, self._totals, self._waiting = self._totals, totals, whole
        self._add(own)
        return found

    def merge(self, *others: Self) -> Self:
        """Add the totals of other metrics, such as those of other processes.

        >>> from weft.metrics import Mean
        >>> a, b = Mean(), Mean()
        >>> a.update([1.0, 2.0, 3.0])
        >>> b.update(10.0)
        >>> a.merge(b).compute()
        4.0
        """
        for other in others:
            if type(other) is not type(self):
                raise ArgumentError.here(
                    f"{type(self).__name__}.merge: expected metrics of the same class, got "
                    f"{type(other).__name__}"
                )
            self.join(other)
            self._add(other.totals())
            self.updates += other.updates
        return self

    def totals(self) -> Totals:
        """The totals by name; empty before the first batch."""
        self._add_up()
        return self._totals

    def state_dict(self) -> dict[str, Any]:
        """The totals, to be saved."""
        return {
            "updates": self.updates,
            "totals": {name: tensor(total) for name, total in self.totals().items()},
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore the totals that `state_dict` returned.

        Raises:
            StateError: the state belongs to another metric.
        """
        totals = {name: np.array(_array(x)) for name, x in state["totals"].items()}
        if totals and totals.keys() != self.merges.keys():
            raise StateError.here(
                f"{type(self).__name__}.load_state_dict: expected totals {sorted(self.merges)}, "
                f"got {sorted(totals)}"
            )
        self._waiting, self._totals, self.updates = [], totals, int(state["updates"])

    def _add_up(self) -> None:
        parts = [{name: _array(x) for name, x in part.items()} for part in self._waiting]
        self._waiting = []
        self._add(*parts)

    def _add(self, *parts: Totals) -> None:
        known = [part for part in (self._totals, *parts) if part]
        if len(known) > bool(self._totals):
            self._totals = {
                name: _MERGES[merge]([part[name] for part in known])
                for name, merge in self.merges.items()
            }

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


def given(x: Any) -> Tensor:
    """An argument as a tensor, detached from gradients.

    A list is copied; an array's memory is shared.
    """
    return x.detach() if isinstance(x, Tensor) else as_tensor(x)


def number(x: Any) -> Any:
    """The metric as a Python number, or as an array if there are several."""
    return x.item() if np.ndim(x) == 0 else x


def whole(name: str, argument: str, value: Any) -> int:
    """An argument that is an integer from 1 on.

    Raises:
        ArgumentError: it is none.
    """
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 1:
        raise ArgumentError.here(
            f"{name}: expected {argument} as an integer from 1 on, got {value!r}"
        )
    return int(value)


def _array(x: Any) -> Array:
    return x.numpy() if isinstance(x, Tensor) else np.asarray(x)
