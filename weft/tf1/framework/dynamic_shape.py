"""Helpers for operations with dynamic shapes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from weft import ops
from weft.ir.node import Value
from weft.tf1.framework.tensor_shape import Dimension


def dimension(x: Value, axis: int) -> Any:
    """One dimension of `x`: a number if known, else the value that computes it."""
    known = None if x.shape is None else x.shape[axis]
    return ops.shape_of(x)[axis] if known is None else known


def plain(value: Any) -> Any:
    """`value`, or the size of a `Dimension`."""
    return value.value if isinstance(value, Dimension) else value


def first_inputs(keep: int, build: str | Callable[..., Any]) -> Callable[..., Any]:
    """A build function that drops all but the first `keep` inputs: the others supply attributes."""
    made: Callable[..., Any] = getattr(ops, build) if isinstance(build, str) else build

    def function(*values: Value, **options: Any) -> Any:
        return made(*values[:keep], **options)

    return function
