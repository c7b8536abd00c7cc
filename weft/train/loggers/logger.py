"""`Logger`: the base class of loggers, and the folder of a run's version."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from weft.train.hyperparameters import yaml_of


class Logger:
    """Base class: a subclass defines at least `log_metrics`."""

    name: Any = ""
    version: Any = ""
    group_separator = "/"

    @property
    def log_dir(self) -> str | None:
        """The folder that it writes to, or `None`."""
        return None

    @property
    def save_dir(self) -> str | None:
        """The folder of all runs, or `None`."""
        return None

    @property
    def experiment(self) -> Any:
        """What it writes with."""
        return self

    def log_metrics(self, metrics: Mapping[str, float], step: int | None = None) -> None:
        """Write the metrics of a step; `"epoch"` is one of them."""
        raise NotImplementedError(f"{type(self).__name__}: log_metrics is not defined")

    def log_hyperparams(self, params: Any, *args: Any, **kwargs: Any) -> None:
        """Write a module's hyperparameters."""

    def log_graph(self, model: Any, input_array: Any = None) -> None:
        """Write a module's graph."""

    def after_save_checkpoint(self, checkpoint_callback: Any) -> None:
        """After a checkpoint is saved."""

    def save(self) -> None:
        """Flush everything to files."""

    def finalize(self, status: str) -> None:
        """At the end of a run: `"success"` or `"failed"`."""
        self.save()


class VersionedLogger(Logger):
    """A logger that writes to `save_dir/name/version_N`.

    Args:
        save_dir: the folder of all runs.
        name: the folder of these runs in it; without it, versions are in `save_dir`.
        version: a number or a name; by default the next free number.
        prefix: before each name of a metric, with a `-`.
        separator: between the prefix and the name.
    """

    def __init__(
        self, save_dir: Any, name: str | None, version: int | str | None, prefix: str,
        separator: str = "-",
    ) -> None:  # fmt: skip
        self._save_dir = Path(save_dir)
        self._folder = self._save_dir / (name or "")
        self.name = name or ""
        self.version = next_version(self._folder) if version is None else version
        self._prefix = f"{prefix}{separator}" if prefix else ""
        self.hparams: dict[str, Any] = {}

    @property
    def save_dir(self) -> str:
        """The folder of all runs."""
        return str(self._save_dir)

    @property
    def root_dir(self) -> str:
        """The folder of these runs."""
        return str(self._folder)

    @property
    def log_dir(self) -> str:
        """The folder of this version."""
        version = f"version_{self.version}" if isinstance(self.version, int) else self.version
        return str(self._folder / version)

    def prefixed(self, metrics: Mapping[str, Any]) -> dict[str, Any]:
        """Metrics by the names that are written."""
        return {f"{self._prefix}{name}": value for name, value in metrics.items()}

    def write_hparams(self, params: Any) -> None:
        """Write hyperparameters to `hparams.yaml`."""
        self.hparams.update(params if isinstance(params, Mapping) else vars(params))
        path = Path(self.log_dir) / "hparams.yaml"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(yaml_of(self.hparams), encoding="utf-8")


def next_version(folder: Path) -> int:
    """One more than the largest existing `version_N`."""
    names = [path.name for path in folder.glob("version_*")]
    numbers = [int(found[1]) for name in names if (found := re.fullmatch(r"version_(\d+)", name))]
    return max(numbers, default=-1) + 1
