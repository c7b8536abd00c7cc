"""Logged values, on their way to callbacks, loggers and the progress bar."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np

from weft.eager.functions.api import Tensor, as_tensor
from weft.eager.tensor.dtype.promotion import get_default_dtype
from weft.errors import ArgumentError
from weft.train.batches import size_of
from weft.train.progress import Progress
from weft.train.results import METRICS, Results
from weft.train.strategy import Strategy

LOGGABLE: Final = (Tensor, float, int, *METRICS)


class Journal:
    """The part of a trainer that stores logged values.

    Attributes:
        results: of the running loop; `None` between runs.
        loader_number: the index of the loader being evaluated.
    """

    in_fit = False  # whether a fit is running

    def __init__(self) -> None:
        self.progress = Progress()
        self.strategy = Strategy()
        self.loggers: list[Any] = []
        self.results: Results | None = None
        self.sanity_checking = False
        self.loader_number: int | None = None
        self._results: dict[str, Results] = {}
        self._figures: dict[str, Any] = {}
        self._restored: dict[str, Any] = {}  # of the run that goes on
        self._logged: dict[str, Any] = {}
        self._stamps: dict[str, int] = {}  # batches before the last value of each name
        self._batch: Any = None
        self._items: int | None = None
        self._in_batch = False

    def results_of(self, stage: str) -> Results:
        """Start collecting for `"fit"`, `"validate"`, `"test"` or `"predict"`."""
        return self._results.setdefault(stage, Results())

    def begin_batch(self, batch: Any) -> None:
        """Values logged from here on belong to this batch."""
        self._batch, self._items, self._in_batch = batch, None, True

    def end_batch(self) -> None:
        """Values logged from here on belong to no batch."""
        self._batch, self._in_batch = None, False

    def log(
        self, name: str, value: Any, prog_bar: bool, logger: bool | None, on_step: bool | None,
        on_epoch: bool | None, reduce_fx: Any, batch_size: int | None, add_dataloader_idx: bool,
        sync_dist: bool = False,
    ) -> None:  # fmt: skip
        """Log a value; see `Module.log`."""
        results = self.results
        if results is None:
            return
        if self.loader_number is not None and add_dataloader_idx:
            name = f"{name}/dataloader_idx_{self.loader_number}"
        if not isinstance(value, LOGGABLE):
            value = _loggable(name, value)
        entry = results.entries.get(name)
        if entry is None:
            in_step = self._in_batch and results is self._results.get("fit")
            entry = results.entry(
                name,
                on_step=in_step if on_step is None else on_step,
                on_epoch=not in_step if on_epoch is None else on_epoch,
                prog_bar=prog_bar,
                logger=logger is None or logger,
                reduce_fx=reduce_fx,
                sync_dist=sync_dist,
                strategy=self.strategy,
            )
        if batch_size is not None:
            self._items = batch_size
        entry.stamp = self.progress.total_batches
        entry.take(value, self._weight)

    def _weight(self) -> float:
        """The size of the current batch."""
        if self._items is None:
            self._items = size_of(self._batch)
        return self._items

    # -- destinations

    def publish(self, figures: Mapping[str, Any], logged: Mapping[str, Any]) -> None:
        """Send a pass's metrics to callbacks, and the selected ones to loggers."""
        self._store(figures)
        self._write(logged)

    def publish_train(self) -> None:
        """Send the epoch's metrics so far to callbacks."""
        results = self.results_of("fit")
        figures, logged = results.epoch_figures()
        self._store(figures)
        self._logged.update(logged)
        results.is_closed = True

    def _store(self, figures: Mapping[str, Any]) -> None:
        self._figures.update(figures)
        self._stamps.update(dict.fromkeys(figures, self.progress.total_batches))

    def figures_state(self) -> dict[str, Any]:
        """The last metrics, and when they were logged."""
        found = self.numbers()
        return {"values": found, "stamps": {k: self.stamp_of(k) for k in found}}

    def load_figures_state(self, state: Mapping[str, Any]) -> None:
        """Restore the last metrics."""
        self._restored = {k: float(v) for k, v in state["values"].items()}
        self._stamps = {k: int(v) for k, v in state["stamps"].items()}

    def stamp_of(self, name: str) -> int:
        """How many batches were trained before the last value of a metric; -1 without one."""
        entries = self.results_of("fit").entries.values()
        logged = [e.stamp + 1 for e in entries if e.on_step and name in (e.name, e.step_name)]
        return max([self._stamps.get(name, -1), *logged])

    def is_fresh(self, name: str) -> bool:
        """Whether a metric's last value is that of the weights as they are now."""
        return self.stamp_of(name) >= self.progress.updated

    def write_epoch(self) -> None:
        """Send the epoch's metrics to loggers."""
        self._write(self.results_of("fit").epoch_figures()[1])

    def write_step(self) -> None:
        """Send the last step's values to loggers."""
        self._write(self.results_of("fit").step_figures())

    def write_evaluation_step(self, results: Results, step: int) -> None:
        """Send the values that an evaluation step logged with `on_step` to loggers."""
        if self.loggers and not self.sanity_checking:
            number = self.loader_number
            end = "" if number is None else f"/dataloader_idx_{number}"
            self._write(results.step_figures(end=end), step)

    @property
    def _place(self) -> int:
        """The step of logged values: batches with an update before, and between runs so far."""
        done = self.progress.windows
        return max(done - 1, 0) if self.in_fit else done

    def _write(self, figures: Mapping[str, Any], step: int | None = None) -> None:
        if not figures:
            return
        self._logged.update(figures)
        numbers = {k: v for k, v in figures.items() if np.ndim(v) == 0}
        place = self._place if step is None else step
        if "step" in numbers:  # a module that logs it says where the others are
            place = int(numbers.pop("step"))
        for logger in self.loggers:
            logger.log_metrics({"epoch": self.progress.epoch, **numbers}, place)

    def log_rates(self, rates: Mapping[str, float], step: int) -> None:
        """Send values of a monitor to callbacks, and to loggers at a step."""
        self._store(rates)
        for logger in self.loggers:
            logger.log_metrics(rates, step)

    @property
    def figures(self) -> dict[str, Any]:
        """The last logged metrics by name, as they are counted: in float64."""
        steps: dict[str, Any] = {}
        names: dict[str, Any] = {}
        if (results := self._results.get("fit")) is not None:
            steps, names = results.step_figures("on_step"), results.plain_step_figures()
        return {**self._restored, **steps, **self._figures, **self._ended[0], **names}

    @property
    def _ended(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """The metrics of an evaluation at the hooks of its end: all, and those for loggers."""
        results = self.results
        if results is None or results is self._results.get("fit") or not results.is_closed:
            return {}, {}
        return results.epoch_figures()

    def numbers(self) -> dict[str, float]:
        """Those of `figures` that are one number."""
        return {k: float(np.asarray(v).item()) for k, v in self.figures.items() if np.size(v) == 1}

    @property
    def callback_metrics(self) -> dict[str, Any]:
        """The last logged metrics by name, as tensors of the default type."""
        return {k: _tensor(v) for k, v in self.figures.items()}

    @property
    def logged_metrics(self) -> dict[str, Any]:
        """The last metrics that loggers get, whether they have got them yet or not."""
        steps: dict[str, Any] = {}
        for results in (self._results.get("fit"), self.results):
            steps |= {} if results is None else results.step_figures()
        return {k: _tensor(v) for k, v in {**self._logged, **steps, **self._ended[1]}.items()}

    @property
    def progress_bar_metrics(self) -> dict[str, float]:
        """The progress bar's metrics: the last values of steps, and of the last passes."""
        found: dict[str, float] = {}
        ended = {**self._figures, **self._ended[0]}
        for results in self._results.values():
            for e in results.entries.values():
                if not e.prog_bar:
                    continue
                if e.on_step and e.is_told:
                    found[e.step_name] = e.step_figure()
                if e.on_epoch and e.epoch_name in ended:
                    found[e.epoch_name] = ended[e.epoch_name]
        return found


def _loggable(name: str, value: Any) -> float:
    """A value that is neither a number nor a tensor, as a number.

    Raises:
        ArgumentError: it is not one number.
    """
    array = np.asarray(value)
    if array.size != 1 or array.dtype.kind not in "biuf":
        shown = f"shape {array.shape}" if array.ndim else f"{value!r:.80}"
        raise ArgumentError.here(
            f"log: expected a number, a tensor of one element or a metric for {name!r}, got {shown}"
        )
    return float(array.item())


def _tensor(figure: Any) -> Tensor:
    return as_tensor(np.asarray(figure, np.float64)).to(get_default_dtype())
