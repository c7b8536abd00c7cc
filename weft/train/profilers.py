"""Profilers: where the time of a run goes."""

from __future__ import annotations

import contextlib
import cProfile
import io
import pstats
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, ClassVar, Final, Self

import numpy as np

from weft.errors import ArgumentError

__all__ = ["AdvancedProfiler", "PassThroughProfiler", "Profiler", "SimpleProfiler"]


class Profiler:
    """Base class: a subclass defines `start`, `stop` and `summary`.

    Hooks, steps and the optimizer's updates of a run are measured, each under its own name.

    Args:
        dirpath: the folder of the report; without it, the trainer's folder.
        filename: the report's name; without it, the report is printed.
    """

    is_active: ClassVar[bool] = True

    def __init__(self, dirpath: str | Path | None = None, filename: str | None = None) -> None:
        self.dirpath, self.filename = dirpath, filename

    def start(self, action_name: str) -> None:
        """Begin to measure an action."""
        raise NotImplementedError(f"{type(self).__name__}: start is not defined")

    def stop(self, action_name: str) -> None:
        """End an action."""
        raise NotImplementedError(f"{type(self).__name__}: stop is not defined")

    def summary(self) -> str:
        """The report."""
        return ""

    @contextlib.contextmanager
    def profile(self, action_name: str) -> Iterator[Self]:
        """A block that is measured."""
        self.start(action_name)
        try:
            yield self
        finally:
            self.stop(action_name)

    def measured(self, call: Callable[..., Any], name: str) -> Callable[..., Any]:
        """A function whose calls are measured."""

        def run(*args: Any, **kwargs: Any) -> Any:
            with self.profile(name):
                return call(*args, **kwargs)

        return run

    def describe(self) -> None:
        """Print the report, or write it to the file."""
        text = self.summary()
        if not text:
            return
        if self.filename is None:
            print(text, file=sys.stderr)
            return
        path = Path(self.dirpath or ".") / f"{self.filename}.txt"
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("a", encoding="utf-8") as file:
            file.write(text + "\n")

    def setup(self, stage: str | None = None, **options: Any) -> None:
        """Before a run."""

    def teardown(self, stage: str | None = None) -> None:
        """After a run: report."""
        self.describe()


class PassThroughProfiler(Profiler):
    """Measures nothing."""

    is_active: ClassVar[bool] = False

    def start(self, action_name: str) -> None:
        """Do nothing."""

    def stop(self, action_name: str) -> None:
        """Do nothing."""


class SimpleProfiler(Profiler):
    """Measures how long actions take.

    Args:
        dirpath: the folder of the report; without it, the trainer's folder.
        filename: the report's name; without it, the report is printed.
        extended: whether the report has counts and shares, sorted by total time.

    Raises:
        ArgumentError: an action ends that has not begun, or begins twice.

    >>> profiler = SimpleProfiler()
    >>> with profiler.profile("read"):
    ...     pass
    >>> list(profiler.recorded_durations)
    ['read']
    """

    def __init__(
        self, dirpath: str | Path | None = None, filename: str | None = None, extended: bool = True
    ) -> None:
        super().__init__(dirpath, filename)
        self.extended = extended
        self.current_actions: dict[str, float] = {}
        self.recorded_durations: dict[str, list[float]] = defaultdict(list)
        self.start_time = time.monotonic()

    def start(self, action_name: str) -> None:
        """Begin to measure an action."""
        if action_name in self.current_actions:
            raise ArgumentError.here(f"Profiler.start: {action_name!r} has begun already")
        self.current_actions[action_name] = time.monotonic()

    def stop(self, action_name: str) -> None:
        """End an action."""
        if action_name not in self.current_actions:
            raise ArgumentError.here(f"Profiler.stop: {action_name!r} has not begun")
        begin = self.current_actions.pop(action_name)
        self.recorded_durations[action_name].append(time.monotonic() - begin)

    def summary(self) -> str:
        """A table of actions, the longest first."""
        rows = [(name, *_figures(times)) for name, times in self.recorded_durations.items()]
        rows.sort(key=lambda row: -row[3])
        whole = max(time.monotonic() - self.start_time, 1e-9)
        if not self.extended:
            lines = [f"{name:<70} {mean:12.6f} {total:12.4f}" for name, mean, _, total in rows]
            return "\n".join([f"{'Action':<70} {'Mean (s)':>12} {'Total (s)':>12}", *lines])
        head = f"{'Action':<70} {'Mean (s)':>12} {'Calls':>8} {'Total (s)':>12} {'Share':>8}"
        lines = [
            f"{name:<70} {mean:12.6f} {calls:8d} {total:12.4f} {total / whole:8.2%}"
            for name, mean, calls, total in rows
        ]
        return "\n".join([head, f"{'Total':<70} {'':>12} {'':>8} {whole:12.4f} {1:8.2%}", *lines])


def _figures(times: list[float]) -> tuple[float, int, float]:
    return float(np.mean(times)), len(times), float(np.sum(times))


class AdvancedProfiler(Profiler):
    """Measures every Python function that actions call, by `cProfile`.

    Args:
        dirpath: the folder of the report; without it, the trainer's folder.
        filename: the report's name; without it, the report is printed.
        line_count_restriction: how many functions each action's report has: a number, or a part.
    """

    def __init__(
        self, dirpath: str | Path | None = None, filename: str | None = None,
        line_count_restriction: float = 1.0,
    ) -> None:  # fmt: skip
        super().__init__(dirpath, filename)
        self.line_count_restriction = line_count_restriction
        self.profiled_actions: dict[str, cProfile.Profile] = {}
        self._running: list[str] = []

    def start(self, action_name: str) -> None:
        """Begin to measure an action; one that it is part of waits."""
        if self._running:
            self.profiled_actions[self._running[-1]].disable()
        self._running.append(action_name)
        self.profiled_actions.setdefault(action_name, cProfile.Profile()).enable()

    def stop(self, action_name: str) -> None:
        """End an action."""
        if not self._running or self._running[-1] != action_name:
            raise ArgumentError.here(f"Profiler.stop: {action_name!r} has not begun last")
        self.profiled_actions[self._running.pop()].disable()
        if self._running:
            self.profiled_actions[self._running[-1]].enable()

    def summary(self) -> str:
        """The functions of each action, sorted by the time with what they call."""
        parts: list[str] = []
        for name, profile in self.profiled_actions.items():
            text = io.StringIO()
            found = pstats.Stats(profile, stream=text).strip_dirs().sort_stats("cumulative")
            found.print_stats(self.line_count_restriction)
            parts.append(f"{name}\n{text.getvalue()}")
        return "\n".join(parts)


_NAMED: Final = {"simple": SimpleProfiler, "advanced": AdvancedProfiler}


def profiler_of(given: Any) -> Profiler:
    """A profiler by name, the given one, or one that measures nothing.

    Raises:
        ArgumentError: the name is unknown.
    """
    if given is None:
        return PassThroughProfiler()
    if isinstance(given, Profiler):
        return given
    if given not in _NAMED:
        raise ArgumentError.here(
            f"Trainer: expected profiler of {sorted(_NAMED)}, a Profiler or None, got {given!r}"
        )
    return _NAMED[given]()
