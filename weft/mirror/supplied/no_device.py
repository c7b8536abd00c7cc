"""`torch.xpu`, `torch.mps` and others: devices that are not there."""

from __future__ import annotations

from weft.mirror.supplied.same import no, nothing

__all__ = [
    "current_device", "device_count", "empty_cache", "is_available", "is_initialized",
    "manual_seed", "manual_seed_all", "synchronize",
]  # fmt: skip

is_available = is_initialized = no
manual_seed = manual_seed_all = empty_cache = synchronize = nothing


def device_count() -> int:
    """The number of devices: 0."""
    return 0


def current_device() -> str:
    """The device that is used: the CPU."""
    return "cpu"
