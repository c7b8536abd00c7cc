"""`TensorBoardLogger`: metrics, the graph and hyperparameters for TensorBoard."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from weft.formats.event import hyperparameter
from weft.train.loggers.csv_logger import next_version
from weft.train.loggers.logger import Logger
from weft.utils.tensorboard import SummaryWriter

_STATUS: Final = {"success": hyperparameter.SUCCESS}


class TensorBoardLogger(Logger):
    """Writes event files to `save_dir/name/version_N`, created with the first event.

    Args:
        save_dir: the folder of all runs.
        name: the folder of these runs in it.
        version: a number or a name; by default the next free number.
        options: of `weft.utils.tensorboard.SummaryWriter`.

    >>> import tempfile
    >>> logger = TensorBoardLogger(tempfile.mkdtemp(), name="run")
    >>> logger.log_metrics({"loss": 0.5}, step=0)
    >>> logger.finalize("success")
    """

    def __init__(
        self, save_dir: str | Path = ".", name: str = "weft_runs", version: int | str | None = None,
        **options: Any,
    ) -> None:  # fmt: skip
        self._folder = Path(save_dir) / name
        self.name = name
        self.version = next_version(self._folder) if version is None else version
        self._options = options
        self._writer: SummaryWriter | None = None
        self._hparams: dict[str, Any] = {}
        self._metrics: dict[str, None] = {}

    @property
    def log_dir(self) -> str:
        """The folder of this version."""
        version = f"version_{self.version}" if isinstance(self.version, int) else self.version
        return str(self._folder / version)

    @property
    def experiment(self) -> SummaryWriter:
        """The writer, for images, histograms and the like."""
        if self._writer is None:
            self._writer = SummaryWriter(self.log_dir, **self._options)
        return self._writer

    def log_metrics(self, metrics: Mapping[str, float], step: int | None = None) -> None:
        """Write scalars."""
        for name, value in metrics.items():
            self._metrics[name] = None
            self.experiment.add_scalar(name, value, step)

    def log_hyperparams(self, params: Mapping[str, Any]) -> None:
        """Write hyperparameters; values other than numbers, strings and booleans as strings."""
        plain = (bool, int, float, str)
        self._hparams = {k: v if isinstance(v, plain) else str(v) for k, v in params.items()}

    def log_graph(self, model: Any, input_array: Any) -> None:
        """Write the graph of a model for this input."""
        self.experiment.add_graph(model, input_array)

    def save(self) -> None:
        """Flush everything to files."""
        if self._writer is not None:
            self._writer.flush()

    def finalize(self, status: str) -> None:
        """At the end of a run: write its row of hyperparameters, also if it failed."""
        if self._hparams:
            ended = _STATUS.get(status, hyperparameter.FAILURE)
            parts = [
                hyperparameter.experiment(self._hparams, self._metrics, {}),
                hyperparameter.session_start(self._hparams),
                hyperparameter.session_end(ended),
            ]
            self.experiment.add_values(parts)
        if self._writer is not None:
            self._writer.close()
