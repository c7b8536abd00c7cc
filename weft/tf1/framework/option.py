"""Arguments of TensorFlow that have one supported value."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from weft.errors import ArgumentError, DTypeError
from weft.tf1.framework.graph import fail

ANY: Any = object()
"""Marks an argument of which any value is accepted, as it changes no result."""


def only(what: str, given: Mapping[str, Any], **supported: Any) -> None:
    """Refuse arguments that would be ignored.

    Args:
        given: the arguments.
        supported: those that TensorFlow has, with the value that is supported, or `ANY`.

    Raises:
        DTypeError: TensorFlow has no such argument.
        ArgumentError: the value is not supported.
    """
    for name, value in given.items():
        if name not in supported:
            raise fail(DTypeError, f"{what}: got an unexpected argument {name!r}")
        told = supported[name]
        if value is not None and told is not ANY and value is not told and value != told:
            text = f"expected {name}={told!r}, which is supported, or none, got {value!r}"
            raise fail(ArgumentError, f"{what}: {text}")
