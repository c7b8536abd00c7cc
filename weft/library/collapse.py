"""Elementwise groups with as few axes as their broadcasts need: tensors of all ranks share kernels.

Adjacent axes become one where each value either has both or is broadcast along both. So what does
not broadcast has one axis, a row under a matrix has two, a channel's numbers in images three. A row
has no axis of one element before it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from weft.ir.node import Node, TensorType, Value
from weft.ir.shape import known
from weft.library.form import name_of
from weft.library.squeeze import squeezed
from weft.ops.boundary.state import CONSTANT
from weft.ops.declaration import Elementwise, op_of
from weft.ops.random.counter_based import random_bits
from weft.ops.shape.broadcast import broadcast_to
from weft.passes.group import Group

_SHAPED: Final = frozenset({broadcast_to, random_bits})
"""Operations that are told the shape of their result, whose elements follow from their order."""


class _Axis(NamedTuple):
    """Axes of the group that become one.

    Attributes:
        first, end: positions, counted from the last one of a shape.
        size: the product of their sizes.
        present: for each value whether it has them.
    """

    first: int
    end: int
    size: int
    present: tuple[bool, ...]


def collapsed(group: Group) -> Group:
    """The group with fewer axes, if it has more than it needs; else itself.

    Groups of other operations: see `weft.library.squeeze`.
    """
    shapes = _shapes(group)
    axes = None if shapes is None else _axes(shapes)
    if shapes is None or axes is None or all([len(_kept(s, axes)) == len(s) for s in shapes]):
        return squeezed(group)
    mapped: dict[Value, Value] = {}
    for value in group.inputs:
        kind = _resized(value.type, axes)
        attrs = {"dtype": kind.dtype, "shape": kind.shape}
        mapped[value] = Node("placeholder", (), attrs, (kind,), value.name).outputs[0]
    nodes = tuple([_renewed(node, axes, mapped) for node in group.nodes])
    inputs, outputs = (
        tuple([mapped[v] for v in values]) for values in (group.inputs, group.outputs)
    )
    return Group(nodes, inputs, outputs)


def _shapes(group: Group) -> list[tuple[int, ...]] | None:
    """The shapes of all values; `None` if the group has more than elementwise operations."""
    if group.before or not all(map(_is_simple, group.nodes)):
        return None
    values = [*group.inputs, *[y for node in group.nodes for y in node.outputs]]
    shapes = [known(v.type.shape) for v in values]
    rank = max(map(len, shapes))
    whole = all([len(known(y.type.shape)) == rank for y in group.outputs])
    return (
        None if not whole or any([type(d) is int and d < 1 for s in shapes for d in s]) else shapes
    )


def _is_simple(node: Node) -> bool:
    op = op_of(node)
    if op is CONSTANT:
        return not known(node.types[0].shape)
    return op in _SHAPED or isinstance(op.lower, Elementwise)


def _axes(shapes: Sequence[tuple[int, ...]]) -> list[_Axis] | None:
    """The axes that are left, the last one first; `None` if some value fits no other."""
    found: list[_Axis] = []
    for place in range(max(map(len, shapes))):
        dims = [shape[-1 - place] if place < len(shape) else 1 for shape in shapes]
        names = [name_of(d) for d in dims]
        sizes = {name: d for name, d in zip(names, dims, strict=True) if name is not None}
        if len(sizes) > 1:
            return None
        if not sizes:
            continue  # of size 1 throughout
        (size,) = sizes.values()
        present = tuple([name is not None for name in names])
        if found and found[-1].present == present:
            found[-1] = found[-1]._replace(end=place + 1, size=found[-1].size * size)
        else:
            found.append(_Axis(place, place + 1, size, present))
    return found


def _resized(kind: TensorType, axes: Sequence[_Axis]) -> TensorType:
    return TensorType(kind.dtype, _kept(known(kind.shape), axes))


def _kept(shape: tuple[int, ...], axes: Sequence[_Axis]) -> tuple[int, ...]:
    """The shape that is left, without axes of one element before the others."""
    dims = [_dim(shape, axis) for axis in axes if axis.first < len(shape)]
    while dims and name_of(dims[-1]) is None:
        del dims[-1]
    return tuple(dims[::-1])


def _dim(shape: tuple[int, ...], axis: _Axis) -> int:
    own = [shape[-1 - place] for place in range(axis.first, min(axis.end, len(shape)))]
    return axis.size if any([name_of(d) is not None for d in own]) else 1


def _renewed(node: Node, axes: Sequence[_Axis], mapped: dict[Value, Value]) -> Node:
    types = tuple([_resized(kind, axes) for kind in node.types])
    attrs: dict[str, Any] = dict(node.attrs)
    if op_of(node) in _SHAPED:
        attrs["shape"] = types[0].shape
    inputs = tuple([mapped[v] for v in node.inputs])
    new = Node(node.op, inputs, attrs, types, node.name, source=node.source)
    mapped.update(zip(node.outputs, new.outputs, strict=True))
    return new
