"""Methods of the default graph, as functions."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from weft.tf1.framework.graph import get_default_graph


def device(device_name_or_function: Any) -> Any:
    """`Graph.device` of the default graph.

    Args:
        device_name_or_function: a name such as `/job:ps/cpu:0`, a `tf.DeviceSpec`, a function from
            an operation to one of these, or `None`, which clears what is around.

    >>> import weft.tf1 as tf
    >>> with tf.device("/job:ps"), tf.device("/cpu:1"):
    ...     tf.constant(1.0).device
    '/job:ps/device:CPU:1'
    """
    return get_default_graph().device(device_name_or_function)


def container(container_name: str) -> Any:
    """`Graph.container` of the default graph."""
    return get_default_graph().container(container_name)


def add_to_collection(name: str, value: Any) -> None:
    """`Graph.add_to_collection` of the default graph."""
    get_default_graph().add_to_collection(name, value)


def add_to_collections(names: str | Iterable[str], value: Any) -> None:
    """`Graph.add_to_collections` of the default graph."""
    get_default_graph().add_to_collections(names, value)


def get_collection(key: str, scope: str | None = None) -> list[Any]:
    """`Graph.get_collection` of the default graph."""
    return get_default_graph().get_collection(key, scope)


def get_collection_ref(key: str) -> list[Any]:
    """`Graph.get_collection_ref` of the default graph."""
    return get_default_graph().get_collection_ref(key)


def control_dependencies(control_inputs: Iterable[Any] | None) -> Any:
    """`Graph.control_dependencies` of the default graph."""
    return get_default_graph().control_dependencies(control_inputs)


def colocate_with(op: Any, ignore_existing: bool = False) -> Any:
    """`Graph.colocate_with` of the default graph.

    Args:
        op: an operation, tensor or variable; `None` clears what is around.
        ignore_existing: whether not to be put with those of `colocate_with` around.
    """
    return get_default_graph().colocate_with(op, ignore_existing)


__all__ = [
    "add_to_collection", "add_to_collections", "colocate_with", "container", "control_dependencies",
    "device", "get_collection", "get_collection_ref",
]  # fmt: skip
