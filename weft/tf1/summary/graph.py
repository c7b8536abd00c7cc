"""A graph of operations as TensorBoard draws it."""

from __future__ import annotations

from typing import Any

from weft.formats.event.graph import CPU, NodeDef
from weft.tf1.framework.graph import Graph
from weft.tf1.framework.tensor import Operation, Tensor


def graph_nodes(graph: Graph) -> list[NodeDef]:
    """The operations of a graph, by their names."""
    return [_defined(op) for op in graph.get_operations()]


def _defined(op: Operation) -> NodeDef:
    inputs = [_input(tensor) for tensor in op.inputs]
    inputs += [f"^{before.name}" for before in op.control_inputs]
    outputs = op.outputs
    shapes: list[Any] = [_shape(tensor) for tensor in outputs]
    dtype = outputs[0].dtype.base_dtype.name if outputs else ""
    return NodeDef(op.name, op.type, inputs, shapes, dtype, {}, op.device or CPU)


def _input(tensor: Tensor) -> str:
    return tensor.op.name if tensor.value_index == 0 else tensor.name


def _shape(tensor: Tensor) -> list[int | None] | None:
    shape = tensor.get_shape()
    return None if shape.ndims is None else shape.as_list()
