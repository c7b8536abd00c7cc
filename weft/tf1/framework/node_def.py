"""`op.node_def`: what an operation is, as a record."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from weft.formats.event import graph as drawing
from weft.ir.node import Node, Value


class Output(NamedTuple):
    """An output of an operation.

    Attributes:
        value: what is fetched and fed.
        used: what other operations read: the same, perhaps with a more specific shape.
        is_ref: whether it refers to a variable.
    """

    value: Value
    used: Value
    is_ref: bool


@dataclass
class NodeDef:
    """An operation as a record.

    Attributes:
        name: its unique name.
        op: TensorFlow's type name.
        input: names of what it reads, with suffix `:1` for a second output and prefix `^` for
            control dependencies.
        device: where it was put.
        attr: the values of `get_attr`.
        outputs: its results in Weft's graph.
        nodes: the nodes of Weft's graph that belong to it.
        groups: those that it is colocated with.
    """

    name: str = ""
    op: str = ""
    input: list[str] = field(default_factory=list[str])
    device: str = ""
    attr: Mapping[str, Any] = field(default_factory=dict[str, Any])
    outputs: Sequence[Output] = ()
    nodes: Sequence[Node] = ()
    groups: Sequence[bytes] = ()

    def drawn(self) -> drawing.NodeDef:
        """The operation as TensorBoard draws it."""
        shapes = [output.used.shape for output in self.outputs]
        kind = self.outputs[0].value.dtype.name if self.outputs else ""
        device = self.device or drawing.CPU
        return drawing.NodeDef(self.name, self.op, self.input, shapes, kind, {}, device)

    def __str__(self) -> str:
        fields = [("name", self.name), ("op", self.op), *[("input", x) for x in self.input]]
        fields += [("device", self.device)] if self.device else []
        return "".join([f'{name}: "{text}"\n' for name, text in fields])
