"""Validation, tests and predictions: a pass over loaders without gradients."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Iterator
from typing import Any, Final

from weft.eager.functions.api import inference_mode, no_grad
from weft.errors import ArgumentError
from weft.train.batches import count_of, tensors
from weft.train.events import defines
from weft.train.hooks import Hooks
from weft.train.signature import step_of
from weft.utils.data import SequentialSampler

NAMES: Final = {"validate": "validation", "test": "test", "predict": "predict"}


def received(trainer: Any, module: Any, batch: Any, number: int) -> Any:
    """A loader's batch as tensors, with the module's batch hooks."""
    hooks = trainer.transfers
    if hook := hooks.get("on_before_batch_transfer"):
        batch = hook(batch, number)
    if hook := hooks.get("transfer_batch_to_device"):
        batch = hook(batch, module.device, number)
    batch = tensors(batch)
    if trainer.precision.converts:
        batch = trainer.precision.convert(batch)
    hook = hooks.get("on_after_batch_transfer")
    return batch if hook is None else hook(batch, number)


class EvaluationLoop:
    """A pass over loaders in evaluation mode; each module's mode is restored afterwards.

    Args:
        trainer: its events are emitted.
        module: its steps are called.
        stage: `"validate"`, `"test"` or `"predict"`.
        loaders: each yields batches.
        limit: of batches per loader.

    Attributes:
        keeps: whether the results of steps are kept.
        predictions: the results of each loader's batches; of the loader's, if there is one.
        items: of each loader, the items of the data set in each batch, if they are known.
        counts: of batches, of each loader.
    """

    def __init__(
        self, trainer: Any, module: Any, stage: str, loaders: list[Any], limit: Any
    ) -> None:
        self._trainer, self._module, self.loaders = trainer, module, loaders
        self.stage, self._name = stage, NAMES[stage]
        self._results = trainer.results_of(stage)
        self._predicts = self.keeps = stage == "predict"
        if getattr(module, f"{self._name}_step") is None:
            raise ArgumentError.here(
                f"Trainer.{stage}: expected {type(module).__name__} to define {self._name}_step, "
                f"got None"
            )
        self._step = step_of(module, f"{self._name}_step", len(loaders) > 1)
        self._steps = 0  # batches of all passes
        option = f"limit_{'val' if stage == 'validate' else stage}_batches"
        self.outputs: list[list[Any]] = []
        self.items: list[list[list[int]]] = []
        self.counts = [count_of(loader, limit, option) for loader in loaders]

    @property
    def predictions(self) -> list[Any]:
        """The results of steps, by loader if there are several."""
        return self.outputs[0] if len(self.outputs) == 1 else self.outputs

    def run(self, most: float | None = None) -> list[Any]:
        """Run the pass.

        Args:
            most: batches per loader, if fewer than the limit.

        Returns:
            A dictionary of metrics for each loader; for predictions, a list for each.
        """
        trainer, module, name = self._trainer, self._module, self._name
        before, trainer.results = trainer.results, self._results
        guard = inference_mode() if trainer.inference_mode else no_grad()
        try:
            with self._evaluating(), guard:
                trainer.events.tell(f"on_{name}_start")
                self._results.reset()
                trainer.events.tell(f"on_{name}_epoch_start")
                self.outputs, self.items = [], []
                for i in range(len(self.loaders)):
                    self._pass(i, most)
                self._results.is_closed = True
                trainer.events.tell(f"on_{name}_epoch_end")
                figures = self._close()
                trainer.events.tell(f"on_{name}_end")
        finally:
            trainer.results = before
        if defines(module, f"on_{name}_model_train", Hooks):
            getattr(module, f"on_{name}_model_train")()
        return self.outputs if self._predicts else self._of_each_loader(figures)

    @contextlib.contextmanager
    def _evaluating(self) -> Iterator[None]:
        modes = [(m, m.training) for m in self._module.modules()]
        if defines(self._module, f"on_{self._name}_model_eval", Hooks):
            getattr(self._module, f"on_{self._name}_model_eval")()
        else:
            self._module.eval()
        try:
            yield
        finally:
            for m, mode in modes:
                m.training = mode

    def _pass(self, number: int, most: float | None) -> None:
        """All batches of a loader."""
        count = self.counts[number] if most is None else min(self.counts[number], most)
        stop = None if count == float("inf") else int(count)
        events, name = self._trainer.events, self._name
        starts, ends = events.of(f"on_{name}_batch_start"), events.of(f"on_{name}_batch_end")
        several = (number,) if len(self.loaders) > 1 else ()
        self._trainer.loader_number = number if several else None
        outputs: list[Any] = []
        items: list[list[int]] = []
        self.outputs.append(outputs)
        self.items.append(items)
        rows = _rows(self.loaders[number]) if self._predicts else iter(())
        for i, batch in enumerate(itertools.islice(self.loaders[number], stop)):
            batch = received(self._trainer, self._module, batch, number)
            self._trainer.begin_batch(batch)
            items += itertools.islice(rows, 1)
            for call in starts:
                call(batch, i, *several)
            with self._trainer.precision.forward():
                output = self._step(batch, i, *several)
            for call in ends:
                call(output, batch, i, *several)
            self._trainer.end_batch()
            self._trainer.write_evaluation_step(self._results, self._steps)
            self._steps += 1
            if self.keeps:
                outputs.append(output)
            if self._trainer.received_sigterm:
                break
        self._trainer.loader_number = None

    def _close(self) -> dict[str, Any]:
        """Send the pass's metrics to callbacks and loggers."""
        figures, logged = self._results.epoch_figures()
        self._results.reset()
        if not self._trainer.sanity_checking:
            self._trainer.publish(figures, logged)
            if self._trainer.stage == "fit":
                self._trainer.fit_loop.note_validation()
        return figures

    def _of_each_loader(self, figures: dict[str, Any]) -> list[dict[str, Any]]:
        if len(self.loaders) == 1:
            return [figures]
        ends = [f"/dataloader_idx_{i}" for i in range(len(self.loaders))]
        shared = {k: v for k, v in figures.items() if not k.endswith(tuple(ends))}
        return [{**shared, **{k: v for k, v in figures.items() if k.endswith(e)}} for e in ends]


def _rows(loader: Any) -> Iterator[list[int]]:
    """The items of a data set in each batch of a loader, if its order is known before."""
    in_order = isinstance(getattr(loader, "sampler", None), SequentialSampler)
    batches = getattr(loader, "batch_sampler", None) if in_order else None
    return iter(()) if batches is None else map(list, batches)
