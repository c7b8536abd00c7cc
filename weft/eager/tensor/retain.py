"""Hooks that keep the gradients of tensors that are no leaves."""

from __future__ import annotations

import weakref
from typing import Any

from weft.eager.record.pending.lazy import Lazy


class Retain:
    """A hook that keeps the gradient of a non-leaf in its `.grad`.

    It hooks the value that the tensor holds, and moves to the next one at an in-place change.
    """

    def __init__(self, tensor: Any) -> None:
        self.tensor: weakref.ref[Any] = weakref.ref(tensor)


def move_retain(lazy: Lazy, before: Lazy) -> None:
    """Move the `Retain` hooks of a value to the next one."""
    hooks = before.hooks
    if hooks is None or hooks is lazy.hooks or not lazy.tracked:
        return
    kept = {n: hook for n, hook in hooks.items() if isinstance(hook, Retain)}
    if kept:
        lazy.hooks = {**(lazy.hooks or {}), **kept}
        for n in kept:
            del hooks[n]
