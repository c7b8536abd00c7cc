"""Groups that move or reduce elements with as few axes as they need.

Parts of an array and joined arrays: axes that stay whole become one with their neighbors. Rows of a
single matrix, as of a batch of one: the leading axis of one element goes. So a cache of keys grows
by the same kernel whatever its rank, and a softmax of one sequence shares that of a matrix.

No bit changes: a reduction leaves out axes of one element (`weft.codegen.loop.order`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from math import prod
from typing import Any, Final

from weft.ir.extent import same
from weft.ir.node import Node, TensorType, Value
from weft.ir.shape import known
from weft.library.form import name_of
from weft.ops.boundary.state import CONSTANT
from weft.ops.declaration import REGISTRY, Elementwise, Reduce, op_of
from weft.passes.group import Group

Shape = tuple[int, ...]
Attrs = Mapping[str, Any]
_PARTS: Final = frozenset({REGISTRY[name] for name in ("slice", "slice_update", "unslice")})
_BOUNDS: Final = ("begin", "end", "strides")
_OF_ROWS: Final = frozenset({REGISTRY[name] for name in ("argmax", "argmin", "sort", "top_k")})


def squeezed(group: Group) -> Group:
    """The group with fewer axes, if that can be; else itself."""
    if any([type(n) is int and n < 1 for v in _values(group) for n in known(v.type.shape)]):
        return group
    node, *others = group.all_nodes
    if not others and group.inputs and op_of(node) is REGISTRY["concatenate"]:
        return _joined(group, node)
    if not others and op_of(node) in _PARTS:
        return _part(group, node)
    return _without_leading(group)


def _values(group: Group) -> list[Value]:
    return [*group.inputs, *[y for node in group.all_nodes for y in node.outputs]]


def _joined(group: Group, node: Node) -> Group:
    """Arrays one behind another: what is before the axis is one axis, and so is what is behind."""
    rank, axis = len(known(node.types[0].shape)), node.attrs["axis"]
    runs = _needed([range(axis), range(axis, axis + 1), range(axis + 1, rank)], node, [axis])
    attrs = {"axis": [axis in run for run in runs].index(True)}
    return _renewed(group, lambda v: _merged(known(v.type.shape), runs), lambda _: attrs)


def _part(group: Group, node: Node) -> Group:
    """A part of an array, whose axes are cut or stay whole."""
    whole = node.inputs[0] if op_of(node) is not REGISTRY["unslice"] else node.outputs[0]
    dims = known(whole.type.shape)
    others = [known(v.type.shape) for v in _values(group) if v is not whole]
    if any([len(s) not in (0, len(dims)) for s in others]) or node.attrs["strides"] == ():
        return group
    cuts = [
        i
        for i, (dim, *bounds) in enumerate(zip(dims, *map(node.attrs.get, _BOUNDS), strict=True))
        if not all(map(same, bounds, (0, dim, 1)))
        or any([s and name_of(s[i]) != name_of(dim) for s in others])
    ]
    edges = sorted({0, len(dims), *cuts, *[i + 1 for i in cuts]})
    runs = _needed([range(*pair) for pair in pairwise(edges)], node, cuts)

    def bound(name: str, run: range) -> int:
        return prod([dims[i] for i in run]) if name == "end" else int(name == "strides")

    attrs = {
        name: tuple([node.attrs[name][r[0]] if r[0] in cuts else bound(name, r) for r in runs])
        for name in _BOUNDS
    }
    if "shape" in node.attrs:
        attrs["shape"] = _merged(dims, runs)
    return _renewed(group, lambda v: _merged(known(v.type.shape), runs), lambda _: attrs)


def _needed(runs: Sequence[range], node: Node, kept: Sequence[int]) -> list[range]:
    """The runs of axes that are needed: those of one element are not, if others are left."""
    dims = known(node.types[0].shape)
    return [
        run
        for run in runs
        if len(run) and (run[0] in kept or any([name_of(dims[i]) is not None for i in run]))
    ] or [range(len(dims))]


def _merged(shape: Shape, runs: Sequence[range]) -> Shape:
    return tuple([prod([shape[i] for i in run]) for run in runs]) if shape else ()


def _without_leading(group: Group) -> Group:
    """The group without leading axes of one element that all its values have."""
    while True:
        has = _leading(group)
        if has is None:
            return group
        shapes = {v: known(v.type.shape)[own:] for v, own in has.items()}
        group = _renewed(group, shapes.__getitem__, _lower)


def _lower(node: Node) -> Attrs:
    """What attributes become without the first axis."""
    found = dict(node.attrs)
    if isinstance(op_of(node).lower, Reduce):
        found["axes"] = tuple([axis - 1 for axis in found["axes"] if axis])
    elif "axis" in found:
        found["axis"] -= 1
    return found


def _leading(group: Group) -> dict[Value, bool] | None:
    """Whether each value has the axis that can go; `None` if none can."""
    rank = max([len(known(v.type.shape)) for v in group.inputs], default=0)
    has = {v: 0 < rank == len(known(v.type.shape)) for v in group.inputs}
    reduces = False
    for node in group.all_nodes:
        op = op_of(node)
        given = [v for v in node.inputs if has[v]]
        if isinstance(op.lower, Reduce) and len(given) == 1:
            axes, reduces = node.attrs["axes"], True
            if axes == (0,):
                return None
            kept = 0 not in axes or node.attrs["keepdims"]
        elif op in _OF_ROWS and len(given) == 1:
            kept, reduces = True, True
            if len(known(given[0].type.shape)) < 2 or node.attrs.get("axis") == 0:
                return None
        elif op is CONSTANT or isinstance(op.lower, Elementwise):
            kept = bool(given)
            ranks = {len(known(v.type.shape)) for v in given}
            if kept and not _fits(node, ranks, has):
                return None
        else:
            return None
        has.update({v: kept for v in node.outputs})
    ones = all([same(known(v.type.shape)[0], 1) for v, own in has.items() if own])
    return has if reduces and ones and any(has.values()) else None


def _fits(node: Node, ranks: set[int], has: Mapping[Value, bool]) -> bool:
    """Whether what has the axis is as long as the result, and what has not is shorter."""
    rank = len(known(node.types[0].shape))
    return ranks == {rank} and all([
        has[v] or len(known(v.type.shape)) < rank for v in node.inputs
    ])  # fmt: skip


def _renewed(
    group: Group, shape: Callable[[Value], Shape], attrs: Callable[[Node], Attrs]
) -> Group:
    """The group with other shapes and attributes; itself if no shape changes."""
    if all([shape(v) == known(v.type.shape) for v in _values(group)]):
        return group
    mapped: dict[Value, Value] = {}
    for value in group.inputs:
        kind = TensorType(value.type.dtype, shape(value))
        given = {"dtype": kind.dtype, "shape": kind.shape}
        mapped[value] = Node("placeholder", (), given, (kind,), value.name).outputs[0]

    def renewed(node: Node) -> Node:
        types = tuple([TensorType(v.type.dtype, shape(v)) for v in node.outputs])
        inputs = tuple([mapped[v] for v in node.inputs])
        own = {**node.attrs, **attrs(node)}
        new = Node(node.op, inputs, own, types, node.name, source=node.source)
        mapped.update(zip(node.outputs, new.outputs, strict=True))
        return new

    before = tuple(map(renewed, group.before))
    nodes = tuple(map(renewed, group.nodes))
    inputs, outputs = (
        tuple([mapped[v] for v in values]) for values in (group.inputs, group.outputs)
    )
    return Group(nodes, inputs, outputs, before=before)
