"""What contrib's layers have in common: scopes, weights, normalization, activation, collections."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import weft.tf1 as tf
from weft.tf1.contrib.framework.variables import model_variable


def weight(
    name: str, shape: Any, like: Any, initializer: Any, regularizer: Any, trainable: bool,
    collections: Any,
) -> Any:  # fmt: skip
    """A variable of a layer, in the collections that are told for its name."""
    names = collections.get(name) if isinstance(collections, Mapping) else collections
    return model_variable(
        name, shape=shape, dtype=like.dtype.base_dtype, initializer=initializer,
        regularizer=regularizer, trainable=trainable, collections=names,
    )  # fmt: skip


def finished(
    y: Any, scope: Any, outputs_collections: Any, activation_fn: Any = None,
    normalizer_fn: Any = None, normalizer_params: Any = None,
) -> Any:  # fmt: skip
    """A layer's outputs: normalized, activated, and in collections."""
    if normalizer_fn is not None:
        y = normalizer_fn(y, **(normalizer_params or {}))
    if activation_fn is not None:
        y = activation_fn(y)
    if outputs_collections:
        tf.add_to_collections(outputs_collections, Aliased.of(y, scope.original_name_scope))
    return y


class Aliased:
    """Outputs with the name under which `end_points` has them."""

    @staticmethod
    def of(y: Any, name: str) -> Any:
        """The tensor, with its alias in the graph's list."""
        y.graph.keys.setdefault("aliases", {})[y] = name.rstrip("/")
        return y


def end_points(collection: str) -> dict[str, Any]:
    """The outputs in a collection by their aliases."""
    found = tf.get_collection(collection)
    names = tf.get_default_graph().keys.get("aliases", {})
    return {names.get(y, y.op.name): y for y in found}


def analyze_vars(variables: Iterable[Any], print_info: bool = False) -> tuple[int, int]:
    """How many elements and bytes variables have together.

    Args:
        variables: the variables.
        print_info: also print a line for each.
    """
    size = count = 0
    if print_info:
        print("---------\nVariables: name (type shape) [size]\n---------")
    for v in variables:
        elements = v.shape.num_elements() or 0
        count += elements
        size += elements * v.dtype.size
        if print_info:
            shape = "x".join(str(d) for d in v.shape.as_list())
            print(
                f"{v.name} ({v.dtype.name} {shape}) [{elements}, bytes: {elements * v.dtype.size}]"
            )
    if print_info:
        print(f"Total size of variables: {count}\nTotal bytes of variables: {size}")
    return count, size


def pair(value: Any, count: int = 2) -> list[int]:
    """A number for each axis."""
    return [int(value)] * count if isinstance(value, int) else [int(v) for v in value]
