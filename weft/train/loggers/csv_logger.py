"""`CSVLogger`: metrics as a table, one row per step."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from weft.train.loggers.logger import Logger

ROWS: Final = 100  # buffered in memory


class CSVLogger(Logger):
    """Writes `metrics.csv`, and the module's hyperparameters to `hparams.json`.

    The folder is `save_dir/name/version_N`, created with the first row.

    Args:
        save_dir: the folder of all runs.
        name: the folder of these runs in it.
        version: a number or a name; by default the next free number.
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
        self, save_dir: str | Path = ".", name: str = "weft_runs", version: int | str | None = None,
        flush_logs_every_n_steps: int = ROWS,
    ) -> None:  # fmt: skip
        self._folder = Path(save_dir) / name
        self.name = name
        self.version = next_version(self._folder) if version is None else version
        self._every = flush_logs_every_n_steps
        self._rows: list[dict[str, Any]] = []
        self._columns: list[str] = ["step"]
        self._waiting = 0
        self._in_file: list[str] = []  # columns; rows in the file
        self._done = 0  # rows in the file

    @property
    def log_dir(self) -> str:
        """The folder of this version."""
        version = f"version_{self.version}" if isinstance(self.version, int) else self.version
        return str(self._folder / version)

    def log_metrics(self, metrics: Mapping[str, float], step: int | None = None) -> None:
        """Add metrics to the row of a step, or start a row."""
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

    def log_hyperparams(self, params: Mapping[str, Any]) -> None:
        """Write the hyperparameters."""
        path = Path(self.log_dir) / "hparams.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(dict(params), indent=1, default=str) + "\n", encoding="utf-8")

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


def next_version(folder: Path) -> int:
    """One more than the largest existing `version_N`."""
    names = [path.name for path in folder.glob("version_*")]
    numbers = [int(found[1]) for name in names if (found := re.fullmatch(r"version_(\d+)", name))]
    return max(numbers, default=-1) + 1
