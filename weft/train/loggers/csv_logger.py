"""`CSVLogger`: metrics as a table, one row per step."""

from __future__ import annotations

import csv
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from weft.documentation import Reads
from weft.train.loggers.logger import VersionedLogger

ROWS: Final = 100  # buffered in memory


class CSVLogger(VersionedLogger):
    """Writes `metrics.csv`, and the module's hyperparameters to `hparams.yaml`.

    The folder is `save_dir/name/version_N`, created with the first row.

    Args:
        save_dir: the folder of all runs.
        name: the folder of these runs in it; without it, versions are in `save_dir`.
        version: a number or a name; by default the next free number.
        prefix: before each name of a metric, with a `-`.
        flush_logs_every_n_steps: the maximum number of buffered rows.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     logger = CSVLogger(folder, name="run")
    ...     logger.log_metrics({"loss": 0.5}, step=0)
    ...     logger.log_metrics({"loss": 0.25, "accuracy": 1.0}, step=1)
    ...     logger.save()
    ...     print((Path(logger.log_dir) / "metrics.csv").read_text())
    step,loss,accuracy
    0,0.5,
    1,0.25,1.0
    <BLANKLINE>
    """

    def __init__(
        self, save_dir: str | Path = ".", name: str | None = "lightning_logs",
        version: int | str | None = None, prefix: str = "", flush_logs_every_n_steps: int = ROWS,
    ) -> None:  # fmt: skip
        super().__init__(save_dir, name, version, prefix)
        self._every = flush_logs_every_n_steps
        self._rows: list[dict[str, Any]] = []
        self._columns: list[str] = ["step"]
        self._waiting = 0
        self._in_file: list[str] = []  # columns; rows in the file
        self._done = 0  # rows in the file

    metrics = Reads[list[dict[str, Any]]]("_rows", "The rows of the table.")

    def log_metrics(self, metrics: Mapping[str, float], step: int | None = None) -> None:
        """Add metrics to the row of a step, or start a row."""
        metrics = self.prefixed(metrics)
        number = len(self._rows) if step is None else step
        self._columns += [name for name in metrics if name not in self._columns]
        if len(self._rows) > self._done and self._rows[-1]["step"] == number:
            self._rows[-1].update(metrics)
        else:
            self._rows.append({"step": number, **metrics})
        self._waiting += 1
        if self._waiting >= self._every:
            self._waiting = 0
            self._write(len(self._rows) - 1)  # the last row may still grow

    def log_hyperparams(self, params: Any, *args: Any, **kwargs: Any) -> None:
        """Write the hyperparameters."""
        self.write_hparams(params)

    def save(self) -> None:
        """Write the buffered rows."""
        self._waiting = 0
        self._write(len(self._rows))

    def _write(self, end: int) -> None:
        """Write the rows before `end`; rewrite the file if columns were added."""
        fresh = self._in_file != self._columns
        first = 0 if fresh else self._done
        if first >= end:
            return
        path = Path(self.log_dir) / "metrics.csv"
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("w" if fresh else "a", newline="", encoding="utf-8") as file:
            table = csv.DictWriter(file, self._columns, lineterminator="\n")
            if fresh:
                table.writeheader()
            table.writerows(self._rows[first:end])
        self._in_file, self._done = list(self._columns), end
