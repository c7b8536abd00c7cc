"""Matmuls: choose the kernel by shape."""

from __future__ import annotations

from typing import Final

from weft.codegen.contraction import dot, streamed
from weft.codegen.contraction.plain import launch_plain
from weft.codegen.contraction.plan import pays_in_pairs, plan_of
from weft.codegen.contraction.product import product_of
from weft.codegen.contraction.sink import sink_of
from weft.codegen.contraction.split import launch_split, parts_of
from weft.codegen.contraction.tiled import launch_tiled
from weft.codegen.target import Target
from weft.passes.group import Group
from weft.passes.launch import Launch

FEW: Final = 4
"""Rows from which packed weights are faster to multiply with, in a loop."""


def matmul(group: Group, target: Target) -> tuple[Launch, ...]:
    """Launches for a group whose first node is a `matmul`; the rest is its epilogue."""
    node = group.nodes[0]
    product = product_of(node)
    if not product.m * product.n * product.count:
        return ()
    sink = sink_of(group)
    x, y = node.data_inputs
    if not product.dtype.is_floating:
        return launch_plain(product, target, (x, y), sink)
    if streamed.suits(product, target):
        return streamed.launch_streamed(product, target, (x, y), sink)
    if dot.suits(product, target):
        return dot.launch_dot(product, target, (x, y), sink)
    parts = parts_of(product, target)
    if parts > 1:
        return launch_split(product, parts, target, (x, y), sink)
    if pays_in_pairs(product, target):
        product = product.paired()
    again = group.repeated and y in group.lasting and product.m >= FEW
    return launch_tiled(product, plan_of(product.planned(), target, again), target, (x, y), sink)
