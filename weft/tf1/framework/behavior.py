"""Questions and switches of programs that also run under TensorFlow 2."""

from __future__ import annotations

from weft.tf1.framework.graph import Graph, get_default_graph, replace_default_graph
from weft.tf1.version import Behavior

__all__ = [
    "disable_control_flow_v2", "disable_eager_execution", "disable_resource_variables",
    "disable_tensor_equality", "disable_v2_behavior", "disable_v2_tensorshape",
    "enable_control_flow_v2", "enable_resource_variables",
]  # fmt: skip


def disable_v2_behavior() -> None:
    """Behave as TensorFlow 1, and build graphs."""
    Behavior.is_2 = False
    disable_eager_execution()


def disable_eager_execution() -> None:
    """Build graphs again."""
    if get_default_graph().at_once is not None:
        replace_default_graph(Graph())


def disable_control_flow_v2() -> None:
    """No effect: there is one kind of each."""


disable_resource_variables = disable_tensor_equality = disable_control_flow_v2
disable_v2_tensorshape = enable_control_flow_v2 = disable_control_flow_v2
enable_resource_variables = disable_control_flow_v2
