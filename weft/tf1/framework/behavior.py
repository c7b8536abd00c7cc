"""Questions and switches of programs that also run under TensorFlow 2."""

from __future__ import annotations

from weft.errors import ArgumentError
from weft.tf1.framework.graph import fail

__all__ = [
    "disable_control_flow_v2", "disable_eager_execution", "disable_resource_variables",
    "disable_tensor_equality", "disable_v2_behavior", "disable_v2_tensorshape",
    "enable_control_flow_v2", "enable_eager_execution", "enable_resource_variables",
    "executing_eagerly",
]  # fmt: skip


def executing_eagerly() -> bool:
    """False: operations are nodes of a graph."""
    return False


def enable_eager_execution(*args: object, **options: object) -> None:
    """Refused: operations are nodes of a graph.

    Raises:
        ArgumentError: always; `import weft` is the eager front end.
    """
    del args, options
    raise fail(
        ArgumentError,
        "enable_eager_execution: weft.tf1 builds graphs; eager code uses `import weft`",
    )


def disable_v2_behavior() -> None:
    """No effect: behavior is that of TensorFlow 1."""


disable_eager_execution = disable_control_flow_v2 = disable_v2_behavior
disable_resource_variables = disable_tensor_equality = disable_v2_behavior
disable_v2_tensorshape = enable_control_flow_v2 = enable_resource_variables = disable_v2_behavior
