"""Meet: a kernel that reads the same arrays as another is merged into it.

A value that is computed again for a late product (`rematerialize`) follows from an array that a
kernel nearby reads anyway: GELU of what its own gradient reads, a layer norm's result from what
the norm's gradient reads. There it takes the array from registers, and often most of the
arithmetic, too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from weft.ir.node import Node, Value
from weft.ir.shape import Shape, known, size
from weft.ops.base import Elementwise, Opaque, Pull, Reduce, op_of
from weft.ops.linalg.matmul import matmul
from weft.passes.group import MOST_INPUTS, MOST_NODES, Fused, Group
from weft.passes.pair import joined

NEAR: Final = 4
"""Groups that a value is computed earlier or later by: it takes memory meanwhile."""
LEAST_BYTES: Final = 1 << 20
"""Smaller arrays come from a cache."""
SMALL: Final = 16
"""An array so many times smaller costs nothing to read."""


def meet(fused: Fused) -> Fused:
    """The groups, those that only compute by element within one that reads the same arrays."""
    found = list(fused.groups)
    for guest in fused.groups:
        arrays = _arrays(guest)
        if not arrays or guest not in found:
            continue
        at = found.index(guest)
        for host in (*found[at + 1 : at + 1 + NEAR], *found[max(0, at - NEAR) : at][::-1]):
            if _reads(host, arrays, guest):
                before = found
                found = joined(found, host, guest, _both(host, guest), fused.aliases)
                if found is not before:
                    break
    return fused.with_groups(found)


def _arrays(group: Group) -> list[Value]:
    """The arrays that a group reads place by place, if it does nothing but that."""
    plain = all(isinstance(op_of(n).lower, Elementwise) or not n.inputs for n in group.nodes)
    if not plain or group.before or group.beside:
        return []
    domain = max((n.types[0].shape for n in group.nodes), key=size)
    if size(domain) * group.outputs[0].dtype.size < LEAST_BYTES:
        return []
    large = [v for v in group.inputs if size(v.shape) * SMALL > size(domain)]
    alike = all(v.shape == domain for v in (*large, *group.outputs))
    return large if alike else []


def _reads(host: Group, arrays: Sequence[Value], guest: Group) -> bool:
    """Whether a group reads all the arrays place by place, and may compute more."""
    product = isinstance(op_of(host.nodes[0]).lower, Opaque)
    rest = host.nodes[1:] if product else host.nodes
    if host.before or host.beside or (product and op_of(host.nodes[0]) is not matmul):
        return False
    if not rest or not all(_goes_along(n, arrays[0].shape) for n in rest):
        return False
    first = host.nodes[0] if product else None
    if first is not None and (first.types[0].shape != arrays[0].shape or len(first.types) > 1):
        return False
    nodes, inputs = {*host.nodes, *guest.nodes}, {*host.inputs, *guest.inputs}
    return (
        len(nodes) <= MOST_NODES
        and len(inputs) <= MOST_INPUTS
        and all(any(v in n.inputs for n in rest if v.shape == _seen(n)) for v in arrays)
    )


def _goes_along(node: Node, domain: Shape) -> bool:
    """Whether a node belongs to a kernel that goes through the last axis of `domain` at once."""
    lower = op_of(node).lower
    if isinstance(lower, Reduce):
        rank = len(known(domain))
        return _seen(node) == domain and node.attrs["axes"] == (rank - 1,)
    return size(node.types[0].shape) <= size(domain) and not isinstance(lower, Opaque | Pull)


def _seen(node: Node) -> Shape:
    """The shape that a node goes through."""
    reduces = isinstance(op_of(node).lower, Reduce)
    return node.inputs[0].shape if reduces else node.types[0].shape


def _both(host: Group, guest: Group) -> Group:
    return replace(
        host,
        nodes=tuple(dict.fromkeys((*host.nodes, *guest.nodes))),
        inputs=tuple(dict.fromkeys((*host.inputs, *guest.inputs))),
        outputs=(*host.outputs, *guest.outputs),
    )
