"""Rematerialize: recomputes elementwise values for late readers instead of keeping them.

A training step reads most activations twice, early (forward) and late (backward), and its memory
peaks in between. A value that follows elementwise from values alive at its late readers is
recomputed before them, which frees its memory in between (Chen et al., "Training Deep Nets with
Sublinear Memory Cost"). This is done only if the late readers are matmuls or convolutions, beside
which one more write and read cost next to nothing: in a GPT-style decoder for the outputs of GELU
and layer norm, in a convolutional network for those of ReLU and batch norm (every second one in a
chain of residual blocks) and for weights transposed for the kernels.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Final

from weft.ir.graph import Graph
from weft.ir.node import Node, Value
from weft.ir.shape import known
from weft.ops.convolution.convolution import conv_grad_input, conv_grad_weight
from weft.ops.declaration import Alias, Boundary, Elementwise, Pull, op_of
from weft.ops.declaration.fact import Cost
from weft.ops.elementwise.compare import greater
from weft.ops.linalg.matmul import matmul
from weft.ops.shape.reshape import transpose
from weft.passes.group import nbytes
from weft.passes.step import Step

LEAST_BYTES: Final = 1 << 20
"""Smaller values are not worth a kernel."""
SMALL: Final = 16
"""An input so many times smaller than the value may be kept alive for it."""
GAP: Final = 32
"""Minimum distance in nodes between early and late readers: several kernels."""
LONGEST: Final = 8
"""Maximum operations of one recomputation."""
LEAST_WORK: Final = 100.0
"""Minimum arithmetic of the late readers per byte of the value: some 5 times the time of a copy."""

GRADIENTS: Final = frozenset({conv_grad_input, conv_grad_weight})
"""Operations whose late operands may be recomputed, besides matmuls."""
CONVOLUTION: Final = 4.0
"""Factor on the work of convolutions: images are most of a network's memory, and a residual
block's output (ResNet-50: 1x1 from 256 to 64, 32 operations a byte) is a few passes away.
"""
MASKS: Final = frozenset({greater})
"""Late readers other than matmuls that cost nothing: the mask of a ReLU."""


def rematerialize(step: Step) -> Step:
    """Recomputes large elementwise values for matmuls and convolutions that come much later."""
    if len(step.graph.nodes) <= GAP:
        return step
    again = _Finder(step.graph).find()
    return step.with_graph(_rebuilt(step.graph, again)) if again else step


@dataclass(frozen=True)
class _Again:
    """A value that these nodes recompute, in order, for readers from a position on."""

    value: Value
    chain: tuple[Node, ...]
    since: int


@dataclass
class _Finder:
    """Finds values with a gap between readers that follow from values alive across the gap."""

    graph: Graph
    place: dict[Node, int] = field(default_factory=dict[Node, int])
    readers: dict[Value, list[int]] = field(default_factory=dict[Value, list[int]])

    def __post_init__(self) -> None:
        for position, node in enumerate(self.graph.nodes):
            self.place[node] = position
            for value in dict.fromkeys(node.inputs):
                self.readers.setdefault(value, []).append(position)
        for value in self.graph.outputs:
            self.readers.setdefault(value, []).append(len(self.graph.nodes))

    def find(self) -> list[_Again]:
        """What to recompute; a value that another recomputation reads is kept."""
        found: list[_Again] = []
        leaned_on: set[Value] = set()
        for node in reversed(self.graph.nodes):
            if not (isinstance(op_of(node).lower, Elementwise) or op_of(node) is transpose):
                continue
            value = node.outputs[0]
            since = None if value in leaned_on else self._gap(value)
            if since is None:
                continue
            chain: dict[Node, None] = {}
            leaves: set[Value] = set()
            if self._bridge(value, value, since, chain, leaves):
                order = tuple(sorted(chain, key=self.place.__getitem__))
                found.append(_Again(value, order, since))
                leaned_on |= leaves
        return found

    def _gap(self, value: Value) -> int | None:
        """The first reader after the widest gap between readers, if it pays to free the memory."""
        reads = self.readers.get(value, [])
        if len(reads) < 2 or reads[-1] == len(self.graph.nodes):
            return None
        widest, since = max((later - sooner, later) for sooner, later in pairwise(reads))
        if widest < GAP or nbytes(value) < LEAST_BYTES:
            return None
        late = [self.graph.nodes[i] for i in reads if i >= since]
        work = sum(map(self._flops, late)) / nbytes(value)
        return since if work >= LEAST_WORK else None

    def _flops(self, node: Node) -> float:
        """Arithmetic of a matmul, also behind views; minus infinity for readers that exclude it."""
        op = op_of(node)
        if isinstance(op.lower, Alias):
            reads = self.readers.get(node.outputs[0], [])
            if reads and reads[-1] == len(self.graph.nodes):
                return -math.inf
            return sum(self._flops(self.graph.nodes[i]) for i in reads)
        if op in MASKS:
            return 0.0
        if op is not matmul and op not in GRADIENTS:
            return -math.inf
        assert op.facts.work is not None
        shapes = [known(v.shape) for v in (*node.inputs, *node.outputs)]
        flops = 2.0 * op.facts.work.products(*shapes, **node.attrs)
        return flops * CONVOLUTION if op in GRADIENTS else flops

    def _bridge(
        self, value: Value, root: Value, since: int, chain: dict[Node, None], leaves: set[Value]
    ) -> bool:
        """Collects the nodes that compute `root` from values alive at `since`."""
        if value in leaves or value.node in chain:
            return True
        if value is not root and self._lives(value, root, since):
            leaves.add(value)
            return True
        op = op_of(value.node)
        movable = isinstance(op.lower, Elementwise | Pull)
        again = movable and op.facts.cost is not Cost.EXPENSIVE
        if not again or len(chain) >= LONGEST:
            return False
        chain[value.node] = None
        return all(self._bridge(v, root, since, chain, leaves) for v in value.node.inputs)

    def _lives(self, value: Value, root: Value, since: int) -> bool:
        if isinstance(op_of(value.node).lower, Boundary) or nbytes(value) * SMALL <= nbytes(root):
            return True
        reads = self.readers[value]
        return bisect_left(reads, since) < len(reads)


def _rebuilt(graph: Graph, again: Sequence[_Again]) -> Graph:
    """The graph with copies of the chains just before the first late reader."""
    due: dict[int, list[_Again]] = {}
    for item in reversed(again):  # a value before those computed from it
        due.setdefault(item.since, []).append(item)
    out = Graph()
    now: dict[Value, Value] = {}  # current replacements of values
    for position, node in enumerate(graph.nodes):
        for item in due.get(position, ()):
            copies = dict(now)
            for old in item.chain:
                new = _copy(old, item.value, copies)
                copies.update(zip(old.outputs, out.append(new).outputs, strict=True))
            now[item.value] = copies[item.value]
        new = out.append(node.with_inputs(tuple([now[v] for v in node.inputs])))
        now.update(zip(node.outputs, new.outputs, strict=True))
    out.outputs = tuple([now[v] for v in graph.outputs])
    return out


def _copy(node: Node, of: Value, now: dict[Value, Value]) -> Node:
    return Node(
        node.op, tuple([now[v] for v in node.inputs]), node.attrs, node.types,
        f"{node.name}/again/{of.node.name}", device=node.device, source=node.source,
        regions=node.regions,
    )  # fmt: skip
