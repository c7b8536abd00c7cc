"""Apple's graphics processors, which Weft does not use."""

from __future__ import annotations

__all__ = ["is_available", "is_built"]


def is_available() -> bool:
    """Whether there is a device: never."""
    return False


def is_built() -> bool:
    """Whether there is support for devices: there is none."""
    return False
