"""A graph's steps as a module for the trainer, which Keras models share."""

from __future__ import annotations

from typing import Any

from weft.tf1.keras.fit.feeding import Batch
from weft.tf1.keras.fit.own_steps import Given
from weft.train.module import Module
from weft.train.trainer import Trainer


class Runner(Module):
    """Runs steps in a session; their results are numbers."""

    def __init__(self, model: Any) -> None:
        super().__init__()
        self.automatic_optimization = False  # the update is part of the step's program
        self._model = model

    def configure_optimizers(self) -> Any:
        """None: the step updates by itself."""
        return None

    def on_train_epoch_start(self) -> None:
        """Reset metrics."""
        self._reset()

    def on_validation_epoch_start(self) -> None:
        """Reset metrics."""
        self._reset()

    def on_test_epoch_start(self) -> None:
        """Reset metrics."""
        self._reset()

    def training_step(self, batch: Batch | Given, batch_idx: int) -> Any:
        """The metrics of a batch, after the update."""
        steps = self._steps(batch)
        figures = steps.train(batch)
        self.trainer.progress.count(1)
        self._note("", figures, batch.rows, steps.losses)
        return figures

    def validation_step(self, batch: Batch | Given, batch_idx: int, dataloader_idx: int = 0) -> Any:
        """The metrics of a batch."""
        return self._evaluated("val_", batch)

    def test_step(self, batch: Batch | Given, batch_idx: int, dataloader_idx: int = 0) -> Any:
        """The metrics of a batch."""
        return self._evaluated("test_", batch)

    def predict_step(self, batch: Batch | Given, batch_idx: int, dataloader_idx: int = 0) -> Any:
        """The outputs."""
        if isinstance(batch, Given):
            return self._model.own_steps.predict(batch)
        return self._model.predict_arrays(batch.x)

    def _reset(self) -> None:
        self._model.reset_metrics()

    def _steps(self, batch: Batch | Given) -> Any:
        return self._model.own_steps if isinstance(batch, Given) else self._model.steps

    def _evaluated(self, stage: str, batch: Batch | Given) -> Any:
        steps = self._steps(batch)
        figures = steps.test(batch)
        self._note(stage, figures, batch.rows, steps.losses)
        return figures

    def _note(self, stage: str, figures: dict[str, Any], rows: int, means: int) -> None:
        for place, (name, figure) in enumerate(figures.items()):
            self.log(
                stage + name, figure, prog_bar=True, on_step=False, on_epoch=True,
                reduce_fx="mean" if place < means else "last", batch_size=rows,
            )  # fmt: skip


class KerasTrainer(Trainer):
    """A trainer without checkpoints: Ctrl-C ends the step and is raised."""

    def _end_interrupted(self) -> None:
        raise KeyboardInterrupt
