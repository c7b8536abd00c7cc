"""The hooks of a module, all empty: what a subclass may define to act at a run's events."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


class Hooks:
    """Methods that a trainer calls; in the order in which `docs/TRAINING.md` lists them."""

    def prepare_data(self) -> None:
        """Download or write what the data is made of; before `setup`, in one process."""

    def setup(self, stage: str) -> None:
        """Begin a run: `"fit"`, `"validate"`, `"test"` or `"predict"`."""

    def teardown(self, stage: str) -> None:
        """End a run."""

    def configure_model(self) -> None:
        """Make layers that are made late."""

    def configure_optimizers(self) -> Any:
        """The optimizers, with their learning-rate schedules."""
        return None

    def configure_callbacks(self) -> Any:
        """Callbacks beside the trainer's; of equal classes, these are taken."""
        return []

    # -- data

    def train_dataloader(self) -> Any:
        """What `fit` trains on, if it is given nothing."""
        return None

    def val_dataloader(self) -> Any:
        """What is validated on: one loader, or a list."""
        return None

    def test_dataloader(self) -> Any:
        """What `test` runs on: one loader, or a list."""
        return None

    def predict_dataloader(self) -> Any:
        """What `predict` runs on: one loader, or a list."""
        return None

    def on_before_batch_transfer(self, batch: Any, dataloader_idx: int) -> Any:
        """The batch as it comes out of the loader; returns what to go on with."""
        return batch

    def on_after_batch_transfer(self, batch: Any, dataloader_idx: int) -> Any:
        """The batch, with tensors in place of NumPy's arrays; returns what to go on with."""
        return batch

    # -- fit

    def on_fit_start(self) -> None:
        """Everything is set up and restored."""

    def on_fit_end(self) -> None:
        """Training is over; behind `on_train_end`."""

    def on_train_start(self) -> None:
        """Before the first epoch, behind the sanity check."""

    def on_train_end(self) -> None:
        """Behind the last epoch."""

    def on_train_epoch_start(self) -> None:
        """Before the first batch."""

    def on_train_epoch_end(self) -> None:
        """Behind the last batch and its validation."""

    def on_train_batch_start(self, batch: Any, batch_idx: int) -> int | None:
        """Before a batch; -1 ends the epoch."""

    def on_train_batch_end(self, outputs: Any, batch: Any, batch_idx: int) -> None:
        """Behind a batch and its update."""

    def on_before_zero_grad(self, optimizer: Any) -> None:
        """Before gradients begin anew."""

    def on_before_backward(self, loss: Any) -> None:
        """Before the backward pass."""

    def on_after_backward(self) -> None:
        """Behind the backward pass."""

    def on_before_optimizer_step(self, optimizer: Any) -> None:
        """Before an update, and before gradients are clipped."""

    # -- evaluation

    def on_validation_model_eval(self) -> None:
        """Put the module in evaluation mode."""

    def on_validation_model_train(self) -> None:
        """Behind validation; modes are put back as they were."""

    def on_test_model_eval(self) -> None:
        """Put the module in evaluation mode."""

    def on_test_model_train(self) -> None:
        """Behind a test; modes are put back as they were."""

    def on_predict_model_eval(self) -> None:
        """Put the module in evaluation mode."""

    def on_predict_model_train(self) -> None:
        """Behind predictions; modes are put back as they were."""

    def on_validation_start(self) -> None:
        """Before validation."""

    def on_validation_end(self) -> None:
        """Behind validation."""

    def on_validation_epoch_start(self) -> None:
        """Before the first batch."""

    def on_validation_epoch_end(self) -> None:
        """Behind the last batch."""

    def on_validation_batch_start(
        self, batch: Any, batch_idx: int, dataloader_idx: int = 0
    ) -> None:
        """Before a batch."""

    def on_validation_batch_end(
        self, outputs: Any, batch: Any, batch_idx: int, dataloader_idx: int = 0
    ) -> None:
        """Behind a batch."""

    def on_test_start(self) -> None:
        """Before a test."""

    def on_test_end(self) -> None:
        """Behind a test."""

    def on_test_epoch_start(self) -> None:
        """Before the first batch."""

    def on_test_epoch_end(self) -> None:
        """Behind the last batch."""

    def on_test_batch_start(self, batch: Any, batch_idx: int, dataloader_idx: int = 0) -> None:
        """Before a batch."""

    def on_test_batch_end(
        self, outputs: Any, batch: Any, batch_idx: int, dataloader_idx: int = 0
    ) -> None:
        """Behind a batch."""

    def on_predict_start(self) -> None:
        """Before predictions."""

    def on_predict_end(self) -> None:
        """Behind predictions."""

    def on_predict_epoch_start(self) -> None:
        """Before the first batch."""

    def on_predict_epoch_end(self) -> None:
        """Behind the last batch."""

    def on_predict_batch_start(self, batch: Any, batch_idx: int, dataloader_idx: int = 0) -> None:
        """Before a batch."""

    def on_predict_batch_end(
        self, outputs: Any, batch: Any, batch_idx: int, dataloader_idx: int = 0
    ) -> None:
        """Behind a batch."""

    # -- state

    def on_save_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        """Add to a state that is to be saved."""

    def on_load_checkpoint(self, checkpoint: Mapping[str, Any]) -> None:
        """Take from a state what `on_save_checkpoint` added."""
