"""Every operation has kernels for many sizes, or there is a reason why not.

The nodes that an operation's examples consist of, composites expanded, are lowered with extents in
place of all sizes above 1; equal sizes are one extent. At the sizes of the example these kernels
give the bits of kernels for one size.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Final

import numpy as np
import pytest
from catalogue import distinct, is_complex
from harness import Array, execute, references
from problems import Fenced, at_sizes

from weft import ops
from weft.codegen.lower import FAMILIES, lower
from weft.codegen.target import current
from weft.ir.dtype import as_dtype
from weft.ir.extent import Extents
from weft.ir.graph import Graph
from weft.ir.node import Node, Value
from weft.ir.shape import known
from weft.library.form import form_of, resized
from weft.ops.boundary.state import CONSTANT
from weft.ops.declaration import (
    REGISTRY,
    Alias,
    Boundary,
    Case,
    Elementwise,
    Op,
    Opaque,
    Pull,
    is_hosted,
    op_of,
)
from weft.passes.composite import expand_composites
from weft.passes.group import Group
from weft.passes.step import Step

HOST: Final = "Python code, which is not compiled"
REGIONS: Final = "functions of its own, which are lowered one by one"
NO_KERNEL: Final = "its input, or what a program is given"
REASONS: Final = {"scan": REGIONS, "switch": REGIONS, "while_loop": REGIONS}
"""Operations without a kernel for many sizes, and what they are instead."""


def nodes_of(op: Op, case: Case) -> Graph:
    """A case in primitives; its placeholders are in the order of the inputs."""
    graph = Graph()
    with graph.as_default():
        xs = [ops.placeholder(dtype=as_dtype(a.dtype), shape=a.shape) for a in case.inputs]
        graph.outputs = op.all(*xs, **case.attrs)
    return expand_composites(Step(graph, (), ())).graph


def reason(node: Node) -> str:
    """What a node is instead of kernels for many sizes; empty if it has some."""
    lowering = op_of(node).lower
    if isinstance(lowering, Alias | Boundary) or op_of(node) is CONSTANT:
        return NO_KERNEL
    if is_hosted(node):
        return HOST
    if isinstance(lowering, Opaque):
        family = FAMILIES.get(lowering.family)
        return REASONS[node.op] if family is None else ""
    return ""


def check(group: Group, feeds: Mapping[Value, Array]) -> None:
    """Kernels of a node for many sizes, at its own, give the bits of those for one size."""
    sizes, target, extents = form_of(group).sizes, current(), Extents()
    extents.planning = True
    general = resized(group, sizes, sizes, extents.base)
    launches = lower(general, target)
    values = extents.values(sizes)
    assert extents.admits(values)
    (node,) = group.nodes
    if isinstance(op_of(node).lower, Elementwise):
        return  # one loop for all of them
    arrays = {v: feeds[v] for v in group.inputs}
    found = execute(at_sizes(launches, values, general, group), arrays, target, make=Fenced)
    alone = execute(lower(group, target), arrays, target)
    for y in [y for y in node.outputs if 0 not in known(y.shape)]:
        assert found[y].tobytes() == alone[y].tobytes(), node.describe()


_checked: set[Hashable] = set()


def _is_new(group: Group) -> bool:
    """Whether an operation of these types is not checked yet, or a kind of kernel for these shapes.

    Loops follow from the kind and the shapes, and what they compute from the operation and types.
    """
    (node,) = group.nodes
    lowering, attrs = op_of(node).lower, tuple(node.attrs.items())
    values = *node.inputs, *node.outputs
    if isinstance(lowering, Opaque):
        kind = lowering.family, attrs
    elif isinstance(lowering, Elementwise):
        kind = (Elementwise,)
    else:
        kind = lowering if isinstance(lowering, Pull) else type(lowering), attrs
    types = (node.op, *[v.dtype for v in values])
    parts = {(kind, *[v.shape for v in values]), types}
    new = not parts <= _checked
    _checked.update(parts)
    return new


@pytest.mark.parametrize("op", [pytest.param(op, id=name) for name, op in REGISTRY.items()])
def test_every_operation(op: Op) -> None:
    cases = [case for case in distinct(op) if not is_complex(op, case)]
    for case in [] if isinstance(op.lower, Boundary) else cases:
        graph = nodes_of(op, case)
        nodes = [node for node in graph.nodes if not reason(node)]
        if nodes:
            values = _values(graph, case)
        for node in nodes:
            group = Group((node,), tuple(dict.fromkeys(node.inputs)), node.outputs)
            if _is_new(group):
                check(group, values)


def _values(graph: Graph, case: Case) -> dict[Value, Array]:
    """All values of a case, by the references."""
    xs = [v for node in graph.nodes[: len(case.inputs)] for v in node.outputs]
    rest = Group(tuple(graph.nodes[len(xs) :]), tuple(xs), graph.outputs)
    with np.errstate(all="ignore"):
        return references(rest, dict(zip(xs, case.inputs, strict=True)))


def test_reasons_are_needed() -> None:
    for name in REASONS:
        lowering = REGISTRY[name].lower
        assert isinstance(lowering, Opaque) and lowering.family not in FAMILIES
