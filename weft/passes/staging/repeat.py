"""Cheap values are computed again in a later stage of their device rather than kept for it.

A stage that keeps a value for later stores it, where a kernel would otherwise only have passed it
on in a register. If what it is computed from is stored anyway, a later stage computes it again,
fused with what reads it, as a program of one device does.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from weft.ir.node import Node, Value
from weft.ir.shape import is_stack
from weft.ops.boundary.state import placeholder, variable
from weft.ops.declaration import Alias, Elementwise, Pull, op_of
from weft.ops.declaration.fact import Cost
from weft.passes.group import Fused
from weft.passes.placement.cost import nbytes
from weft.passes.staging.build import Draft, Drafts
from weft.passes.step import Step


def repeat_cheap(drafts: Drafts, grouped: Callable[[Step], Fused]) -> None:
    """Lets later stages compute what is cheaper to compute again than to keep.

    Args:
        grouped: gives the kernels of the step on one device, which tell what would be stored.
    """
    if not any([_is_kept(d) for d in drafts.in_order()]):
        return
    chosen = _Choice(drafts, grouped(drafts.layout.step))
    for node in reversed(drafts.layout.step.graph.nodes):
        if drafts.layout.is_computed(node) and _is_cheap(node):
            readers = chosen.readers(node.outputs[0])
            if readers and chosen.is_cheaper(node, readers):
                drafts.repeat(node.outputs[0], readers)
    drafts.settle()


def _is_kept(draft: Draft) -> bool:
    """Whether a stage receives anything from a stage of its device."""
    return any([
        isinstance(x, Value) and op_of(x.node) is not placeholder for x in draft.received
    ])  # fmt: skip


def _is_cheap(node: Node) -> bool:
    op = op_of(node)
    fusible = isinstance(op.lower, Elementwise | Pull | Alias) and len(node.outputs) == 1
    return fusible and op.facts.cost is not Cost.EXPENSIVE and not op.stateful


class _Choice:
    def __init__(self, drafts: Drafts, fused: Fused) -> None:
        self.drafts, self.layout, self.fused = drafts, drafts.layout, fused
        self.fetched = frozenset(self.layout.step.fetches)
        self.stored = {v for group in fused.groups for v in group.outputs}
        self._costs: dict[Value, float] = {}

    def readers(self, value: Value) -> list[Draft]:
        """The stages that receive a value, if it is only kept for stages of its device."""
        position = self.drafts.places[value.node]
        if value in self.fetched or is_stack(value.shape):
            return []
        found = [d for d in self.drafts.in_order() if value in d.received]
        return found if all(d.position.device == position.device for d in found) else []

    def is_cheaper(self, node: Node, readers: Sequence[Draft]) -> bool:
        """Whether what it is computed from takes no more room than its result."""
        value = node.outputs[0]
        if self.fused.root(value) in self.stored:
            return False
        if not all([self._is_readable(v, readers) for v in node.inputs]):
            return False
        return sum([self._cost(v, node) for v in set(node.inputs)]) <= nbytes(value)

    def _is_readable(self, value: Value, readers: Sequence[Draft]) -> bool:
        """Whether a later stage may read it: a variable must not have changed."""
        key = self.layout.key_of(value)
        if key is None:
            return True
        store = self.drafts.stores.get(key)
        return self.layout.home(key) == readers[0].position.device and (
            store is None or all([d.position <= store for d in readers])
        )

    def _cost(self, value: Value, reader: Node) -> float:
        """Bytes that are stored for a later stage to have a value, beyond those stored anyway."""
        node = value.node
        if op_of(node) in (placeholder, variable) or node in self.layout.copied:
            return 0.0
        if self.layout.device_of[node] != self.layout.device_of[reader]:
            return 0.0  # it was sent there for the reader
        if self.fused.root(value) in self.stored:
            return 0.0
        if value not in self._costs:
            given = value in self.drafts.drafts[self.drafts.places[node]].given
            found = 0.0 if given else float(nbytes(value))
            if found and _is_cheap(node) and not any(map(self.layout.key_of, node.inputs)):
                found = min(found, sum([self._cost(v, node) for v in set(node.inputs)]))
            self._costs[value] = found
        return self._costs[value]
