"""`ProgressBar`: a bar on a terminal; otherwise one line per epoch."""

from __future__ import annotations

import math
import sys
import time
from typing import Any

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from weft.train.callbacks.callback import Callback


class ProgressBar(Callback):
    """Shows epoch, batches, remaining time, rate, loss, and values logged with `prog_bar=True`.

    It shows values of steps that are already computed, so it never waits. If the output is not a
    terminal, each epoch prints one line at its end.

    Args:
        refresh_rate: seconds between updates.
        console: where to print; standard error by default.
    """

    def __init__(self, refresh_rate: float = 0.1, console: Console | None = None) -> None:
        self._refresh = refresh_rate
        self._console = console
        self._bar: Progress | None = None
        self._task: Any = None
        self._next = 0.0
        self._begin = 0.0
        self._last: Any = None  # the result of the last step
        self._loss = math.nan

    @property
    def console(self) -> Console:
        """Where it prints."""
        if self._console is None:
            self._console = Console(file=sys.stderr)
        return self._console

    def on_train_epoch_start(self, trainer: Any, pl_module: Any) -> None:
        """Start a new bar."""
        self._begin = time.perf_counter()
        self._last, self._loss = None, math.nan
        if not self.console.is_terminal:
            return
        total = trainer.num_training_batches
        self._close()
        columns = (
            TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(),
            TimeElapsedColumn(), TimeRemainingColumn(), TextColumn("{task.fields[text]}"),
        )  # fmt: skip
        self._bar = Progress(*columns, console=self.console, auto_refresh=False)
        self._bar.start()
        self._task = self._bar.add_task(
            f"epoch {trainer.current_epoch}", total=None if total == math.inf else total, text=""
        )

    def on_train_batch_end(
        self, trainer: Any, pl_module: Any, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        """Keep the loss; at refresh time, read it one step later."""
        before, self._last = self._last, outputs
        now = time.perf_counter()
        if now >= self._next:
            self._next = now + self._refresh
            self._look(before)
            if self._bar is not None:
                text = self._text(trainer, (batch_idx + 1) / max(now - self._begin, 1e-9))
                self._bar.update(self._task, completed=batch_idx + 1, text=text, refresh=True)

    def _look(self, outputs: Any) -> None:
        """Read the loss of a computed step."""
        loss = outputs.get("loss") if isinstance(outputs, dict) else outputs
        if loss is not None and hasattr(loss, "item"):
            self._loss = float(loss.item())

    def _text(self, trainer: Any, rate: float) -> str:
        figures = {"loss": self._loss, **trainer.progress_bar_metrics}
        shown = [f"{k} {v:.4g}" for k, v in figures.items() if not math.isnan(v)]
        return " ".join([f"{rate:.1f}/s", *shown])

    def on_train_epoch_end(self, trainer: Any, pl_module: Any) -> None:
        """Print the epoch's line."""
        self._look(self._last)
        seconds = max(time.perf_counter() - self._begin, 1e-9)
        done = trainer.progress.batch
        text = self._text(trainer, done / seconds)
        if self._bar is not None:
            self._bar.update(self._task, completed=done, text=text, refresh=True)
            self._close()
        else:
            self.console.print(
                f"epoch {trainer.current_epoch}: {done} batches in {seconds:.1f} s, {text}",
                highlight=False, soft_wrap=True,
            )  # fmt: skip

    def teardown(self, trainer: Any, pl_module: Any, stage: str) -> None:
        """Close the bar."""
        self._close()

    def _close(self) -> None:
        if self._bar is not None:
            self._bar.stop()
            self._bar = None
