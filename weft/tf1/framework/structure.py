"""Nested structures of tensors, as TensorFlow 1 flattens them: dictionaries by sorted keys."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, cast

from weft.host.nested import Nesting

STRUCTURE: Final = Nesting(sorted_keys=True, types=True)
flatten = STRUCTURE.leaves  # {"b": [1, 2], "a": (3,)} -> [3, 1, 2]
pack = STRUCTURE.packed
map_structure = STRUCTURE.mapped


def outline(x: Any) -> str:
    """A structure as text, with a dot for each leaf."""
    if isinstance(x, Mapping):
        return "{" + ", ".join([f"{key!r}: {outline(x[key])}" for key in sorted(x)]) + "}"
    if isinstance(x, list | tuple):
        items = ", ".join([outline(item) for item in cast("Sequence[Any]", x)])
        return f"[{items}]" if isinstance(x, list) else f"({items})"
    return "."
