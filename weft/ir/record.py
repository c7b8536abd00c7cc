"""Records: attributes of several named fields, which graphs as text can hold."""

from __future__ import annotations

from typing import Any, Final, TypeVar

RECORDS: Final[dict[str, type[Any]]] = {}
"""Frozen dataclasses by name; the printer writes their fields, the parser makes them again."""

R = TypeVar("R")


def record(kind: type[R]) -> type[R]:
    """Declare that attributes of this frozen dataclass are written field by field."""
    RECORDS[kind.__name__] = kind
    return kind
