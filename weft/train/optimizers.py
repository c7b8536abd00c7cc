"""Parsing of the forms that `configure_optimizers` may return."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any

from weft.errors import ArgumentError
from weft.optim.lr_scheduler import ReduceLROnPlateau
from weft.optim.optimizer import Optimizer

MISSING = "expected an optimizer, a list of them, two lists, or a dictionary with 'optimizer'"


@dataclass
class Schedule:
    """A scheduler with its interval.

    Attributes:
        interval: `"epoch"` or `"step"`.
        frequency: it steps after this many of them.
        monitor: the metric passed to a scheduler that needs one.
        strict: whether a missing metric is an error.
        seen: the metric's value that the scheduler was stepped with last, as a stamp.
    """

    scheduler: Any
    interval: str = "epoch"
    frequency: int = 1
    monitor: str | None = None
    strict: bool = True
    reduce_on_plateau: bool = False
    name: str | None = None
    seen: int = field(default=-1, init=False)

    def __post_init__(self) -> None:
        if isinstance(self.scheduler, ReduceLROnPlateau):
            self.reduce_on_plateau = True
        if self.interval not in ("epoch", "step"):
            raise ArgumentError.here(
                f"configure_optimizers: expected interval 'epoch' or 'step', got {self.interval!r}"
            )
        if self.reduce_on_plateau and self.monitor is None:
            raise ArgumentError.here(
                "configure_optimizers: ReduceLROnPlateau needs the name of a metric; return "
                "{'optimizer': ..., 'lr_scheduler': {'scheduler': ..., 'monitor': 'val_loss'}}"
            )


@dataclass
class Optimizers:
    """The optimizers of a run, and their schedules."""

    optimizers: list[Any] = field(default_factory=list[Any])
    schedules: list[Schedule] = field(default_factory=list[Schedule])

    def count_with(self, count: Callable[[int], None] | None) -> None:
        """Call `count(1)` with each update, and `count(-1)` if one is undone."""
        for optimizer in self.optimizers:
            optimizer.count = count

    def state_dict(self) -> dict[str, Any]:
        """The states of all."""
        return {
            "optimizer_states": [x.state_dict() for x in self.optimizers],
            "lr_schedulers": [x.scheduler.state_dict() for x in self.schedules],
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore the states of all.

        Raises:
            ArgumentError: the number of optimizers or schedulers differs.
        """
        for name, own in (("optimizer_states", self.optimizers), ("lr_schedulers", self.schedules)):
            if len(state[name]) != len(own):
                raise ArgumentError.here(
                    f"Trainer: expected the {name.replace('_', ' ')} of {len(own)}, as "
                    f"configure_optimizers gives, got {len(state[name])}"
                )
        for x, saved in zip(self.optimizers, state["optimizer_states"], strict=True):
            x.load_state_dict(saved)
        for y, saved in zip(self.schedules, state["lr_schedulers"], strict=True):
            y.scheduler.load_state_dict(saved)


def optimizers_of(given: Any) -> Optimizers:
    """Parse the result of `configure_optimizers`.

    Raises:
        ArgumentError: its form is unknown.
    """
    found = Optimizers()
    if given is None:
        return found
    if isinstance(given, Optimizer | Mapping):
        _add(found, given)
    elif _are_two_lists(given):
        found.optimizers += given[0]
        found.schedules += [_schedule(x) for x in given[1]]
    elif isinstance(given, list | tuple):
        each: Sequence[Any] = given
        for x in each:
            _add(found, x)
    else:
        _refuse(given)
    for optimizer in found.optimizers:
        if not isinstance(optimizer, Optimizer):
            _refuse(optimizer)
    return found


def _are_two_lists(given: Any) -> bool:
    return (
        isinstance(given, list | tuple)
        and len(given) == 2
        and all(isinstance(x, list | tuple) for x in given)
    )


def _add(found: Optimizers, given: Any) -> None:
    """Add an optimizer, or a dictionary of one and its schedule."""
    if not isinstance(given, Mapping):
        found.optimizers.append(given)
        return
    if "optimizer" not in given:
        _refuse(sorted(given))
    found.optimizers.append(given["optimizer"])
    if given.get("lr_scheduler") is not None:
        found.schedules.append(_schedule(given["lr_scheduler"], given.get("monitor")))


def _schedule(given: Any, monitor: str | None = None) -> Schedule:
    if not isinstance(given, Mapping):
        return Schedule(given, monitor=monitor)
    known = {f.name for f in fields(Schedule) if f.init}
    odd = sorted(given.keys() - known)
    if odd or "scheduler" not in given:
        raise ArgumentError.here(
            f"configure_optimizers: expected a dictionary with 'scheduler' and any of "
            f"{sorted(known - {'scheduler'})}, got {sorted(given)}"
        )
    options: dict[str, Any] = {"monitor": monitor, **given}
    return Schedule(**options)


def _refuse(given: Any) -> None:
    shown = given if isinstance(given, list) else type(given).__name__
    raise ArgumentError.here(f"configure_optimizers: {MISSING}, got {shown}")
