"""`Logger`: the base of what writes figures down."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


class Logger:
    """Base class: a subclass defines at least `log_metrics`."""

    name: str = ""
    version: int | str = ""

    @property
    def log_dir(self) -> str | None:
        """The folder that it writes to; `None` without one."""
        return None

    def log_metrics(self, metrics: Mapping[str, float], step: int | None = None) -> None:
        """Write figures of a step down; `"epoch"` is one of them."""
        raise NotImplementedError(f"{type(self).__name__}: log_metrics is not defined")

    def log_hyperparams(self, params: Mapping[str, Any]) -> None:
        """Write a module's arguments down."""

    def save(self) -> None:
        """Have everything in files."""

    def finalize(self, status: str) -> None:
        """A run is over: `"success"` or `"failed"`."""
        self.save()
