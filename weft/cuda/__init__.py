"""CUDA devices, of which there are none: what PyTorch programs ask before they choose a device.

>>> import weft as wf
>>> device = wf.device("cuda" if wf.cuda.is_available() else "cpu")
>>> wf.ones(2).to(device).tolist()
[1.0, 1.0]
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NoReturn

from weft.cuda import amp
from weft.cuda.typed_tensor import *
from weft.errors import ConfigError

__all__ = [
    "BFloat16Tensor", "BoolTensor", "ByteTensor", "CharTensor", "DoubleTensor", "FloatTensor",
    "HalfTensor", "IntTensor", "LongTensor", "ShortTensor", "amp", "device_count", "empty_cache",
    "get_rng_state_all", "is_available", "is_bf16_supported", "is_initialized", "manual_seed",
    "manual_seed_all", "max_memory_allocated", "max_memory_reserved", "memory_allocated",
    "memory_reserved", "seed", "seed_all", "set_rng_state_all",
]  # fmt: skip


def is_available() -> bool:
    """Whether there is a device: never."""
    return False


def is_initialized() -> bool:
    """Whether a device is in use: never."""
    return False


def is_bf16_supported(including_emulation: bool = True) -> bool:
    """Whether a device computes in bfloat16: never."""
    del including_emulation
    return False


def device_count() -> int:
    """The number of devices: 0."""
    return 0


def manual_seed(seed: int) -> None:
    """Seed the device's random numbers: nothing to do, as in PyTorch without a device."""
    del seed


def manual_seed_all(seed: int) -> None:
    """Seed all devices' random numbers: nothing to do, as in PyTorch without a device."""
    del seed


def empty_cache() -> None:
    """Free a device's memory: nothing to do, as in PyTorch without a device."""


def seed() -> None:
    """Seed the device's random numbers anew: nothing to do, as in PyTorch without a device."""


def seed_all() -> None:
    """Seed all devices' random numbers anew: nothing to do, as in PyTorch without a device."""


def get_rng_state_all() -> list[Any]:
    """The random state of each device: there is none."""
    return []


def set_rng_state_all(new_states: Sequence[Any]) -> None:
    """Restore the random state of each device: there is none.

    Raises:
        ConfigError: a state is given.
    """
    if len(new_states):
        raise ConfigError.here(
            f"set_rng_state_all: expected no states, as there is no CUDA device, got "
            f"{len(new_states)}"
        )


def memory_allocated(device: Any = None) -> int:
    """Bytes of tensors on a device: 0."""
    del device
    return 0


max_memory_allocated = memory_reserved = max_memory_reserved = memory_allocated


def __getattr__(name: str) -> NoReturn:
    raise AttributeError(
        f"weft.cuda.{name}: there is no CUDA device; ask weft.cuda.is_available() first"
    )
