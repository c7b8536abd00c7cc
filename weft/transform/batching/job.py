"""One node to batch, the table of rules, and what rules share."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from weft.errors import ShapeError
from weft.ir.node import Node, TensorType, Value
from weft.ir.shape import Shape, is_stack, is_static, known, show
from weft.ops.control.scan import reads_stacks
from weft.ops.declaration import Op, catalogue, op_of
from weft.ops.declaration.attribute import is_complete, known_value


@dataclass(frozen=True)
class Job:
    """A node of a function of one example, with inputs for a batch of examples.

    `x[i]` has the batch, of `size` examples, along axis 0 where `mapped[i]`; otherwise all examples
    share it. `attrs` are the node's, in normal form, and `shapes` those of one example's inputs.
    `fresh_bits` is as in `vmap.batch`.
    """

    node: Node
    op: Op
    attrs: Mapping[str, Any]
    shapes: tuple[tuple[int, ...], ...]
    xs: tuple[Value, ...]
    mapped: tuple[bool, ...]
    size: int
    fresh_bits: bool

    @property
    def types(self) -> tuple[TensorType, ...]:
        """Types of one example's inputs."""
        return tuple(v.type for v in self.node.data_inputs)

    def spread(self) -> tuple[Value, ...]:
        """All inputs, each with a leading batch axis."""
        return tuple(map(self.spread_one, range(len(self.xs))))

    def spread_one(self, i: int) -> Value:
        """Input `i` with a leading batch axis."""
        x = self.xs[i]
        return x if self.mapped[i] else repeated(x, self.size)

    def aligned(self, rank: int | None = None) -> tuple[Value, ...]:
        """Inputs that broadcast as one example's do: axes of 1 follow the batch axis."""
        most = max(map(len, self.shapes)) if rank is None else rank
        return tuple(
            leading(x, self.size, shape, most) if mapped else x
            for x, shape, mapped in zip(self.xs, self.shapes, self.mapped, strict=True)
        )

    def again(self, *xs: Value, **attrs: Any) -> tuple[Value, ...]:
        """The node's operation on other inputs, with some attributes changed."""
        return self.op.all(*xs, **{**self.attrs, **attrs})


@dataclass(frozen=True)
class Same:
    """Marks an output of a rule that all examples share."""

    value: Value


Rule = Callable[[Job], Sequence[Value | Same] | None]
"""Returns the outputs with a leading batch axis, or `None` if the rule does not apply."""
Table = dict[str, Rule]


def entering(table: Table) -> Callable[..., Callable[[Rule], Rule]]:
    """A decorator `rule(*names)` that enters a rule in `table` for each named operation."""

    def rule(*names: str) -> Callable[[Rule], Rule]:
        def enter(function: Rule) -> Rule:
            table.update(dict.fromkeys(names, function))
            return function

        return enter

    return rule


def job_of(
    node: Node, xs: Sequence[Value], mapped: Sequence[bool], size: int, fresh_bits: bool
) -> Job:
    """The job of batching `node`; inputs that supply attributes must be known constants.

    Raises:
        ShapeError: a shape or an attribute is not known.
    """
    op, data = op_of(node), len(node.data_inputs)
    attrs = {**op.attrs, **node.attrs}
    for name, operand in zip(node.operands, xs[data:], strict=True):
        attrs[name] = known_value(operand)
        if not is_complete(attrs[name]):
            raise ShapeError(f"vmap: expected {name} to be known, got {operand}: {node.describe()}")
    stacks = reads_stacks(op, attrs)
    shapes = tuple(_known(v.shape, node, stacks) for v in node.data_inputs)
    normal = op.normal(*shapes, **attrs)
    return Job(node, op, normal, shapes, tuple(xs[:data]), tuple(mapped[:data]), size, fresh_bits)


def _known(shape: Shape, node: Node, stacks: bool) -> tuple[int, ...]:
    if stacks and is_stack(shape):
        return cast("tuple[int, ...]", shape)
    if not is_static(shape):
        raise ShapeError(f"vmap: expected known shapes, got {show(shape)}: {node.describe()}")
    return known(shape)


def repeated(x: Value, size: int) -> Value:
    """Broadcasts `x` along a new leading batch axis."""
    return catalogue.broadcast_to(x, shape=(size, *known(x.shape)))


def leading(x: Value, size: int, shape: tuple[int, ...], rank: int) -> Value:
    """Inserts axes of 1 after the batch axis of `shape`, so that examples have `rank`."""
    if len(shape) == rank:
        return x
    return catalogue.reshape(x, shape=(size, *[1] * (rank - len(shape)), *shape))


def moved(x: Value, axis: int, to: int) -> Value:
    """Moves `axis` of `x` to the position `to`, as `moveaxis`."""
    rest = [i for i in range(len(known(x.shape))) if i != axis]
    perm = (*rest[:to], axis, *rest[to:])
    return x if perm == tuple(sorted(perm)) else catalogue.transpose(x, perm=perm)
