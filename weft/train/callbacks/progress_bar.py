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

from weft.documentation import Reads
from weft.train.callbacks.callback import Callback

__all__ = ["ProgressBar", "RichProgressBar", "RichProgressBarTheme", "TQDMProgressBar"]


class ProgressBar(Callback):
    """Shows epoch, batches, remaining time, rate, loss, and values logged with `prog_bar=True`.

    It shows values of steps that are already computed, so it never waits. If the output is not a
    terminal, each epoch prints one line at its end.

    Args:
        refresh_rate: seconds between updates.
        console: where to print; standard error by default.
        leave: whether a finished bar stays.
        style: the color of the bar.
    """

    def __init__(
        self, refresh_rate: float = 0.1, console: Console | None = None, leave: bool = True,
        style: str = "bar.complete",
    ) -> None:  # fmt: skip
        self._refresh, self._leave, self._style = refresh_rate, leave, style
        self._is_enabled = True
        self._console = console
        self._bar: Progress | None = None
        self._task: Any = None
        self._next = 0.0
        self._begin = 0.0
        self._last: Any = None  # the result of the last step
        self._loss = math.nan

    is_enabled = Reads[bool]("_is_enabled", "Whether it shows anything.")

    def enable(self) -> None:
        """Show it."""
        self._is_enabled = True

    def disable(self) -> None:
        """Show nothing."""
        self._is_enabled = False

    def get_metrics(self, trainer: Any, pl_module: Any) -> dict[str, Any]:
        """What is shown beside the bar: the loss, and values logged with `prog_bar=True`."""
        return {"loss": self._loss, **trainer.progress_bar_metrics}

    def print(self, *args: Any, **options: Any) -> None:
        """Print above the bar."""
        self.console.print(*args, **options)

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
        if not (self._is_enabled and self.console.is_terminal):
            return
        total = trainer.num_training_batches
        self._close()
        columns = (
            TextColumn("{task.description}"), BarColumn(complete_style=self._style),
            MofNCompleteColumn(),
            TimeElapsedColumn(), TimeRemainingColumn(), TextColumn("{task.fields[text]}"),
        )  # fmt: skip
        self._bar = Progress(*columns, console=self.console, auto_refresh=False,
            transient=not self._leave)  # fmt: skip
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
                text = self._text(
                    trainer, pl_module, (batch_idx + 1) / max(now - self._begin, 1e-9)
                )
                self._bar.update(self._task, completed=batch_idx + 1, text=text, refresh=True)

    def _look(self, outputs: Any) -> None:
        """Read the loss of a computed step."""
        loss = outputs.get("loss") if isinstance(outputs, dict) else outputs
        if loss is not None and hasattr(loss, "item"):
            self._loss = float(loss.item())

    def _text(self, trainer: Any, pl_module: Any, rate: float) -> str:
        figures = self.get_metrics(trainer, pl_module)
        return " ".join(
            [f"{rate:.1f}/s", *[_shown(k, v) for k, v in figures.items() if _is_known(v)]]
        )

    def on_train_epoch_end(self, trainer: Any, pl_module: Any) -> None:
        """Print the epoch's line."""
        if not self._is_enabled:
            return
        self._look(self._last)
        seconds = max(time.perf_counter() - self._begin, 1e-9)
        done = trainer.progress.batch
        text = self._text(trainer, pl_module, done / seconds)
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


class TQDMProgressBar(ProgressBar):
    """The same bar by Lightning's name.

    Args:
        refresh_rate: 0 shows nothing; any other number is the bar's own rate.
        process_position: taken for programs that give it: there is one bar.
        leave: whether a finished bar stays.
    """

    def __init__(
        self, refresh_rate: int = 1, process_position: int = 0, leave: bool = True
    ) -> None:
        super().__init__(leave=leave)
        self._is_enabled = refresh_rate > 0


class RichProgressBarTheme:
    """Colors by Lightning's names, of which that of the bar is used.

    Args:
        styles: `progress_bar="green"` and the like.
    """

    def __init__(self, **styles: Any) -> None:
        self.progress_bar = styles.get("progress_bar", "bar.complete")


class RichProgressBar(ProgressBar):
    """The same bar by Lightning's name.

    Args:
        refresh_rate: 0 shows nothing; any other number is the bar's own rate.
        leave: whether a finished bar stays.
        theme: colors.
        console_kwargs: of rich's `Console`.
    """

    def __init__(
        self, refresh_rate: int = 1, leave: bool = True, theme: RichProgressBarTheme | None = None,
        console_kwargs: dict[str, Any] | None = None,
    ) -> None:  # fmt: skip
        console = None if console_kwargs is None else Console(**console_kwargs)
        theme = theme or RichProgressBarTheme()
        super().__init__(console=console, leave=leave, style=str(theme.progress_bar))
        self._is_enabled = refresh_rate > 0


def _is_known(value: Any) -> bool:
    return not (isinstance(value, float) and math.isnan(value))


def _shown(name: str, value: Any) -> str:
    return f"{name} {value}" if isinstance(value, str) else f"{name} {float(value):.4g}"
