"""The kernels that a group of scalar operations becomes."""

from __future__ import annotations

from collections.abc import Callable

from weft.codegen.loop.expression import Expr
from weft.codegen.loop.index import ZERO, Index
from weft.codegen.loop.maps import map_launches
from weft.codegen.loop.reduction import Levels, Reduction, empty_given, reductions
from weft.codegen.loop.rows import row_launch
from weft.codegen.loop.split import split_launches, wants_parts
from weft.codegen.loop.trace import At, Buffers, Trace
from weft.codegen.target import Target
from weft.ir.extent import same
from weft.ir.node import Node, Value
from weft.ir.shape import known, size
from weft.passes.group import Group
from weft.passes.launch import Launch


def loops(group: Group, target: Target) -> tuple[Launch, ...]:
    """Launches for a group without an opaque node.

    Raises:
        CompileError: the group is not of the form that `weft.passes.group` describes.
    """
    if not reductions(group):
        return _maps(group, target, lambda _: {})
    reduction = Reduction(group)
    extents = [reduction.domain[a] for a in reduction.axes]
    if size(reduction.domain) == 0:
        return _maps(group, target, lambda trace: empty_given(reduction, trace))
    if all(same(d, 1) for d in extents):
        return _maps(group, target, lambda trace: _of_one(reduction, trace))
    name = kernel_name(group)
    levels = Levels(reduction)
    if wants_parts(levels):
        return tuple(split_launches(name, reduction, target))
    return (row_launch(name, levels, target),)


def kernel_name(group: Group) -> str:
    """A readable name: operations, type, shape."""
    out = group.outputs[0]
    shape = "x".join(map(str, known(out.shape))) or "scalar"
    return f"{group.name}_{out.dtype}_{shape}"


def _maps(
    group: Group, target: Target, given: Callable[[Trace], dict[Value, At]]
) -> tuple[Launch, ...]:
    """One kernel for each shape among the outputs."""
    by_shape: dict[tuple[int, ...], list[Value]] = {}
    for value in group.outputs:
        by_shape.setdefault(known(value.shape), []).append(value)
    found: list[Launch] = []
    for outputs in by_shape.values():
        trace = Trace(group.nodes, Buffers())
        trace.given.update(given(trace))
        found.extend(map_launches(kernel_name(group), outputs, target, trace))
    return tuple(found)


def _of_one(reduction: Reduction, trace: Trace) -> dict[Value, At]:
    """Reductions of one element each: that element."""

    def at(node: Node, index: tuple[Index, ...]) -> Expr:
        place = [ZERO] * len(reduction.domain)
        for axis, i in zip(reduction.kept_axes, index, strict=True):
            place[axis] = i
        return trace.b.cast(trace.at(node.inputs[0], tuple(place)), node.types[0].dtype)

    return reduction.given(at)
