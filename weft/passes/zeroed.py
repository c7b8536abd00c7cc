"""Zeroed: finds variables that become zeros, which no kernel needs to write."""

from __future__ import annotations

from dataclasses import replace

from weft.ir.graph import Graph
from weft.ir.node import TensorType, Value
from weft.ir.shape import is_static, size
from weft.ops.boundary.state import CONSTANT
from weft.ops.declaration import op_of
from weft.ops.shape.broadcast import broadcast_to
from weft.passes.prune import prune
from weft.passes.step import Step


def zeroed(step: Step, least: int) -> tuple[Step, dict[str, TensorType]]:
    """The step without variables that become zeros, and these with their types.

    Args:
        step: any.
        least: bytes of a variable that is taken out.
    """
    found = {k: v.type for k, v in step.new_values.items() if _is_zeros(v, least)}
    if not found:
        return step, found
    kept = {key: value for key, value in step.new_values.items() if key not in found}
    graph = Graph(step.graph.nodes, (*step.fetches, *kept.values()))
    return prune(replace(step, graph=graph, updates=tuple(kept))), found


def _is_zeros(x: Value, least: int) -> bool:
    """Whether all bits of a value are known to be zero."""
    shape, dtype = x.type.shape, x.type.dtype.numpy
    if op_of(x.node) is not broadcast_to or dtype.hasobject or not is_static(shape):
        return False
    source = x.node.inputs[0].node
    if size(shape) * dtype.itemsize < least or op_of(source) is not CONSTANT:
        return False
    return not any(source.attrs["value"].array.tobytes())
