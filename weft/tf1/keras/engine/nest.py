"""Nested inputs and outputs of layers: lists, tuples and dictionaries of tensors."""

from __future__ import annotations

from typing import Any

import numpy as np

import weft.tf1 as tf
from weft.host.nested import Nesting

# `None` has no leaves
flatten = Nesting(sorted_keys=True, none=True).leaves
mapped = Nesting(none=True).mapped


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
