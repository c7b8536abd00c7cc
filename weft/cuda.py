"""CUDA devices, of which there are none: what PyTorch programs ask before they choose a device.

>>> import weft as wf
>>> device = wf.device("cuda" if wf.cuda.is_available() else "cpu")
>>> wf.ones(2).to(device).tolist()
[1.0, 1.0]
"""

from __future__ import annotations

from typing import NoReturn

__all__ = [
    "device_count", "empty_cache", "is_available", "is_bf16_supported", "is_initialized",
    "manual_seed", "manual_seed_all",
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


def __getattr__(name: str) -> NoReturn:
    raise AttributeError(
        f"weft.cuda.{name}: there is no CUDA device; ask weft.cuda.is_available() first"
    )
