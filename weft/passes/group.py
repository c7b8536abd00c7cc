"""Fused groups: the input of the code generator."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from weft.ir.node import Node, Value
from weft.ir.shape import is_stack, size
from weft.ops.boundary.state import CONSTANT
from weft.ops.declaration import op_of

LONGEST_NAME = 6  # operations
# With more, a group's kernel spills registers and compiles slowly.
MOST_NODES = 48
MOST_INPUTS = 20


def nbytes(value: Value) -> int:
    """Bytes of a value in the arena; 0 for a loop's stack, which lies elsewhere."""
    return 0 if is_stack(value.shape) else size(value.shape) * value.dtype.size


def row_bytes(stack: Value) -> int:
    """Bytes of a row of a loop's stack."""
    return size((stack.shape or ())[1:]) * stack.dtype.size


@dataclass(frozen=True, eq=False)
class Group:
    """Nodes that become one kernel (or a short fixed sequence of kernels).

    All shapes are concrete. The group has an iteration domain D, the largest shape in it, and a set
    R of reduced axes, empty if nothing reduces. A node has one of these forms:

    - *opaque*: at most one, and first. The rest is its epilogue: D is the shape of its output (with
      several outputs there is no epilogue), R is empty.
    - *full*: elementwise or shape operation (pull), of shape D.
    - *reduce*: a reduction of a full value or an input of shape D, over exactly R, axes kept or
      dropped.
    - *kept*: elementwise on reduced values (and inputs that broadcast to them), with the shape of a
      reduction over R, axes kept as 1 or dropped; or a reshape between these two shapes. Full nodes
      broadcast kept values.
    - *inlined*: elementwise, pull or constant of any other shape, used only inside the group and
      independent of reductions: computed wherever it is read.

    Where R is not a suffix of the axes, no full node depends on a reduction.

    The elementwise nodes `before` are the opaque node's prologue: they compute its operands as it
    reads them.
    """

    nodes: tuple[Node, ...]  # in order
    inputs: tuple[Value, ...]  # read from memory
    outputs: tuple[Value, ...]  # written to memory
    before: tuple[Node, ...] = ()  # the prologue of the opaque node, in order
    lasting: frozenset[Value] = frozenset()  # inputs that rarely change between steps
    repeated: bool = False  # runs many times a step with the same lasting inputs

    @property
    def device(self) -> str:
        """The device that its nodes ask for; constants may ask for another."""
        return self.nodes[-1].device

    @property
    def all_nodes(self) -> tuple[Node, ...]:
        """Nodes of the prologue and the group."""
        return (*self.before, *self.nodes)

    @property
    def operands(self) -> frozenset[Value]:
        """The operands of the opaque node in memory."""
        inside = set(self.before)
        reads = [v for n in (*self.before, *self.nodes[:1]) for v in n.inputs]
        return frozenset(v for v in reads if v.node not in inside)

    @property
    def name(self) -> str:
        """A readable name: the operations in order, abbreviated in the middle."""
        ops = [n.op for n in self.nodes if op_of(n) is not CONSTANT] or [CONSTANT.name]
        if len(ops) > LONGEST_NAME:
            ops = [*ops[: LONGEST_NAME - 2], f"{len(ops) - LONGEST_NAME + 1}more", ops[-1]]
        return "_".join(ops)


@dataclass(frozen=True)
class Fused:
    """Groups in an order that respects data dependencies, and views of their values."""

    groups: tuple[Group, ...]
    aliases: dict[Value, Value]  # a reshaped value -> the value whose memory it shares
    outputs: tuple[Value, ...]  # values of the step that are in memory for any reader

    def root(self, value: Value) -> Value:
        """The value that owns the memory of `value`."""
        while value in self.aliases:
            value = self.aliases[value]
        return value

    def with_groups(self, groups: Iterable[Group]) -> Fused:
        """The same values in other groups."""
        return replace(self, groups=tuple(groups))
