"""`Callback`: the base of what listens to a run's events."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar


class Callback:
    """Base class, with an empty method for every event.

    Attributes:
        monitors: whether it acts on figures, so that the end of an epoch comes to it last.
    """

    monitors: ClassVar[bool] = False

    @property
    def state_key(self) -> str:
        """Under which its state is saved."""
        return type(self).__qualname__

    def state_dict(self) -> dict[str, Any]:
        """What is to be saved of it."""
        return {}

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Take over what was saved."""

    def setup(self, trainer: Any, pl_module: Any, stage: str) -> None:
        """A run begins: `"fit"`, `"validate"`, `"test"` or `"predict"`."""

    def teardown(self, trainer: Any, pl_module: Any, stage: str) -> None:
        """A run ends."""

    def on_exception(self, trainer: Any, pl_module: Any, exception: BaseException) -> None:
        """A run ends by an exception; `teardown` follows."""

    def on_save_checkpoint(self, trainer: Any, pl_module: Any, checkpoint: dict[str, Any]) -> None:
        """A state is going to be saved."""

    def on_load_checkpoint(
        self, trainer: Any, pl_module: Any, checkpoint: Mapping[str, Any]
    ) -> None:
        """A state was read."""

    # -- fit

    def on_fit_start(self, trainer: Any, pl_module: Any) -> None:
        """Everything is set up and restored."""

    def on_fit_end(self, trainer: Any, pl_module: Any) -> None:
        """Training is over."""

    def on_sanity_check_start(self, trainer: Any, pl_module: Any) -> None:
        """A few batches are validated before training."""

    def on_sanity_check_end(self, trainer: Any, pl_module: Any) -> None:
        """Training begins."""

    def on_train_start(self, trainer: Any, pl_module: Any) -> None:
        """Before the first epoch."""

    def on_train_end(self, trainer: Any, pl_module: Any) -> None:
        """Behind the last epoch."""

    def on_train_epoch_start(self, trainer: Any, pl_module: Any) -> None:
        """Before the first batch."""

    def on_train_epoch_end(self, trainer: Any, pl_module: Any) -> None:
        """Behind the last batch and its validation."""

    def on_train_batch_start(
        self, trainer: Any, pl_module: Any, batch: Any, batch_idx: int
    ) -> int | None:
        """Before a batch; -1 ends the epoch."""

    def on_train_batch_end(
        self, trainer: Any, pl_module: Any, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        """Behind a batch and its update."""

    def on_before_zero_grad(self, trainer: Any, pl_module: Any, optimizer: Any) -> None:
        """Before gradients begin anew."""

    def on_before_backward(self, trainer: Any, pl_module: Any, loss: Any) -> None:
        """Before the backward pass."""

    def on_after_backward(self, trainer: Any, pl_module: Any) -> None:
        """Behind the backward pass."""

    def on_before_optimizer_step(self, trainer: Any, pl_module: Any, optimizer: Any) -> None:
        """Before an update, and before gradients are clipped."""

    # -- evaluation

    def on_validation_start(self, trainer: Any, pl_module: Any) -> None:
        """Before validation."""

    def on_validation_end(self, trainer: Any, pl_module: Any) -> None:
        """Behind validation."""

    def on_validation_epoch_start(self, trainer: Any, pl_module: Any) -> None:
        """Before the first batch."""

    def on_validation_epoch_end(self, trainer: Any, pl_module: Any) -> None:
        """Behind the last batch."""

    def on_validation_batch_start(
        self, trainer: Any, pl_module: Any, batch: Any, batch_idx: int, dataloader_idx: int = 0
    ) -> None:
        """Before a batch."""

    def on_validation_batch_end(
        self, trainer: Any, pl_module: Any, outputs: Any, batch: Any, batch_idx: int,
        dataloader_idx: int = 0,
    ) -> None:  # fmt: skip
        """Behind a batch."""

    def on_test_start(self, trainer: Any, pl_module: Any) -> None:
        """Before a test."""

    def on_test_end(self, trainer: Any, pl_module: Any) -> None:
        """Behind a test."""

    def on_test_epoch_start(self, trainer: Any, pl_module: Any) -> None:
        """Before the first batch."""

    def on_test_epoch_end(self, trainer: Any, pl_module: Any) -> None:
        """Behind the last batch."""

    def on_test_batch_start(
        self, trainer: Any, pl_module: Any, batch: Any, batch_idx: int, dataloader_idx: int = 0
    ) -> None:
        """Before a batch."""

    def on_test_batch_end(
        self, trainer: Any, pl_module: Any, outputs: Any, batch: Any, batch_idx: int,
        dataloader_idx: int = 0,
    ) -> None:  # fmt: skip
        """Behind a batch."""

    def on_predict_start(self, trainer: Any, pl_module: Any) -> None:
        """Before predictions."""

    def on_predict_end(self, trainer: Any, pl_module: Any) -> None:
        """Behind predictions."""

    def on_predict_epoch_start(self, trainer: Any, pl_module: Any) -> None:
        """Before the first batch."""

    def on_predict_epoch_end(self, trainer: Any, pl_module: Any) -> None:
        """Behind the last batch."""

    def on_predict_batch_start(
        self, trainer: Any, pl_module: Any, batch: Any, batch_idx: int, dataloader_idx: int = 0
    ) -> None:
        """Before a batch."""

    def on_predict_batch_end(
        self, trainer: Any, pl_module: Any, outputs: Any, batch: Any, batch_idx: int,
        dataloader_idx: int = 0,
    ) -> None:  # fmt: skip
        """Behind a batch."""
