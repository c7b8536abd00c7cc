"""Rates over a window of updates: batches, samples, items and operations per second."""

from __future__ import annotations

from collections import deque
from itertools import pairwise
from typing import Final

from weft.errors import ArgumentError

__all__ = ["Throughput"]

_COUNTS: Final = {"batches": "batches", "samples": "samples", "lengths": "items"}
"""What grows, and what its rate counts."""


class Throughput:
    """Rates over the last updates.

    Args:
        available_flops: what a device can do in a second, for the share that is used (`mfu`).
        world_size: the number of devices; with several, rates of all are given as well.
        window_size: updates over which rates are taken.
        separator: between `device` and the name of a rate.

    Raises:
        ArgumentError: `window_size` or `world_size` is too small.

    Example:
        >>> rates = Throughput(window_size=2)
        >>> rates.update(time=1.0, batches=1, samples=8)
        >>> rates.update(time=3.0, batches=2, samples=16)
        >>> rates.compute()["device/samples_per_sec"]
        4.0
    """

    def __init__(
        self, available_flops: float | None = None, world_size: int = 1, window_size: int = 100,
        separator: str = "/",
    ) -> None:  # fmt: skip
        if world_size < 1 or window_size < 2:
            text = f"world_size of 1 and window_size of 2 or more, got {world_size}, {window_size}"
            raise ArgumentError.here(f"Throughput: expected {text}")
        self.available_flops, self.world_size = available_flops, world_size
        self.separator = separator
        self._rows: deque[dict[str, float]] = deque(maxlen=window_size)
        self._flops: deque[float] = deque(maxlen=window_size)

    def update(
        self, *, time: float, batches: int, samples: int, lengths: int | None = None,
        flops: float | None = None,
    ) -> None:  # fmt: skip
        """Note how far the run is: totals since its start.

        Args:
            time: seconds.
            batches, samples, lengths: of a device; `lengths` counts the items of samples.
            flops: operations of a device since the last update.

        Raises:
            ArgumentError: a total is smaller than before, or there are fewer samples than batches
                or items than samples.
        """
        row: dict[str, float] = {"time": time, "batches": batches, "samples": samples}
        if lengths is not None:
            row["lengths"] = lengths
        names = list(row)[1:]
        for few, many in pairwise(names):
            if row[many] < row[few]:
                text = f"as many {many} as {few}, got {row[many]} and {row[few]}"
                raise ArgumentError.here(f"Throughput: expected {text}")
        before = self._rows[-1] if self._rows else {}
        for name, value in row.items():
            if value < before.get(name, value) or (name == "time" and value == before.get(name)):
                text = f"{name} to grow, got {value} after {before[name]}"
                raise ArgumentError.here(f"Throughput: expected {text}")
        self._rows.append(row)
        if flops is not None:
            self._flops.append(flops * self.world_size)

    def compute(self) -> dict[str, float]:
        """The totals, and, once the window is full, the rates."""
        if not self._rows:
            return {}
        first, last, device = self._rows[0], self._rows[-1], f"device{self.separator}"
        found = dict(last)
        if len(self._rows) < (self._rows.maxlen or 0):
            return found
        seconds = last["time"] - first["time"]
        for name, counted in _COUNTS.items():
            if name in first and name in last:
                rate = (last[name] - first[name]) / seconds
                found[f"{device}{counted}_per_sec"] = rate
                if self.world_size > 1:
                    found[f"{counted}_per_sec"] = rate * self.world_size
        if len(self._flops) == self._flops.maxlen:
            rate = (sum(self._flops) - self._flops[0]) / seconds
            if self.world_size > 1:
                found["flops_per_sec"] = rate
            found[f"{device}flops_per_sec"] = rate / self.world_size
            if self.available_flops:
                found[f"{device}mfu"] = rate / self.world_size / self.available_flops
        return found

    def reset(self) -> None:
        """Forget all updates."""
        self._rows.clear()
        self._flops.clear()
