"""Feeds: the value that a key of `feed_dict` stands for, and conversion to arrays."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from weft.errors import DTypeError, FeedError, GraphError
from weft.ir.graph import toposort
from weft.ir.node import Node, Value
from weft.ir.shape import compatible, show
from weft.ops.boundary.state import placeholder
from weft.ops.declaration import op_of
from weft.ops.resource.host_value import as_typed
from weft.tf1.errors import InvalidArgumentError
from weft.tf1.framework.convert import is_tensor
from weft.tf1.framework.graph import Graph
from weft.tf1.framework.tensor import Operation, Tensor

if TYPE_CHECKING:
    from weft.runtime.engine import State

Array = np.ndarray[Any, Any]


class Feed:
    """A key of a `feed_dict`. `shape` is the last array's, which is known to fit."""

    __slots__ = ("numpy", "shape", "tensor")

    def __init__(self, graph: Graph, key: Any) -> None:
        try:
            self.tensor: Tensor = graph.as_graph_element(key, allow_operation=False)
        except DTypeError as error:
            raise DTypeError(f"feed_dict: cannot interpret the key as a tensor: {error}") from error
        except (GraphError, FeedError) as error:
            raise GraphError(f"feed_dict: cannot interpret the key as a tensor: {error}") from error
        kind = self.tensor.dtype.ir
        self.numpy = None if kind.is_hosted else kind.numpy  # a text is converted each time
        self.shape: Any = None

    def convert(self, value: Any) -> Array:
        """`value` as an array of the tensor's type and a matching shape.

        Raises:
            InvalidArgumentError: it does not fit.
        """
        if is_tensor(value):
            raise DTypeError(
                f"{self.tensor.name}: expected a number, a list or an array as feed, "
                f"got {value!r}; run it first"
            )
        array = self._typed(value)
        known = self.tensor.used.shape
        if not compatible(array.shape, known):
            raise self._error(f"expected a feed of shape {show(known)}, got {show(array.shape)}")
        self.shape = array.shape
        return array

    def _typed(self, value: Any) -> Array:
        if self.numpy is None:
            return self._hosted(value)
        try:
            array = np.asarray(value)
            if array.dtype == self.numpy:
                return array if array.flags.c_contiguous else np.ascontiguousarray(array)
            if array.dtype.kind not in ("biufcV" if self.numpy.kind == "c" else "biufV"):
                raise TypeError
        except (TypeError, ValueError, OverflowError):
            raise self._error(
                f"expected numbers of type {self.numpy}, got {value!r:.200}"
            ) from None
        if self.numpy.kind in "iu" and array.size:
            self._refuse_what_wraps(array)
        with np.errstate(all="ignore"):
            return np.ascontiguousarray(array.astype(self.numpy)).reshape(array.shape)

    def _hosted(self, value: Any) -> Array:
        """Texts as bytes, or any object."""
        try:
            return as_typed(value, self.tensor.dtype.ir, None)
        except DTypeError as error:
            raise self._error(str(error)) from None

    def _refuse_what_wraps(self, array: Array) -> None:
        if array.dtype.kind in "fV" and not np.isfinite(array.astype(np.float64)).all():
            raise self._error(f"expected finite numbers for type {self.numpy}, got NaN or infinity")
        limits = np.iinfo(self.numpy)
        low, high = array.min(), array.max()
        if low < limits.min or high > limits.max:
            wrong = low if low < limits.min else high
            raise self._error(f"expected numbers that {self.numpy} holds, got {wrong}")

    def _error(self, text: str) -> InvalidArgumentError:
        op = self.tensor.op
        node = self.tensor.value.node
        where = "" if node.source is None else f" (created at {node.source})"
        return InvalidArgumentError(None, op, f"feed {self.tensor.name}: {text}{where}")


@dataclass(frozen=True)
class Implicit:
    """A placeholder that the session feeds itself, from its state before the run."""

    placeholder: Value
    value: Callable[[State], Array]


def implicit_feeds(graph: Graph, roots: Sequence[Node], fed: Sequence[Value]) -> list[Implicit]:
    """The values that the session must feed itself; checks that no other feed is missing.

    Raises:
        InvalidArgumentError: a placeholder is needed and not fed.
    """
    known: dict[Value, Callable[[State], Array]] = graph.keys.get("implicit", {})
    skip = set(fed)

    def predecessors(node: Node) -> list[Node]:
        data = [v.node for v in node.inputs if v not in skip]
        return [*data, *node.control, *graph.ir.edges.get(node, ())]

    found: list[Implicit] = []
    for node in toposort(graph.ir, roots, predecessors):
        if op_of(node) is not placeholder or node.outputs[0] in skip:
            continue
        value = node.outputs[0]
        if value not in known:
            kind = value.type
            raise InvalidArgumentError(
                None,
                None,
                f"placeholder: expected a feed for {node.name}:0 of {kind.dtype.name} "
                f"{show(kind.shape)}, got none ({node.describe()})",
            )
        found.append(Implicit(value, known[value]))
    return found


def before_first_run(op: Operation, check: Callable[[State], None]) -> None:
    """Have sessions call `check` with their variables before they plan a run that needs `op`."""
    op.graph.keys.setdefault("before_first_run", []).append((op, check))


def check_one_of(graph: Graph, roots: Sequence[Node]) -> None:
    """Refuse runs of several of the operations of which only one may run.

    Raises:
        InvalidArgumentError: with the text that was given with them in `graph.keys["one_of"]`.
    """
    asked: list[tuple[list[Operation], str]] = graph.keys.get("one_of", [])
    nodes = set(toposort(graph.ir, roots)) if asked else set[Node]()
    for ops, text in asked:
        run = [op for op in ops if not nodes.isdisjoint(op.nodes)]
        if len(run) > 1:
            where = run[1].nodes[0].describe()
            raise InvalidArgumentError(None, run[1], f"{text}: {where}")


def check_first_run(graph: Graph, roots: Sequence[Node], state: State) -> None:
    """Make the calls that `before_first_run` has asked for."""
    asked = graph.keys.get("before_first_run")
    if asked:
        nodes = set(toposort(graph.ir, roots))
        for op, check in asked:
            if not nodes.isdisjoint(op.nodes):
                check(state)
