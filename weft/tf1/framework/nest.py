"""`tf.nest`: nested structures of tensors."""

from __future__ import annotations

from typing import Any

from weft.tf1.framework.structure import flatten, map_structure, pack

__all__ = [
    "assert_same_structure", "flatten", "is_nested", "is_sequence", "map_structure",
    "pack_sequence_as",
]  # fmt: skip


def is_nested(seq: Any) -> bool:
    """Whether it is a list, a tuple or a dict."""
    return isinstance(seq, list | tuple | dict)


is_sequence = is_nested


def pack_sequence_as(structure: Any, flat_sequence: Any) -> Any:
    """The leaves in the form of a structure."""
    return pack(structure, flat_sequence)


def assert_same_structure(nest1: Any, nest2: Any, check_types: bool = True) -> None:
    """Nothing, if both have the same form.

    Raises:
        ValueError: they have not.
    """
    del check_types
    if len(flatten(nest1)) != len(flatten(nest2)):
        raise ValueError(
            f"The two structures don't have the same nested structure: {nest1}, {nest2}"
        )
