"""Accumulation of gradients over several runs of a graph, before ranks reduce them."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

from weft.errors import ArgumentError
from weft.ir.graph import toposort
from weft.ir.node import Node
from weft.tf1.control.branch import cond, cond_by_selection
from weft.tf1.control.dependency import no_op
from weft.tf1.creation import zeros
from weft.tf1.elementwise.arithmetic import equal, floormod
from weft.tf1.framework.collection import GraphKeys
from weft.tf1.framework.convert import convert_to_tensor
from weft.tf1.framework.dtypes import int32
from weft.tf1.framework.graph import get_default_graph, name_scope
from weft.tf1.framework.indexed_slices import IndexedSlices
from weft.tf1.framework.tensor import Operation, Tensor
from weft.tf1.indexing.slicing import where
from weft.tf1.variable.variable import Variable

COLLECTION: Final = "aggregating_collection"
"""The collection of the variables that hold sums of gradients."""

Pairs = Sequence[tuple[Any, Any]]


class _Call(NamedTuple):
    """One call of `gradients`: the operation that returns them, and whether this run updates."""

    op: Operation
    updates: Tensor


class Aggregation:
    """Accumulates gradients in local variables; every `passes` runs, they are reduced and applied.

    Args:
        name: of the optimizer, for names of variables.
        passes: the number of runs per update.
        average: whether reduced sums are divided by that number.
        sparse_as_dense: whether `IndexedSlices` are accepted, as dense gradients.
        register: called with each new variable.
    """

    def __init__(
        self, name: str, passes: int, average: bool, sparse_as_dense: bool,
        register: Callable[[Variable], object] | None = None,
    ) -> None:  # fmt: skip
        self._scope = f"aggregation_variables_{name}"
        self._passes = passes
        self._average = average
        self._sparse_as_dense = sparse_as_dense
        self._register = register
        self._calls: list[_Call] = []

    def gradients(self, pairs: Pairs, reduce: Callable[[list[Any]], list[Any]]) -> list[Any]:
        """Pairs (gradient, variable): the reduced sums if a run updates, else those of this run.

        Args:
            reduce: reduces tensors over ranks.

        Raises:
            ArgumentError: a gradient is `IndexedSlices` without `sparse_as_dense`, or a variable's
                shape is unknown.
        """
        dense = [(self._dense(g, v), v) for g, v in pairs if g is not None]
        if not dense:
            return list(pairs)
        with dense[0][1].graph.as_default(), name_scope(None, "LocalAggregation"):
            before, after = self._count()
            first, updates = equal(before, 0), equal(after, 0)
            sums = [self._added(g, v, first) for g, v in dense]
            reduced = cond(
                updates, lambda: self._averaged(reduce(sums)), lambda: [g for g, _ in dense],
                strict=True,
            )  # fmt: skip
        self._calls.append(_Call(reduced[0].op, updates))
        rest = iter(reduced)
        return [(None if g is None else next(rest), v) for g, v in pairs]

    def _dense(self, g: Any, variable: Any) -> Tensor:
        if isinstance(g, IndexedSlices) and not self._sparse_as_dense:
            raise ArgumentError.here(
                "DistributedOptimizer: expected dense gradients where backward_passes_per_step is "
                f"above 1, got IndexedSlices for {variable.name}; pass sparse_as_dense=True"
            )
        return convert_to_tensor(g)

    def _count(self) -> tuple[Tensor, Tensor]:
        """The number of runs since the last update, before and after this one."""
        counter = self._variable("aggregation_counter", [], int32, [])
        before = counter.read_value()
        return before, counter.assign(floormod(before + 1, self._passes))

    def _added(self, g: Tensor, variable: Any, first: Tensor) -> Tensor:
        """The sum including this gradient; this one alone in the first run after an update."""
        shape = g.shape.merge_with(variable.shape)
        if not shape.is_fully_defined():
            raise ArgumentError.here(
                "DistributedOptimizer: expected variables of known shape where "
                f"backward_passes_per_step is above 1, got {variable.name} of shape {shape}"
            )
        dtype = g.dtype.base_dtype
        total = self._variable(variable.op.name, shape.as_list(), dtype, [COLLECTION])
        return total.assign(where(first, g, total.read_value() + g))

    def _variable(self, name: str, shape: Any, dtype: Any, collections: list[str]) -> Variable:
        with name_scope(""):
            variable = Variable(
                lambda: zeros(shape, dtype), trainable=False, name=f"{self._scope}/{name}",
                collections=[GraphKeys.LOCAL_VARIABLES, *collections],
            )  # fmt: skip
        if self._register is not None:
            self._register(variable)
        return variable

    def _averaged(self, totals: Sequence[Any]) -> list[Any]:
        return [y / self._passes for y in totals] if self._average else list(totals)

    def applied(
        self, pairs: Pairs, apply: Callable[[], Operation], step: Variable | None
    ) -> Operation:
        """An operation that runs `apply()` if a run updates, else only increments the step.

        Args:
            pairs: the result of `gradients`, or functions of it.
            step: the variable that `apply()` increments.

        Raises:
            ArgumentError: gradients are not from one call of `gradients`.
        """

        def count() -> Operation:
            return no_op() if step is None else step.assign_add(1, read_value=False)

        present = [(g, v) for g, v in pairs if g is not None]
        if not present:
            return apply()  # which raises the error
        with present[0][1].graph.as_default():
            return cond_by_selection(self._updates([g for g, _ in present]), apply, count)

    def _updates(self, gradients: Sequence[Any]) -> Tensor:
        """Whether this run updates, according to the call that made the gradients."""
        tensors = [g.values if isinstance(g, IndexedSlices) else g for g in gradients]
        roots = [convert_to_tensor(g).used.node for g in tensors]
        nodes = set(toposort(get_default_graph().ir, roots, _sources))
        calls = [call for call in self._calls if not nodes.isdisjoint(call.op.nodes)]
        if len(calls) != 1:
            raise ArgumentError.here(
                "DistributedOptimizer: expected gradients of one call of its compute_gradients "
                f"where backward_passes_per_step is above 1, got those of {len(calls)} calls"
            )
        return calls[0].updates


def _sources(node: Node) -> list[Node]:
    """The nodes whose values a node reads, without control dependencies."""
    return [v.node for v in node.inputs]


def checked_passes(passes: Any) -> int:
    """`backward_passes_per_step` as an integer.

    Raises:
        ArgumentError: it is not a positive integer.
    """
    try:
        number = operator.index(passes)
    except TypeError:
        number = 0
    if number < 1:
        raise ArgumentError.here(
            "DistributedOptimizer: expected an integer from 1 as backward_passes_per_step, got "
            f"{passes!r}"
        )
    return number
