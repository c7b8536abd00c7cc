"""What nodes do besides computing their results."""

from __future__ import annotations

from weft.ir.node import Node
from weft.ops.declaration import HOSTED, Opaque, inner_nodes, op_of


def is_ordered(node: Node) -> bool:
    """Whether a node, or one inside it, does something with others in the order of the program."""
    return op_of(node).facts.ordered or any(map(is_ordered, inner_nodes(node)))


def has_effect(node: Node) -> bool:
    """Whether a node, or one inside it, does more than compute: not to be done a second time."""
    facts = op_of(node).facts
    return facts.ordered or facts.late or any(map(has_effect, inner_nodes(node)))


def is_felt(node: Node) -> bool:
    """Whether a run is felt even if nothing reads the results: the node acts, or may refuse."""
    lower = op_of(node).lower
    refuses = isinstance(lower, Opaque) and (lower.fault is not None or lower.family == HOSTED)
    return refuses or has_effect(node)


def is_host(node: Node) -> bool:
    """Whether a node runs on the host between programs: it may wait, or it handles texts."""
    if op_of(node).facts.host or any([kind.dtype.is_hosted for kind in node.types]):
        return True
    return any([v.dtype.is_hosted for v in node.inputs])


def may_wait(node: Node) -> bool:
    """Whether a host node may wait for what other runs do."""
    return bool(node.attrs.get("waits")) and op_of(node).facts.host
