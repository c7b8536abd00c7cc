"""cuDNN, which is not there. Its flags can be set, without effect."""

from __future__ import annotations

__all__ = ["allow_tf32", "benchmark", "deterministic", "enabled", "is_available", "version"]

allow_tf32 = True
benchmark = False
deterministic = False
enabled = True


def is_available() -> bool:
    """Whether the library is there: never."""
    return False


def version() -> None:
    """The library's version: `None`."""
