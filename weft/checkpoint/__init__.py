"""Files of arrays, and folders of checkpoints: written atomically, verified when read."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from weft.checkpoint.checkpointer import Checkpointer
    from weft.checkpoint.random_state import RandomState
    from weft.checkpoint.restoring import Restored
    from weft.checkpoint.slices import PerRank, Slice

__all__ = ["Checkpointer", "PerRank", "RandomState", "Restored", "Slice"]

# Loaded on first use: some modules here are below tensors in the layers, these are above.
_MODULES: Final = {
    "Checkpointer": "checkpointer", "PerRank": "slices", "RandomState": "random_state",
    "Restored": "restoring", "Slice": "slices",
}  # fmt: skip


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return getattr(importlib.import_module(f"weft.checkpoint.{_MODULES[name]}"), name)
    raise AttributeError(f"module 'weft.checkpoint' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
