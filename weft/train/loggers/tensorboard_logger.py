"""`TensorBoardLogger`: metrics, the graph and hyperparameters for TensorBoard."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from weft.formats.event import hyperparameter
from weft.train.loggers.logger import VersionedLogger
from weft.utils.tensorboard import SummaryWriter

_STATUS: Final = {"success": hyperparameter.SUCCESS}


class TensorBoardLogger(VersionedLogger):
    """Writes event files to `save_dir/name/version_N`, created with the first event.

    Args:
        save_dir: the folder of all runs.
        name: the folder of these runs in it; without it, versions are in `save_dir`.
        version: a number or a name; by default the next free number.
        log_graph: whether the graph for the module's `example_input_array` is written.
        default_hp_metric: whether `hp_metric` is written with hyperparameters.
        prefix: before each name of a metric, with a `-`.
        sub_dir: a folder in that of the version.
        options: of `weft.utils.tensorboard.SummaryWriter`.

    >>> import tempfile
    >>> logger = TensorBoardLogger(tempfile.mkdtemp(), name="run")
    >>> logger.log_metrics({"loss": 0.5}, step=0)
    >>> logger.finalize("success")
    """

    def __init__(
        self, save_dir: str | Path = ".", name: str | None = "lightning_logs",
        version: int | str | None = None, log_graph: bool = False, default_hp_metric: bool = True,
        prefix: str = "", sub_dir: str | Path | None = None, **options: Any,
    ) -> None:  # fmt: skip
        super().__init__(save_dir, name, version, prefix)
        self._sub_dir, self._log_graph, self._default = sub_dir, log_graph, default_hp_metric
        self._options = options
        self._writer: SummaryWriter | None = None
        self._hparams: dict[str, Any] = {}
        self._metrics: dict[str, None] = {}

    @property
    def log_dir(self) -> str:
        """The folder of this version, and of `sub_dir` in it."""
        return str(Path(super().log_dir) / (self._sub_dir or ""))

    @property
    def experiment(self) -> SummaryWriter:
        """The writer, for images, histograms and the like."""
        if self._writer is None:
            self._writer = SummaryWriter(self.log_dir, **self._options)
        return self._writer

    def log_metrics(self, metrics: Mapping[str, float], step: int | None = None) -> None:
        """Write scalars; a dictionary in place of a number gives several in one chart."""
        for name, value in self.prefixed(metrics).items():
            self._metrics[name] = None
            if isinstance(value, Mapping):
                self.experiment.add_scalars(name, value, step)
            else:
                self.experiment.add_scalar(name, value, step)

    def log_hyperparams(
        self, params: Any, metrics: Any = None, step: int | None = None, **kwargs: Any
    ) -> None:
        """Write hyperparameters; values other than numbers, strings and booleans as strings.

        Args:
            metrics: numbers by which TensorBoard compares runs, or one, `hp_metric`.
            step: of these numbers.
        """
        self.write_hparams(params)
        plain = (bool, int, float, str)
        self._hparams = {k: v if isinstance(v, plain) else str(v) for k, v in self.hparams.items()}
        if metrics is None:
            metrics = {"hp_metric": -1} if self._default else {}
        elif not isinstance(metrics, Mapping):
            metrics = {"hp_metric": metrics}
        if metrics:
            self.log_metrics(metrics, 0 if step is None else step)

    def log_graph(self, model: Any, input_array: Any = None) -> None:
        """Write the graph of a model for an input; by default, if the logger's `log_graph` says
        so, for the model's `example_input_array`.
        """
        if input_array is None and self._log_graph:
            input_array = getattr(model, "example_input_array", None)
        if input_array is not None:
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
