"""`Logger`: the base class of loggers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


class Logger:
    """Base class: a subclass defines at least `log_metrics`."""

    name: str = ""
    version: int | str = ""

    @property
    def log_dir(self) -> str | None:
        """The folder that it writes to, or `None`."""
        return None

    def log_metrics(self, metrics: Mapping[str, float], step: int | None = None) -> None:
        """Write the metrics of a step; `"epoch"` is one of them."""
        raise NotImplementedError(f"{type(self).__name__}: log_metrics is not defined")

    def log_hyperparams(self, params: Mapping[str, Any]) -> None:
        """Write a module's hyperparameters."""

    def save(self) -> None:
        """Flush everything to files."""

    def finalize(self, status: str) -> None:
        """At the end of a run: `"success"` or `"failed"`."""
        self.save()
