"""Assignments to a variable, or to a tensor that refers to one."""

from __future__ import annotations

from typing import Any

from weft.tf1.framework.tensor import Tensor
from weft.tf1.variable.variable import variable_of


def assign(
    ref: Any, value: Any, validate_shape: bool | None = None, use_locking: Any = None,
    name: Any = None,
) -> Tensor:  # fmt: skip
    """Set `ref`; returns the new value."""
    del validate_shape, use_locking
    return variable_of(ref, "assign").assign(value, name=name)


def assign_add(ref: Any, value: Any, use_locking: Any = None, name: Any = None) -> Tensor:
    """Add to `ref`; returns the new value."""
    del use_locking
    return variable_of(ref, "assign_add").assign_add(value, name=name)


def assign_sub(ref: Any, value: Any, use_locking: Any = None, name: Any = None) -> Tensor:
    """Subtract from `ref`; returns the new value."""
    del use_locking
    return variable_of(ref, "assign_sub").assign_sub(value, name=name)


__all__ = ["assign", "assign_add", "assign_sub"]
