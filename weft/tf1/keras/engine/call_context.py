"""The stack of running layer calls, and the outermost call's `training` argument."""

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
    """Inside, a layer is being called."""
    del layer
    stack = _stack()
    stack.append(training if training is not None else (stack[-1] if stack else None))
    try:
        yield
    finally:
        stack.pop()


@contextlib.contextmanager
def outside() -> Iterator[None]:
    """Inside, no layer is being called: layers that are, are part of a network of their own."""
    kept, _local.stack = _stack(), []
    try:
        yield
    finally:
        _local.stack = kept


def is_inside() -> bool:
    """Whether a layer is being called."""
    return bool(_stack())


def training() -> Any:
    """The outer calls' `training` argument; `None` if the learning phase decides."""
    stack = _stack()
    return stack[-1] if stack else None
