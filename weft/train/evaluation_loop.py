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

NAMES: Final = {"validate": "validation", "test": "test", "predict": "predict"}


def received(trainer: Any, module: Any, batch: Any, number: int) -> Any:
    """A loader's batch as tensors, with the module's batch hooks."""
    batch = tensors(module.on_before_batch_transfer(batch, number))
    if trainer.precision.converts:
        batch = trainer.precision.convert(batch)
    return module.on_after_batch_transfer(batch, number)


class EvaluationLoop:
    """A pass over loaders in evaluation mode; each module's mode is restored afterwards.

    Args:
        trainer: its events are emitted.
        module: its steps are called.
        stage: `"validate"`, `"test"` or `"predict"`.
        loaders: each yields batches.
        limit: of batches per loader.
    """

    def __init__(
        self, trainer: Any, module: Any, stage: str, loaders: list[Any], limit: Any
    ) -> None:
        self._trainer, self._module, self._loaders = trainer, module, loaders
        self._name = NAMES[stage]
        self._results = trainer.results_of(stage)
        self._predicts = stage == "predict"
        self._step = getattr(module, f"{self._name}_step")
        if self._step is None:
            raise ArgumentError.here(
                f"Trainer.{stage}: expected {type(module).__name__} to define {self._name}_step, "
                f"got None"
            )
        self._steps = 0  # batches of all passes
        option = f"limit_{'val' if stage == 'validate' else stage}_batches"
        self.counts = [count_of(loader, limit, option) for loader in loaders]

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
                found = [self._pass(i, most) for i in range(len(self._loaders))]
                trainer.events.tell(f"on_{name}_epoch_end")
                figures = self._close()
                trainer.events.tell(f"on_{name}_end")
        finally:
            trainer.results = before
        if defines(module, f"on_{name}_model_train", Hooks):
            getattr(module, f"on_{name}_model_train")()
        return found if self._predicts else self._of_each_loader(figures)

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

    def _pass(self, number: int, most: float | None) -> list[Any]:
        """All batches of a loader."""
        count = self.counts[number] if most is None else min(self.counts[number], most)
        stop = None if count == float("inf") else int(count)
        events, name = self._trainer.events, self._name
        starts, ends = events.of(f"on_{name}_batch_start"), events.of(f"on_{name}_batch_end")
        several = (number,) if len(self._loaders) > 1 else ()
        self._trainer.loader_number = number if several else None
        outputs: list[Any] = []
        for i, batch in enumerate(itertools.islice(self._loaders[number], stop)):
            batch = received(self._trainer, self._module, batch, number)
            self._trainer.begin_batch(batch)
            for call in starts:
                call(batch, i, *several)
            with self._trainer.precision.forward():
                output = self._step(batch, i, *several)
            for call in ends:
                call(output, batch, i, *several)
            self._trainer.end_batch()
            self._trainer.write_evaluation_step(self._results, self._steps)
            self._steps += 1
            if self._predicts:
                outputs.append(output)
        self._trainer.loader_number = None
        return outputs

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
        if len(self._loaders) == 1:
            return [figures]
        ends = [f"/dataloader_idx_{i}" for i in range(len(self._loaders))]
        shared = {k: v for k, v in figures.items() if not k.endswith(tuple(ends))}
        return [{**shared, **{k: v for k, v in figures.items() if k.endswith(e)}} for e in ends]
