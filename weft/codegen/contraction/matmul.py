"""Matmuls: choose the kernel by shape; `order` says what that means for results."""

from __future__ import annotations

from weft.codegen.contraction.dot import launch_dot
from weft.codegen.contraction.few import launch_few
from weft.codegen.contraction.order import in_pairs, is_dot, is_few
from weft.codegen.contraction.plain import is_short, launch_plain
from weft.codegen.contraction.plan import in_parts, plan_of
from weft.codegen.contraction.plan_many import is_many, plan_of_many
from weft.codegen.contraction.product import product_of
from weft.codegen.contraction.sink import sink_of
from weft.codegen.contraction.split import launch_split, rows_together, steps_of_part
from weft.codegen.contraction.tiled import launch_tiled
from weft.codegen.target import Target
from weft.ir.extent import same
from weft.passes.group import Group
from weft.passes.launch import Launch


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
    if is_dot(product):
        return launch_dot(product, target, (x, y), sink)
    if is_few(product, target):
        if is_short(product) and not group.repeated:
            return launch_plain(product, target, (x, y), sink)
        return launch_few(product, target, (x, y), sink)
    steps = steps_of_part(product, target)
    cut = not same(steps, 0)
    if cut and rows_together(product):
        return launch_split(product, steps, target, (x, y), sink)
    if in_pairs(product, target):
        product, steps = product.paired(), steps // 2
    if is_many(product):
        plan = plan_of_many(product, target)
    else:
        plan = plan_of(product, target, group.repeated and y in group.lasting)
    if cut:
        plan = in_parts(plan, steps)
    return launch_tiled(product, plan, target, (x, y), sink)
