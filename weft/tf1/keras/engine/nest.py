"""Nested inputs and outputs of layers: lists, tuples and dictionaries of tensors."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

import weft.tf1 as tf


def flatten(nested: Any) -> list[Any]:
    """The leaves, those of dictionaries by sorted keys; `None` has none."""
    if nested is None:
        return []
    if isinstance(nested, Mapping):
        return [x for key in sorted(nested) for x in flatten(nested[key])]
    if isinstance(nested, list | tuple):
        return [x for inner in nested for x in flatten(inner)]
    return [nested]


def mapped(function: Callable[[Any], Any], nested: Any) -> Any:
    """The same structure with `function` applied to each leaf."""
    if nested is None:
        return None
    if isinstance(nested, Mapping):
        return {key: mapped(function, nested[key]) for key in nested}
    if isinstance(nested, tuple) and hasattr(nested, "_fields"):
        kind: Any = type(nested)
        return kind(*[mapped(function, x) for x in nested])
    if isinstance(nested, list | tuple):
        each = [mapped(function, x) for x in nested]
        return each if isinstance(nested, list) else tuple(each)
    return function(nested)


def tensors(nested: Any) -> Any:
    """Arrays as constants."""
    return mapped(lambda x: tf.constant(x) if isinstance(x, np.ndarray | np.generic) else x, nested)


def tensors_in(nested: Any) -> list[Any]:
    """The tensors among the leaves."""
    return [x for x in flatten(nested) if tf.is_tensor(x)]


def one_or_list(items: list[Any]) -> Any:
    """A single item itself, several as a list."""
    return items[0] if len(items) == 1 else items


def shape_of(x: Any) -> tuple[int | None, ...]:
    """The static shape of a tensor."""
    return tuple(x.shape.as_list())


def shapes_of(nested: Any) -> Any:
    """Shapes in the same structure."""
    return mapped(lambda x: tf.TensorShape(x.shape), nested)
