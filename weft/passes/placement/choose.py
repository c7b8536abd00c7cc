"""The device of each node of an optimized step."""

from __future__ import annotations

from weft.ir.node import Node
from weft.passes.step import Step


def chosen(step: Step, default: str) -> dict[Node, str]:
    """The device of each node.

    Args:
        default: where nodes are that are free.
    """
    return {node: node.device or default for node in step.graph.nodes}
