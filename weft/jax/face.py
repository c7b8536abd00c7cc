"""Modules of JAX whose functions are those of another module of Weft, on JAX's arrays."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

from weft.jax.array import jaxed


def face_of(
    module: ModuleType, title: str, outside: Callable[[Any], Any] = lambda found: found
) -> Callable[[str], Any]:
    """What looks a name up in a module.

    Args:
        title: JAX's name for it, for the error.
        outside: what is made of each function.
    """

    def looked_up(name: str) -> Any:
        found = None if name.startswith("_") else getattr(module, name, None)
        if found is None:
            raise AttributeError(f"module {title!r} has no attribute {name!r}")
        return outside(jaxed(found))

    return looked_up
