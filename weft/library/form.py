"""Forms: what a group computes, with its sizes apart.

Groups of one form share kernels. Each size above 1 becomes an extent, and equal sizes become one:
a square matmul and a rectangular one are two forms.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from weft.ir.extent import Extent
from weft.ir.node import Node, TensorType, Value
from weft.ir.shape import known
from weft.ops.boundary.state import CONSTANT
from weft.ops.declaration import op_of
from weft.passes.group import Group

SIZES: Final = frozenset({"shape", "begin", "end", "sizes", "size", "paddings"})
"""Attributes that hold sizes and places, whatever the operation."""


class UnsizedError(Exception):
    """A size is where none is expected, so that the group has no form."""


class Form(NamedTuple):
    """A group with its sizes apart.

    Attributes:
        key: equal for groups that differ in sizes alone.
        sizes: one for each extent; extents themselves, if those of the group are.
    """

    key: Hashable
    sizes: tuple[int, ...]


class _Marks:
    """Numbers the sizes of a group by first appearance."""

    def __init__(self) -> None:
        self.number: dict[Hashable, str] = {}
        self.sizes: list[int] = []

    def of(self, x: Any) -> Any:
        """A number, or nested tuples of numbers, with marks for sizes."""
        if type(x) is tuple:
            return tuple([self.of(item) for item in x])
        name = name_of(x)
        if name is None:
            return x
        found = self.number.get(name)
        if found is None:
            found = self.number[name] = f"@{len(self.sizes)}"
            self.sizes.append(x)
        return found

    def type(self, kind: TensorType) -> Hashable:
        """A type with marks for sizes."""
        return kind.dtype, self.of(known(kind.shape))


def name_of(x: Any) -> Hashable | None:
    """What tells a size from others; `None` of what is no size."""
    if type(x) is Extent:
        return "extent", x.index
    return x if type(x) is int and x > 1 else None


def _plain(x: Any) -> Any:
    """An attribute that holds no size.

    Raises:
        UnsizedError: it holds an extent.
    """
    if type(x) is Extent:
        raise UnsizedError
    if type(x) is tuple:
        for item in x:
            _plain(item)
    return x


def form_of(group: Group) -> Form:
    """The form of a group.

    Raises:
        UnsizedError: it has none.
    """
    marks = _Marks()
    number: dict[Value, int] = {value: i for i, value in enumerate(group.inputs)}
    read = tuple([marks.type(v.type) for v in group.inputs])
    nodes: list[Hashable] = []
    for node in group.all_nodes:
        inputs = tuple([number[v] for v in node.inputs])
        attrs = tuple([
            (k, marks.of(v) if k in SIZES else _plain(v)) for k, v in node.attrs.items()
        ])  # fmt: skip
        nodes.append((node.op, inputs, attrs, tuple(map(marks.type, node.types))))
        for value in node.outputs:
            number[value] = len(number)
    outputs = tuple([number[v] for v in group.outputs])
    cuts = len(group.before), len(group.nodes)
    return Form((read, tuple(nodes), outputs, cuts), tuple(marks.sizes))


def resized(
    group: Group, places: Sequence[int], sizes: Sequence[int], made: Callable[[int], int]
) -> Group:
    """The group at other sizes.

    Args:
        places: its sizes now, in the order of its form.
        sizes: their values.
        made: makes what stands for a value.
    """
    pairs = zip(places, sizes, strict=True)
    bases = {name_of(x): made(value) for x, value in pairs}
    mapped: dict[Value, Value] = {}
    for value in group.inputs:
        (kind,) = _types((value.type,), bases)
        attrs = {"dtype": kind.dtype, "shape": kind.shape}
        stand_in = Node("placeholder", (), attrs, (kind,), value.name)
        mapped[value] = stand_in.outputs[0]

    def renewed(nodes: tuple[Node, ...]) -> tuple[Node, ...]:
        return tuple([_renewed(node, bases, mapped) for node in nodes])

    before, nodes = renewed(group.before), renewed(group.nodes)
    values = (
        tuple([mapped[v] for v in values]) for values in (group.inputs, group.outputs)
    )  # fmt: skip
    return Group(nodes, *values, before=before)


def _renewed(node: Node, bases: Mapping[Hashable, int], mapped: dict[Value, Value]) -> Node:
    attrs = {k: _sized(v, bases) if k in SIZES else v for k, v in node.attrs.items()}
    inputs = tuple([mapped[v] for v in node.inputs])
    if op_of(node) is CONSTANT:
        attrs = dict(node.attrs)
    new = Node(node.op, inputs, attrs, _types(node.types, bases), node.name, source=node.source)
    mapped.update(zip(node.outputs, new.outputs, strict=True))
    return new


def _types(kinds: tuple[TensorType, ...], bases: Mapping[Hashable, int]) -> tuple[TensorType, ...]:
    return tuple([TensorType(k.dtype, _sized(known(k.shape), bases)) for k in kinds])


def _sized(x: Any, bases: Mapping[Hashable, int]) -> Any:
    if type(x) is tuple:
        return tuple([_sized(item, bases) for item in x])
    name = name_of(x)
    return x if name is None else bases[name]
