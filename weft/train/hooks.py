"""The hooks of a module, all empty: subclasses override those that they need."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from weft.train.datamodule import Data


class Hooks(Data):
    """Methods that a trainer calls, in the order of `docs/TRAINING.md`."""

    def configure_model(self) -> None:
        """Create layers that must be created late."""

    def configure_optimizers(self) -> Any:
        """The optimizers, with their learning rate schedules."""
        return None

    def configure_callbacks(self) -> Any:
        """Additional callbacks; they replace the trainer's of the same class."""
        return []

    # -- fit

    def on_fit_start(self) -> None:
        """After everything is set up and restored."""

    def on_fit_end(self) -> None:
        """After training and `on_train_end`."""

    def on_train_start(self) -> None:
        """Before the first epoch, after the sanity check."""

    def on_train_end(self) -> None:
        """After the last epoch."""

    def on_train_epoch_start(self) -> None:
        """Before an epoch."""

    def on_train_epoch_end(self) -> None:
        """After an epoch and its validation."""

    def on_train_batch_start(self, batch: Any, batch_idx: int) -> int | None:
        """Before a batch; -1 ends the epoch."""

    def on_train_batch_end(self, outputs: Any, batch: Any, batch_idx: int) -> None:
        """After a batch and its update."""

    def on_before_zero_grad(self, optimizer: Any) -> None:
        """Before gradients are zeroed."""

    def on_before_backward(self, loss: Any) -> None:
        """Before the backward pass."""

    def on_after_backward(self) -> None:
        """After the backward pass."""

    def on_before_optimizer_step(self, optimizer: Any) -> None:
        """Before an update, and before gradient clipping."""

    # -- evaluation

    def on_validation_model_eval(self) -> None:
        """Put the module in evaluation mode."""

    def on_validation_model_zero_grad(self) -> None:
        """Before validation within a run; gradients are dropped after each update anyway."""

    def on_validation_model_train(self) -> None:
        """After validation; restores the modules' modes."""

    def on_test_model_eval(self) -> None:
        """Put the module in evaluation mode."""

    def on_test_model_train(self) -> None:
        """After a test; restores the modules' modes."""

    def on_predict_model_eval(self) -> None:
        """Put the module in evaluation mode."""

    def on_predict_model_train(self) -> None:
        """After predictions; restores the modules' modes."""

    def on_validation_start(self) -> None:
        """Before validation."""

    def on_validation_end(self) -> None:
        """After validation."""

    def on_validation_epoch_start(self) -> None:
        """Before the first batch."""

    def on_validation_epoch_end(self) -> None:
        """After the last batch."""

    def on_validation_batch_start(
        self, batch: Any, batch_idx: int, dataloader_idx: int = 0
    ) -> None:
        """Before a batch."""

    def on_validation_batch_end(
        self, outputs: Any, batch: Any, batch_idx: int, dataloader_idx: int = 0
    ) -> None:
        """After a batch."""

    def on_test_start(self) -> None:
        """Before a test."""

    def on_test_end(self) -> None:
        """After a test."""

    def on_test_epoch_start(self) -> None:
        """Before the first batch."""

    def on_test_epoch_end(self) -> None:
        """After the last batch."""

    def on_test_batch_start(self, batch: Any, batch_idx: int, dataloader_idx: int = 0) -> None:
        """Before a batch."""

    def on_test_batch_end(
        self, outputs: Any, batch: Any, batch_idx: int, dataloader_idx: int = 0
    ) -> None:
        """After a batch."""

    def on_predict_start(self) -> None:
        """Before predictions."""

    def on_predict_end(self) -> None:
        """After predictions."""

    def on_predict_epoch_start(self) -> None:
        """Before the first batch."""

    def on_predict_epoch_end(self) -> None:
        """After the last batch."""

    def on_predict_batch_start(self, batch: Any, batch_idx: int, dataloader_idx: int = 0) -> None:
        """Before a batch."""

    def on_predict_batch_end(
        self, outputs: Any, batch: Any, batch_idx: int, dataloader_idx: int = 0
    ) -> None:
        """After a batch."""

    # -- state

    def on_save_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        """Add entries to a checkpoint before it is saved."""

    def on_load_checkpoint(self, checkpoint: Mapping[str, Any]) -> None:
        """Read the entries that `on_save_checkpoint` added."""
