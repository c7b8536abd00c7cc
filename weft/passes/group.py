"""Fused groups: what the fusion pass hands to the code generator."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from weft.ir.node import Node, Value
from weft.ir.shape import is_stack, size
from weft.ops.base import Reduce, family_of, op_of
from weft.ops.boundary.state import CONSTANT
from weft.ops.declaration.fact import Ability

LONGEST_NAME = 6  # operations
# More than this and a group's kernel runs out of registers and compiles slowly.
MOST_NODES = 48
MOST_INPUTS = 20


def nbytes(value: Value) -> int:
    """Bytes of a value in the arena; none of a loop's stack, which lies elsewhere."""
    return 0 if is_stack(value.shape) else size(value.shape) * value.dtype.size


def row_bytes(stack: Value) -> int:
    """Bytes of a row of a loop's stack."""
    return size((stack.shape or ())[1:]) * stack.dtype.size


def gathers(node: Node) -> bool:
    """Whether a node is a statistic that the kernel of a product may take while it stores."""
    return isinstance(op_of(node).lower, Reduce) or Ability.STATISTIC in family_of(node).abilities


@dataclass(frozen=True, eq=False)
class Group:
    """Nodes that become one kernel (or a short fixed sequence of kernels).

    All shapes are concrete. The group has a domain D, the largest shape in it, and a set R of
    reduced axes, empty if nothing reduces. A node is of one of these forms:

    - *opaque*: at most one, and first. The rest is its epilogue: D is the shape of its output
      (with several outputs there is no epilogue), R is empty. After a convolution statistics of
      full values may follow (`gathers`), over all axes but the last, which nothing in the group
      reads.
    - *full*: elementwise or pull, of shape D.
    - *reduce*: of a full value or an input of shape D, over exactly R, keeping the axes or not.
    - *kept*: elementwise on reduced values (and inputs that broadcast to them), of the shape that
      a reduction over R gives, axes kept as 1 or dropped; or a reshape between these two shapes.
      Full nodes read kept values by broadcasting.
    - *inlined*: elementwise, pull or constant of any other shape, used inside the group only, and
      not depending on a reduction: computed wherever it is read.

    Where R is not a suffix of the axes, no full node depends on a reduction.

    What the opaque node reads may be computed as it is read, by the elementwise nodes `before`.

    A gradient by weights may stand `beside` the gradient by x, as a group of its own without
    `before`: one kernel reads the cotangent for both. Inputs and outputs are those of both, and
    `before` computes operands of either.
    """

    nodes: tuple[Node, ...]  # in order
    inputs: tuple[Value, ...]  # read from memory
    outputs: tuple[Value, ...]  # written to memory
    before: tuple[Node, ...] = ()  # computes operands of the opaque node, in order
    lasting: frozenset[Value] = frozenset()  # inputs that are most often what they were before
    beside: Group | None = None  # another product that the kernel computes
    repeated: bool = False  # many times in a step, in which lasting inputs stay what they are

    @property
    def products(self) -> tuple[Node, ...]:
        """The first node, and that of the group beside."""
        return self.nodes[:1] + (self.beside.nodes[:1] if self.beside else ())

    @property
    def all_nodes(self) -> tuple[Node, ...]:
        """What is computed before, here and beside."""
        return (*self.before, *self.nodes, *(self.beside.nodes if self.beside else ()))

    @property
    def operands(self) -> frozenset[Value]:
        """What the products read from memory."""
        inside = set(self.before)
        reads = [v for n in (*self.before, *self.products) for v in n.inputs]
        return frozenset(v for v in reads if v.node not in inside)

    @property
    def name(self) -> str:
        """A name for people: the operations in order, the middle of many left out."""
        ops = [n.op for n in self.nodes if op_of(n) is not CONSTANT] or [CONSTANT.name]
        if len(ops) > LONGEST_NAME:
            ops = [*ops[: LONGEST_NAME - 2], f"{len(ops) - LONGEST_NAME + 1}more", ops[-1]]
        return "_".join(ops)


@dataclass(frozen=True)
class Fused:
    """Groups in an order that respects data, and what other views of memory exist."""

    groups: tuple[Group, ...]
    aliases: dict[Value, Value]  # a reshaped value -> the value whose memory it shares
    outputs: tuple[Value, ...]  # of the step: in memory whoever reads them

    def root(self, value: Value) -> Value:
        """The value that owns the memory of `value`."""
        while value in self.aliases:
            value = self.aliases[value]
        return value

    def with_groups(self, groups: Iterable[Group]) -> Fused:
        """The same values in other groups."""
        return replace(self, groups=tuple(groups))
