"""Constants of groups as inputs: their values are no part of its form then."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Final

from weft.ir.node import Node
from weft.ops.boundary.state import CONSTANT
from weft.ops.declaration import REGISTRY, op_of
from weft.passes.group import Group

_PLAIN: Final = frozenset({
    REGISTRY[name]
    for name in (
        "add", "subtract", "multiply", "divide", "equal", "not_equal", "less", "less_equal",
        "greater", "greater_equal",
    )
})  # fmt: skip
"""Operations whose kernels do the same with a number that they know and one that they read."""


def without_constants(group: Group, goes: Callable[[Node], bool] = lambda _: True) -> Group:
    """The group with constants as inputs, in place of nodes.

    Args:
        goes: which ones.
    """
    gone = {node for node in group.nodes if op_of(node) is CONSTANT and goes(node)}
    nodes = tuple([node for node in group.nodes if node not in gone])
    if not nodes or not gone:
        return group
    inside = {*group.before, *nodes}
    reads = [v for node in (*group.before, *nodes) for v in node.inputs]
    inputs = dict.fromkeys([v for v in reads if v.node not in inside])
    return replace(group, nodes=nodes, inputs=tuple(inputs))


def without_sizes(group: Group) -> Group:
    """The group with constants as inputs that may be sizes, which are above 1.

    Such are a mean's count, a table's length, and `n / (n - 1)` of an unbiased variance. So a
    kernel that was written where they were numbers serves all sizes.
    """
    users = [node for node in group.all_nodes if op_of(node) not in _PLAIN]
    kept = {v.node for node in users for v in node.inputs} | {v.node for v in group.outputs}
    return without_constants(group, lambda node: node not in kept and _is_size(node))


def _is_size(node: Node) -> bool:
    array = node.attrs["value"].array
    return array.ndim == 0 and array.dtype.kind in "if" and array > 1
