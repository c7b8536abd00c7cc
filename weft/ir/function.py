"""Functions as attributes of nodes: the bodies of loops, branches and calls."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final, cast

from weft.ir.dtype import DType
from weft.ir.node import Node, TensorType, Value


@dataclass(frozen=True, eq=False)
class Function:
    """A subgraph: placeholders for its inputs, its outputs, and the nodes that compute them.

    Its nodes are in order, without the placeholders, and use no value from outside.
    """

    inputs: tuple[Value, ...]
    outputs: tuple[Value, ...]
    nodes: tuple[Node, ...]

    @property
    def input_types(self) -> tuple[TensorType, ...]:
        """Types of the inputs."""
        return tuple([v.type for v in self.inputs])

    @property
    def output_types(self) -> tuple[TensorType, ...]:
        """Types of the outputs."""
        return tuple([v.type for v in self.outputs])

    @property
    def details(self) -> Mapping[str, Any] | None:
        """What else identifies the function, as attributes; `None` where that has no text form."""
        return {}


_PLAIN: Final = frozenset({int, float, bool, str, DType, type(None)})


def functions(node: Node) -> list[Function]:
    """The functions among a node's attributes, in order."""
    return _among(node.attrs.values())


def _among(values: Iterable[Any]) -> list[Function]:
    found: list[Function] = []
    for value in values:
        kind = type(value)
        if kind is tuple:
            items = cast("tuple[Any, ...]", value)
            if not _PLAIN.issuperset(map(type, items)):
                found += _among(items)
        elif kind not in _PLAIN and isinstance(value, Function):
            found.append(value)
    return found


def map_functions(node: Node, change: Callable[[Any], Any]) -> Node:
    """The node with each function in its attributes replaced; the node itself if none changes."""
    if not functions(node):
        return node
    attrs = {name: changed(value, change) for name, value in node.attrs.items()}
    if all([attrs[name] is value for name, value in node.attrs.items()]):
        return node
    return node.with_attrs(attrs)


def changed(value: Any, change: Callable[[Any], Any]) -> Any:
    """The attribute with each function in it replaced."""
    if isinstance(value, Function):
        return change(value)
    if isinstance(value, tuple):
        items = cast("tuple[Any, ...]", value)
        found = tuple([changed(item, change) for item in items])
        same = all([a is b for a, b in zip(found, items, strict=True)])
        return items if same else found
    return value
