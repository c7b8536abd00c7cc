"""The launch of what Python computes in the middle of a program."""

from __future__ import annotations

from weft.ir.node import Node
from weft.ops.declaration import writes_into
from weft.passes.launch import Kernel, Launch


def python_call(node: Node) -> Launch:
    """A launch that is never compiled: the program calls the node's reference."""
    count, total = len(node.inputs), len(node.inputs) + len(node.outputs)
    args, kernel = (*node.inputs, *node.outputs), Kernel(node.op, "")
    pairs = [(total - i, count - i) for i in range(1, min(count, total - count) + 1)]
    inplace = tuple(pairs) if writes_into(node) is not None else ()
    return Launch(kernel, args, tuple(range(count, total)), inplace=inplace, check=True)
