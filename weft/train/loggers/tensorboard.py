"""`TensorBoardLogger`: figures in files that TensorBoard shows."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from weft.train.loggers.csv_logger import next_version
from weft.train.loggers.logger import Logger
from weft.utils.tensorboard import SummaryWriter


class TensorBoardLogger(Logger):
    """Writes figures as scalars, and a module's arguments beside the last figures.

    The folder is `save_dir/name/version_N`, and is made with the first figure.

    Args:
        version: a number or a name; the next free number unless given.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     logger = TensorBoardLogger(folder)
    ...     logger.log_metrics({"loss": 0.5}, step=0)
    ...     logger.finalize("success")
    ...     [path.name.split(".")[2] for path in Path(logger.log_dir).iterdir()]
    ['tfevents']
    """

    def __init__(
        self, save_dir: str | Path = ".", name: str = "weft_runs", version: int | str | None = None
    ) -> None:
        self._folder = Path(save_dir) / name
        self.name = name
        self.version = next_version(self._folder) if version is None else version
        self._writer: SummaryWriter | None = None
        self._params: dict[str, Any] = {}
        self._last: dict[str, float] = {}

    @property
    def log_dir(self) -> str:
        """The folder of this version."""
        version = f"version_{self.version}" if isinstance(self.version, int) else self.version
        return str(self._folder / version)

    @property
    def experiment(self) -> SummaryWriter:
        """What writes; for images, histograms and the like."""
        if self._writer is None:
            self._writer = SummaryWriter(self.log_dir)
        return self._writer

    def log_metrics(self, metrics: Mapping[str, float], step: int | None = None) -> None:
        """Write figures of a step down."""
        for name, figure in metrics.items():
            self.experiment.add_scalar(name, figure, step)
        self._last.update(metrics)

    def log_hyperparams(self, params: Mapping[str, Any]) -> None:
        """Note a module's arguments; written with the last figures when the run is over."""
        plain = (bool, int, float, str)
        self._params = {k: v if isinstance(v, plain) else str(v) for k, v in params.items()}

    def save(self) -> None:
        """Have everything in files."""
        if self._writer is not None:
            self._writer.flush()

    def finalize(self, status: str) -> None:
        """Write arguments and last figures, and close the file."""
        if self._params and self._last:
            self.experiment.add_hparams(self._params, self._last, run_name=".")
            self._params = {}
        if self._writer is not None:
            self._writer.close()
