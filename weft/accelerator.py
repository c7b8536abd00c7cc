"""Accelerators, of which there are none: what PyTorch programs ask before they choose a device.

>>> import weft as wf
>>> device = wf.accelerator.current_accelerator() if wf.accelerator.is_available() else "cpu"
>>> wf.ones(2).to(device).tolist()
[1.0, 1.0]
"""

from __future__ import annotations

from typing import NoReturn

__all__ = ["current_accelerator", "device_count", "is_available"]


def is_available() -> bool:
    """Whether there is an accelerator: never."""
    return False


def device_count() -> int:
    """The number of accelerators: 0."""
    return 0


def current_accelerator(check_available: bool = False) -> None:
    """The device of the accelerator: `None`.

    Args:
        check_available: whether to ask for one that is there, and not only supported.
    """
    del check_available


def __getattr__(name: str) -> NoReturn:
    raise AttributeError(
        f"weft.accelerator.{name}: there is none; ask weft.accelerator.is_available() first"
    )
