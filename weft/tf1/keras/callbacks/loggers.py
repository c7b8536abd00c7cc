"""Callbacks that write metrics: CSVLogger, TensorBoard, ProgbarLogger."""

from __future__ import annotations

import csv
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import weft.tf1 as tf
from weft.errors import ArgumentError
from weft.tf1.framework.graph import fail
from weft.tf1.keras.callbacks.callback import Callback, Logs
from weft.tf1.keras.engine import sessions
from weft.train.callbacks.progress_bar import ProgressBar

__all__ = ["CSVLogger", "ProgbarLogger", "TensorBoard"]


class CSVLogger(Callback):
    """Writes a line of metrics for each epoch.

    Args:
        filename: of the CSV file.
        separator: between columns.
        append: whether to append to an existing file.
    """

    def __init__(self, filename: Any, separator: str = ",", append: bool = False) -> None:
        super().__init__()
        self.filename, self.separator, self.append = os.fspath(filename), separator, append
        self._file: Any = None
        self._names: list[str] = []

    def on_train_begin(self, logs: Logs | None = None) -> None:
        """Open the file."""
        goes_on = self.append and os.path.exists(self.filename)
        self._has_head = goes_on and os.path.getsize(self.filename) > 0
        self._file = Path(self.filename).open("a" if goes_on else "w", newline="")  # noqa: SIM115 -- until the run ends

    def on_epoch_end(self, epoch: int, logs: Logs | None = None) -> None:
        """Write a line."""
        logs = logs or {}
        writer = csv.writer(self._file, delimiter=self.separator)
        if not self._names:
            self._names = sorted(logs)
            if not self._has_head:
                writer.writerow(["epoch", *self._names])
        writer.writerow([epoch, *[logs.get(n, "NA") for n in self._names]])
        self._file.flush()

    def on_train_end(self, logs: Logs | None = None) -> None:
        """Close the file."""
        self._file.close()
        self._file, self._names = None, []


class TensorBoard(Callback):
    """Writes metrics, histograms of weights and the graph as event files.

    Args:
        log_dir: the folder; it has subfolders for training and validation.
        histogram_freq: epochs between histograms of the weights; 0 is never.
        write_graph: whether to write the graph.
        update_freq: `"epoch"`, `"batch"`, or a number of examples.
        options: of older programs, accepted.
    """

    def __init__(
        self, log_dir: Any = "logs", histogram_freq: int = 0, write_graph: bool = True,
        update_freq: Any = "epoch", **options: Any,
    ) -> None:  # fmt: skip
        super().__init__()
        del options
        self.log_dir, self.histogram_freq = os.fspath(log_dir), histogram_freq
        self.write_graph = write_graph
        self.update_freq = 1 if update_freq == "batch" else update_freq
        self._writers: dict[str, Any] = {}
        self._rows = self._seen = 0

    def on_train_begin(self, logs: Logs | None = None) -> None:
        """Open the files."""
        graph = getattr(self.model, "graph", None)
        if graph is None and (self.write_graph or self.histogram_freq):
            raise fail(
                ArgumentError,
                "TensorBoard: expected a model with a graph, got "
                f"{type(self.model).__name__}; give write_graph=False and histogram_freq=0",
            )
        graph = graph if self.write_graph else None
        self._writers = {"train": tf.summary.FileWriter(self._folder("train"), graph)}

    def _folder(self, stage: str) -> str:
        return os.path.join(self.log_dir, stage)

    def _write(self, stage: str, figures: dict[str, float], step: int) -> None:
        if stage not in self._writers:
            self._writers[stage] = tf.summary.FileWriter(self._folder(stage))
        values = [tf.Summary.Value(tag=n, simple_value=float(x)) for n, x in figures.items()]
        self._writers[stage].add_summary(tf.Summary(value=values), step)

    def on_batch_end(self, batch: int, logs: Logs | None = None) -> None:
        """Write the metrics of a batch, if due."""
        logs = logs or {}
        rows = int(logs.get("size", 1))
        self._seen += rows
        self._rows += 1 if self.update_freq == 1 else rows
        if self.update_freq != "epoch" and self._rows >= self.update_freq:
            self._rows = 0
            kept = {f"batch_{n}": x for n, x in logs.items() if n not in ("batch", "size")}
            self._write("train", kept, self._seen)

    def on_epoch_end(self, epoch: int, logs: Logs | None = None) -> None:
        """Write the metrics of the epoch."""
        parts: dict[str, dict[str, float]] = {"train": {}, "validation": {}}
        for name, figure in (logs or {}).items():
            stage = "validation" if name.startswith("val_") else "train"
            parts[stage][f"epoch_{name.removeprefix('val_')}"] = figure
        for stage, figures in parts.items():
            if figures:
                self._write(stage, figures, epoch)
        if self.histogram_freq and epoch % self.histogram_freq == 0:
            self._histograms(epoch)

    def _histograms(self, epoch: int) -> None:
        with self.model.graph.as_default():
            if not hasattr(self, "_merged"):
                told = [tf.summary.histogram(v.op.name, v) for v in self.model.weights]
                self._merged = tf.summary.merge(told)
            found = sessions.get_session().run(self._merged)
        self._writers["train"].add_summary(found, epoch)

    def on_train_end(self, logs: Logs | None = None) -> None:
        """Close the files."""
        for writer in self._writers.values():
            writer.close()


class ProgbarLogger(ProgressBar):
    """The trainer's progress bar, with Keras's name.

    Args:
        count_mode, stateful_metrics: accepted.
    """

    def __init__(
        self, count_mode: str = "samples", stateful_metrics: Sequence[str] | None = None
    ) -> None:
        del count_mode, stateful_metrics
        super().__init__()
