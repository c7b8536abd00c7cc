"""Strategies: the differences between one process and several."""

from __future__ import annotations

from typing import Any, Final, Literal

import numpy as np

from weft.documentation import Reads
from weft.eager.functions.api import device
from weft.errors import ArgumentError

Array = np.ndarray[Any, Any]
Reduction = Literal["sum", "mean", "min", "max"]


class Strategy:
    """A run in a single process; the interface of other strategies.

    A strategy for several processes defines the same methods: its `begin` may wrap the module, and
        its reductions combine the values of all ranks.
    """

    rank: int = 0
    world_size: int = 1
    local_rank: int = 0
    node_rank: int = 0

    @property
    def root_device(self) -> Any:
        """Where steps are made."""
        return device("cpu")

    global_rank = Reads[int]("rank", "The rank of this process.")

    @property
    def is_global_zero(self) -> bool:
        """Whether this process writes files and prints."""
        return self.rank == 0

    def begin(self, module: Any) -> Any:
        """The module that steps are made with."""
        return module

    def end(self) -> None:
        """After a run, also after a failed one."""

    def reduce(self, values: Array, how: Reduction = "sum") -> Array:
        """One array reduced over all ranks."""
        return values

    def gather(self, value: Any) -> list[Any]:
        """Each rank's value, in the order of ranks."""
        return [value]

    def broadcast(self, value: Any, source: int = 0) -> Any:
        """The value of rank `source`."""
        return value

    def barrier(self, name: str = "") -> None:
        """Wait for all ranks."""


class CPUAccelerator:
    """The processor, which every strategy uses."""

    name = "cpu"

    @staticmethod
    def is_available() -> bool:
        """Whether there is one: always."""
        return True


class CUDAAccelerator(CPUAccelerator):
    """A GPU: there is none."""

    name = "cuda"

    @staticmethod
    def is_available() -> bool:
        """Whether there is one: never."""
        return False


class DDPStrategy(Strategy):
    """Several processes with a copy of the module each; of one process, a run as any other.

    Args:
        options: Lightning's, which are about how processes exchange gradients.
    """

    def __init__(self, **options: Any) -> None:
        self.options = options


class SingleDeviceStrategy(DDPStrategy):
    """One process on one device."""


class FSDPStrategy(DDPStrategy):
    """Several processes with a part of the module each; of one process, a run as any other."""


class DeepSpeedStrategy(DDPStrategy):
    """Several processes with a part of the module each; of one process, a run as any other."""


NAMES: Final = ("auto", "single", "single_device", "ddp", "ddp_spawn", "ddp_fork", "ddp_notebook",
                "ddp_find_unused_parameters_true", "ddp_find_unused_parameters_false", "fsdp",
                "fsdp_cpu_offload", "dp", "deepspeed")  # fmt: skip
"""Lightning's names of strategies; in one process, they are all the same."""


def strategy_of(given: Any, devices: Any, accelerator: Any, num_nodes: int) -> Strategy:
    """The strategy that a trainer's arguments name.

    Raises:
        ArgumentError: no strategy supports the accelerator or the number of processes.
    """
    if accelerator not in ("auto", "cpu", None) and not isinstance(accelerator, CPUAccelerator):
        raise ArgumentError.here(
            f"Trainer: expected accelerator 'cpu' or 'auto', got {accelerator!r}"
        )
    own = type(given) not in (DDPStrategy, SingleDeviceStrategy, FSDPStrategy, DeepSpeedStrategy)
    if isinstance(given, Strategy) and own:
        return given
    if not isinstance(given, Strategy) and not str(given).startswith(NAMES):
        raise ArgumentError.here(
            f"Trainer: expected strategy of {NAMES} or a Strategy, got {given!r}"
        )
    if devices not in ("auto", None, 1, "1", [0], "0,") or num_nodes != 1:
        raise ArgumentError.here(
            f"Trainer: expected devices 1 and num_nodes 1, got {devices!r} and {num_nodes!r}; one "
            f"process uses all cores, and several need their own Strategy"
        )
    return given if isinstance(given, Strategy) else Strategy()
