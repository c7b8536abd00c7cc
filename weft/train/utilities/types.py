"""Types in annotations of modules and data modules."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol, TypedDict, runtime_checkable

from weft.eager.functions.api import Tensor

__all__ = [
    "EVAL_DATALOADERS",
    "STEP_OUTPUT",
    "TRAIN_DATALOADERS",
    "LRSchedulerConfig",
    "LRSchedulerTypeUnion",
    "OptimizerConfig",
    "OptimizerLRScheduler",
    "OptimizerLRSchedulerConfig",
]  # fmt: skip

STEP_OUTPUT = Tensor | Mapping[str, Any] | None
TRAIN_DATALOADERS = Any
EVAL_DATALOADERS = Any
OptimizerLRScheduler = Any
LRSchedulerTypeUnion = Any
LRSchedulerPLType = Any


class LRSchedulerConfig(TypedDict, total=False):
    """A schedule in the result of `configure_optimizers`."""

    scheduler: Any
    name: str | None
    interval: str
    frequency: int
    reduce_on_plateau: bool
    monitor: str | None
    strict: bool


class OptimizerConfig(TypedDict):
    """An optimizer in the result of `configure_optimizers`."""

    optimizer: Any


class OptimizerLRSchedulerConfig(TypedDict, total=False):
    """An optimizer with its schedule in the result of `configure_optimizers`."""

    optimizer: Any
    lr_scheduler: Any
    monitor: str | None


@runtime_checkable
class Stateful(Protocol):
    """What has a state to be saved."""

    def state_dict(self) -> dict[str, Any]:
        """The state to be saved."""
        ...

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Restore a saved state."""
        ...
