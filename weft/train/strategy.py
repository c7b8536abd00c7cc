"""Strategies: the differences between one process and several."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from weft.errors import ArgumentError

Array = np.ndarray[Any, Any]
Reduction = Literal["sum", "mean", "min", "max"]


class Strategy:
    """A run in a single process; the interface of other strategies.

    A strategy for several processes defines the same methods: its `begin` may wrap the module, and
        its reductions combine the values of all ranks.
    """

    rank: int = 0
    world_size: int = 1

    @property
    def is_global_zero(self) -> bool:
        """Whether this process writes files and prints."""
        return self.rank == 0

    def begin(self, module: Any) -> Any:
        """The module that steps are made with."""
        return module

    def end(self) -> None:
        """After a run, also after a failed one."""

    def reduce(self, values: Array, how: Reduction = "sum") -> Array:
        """One array reduced over all ranks."""
        return values

    def gather(self, value: Any) -> list[Any]:
        """Each rank's value, in the order of ranks."""
        return [value]

    def broadcast(self, value: Any, source: int = 0) -> Any:
        """The value of rank `source`."""
        return value

    def barrier(self, name: str = "") -> None:
        """Wait for all ranks."""


def strategy_of(given: Any, devices: Any, accelerator: Any, num_nodes: int) -> Strategy:
    """The strategy that a trainer's arguments name.

    Raises:
        ArgumentError: no strategy supports the accelerator or the number of processes.
    """
    if accelerator not in ("auto", "cpu"):
        raise ArgumentError.here(
            f"Trainer: expected accelerator 'cpu' or 'auto', got {accelerator!r}"
        )
    if isinstance(given, Strategy):
        return given
    if given not in ("auto", "single"):
        raise ArgumentError.here(
            f"Trainer: expected strategy 'auto', 'single' or a Strategy, got {given!r}"
        )
    if devices not in ("auto", 1, "1", [0]) or num_nodes != 1:
        raise ArgumentError.here(
            f"Trainer: expected devices 1 and num_nodes 1, got {devices!r} and {num_nodes!r}; one "
            f"process uses all cores, and several need their own Strategy"
        )
    return Strategy()
