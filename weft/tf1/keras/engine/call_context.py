"""Which layers are being called, and whether the outermost call said that this is training."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from typing import Any

_local = threading.local()


def _stack() -> list[Any]:
    found: list[Any] | None = getattr(_local, "stack", None)
    if found is None:
        found = _local.stack = []
    return found


@contextlib.contextmanager
def inside(layer: Any, training: Any) -> Iterator[None]:
    """A block in which a layer is called."""
    del layer
    stack = _stack()
    stack.append(training if training is not None else (stack[-1] if stack else None))
    try:
        yield
    finally:
        stack.pop()


def is_inside() -> bool:
    """Whether a layer is being called."""
    return bool(_stack())


def training() -> Any:
    """What the calls around say; `None` where the learning phase decides."""
    stack = _stack()
    return stack[-1] if stack else None
