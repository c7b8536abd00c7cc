"""Sibling fusion: merges a kernel into another that reads the same arrays.

A value that is recomputed for a late matmul (`rematerialize`) depends on an array that a nearby
kernel reads anyway: GELU on the input of its own gradient, a layer norm's result on the input of
the norm's gradient. There it takes the array, and often most of the arithmetic, from registers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from weft.ir.node import Node, Value
from weft.ir.shape import Shape, known, size
from weft.ops.declaration import Elementwise, Opaque, Pull, Reduce, op_of
from weft.ops.linalg.matmul import matmul
from weft.passes.group import MOST_INPUTS, MOST_NODES, Fused, Group

NEAR: Final = 4
"""How many groups a value may move by; it occupies memory meanwhile."""
LEAST_BYTES: Final = 1 << 20
"""Smaller arrays are in cache anyway."""
SMALL: Final = 16
"""Arrays so many times smaller cost nothing to read."""


def fuse_siblings(fused: Fused) -> Fused:
    """Merges elementwise groups into groups that read the same arrays."""
    found = list(fused.groups)
    for guest in fused.groups:
        arrays = _arrays(guest)
        if not arrays or guest not in found:
            continue
        at = found.index(guest)
        for host in (*found[at + 1 : at + 1 + NEAR], *found[max(0, at - NEAR) : at][::-1]):
            if _reads(host, arrays, guest):
                before = found
                found = _joined(found, host, guest, _both(host, guest), fused.aliases)
                if found is not before:
                    break
    return fused.with_groups(found)


def _arrays(group: Group) -> list[Value]:
    """The large arrays that a purely elementwise group reads; none for other groups."""
    plain = all(isinstance(op_of(n).lower, Elementwise) or not n.inputs for n in group.nodes)
    if not plain or group.before:
        return []
    domain = max((n.types[0].shape for n in group.nodes), key=size)
    if size(domain) * group.outputs[0].dtype.size < LEAST_BYTES:
        return []
    large = [v for v in group.inputs if size(v.shape) * SMALL > size(domain)]
    alike = all(v.shape == domain for v in (*large, *group.outputs))
    return large if alike else []


def _reads(host: Group, arrays: Sequence[Value], guest: Group) -> bool:
    """Whether a group reads all the arrays elementwise, and may compute more."""
    product = isinstance(op_of(host.nodes[0]).lower, Opaque)
    rest = host.nodes[1:] if product else host.nodes
    if host.device != guest.device:
        return False
    if host.before or (product and op_of(host.nodes[0]) is not matmul):
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
    """Whether a node fits into a kernel that processes whole rows of `domain`."""
    lower = op_of(node).lower
    if isinstance(lower, Reduce):
        rank = len(known(domain))
        return _seen(node) == domain and node.attrs["axes"] == (rank - 1,)
    return size(node.types[0].shape) <= size(domain) and not isinstance(lower, Opaque | Pull)


def _seen(node: Node) -> Shape:
    """The iteration space of a node."""
    reduces = isinstance(op_of(node).lower, Reduce)
    return node.inputs[0].shape if reduces else node.types[0].shape


def _both(host: Group, guest: Group) -> Group:
    return replace(
        host,
        nodes=tuple(dict.fromkeys((*host.nodes, *guest.nodes))),
        inputs=tuple(dict.fromkeys((*host.inputs, *guest.inputs))),
        outputs=(*host.outputs, *guest.outputs),
    )


def _joined(
    groups: list[Group], one: Group, other: Group, both: Group, aliases: Mapping[Value, Value]
) -> list[Group]:
    """The groups with these two merged; the same list if one depends on the other."""
    first, last = sorted((groups.index(one), groups.index(other)))
    between = groups[first + 1 : last]
    behind = _behind(groups[first], between, aliases)
    if _reads_from(groups[last], {v for g in (groups[first], *behind) for v in g.outputs}, aliases):
        return groups
    before = [g for g in between if g not in behind]
    return [*groups[:first], *before, both, *behind, *groups[last + 1 :]]


def _behind(
    group: Group, following: Sequence[Group], aliases: Mapping[Value, Value]
) -> list[Group]:
    """Those of the following groups that depend on a group."""
    made, found = set(group.outputs), list[Group]()
    for other in following:
        if _reads_from(other, made, aliases):
            made.update(other.outputs)
            found.append(other)
    return found


def _reads_from(group: Group, made: set[Value], aliases: Mapping[Value, Value]) -> bool:
    for value in group.inputs:
        while value in aliases:
            value = aliases[value]
        if value in made:
            return True
    return False
