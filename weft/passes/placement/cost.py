"""Estimated times of nodes and transfers, in nanoseconds, for placement and for cutting stages.

Rather too low, like `weft.runtime.execution.call.estimate_ns`: kernels fuse, and share caches.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from weft.ir.node import Node, Value
from weft.ir.shape import is_stack, known, size
from weft.ops.boundary.state import CONSTANT, placeholder, variable
from weft.ops.declaration import Alias, inner_nodes, op_of
from weft.passes.launch import BYTES_PER_NS, FLOPS_PER_NS

PYTHON_NS: Final = 20_000.0
"""A call of Python in a step."""


@dataclass(frozen=True)
class Link:
    """A way between two devices.

    Attributes:
        latency_ns: of any transfer.
        bytes_per_ns: of a large one.
    """

    latency_ns: float
    bytes_per_ns: float

    def ns(self, count: int) -> float:
        """The time of a transfer of so many bytes."""
        return self.latency_ns + count / self.bytes_per_ns


LOCAL: Final = Link(30_000.0, 1e6)
"""In a process nothing is copied, but another thread must wake up."""
REMOTE: Final = Link(100_000.0, 1.0)
"""Until it is measured."""


def nbytes(value: Value) -> int:
    """Bytes of a value; of one row if their number is unknown."""
    shape = value.shape
    if is_stack(shape):
        shape = (shape or ())[1:]
    return size(shape) * value.dtype.size


def node_ns(node: Node) -> float:
    """The time of a node on one thread."""
    op = op_of(node)
    if op in (placeholder, variable, CONSTANT) or isinstance(op.lower, Alias):
        return 0.0
    facts = op.facts
    if facts.runs is not None:
        return facts.runs(**node.attrs) * sum(map(node_ns, inner_nodes(node)))
    found = sum(map(nbytes, (*node.inputs, *node.outputs))) / BYTES_PER_NS
    if facts.ordered:
        found += PYTHON_NS
    if facts.work is not None:
        shapes = [known(v.shape) for v in (*node.inputs, *node.outputs)]
        flops = 2.0 * facts.work.products(*shapes, **{**op.attrs, **node.attrs})
        found = max(found, flops / FLOPS_PER_NS)
    return found
