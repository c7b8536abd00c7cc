"""`enable_eager_execution`."""

from __future__ import annotations

from typing import Any

from weft.errors import GraphError
from weft.tf1.eager.graph import EagerGraph
from weft.tf1.framework.graph import (
    computes_at_once,
    fail,
    get_default_graph,
    replace_default_graph,
)
from weft.tf1.version import Behavior

__all__ = ["enable_eager_execution", "enable_v2_behavior", "executing_eagerly"]


def executing_eagerly() -> bool:
    """Whether operations are computed at once."""
    return computes_at_once()


def enable_eager_execution(
    config: Any = None, device_policy: Any = None, execution_mode: Any = None
) -> None:
    """Compute operations at once from now on, outside of `with graph.as_default()`.

    Args:
        config, device_policy, execution_mode: accepted; there is one device.

    Raises:
        GraphError: the default graph has operations already.

    >>> import weft.tf1 as tf
    >>> tf.enable_eager_execution()
    >>> w = tf.Variable(3.0)
    >>> with tf.GradientTape() as tape:
    ...     y = w * w
    >>> float(y), float(tape.gradient(y, w))
    (9.0, 6.0)
    >>> tf.compat.v1.disable_eager_execution()
    """
    del config, device_policy, execution_mode
    graph = get_default_graph()
    if graph.at_once is not None:
        return
    if graph.get_operations():
        text = "expected no operations before it: make it the first line"
        raise fail(GraphError, f"enable_eager_execution: {text}")
    replace_default_graph(EagerGraph())


def enable_v2_behavior() -> None:
    """Eager execution, with TensorFlow 2's comparisons of tensors, and its names in histories."""
    enable_eager_execution()
    Behavior.is_2 = True
