"""A graph for TensorBoard, and the time and memory of its nodes.

GraphDef        node = 1, versions = 4 (producer = 1)
NodeDef         name = 1, op = 2, input = 3, device = 4, attr = 5: a map of text to AttrValue
AttrValue       list = 1 (shape = 7), s = 2, type = 6, shape = 7
StepStats       dev_stats = 1: device = 1, node_stats = 2
NodeExecStats   node_name = 1, all_start_micros = 2, op_start_rel_micros = 3,
                op_end_rel_micros = 4, all_end_rel_micros = 5, memory = 6, thread_id = 10
Memory          allocator_name = 1, total_bytes = 2
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final, NamedTuple

from weft.formats import wire
from weft.formats.event import message

PRODUCER: Final = 22  # the graph version of PyTorch and tensorboardX
CPU: Final = "/device:CPU:0"


class NodeDef(NamedTuple):
    """A node; scopes in its name are separated by `/`.

    Attributes:
        name: its unique name.
        op: its operation.
        inputs: names of nodes, with suffix `:1` for a second output, prefix `^` for control
            dependencies.
        shapes: of its outputs; `None` for an unknown rank or dimension.
        dtype: the type of its outputs, by NumPy's name.
        attributes: strings that are shown beside it.
        device: its device.
    """

    name: str
    op: str
    inputs: Sequence[str] = ()
    shapes: Sequence[Sequence[int | None] | None] = ()
    dtype: str = ""
    attributes: dict[str, str] = {}  # noqa: RUF012  (a tuple's default; nothing changes it)
    device: str = CPU


class NodeTime(NamedTuple):
    """When a node ran, in microseconds, and the bytes of its results."""

    name: str
    start: int
    duration: int
    size: int = 0
    thread: int = 0


def graph_def(nodes: Iterable[NodeDef]) -> bytes:
    """A graph of these nodes."""
    content = b"".join([wire.delimited(1, _node(node)) for node in nodes])
    return content + wire.delimited(4, wire.integer(1, PRODUCER))


def _node(node: NodeDef) -> bytes:
    head = wire.delimited(1, node.name) + wire.delimited(2, node.op)
    head += b"".join([wire.delimited(3, name) for name in node.inputs])
    head += wire.delimited(4, node.device)
    for name, text in node.attributes.items():
        head += _attribute(name, wire.delimited(2, text))
    if node.dtype in message.DATA_TYPES:
        head += _attribute("T", wire.integer(6, message.DATA_TYPES[node.dtype]))
    if node.shapes:
        shapes = [wire.delimited(7, message.shape_proto(shape)) for shape in node.shapes]
        head += _attribute("_output_shapes", wire.delimited(1, b"".join(shapes)))
    return head


def _attribute(name: str, value: bytes) -> bytes:
    return wire.delimited(5, wire.delimited(1, name) + wire.delimited(2, value))


def run_metadata(times: Iterable[NodeTime], device: str = CPU) -> bytes:
    """When the nodes of one step ran."""
    content = wire.delimited(1, device)
    for time in times:
        node: Any = wire.delimited(1, time.name) + wire.integer(2, time.start)
        node += wire.integer(3, 0) + wire.integer(4, time.duration) + wire.integer(5, time.duration)
        if time.size:
            node += wire.delimited(6, wire.delimited(1, "cpu") + wire.integer(2, time.size))
        content += wire.delimited(2, node + wire.integer(10, time.thread))
    return wire.delimited(1, wire.delimited(1, content))
