"""A partition as text: its stages, with what they receive and send.

stage 1 on /device:CPU:1
  receive v2: float32[4,3], 48 B from stage 0 on /device:CPU:0
  %sum: float32[] = sum(%receive/tanh/0:0) {keepdims: False, axes: (0, 1)}
  send v3: float32[], 4 B to the caller
"""

from __future__ import annotations

from collections.abc import Iterator

from weft.ir.device import DeviceName
from weft.ir.node import Node, TensorType
from weft.ir.printer import READABLE, format_node
from weft.ir.shape import is_stack, size
from weft.ops.boundary.state import CONSTANT, placeholder
from weft.ops.declaration import op_of
from weft.passes.partition import Partition, Stage


def format_partition(partition: Partition, nodes: bool = True) -> str:
    """The stages in order; with `nodes`, what they compute, without devices and lines."""
    found = [_stage(partition, i, nodes) for i in range(len(partition.stages))]
    return "\n".join([line for lines in found for line in lines])


def _stage(partition: Partition, number: int, nodes: bool) -> Iterator[str]:
    stage = partition.stages[number]
    after = f" after {', '.join(map(str, stage.after))}" if stage.after else ""
    yield f"stage {number} on {_short(stage.device)}{after}"
    for value in stage.inputs:
        yield f"  {_received(partition, stage, value)}"
    for node in stage.step.graph.nodes if nodes else ():
        if op_of(node) is not placeholder:
            yield f"  {_node(node)}"
    for value, given in zip(stage.outputs, stage.step.fetches, strict=True):
        yield f"  {_sent(partition, stage, value, given.name)}"
    for key, given in stage.step.new_values.items():
        yield f"  store {key!r} = %{given.name}"


def _received(partition: Partition, stage: Stage, value: int) -> str:
    for number, other in enumerate(partition.stages):
        if value in other.outputs:
            what = "keep" if other.device == stage.device else "receive"
            where = "" if what == "keep" else f" on {_short(other.device)}"
            return f"{what} {_value(partition, value)} from stage {number}{where}"
    return f"receive {_value(partition, value)} from the caller"


def _node(node: Node) -> str:
    """A node without its device and line; of a large constant, without its values."""
    large = op_of(node) is CONSTANT and node.attrs["value"].array.size > READABLE
    attrs = {} if large else node.attrs
    plain = Node(node.op, node.inputs, attrs, node.types, node.name, node.operands)
    return format_node(plain, indent="  ") + (" {...}" if large else "")


def _sent(partition: Partition, stage: Stage, value: int, name: str) -> str:
    readers = [(i, s) for i, s in enumerate(partition.stages) if value in s.inputs]
    far = [f"{i} on {_short(s.device)}" for i, s in readers if s.device != stage.device]
    near = [str(i) for i, s in readers if s.device == stage.device]
    to = [f"stage {', '.join([*near, *far])}"] if readers else []
    if value in partition.fetches:
        to.append("the caller")
    what = "send" if far or value in partition.fetches else "keep"
    return f"{what} {_value(partition, value)} to {' and '.join(to)} = %{name}"


def _value(partition: Partition, value: int) -> str:
    kind = partition.types[value]
    return f"v{value}: {kind}, {_bytes(kind):,} B"


def _bytes(kind: TensorType) -> int:
    return 0 if is_stack(kind.shape) else size(kind.shape) * kind.dtype.size


def _short(device: str) -> str:
    """A name without the parts that all devices of a local session share."""
    name = DeviceName.parse(device)
    if name.job == "localhost":
        return str(DeviceName(kind=name.kind, index=name.index))
    return device
