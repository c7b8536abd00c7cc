"""Pair: fuses both gradients of a depthwise convolution into one kernel.

Both read the same elements of the cotangent, do little with each, and are bound by memory
bandwidth. Together they read the cotangent once, or recompute it as they read (`recompute`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import prod
from typing import Final

from weft.ir.node import Node, Value
from weft.ir.shape import known, size
from weft.ops.convolution.convolution import conv_grad_input, conv_grad_weight
from weft.ops.declaration import op_of
from weft.passes.group import Fused, Group

FEWEST: Final = 16
"""Channels: vectors run along them."""
UNROLLED: Final = 49
"""Maximum taps that a kernel unrolls."""
PHASES: Final = 4
"""Maximum stride phases that a kernel unrolls."""
SHARED: Final = ("strides", "padding", "dilation", "groups")


def pair(fused: Fused) -> Fused:
    """Fuses weight gradients of depthwise convolutions with the input gradients."""
    groups = fused.groups
    by_weights = {_key(g.nodes[0], 1): g for g in groups if op_of(g.nodes[0]) is conv_grad_weight}
    found = list(groups)
    for group in groups:
        node = group.nodes[0]
        if op_of(node) is conv_grad_input and _is_depthwise(node):
            other = by_weights.get(_key(node, 0))
            if other is not None and known(other.nodes[0].outputs[0].shape) == _weights(node):
                found = joined(found, group, other, _both(group, other), fused.aliases)
    return fused.with_groups(found)


def _key(node: Node, cotangent: int) -> tuple[object, ...]:
    """The key that both gradients share."""
    image = node.outputs[0] if op_of(node) is conv_grad_input else node.inputs[0]
    return (node.inputs[cotangent], image.shape, *(node.attrs[name] for name in SHARED))


def _weights(node: Node) -> tuple[int, ...]:
    return known(node.inputs[1].shape)


def _is_depthwise(node: Node) -> bool:
    *taps, channels, columns = _weights(node)
    alike = all(v.dtype.name == "float32" for v in (*node.inputs, *node.outputs))
    written = prod(taps) <= UNROLLED and prod(node.attrs["strides"]) <= PHASES
    apart = channels == 1 and FEWEST <= columns == node.attrs["groups"]
    return alike and written and apart and size(node.outputs[0].shape) > 0


def _both(main: Group, beside: Group) -> Group:
    return replace(
        main, beside=beside,
        inputs=tuple(dict.fromkeys((*main.inputs, *beside.inputs))),
        outputs=(*main.outputs, *beside.outputs),
    )  # fmt: skip


def joined(
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
