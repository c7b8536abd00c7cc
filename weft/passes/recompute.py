"""Recompute: groups recompute values where that is cheaper than reading or storing them.

After fusion, a value that another group reads is in memory. If it follows in a few cheap steps from
one other value in memory, the reading group repeats these steps: the distance from the mean in the
gradient of batch norm, the mask of a ReLU from its input. Then it reads one array less, and if all
readers do so, the value is never stored.

A convolution that packs its operand anyway takes such steps as a prologue: batch norm and ReLU
between two layers. That pays only if the value is then never stored. The same holds for a first
layer whose image is NCHW, and for a 1x1 convolution whose weights are transposed.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final

from weft.ir.node import Node, Value
from weft.ir.shape import known, size
from weft.ops.boundary.state import variable
from weft.ops.convolution.convolution import conv, conv_grad_weight
from weft.ops.declaration import Elementwise, Opaque, Reduce, family_of, op_of
from weft.ops.declaration.fact import Ability, Cost
from weft.ops.shape.reshape import transpose
from weft.passes.group import MOST_INPUTS, MOST_NODES, Fused, Group, nbytes

LEAST_BYTES: Final = 1 << 16
"""Smaller values are in cache anyway."""
SMALL: Final = 16
"""Values so many times smaller cost nothing to read."""
LONGEST: Final = 8
"""Maximum number of recomputed steps."""
PLANES: Final = 4
"""Maximum channels of an NCHW image that a convolution interleaves while it packs its block."""
FEWEST: Final = 32
"""Minimum channels and columns of such a convolution: below, it does not pack."""


def recompute(fused: Fused) -> Fused:
    """Recomputes values in the groups that read them."""
    kept = {*fused.aliases.values(), *map(fused.root, fused.outputs)}
    work = _Work([_Draft(g) for g in fused.groups], kept)
    for draft in work.drafts:
        for value in draft.group.outputs:
            work.consider(draft, value)
    left = [d for d in work.drafts if d.outputs or not d.group.outputs]
    return fused.with_groups([d.finished() for d in left])


@dataclass(eq=False)
class _Draft:
    """A group that is being changed."""

    group: Group
    before: dict[Node, None] = field(init=False)
    nodes: dict[Node, None] = field(init=False)
    inputs: dict[Value, None] = field(init=False)
    outputs: dict[Value, None] = field(init=False)

    def __post_init__(self) -> None:
        self.before = dict.fromkeys(self.group.before)
        self.nodes = dict.fromkeys(self.group.nodes)
        self.inputs = dict.fromkeys(self.group.inputs)
        self.outputs = dict.fromkeys(self.group.outputs)

    @property
    def opaque(self) -> bool:
        return isinstance(op_of(self.group.nodes[0]).lower, Opaque)

    def finished(self) -> Group:
        """The group; a new one if anything has changed."""
        group = self.group
        nodes, outputs, before = tuple(self.nodes), tuple(self.outputs), tuple(self.before)
        if (before, nodes, outputs) == (group.before, group.nodes, group.outputs):
            return group
        return Group(nodes, tuple(self.inputs), outputs, before)

    def operand(self, value: Value) -> bool:
        """Whether the opaque node reads `value`."""
        return self.opaque and value in next(iter(self.nodes)).inputs

    def takes(self, value: Value, sources: Iterable[Value]) -> bool:
        """Whether `value` may be recomputed here: read elementwise, over the whole domain."""
        rest = list(self.nodes)
        if value.node.device != self.group.device:
            return False
        if any(value in node.inputs for node in self.before):
            return False
        if self.operand(value):
            if not _read_through(rest.pop(0), value, sources):
                return False
            if not any(value in node.inputs for node in rest):
                return True
        return op_of(value.node) is not transpose and self._takes(rest, value)

    @staticmethod
    def _takes(nodes: Sequence[Node], value: Value) -> bool:
        domain = size(value.shape)
        for node in nodes:
            lower = op_of(node).lower
            if value in node.inputs and not isinstance(lower, Elementwise | Reduce):
                return False
            seen = node.inputs[0] if isinstance(lower, Reduce) else node.outputs[0]
            if size(seen.shape) > domain or (
                size(seen.shape) == domain and seen.shape != value.shape
            ):
                return False
        return True

    def add(self, value: Value, steps: Sequence[Node]) -> None:
        """Recomputes `value` here instead of reading it."""
        first = list(self.nodes)[: 1 if self.opaque else 0]
        rest = list(self.nodes)[len(first) :]
        if self.operand(value):
            self.before = dict.fromkeys([*steps, *self.before])
        if any(value in node.inputs for node in rest):
            self.nodes = dict.fromkeys([*first, *steps, *rest])
        self._find_inputs()

    def _find_inputs(self) -> None:
        first = list(self.nodes)[: 1 if self.opaque else 0]
        rest = list(self.nodes)[len(first) :]
        reads = [v for n in (*self.before, *first) for v in n.inputs if v.node not in self.before]
        reads += [v for n in rest for v in n.inputs if v.node not in self.nodes]
        self.inputs = dict.fromkeys(reads)

    def drop(self, value: Value) -> None:
        """Stops storing `value`, and removes what only it needed."""
        del self.outputs[value]
        needed = {v.node for v in self.outputs}
        for node in reversed(self.nodes):
            if node in needed:
                needed.update(v.node for v in node.inputs)
        self.nodes = {n: None for n in self.nodes if n in needed}
        self._find_inputs()


@dataclass(eq=False)
class _Work:
    drafts: list[_Draft]
    kept: set[Value]  # read by the caller or through views
    readers: dict[Value, list[_Draft]] = field(default_factory=dict[Value, list[_Draft]])

    def __post_init__(self) -> None:
        for draft in self.drafts:
            for value in draft.inputs:
                self.readers.setdefault(value, []).append(draft)

    def consider(self, home: _Draft, value: Value) -> None:
        """Recomputes `value` in its readers where that is cheaper."""
        readers = [d for d in self.readers.get(value, []) if value in d.inputs]
        if _bytes(value) < LEAST_BYTES or not readers:
            return
        steps: dict[Node, None] = {}
        sources: dict[Value, None] = {}
        if not _trace(home, value, value, steps, sources):
            return
        large = [v for v in sources if _bytes(v) * SMALL > _bytes(value)]
        able = [d for d in readers if d.takes(value, sources) and self._fits(d, steps, sources)]
        free = [d for d in able if all(v in d.inputs for v in large) and not d.operand(value)]
        same = len(large) == 1 and _bytes(large[0]) <= _bytes(value)
        everywhere = len(able) == len(readers) and value not in self.kept
        if everywhere and (same or len(free) == len(readers)):
            free = readers
        for draft in free:
            draft.add(value, list(steps))
            for source in sources:
                self.readers.setdefault(source, []).append(draft)
        if everywhere and len(free) == len(readers):
            home.drop(value)

    @staticmethod
    def _fits(draft: _Draft, steps: Iterable[Node], sources: Iterable[Value]) -> bool:
        return (
            len({*draft.nodes, *steps}) <= MOST_NODES
            and len({*draft.inputs, *sources}) <= MOST_INPUTS
        )


def _trace(
    home: _Draft, value: Value, root: Value, steps: dict[Node, None], sources: dict[Value, None]
) -> bool:
    """Collects how `root` follows from values in memory, first steps first."""
    node = value.node
    in_memory = value in home.outputs or node not in home.nodes
    if value is not root and in_memory:
        large = _bytes(value) * SMALL > _bytes(root)
        if op_of(node) is variable and large and not _is_matrix(root):
            return False  # an update wants to overwrite it
        sources[value] = None
        return True
    if node in steps:
        return True
    op = op_of(node)
    whole = value.shape == root.shape or not isinstance(op.lower, Elementwise)
    cheap = op.facts.cost is Cost.CHEAP and whole
    moved = value is root and (_is_image(value) or _is_matrix(value))
    if not cheap and not moved:
        return False
    if len(steps) >= LONGEST:
        return False
    if not all([_trace(home, v, root, steps, sources) for v in node.inputs]):
        return False
    steps[node] = None
    return True


def _read_through(node: Node, value: Value, sources: Iterable[Value]) -> bool:
    """Whether the matmul kernel can compute its operand `value` while it packs it."""
    if _is_matrix(value):
        apart = node.inputs[0] is not value is node.inputs[1]
        return apart and Ability.TURNS in family_of(node).abilities and node.attrs["groups"] == 1
    if (
        Ability.PROLOGUE not in family_of(node).abilities
        or node.inputs[0] is not value
        or node.inputs[1] is value
    ):
        return False
    weights = node.outputs[0] if op_of(node) is conv_grad_weight else node.inputs[1]
    *taps, channels, columns = known(weights.shape)
    if _is_image(value):
        single = op_of(node) is conv and node.attrs["groups"] == 1 < size(tuple(taps))
        return single and list(sources) == list(value.node.inputs)
    one = size(tuple(taps)) == node.attrs["groups"] == 1 and channels >= FEWEST
    apart = channels == 1 < node.attrs["groups"] == columns
    return (one or apart) and columns >= FEWEST and _alike(value, sources)


def _alike(value: Value, sources: Iterable[Value]) -> bool:
    """Whether a vector of `value` needs one vector of each large source, and column values."""
    row = known(value.shape)[-1]
    return value.dtype.name == "float32" and all(
        v.shape == value.shape and v.dtype is value.dtype
        if _bytes(v) * SMALL > _bytes(value)
        else size(v.shape) == 1 or size(v.shape) == row == known(v.shape)[-1]
        for v in sources
    )


def _is_matrix(value: Value) -> bool:
    """Whether it is the transposed matrix of a 1x1 convolution's weights."""
    if op_of(value.node) is not transpose or len(known(value.shape)) < 3:
        return False
    order = (*range(2, len(known(value.shape))), 1, 0)
    return value.node.attrs["perm"] == order and size(known(value.shape)[:-2]) == 1


def _is_image(value: Value) -> bool:
    """Whether it interleaves a few planes, as a first layer's input does."""
    if op_of(value.node) is not transpose or value.dtype.name != "float32":
        return False
    rank = len(known(value.shape))
    planes = (0, *range(2, rank), 1)
    return value.node.attrs["perm"] == planes and 1 < known(value.shape)[-1] <= PLANES


def _bytes(value: Value) -> int:
    return int(nbytes(value))
