"""`Callback`: the base class of listeners to a run's events."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar


class Callback:
    """Base class, with an empty method for every event.

    Attributes:
        monitors: whether it acts on metrics, so that it is called last at the end of an epoch.
        keeps_predictions: whether it needs all predictions at the end of `predict`.
    """

    monitors: ClassVar[bool] = False
    keeps_predictions: bool = False

    @property
    def state_key(self) -> str:
        """The key of its saved state."""
        return type(self).__qualname__

    def state_dict(self) -> dict[str, Any]:
        """The state to be saved."""
        return {}

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Restore a saved state."""

    def setup(self, trainer: Any, pl_module: Any, stage: str) -> None:
        """At the start of `"fit"`, `"validate"`, `"test"` or `"predict"`."""

    def teardown(self, trainer: Any, pl_module: Any, stage: str) -> None:
        """At the end of a run."""

    def on_exception(self, trainer: Any, pl_module: Any, exception: BaseException) -> None:
        """When a run raises; `teardown` follows."""

    def on_save_checkpoint(self, trainer: Any, pl_module: Any, checkpoint: dict[str, Any]) -> None:
        """Before a checkpoint is saved."""

    def on_load_checkpoint(
        self, trainer: Any, pl_module: Any, checkpoint: Mapping[str, Any]
    ) -> None:
        """After a checkpoint is loaded."""

    # -- fit

    def on_fit_start(self, trainer: Any, pl_module: Any) -> None:
        """After everything is set up and restored."""

    def on_fit_end(self, trainer: Any, pl_module: Any) -> None:
        """After training."""

    def on_sanity_check_start(self, trainer: Any, pl_module: Any) -> None:
        """Before the sanity check: a few batches of validation before training."""

    def on_sanity_check_end(self, trainer: Any, pl_module: Any) -> None:
        """After the sanity check."""

    def on_train_start(self, trainer: Any, pl_module: Any) -> None:
        """Before the first epoch."""

    def on_train_end(self, trainer: Any, pl_module: Any) -> None:
        """After the last epoch."""

    def on_train_epoch_start(self, trainer: Any, pl_module: Any) -> None:
        """Before an epoch."""

    def on_train_epoch_end(self, trainer: Any, pl_module: Any) -> None:
        """After an epoch and its validation."""

    def on_train_batch_start(
        self, trainer: Any, pl_module: Any, batch: Any, batch_idx: int
    ) -> int | None:
        """Before a batch; -1 ends the epoch."""

    def on_train_batch_end(
        self, trainer: Any, pl_module: Any, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        """After a batch and its update."""

    def on_before_zero_grad(self, trainer: Any, pl_module: Any, optimizer: Any) -> None:
        """Before gradients are zeroed."""

    def on_before_backward(self, trainer: Any, pl_module: Any, loss: Any) -> None:
        """Before the backward pass."""

    def on_after_backward(self, trainer: Any, pl_module: Any) -> None:
        """After the backward pass."""

    def on_before_optimizer_step(self, trainer: Any, pl_module: Any, optimizer: Any) -> None:
        """Before an update, and before gradient clipping."""

    # -- evaluation

    def on_validation_start(self, trainer: Any, pl_module: Any) -> None:
        """Before validation."""

    def on_validation_end(self, trainer: Any, pl_module: Any) -> None:
        """After validation."""

    def on_validation_epoch_start(self, trainer: Any, pl_module: Any) -> None:
        """Before the first batch."""

    def on_validation_epoch_end(self, trainer: Any, pl_module: Any) -> None:
        """After the last batch."""

    def on_validation_batch_start(
        self, trainer: Any, pl_module: Any, batch: Any, batch_idx: int, dataloader_idx: int = 0
    ) -> None:
        """Before a batch."""

    def on_validation_batch_end(
        self, trainer: Any, pl_module: Any, outputs: Any, batch: Any, batch_idx: int,
        dataloader_idx: int = 0,
    ) -> None:  # fmt: skip
        """After a batch."""

    def on_test_start(self, trainer: Any, pl_module: Any) -> None:
        """Before a test."""

    def on_test_end(self, trainer: Any, pl_module: Any) -> None:
        """After a test."""

    def on_test_epoch_start(self, trainer: Any, pl_module: Any) -> None:
        """Before the first batch."""

    def on_test_epoch_end(self, trainer: Any, pl_module: Any) -> None:
        """After the last batch."""

    def on_test_batch_start(
        self, trainer: Any, pl_module: Any, batch: Any, batch_idx: int, dataloader_idx: int = 0
    ) -> None:
        """Before a batch."""

    def on_test_batch_end(
        self, trainer: Any, pl_module: Any, outputs: Any, batch: Any, batch_idx: int,
        dataloader_idx: int = 0,
    ) -> None:  # fmt: skip
        """After a batch."""

    def on_predict_start(self, trainer: Any, pl_module: Any) -> None:
        """Before predictions."""

    def on_predict_end(self, trainer: Any, pl_module: Any) -> None:
        """After predictions."""

    def on_predict_epoch_start(self, trainer: Any, pl_module: Any) -> None:
        """Before the first batch."""

    def on_predict_epoch_end(self, trainer: Any, pl_module: Any) -> None:
        """After the last batch."""

    def on_predict_batch_start(
        self, trainer: Any, pl_module: Any, batch: Any, batch_idx: int, dataloader_idx: int = 0
    ) -> None:
        """Before a batch."""

    def on_predict_batch_end(
        self, trainer: Any, pl_module: Any, outputs: Any, batch: Any, batch_idx: int,
        dataloader_idx: int = 0,
    ) -> None:  # fmt: skip
        """After a batch."""
