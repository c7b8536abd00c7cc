"""What a `vjp` says that is no rule of its own."""

from __future__ import annotations

from typing import Any

__all__ = ["BY_BODY", "BY_EXPANSION", "NO_GRADIENT"]


def NO_GRADIENT(*_: Any, **__: Any) -> tuple[None, ...]:
    """The explicit `vjp` of an operation that is not differentiable."""
    return ()


def BY_EXPANSION(*_: Any, **__: Any) -> tuple[None, ...]:
    """The `vjp` of an operation that is differentiated through its expansion."""
    return ()


def BY_BODY(*_: Any, **__: Any) -> tuple[None, ...]:
    """The `vjp` of an operation that is differentiated through its function attributes."""
    return ()
