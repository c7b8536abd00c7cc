"""Runs a graph on the NumPy references, node by node: the oracle of every test."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, MutableMapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

import numpy as np

from weft.errors import (
    FeedError,
    GraphError,
    OutOfMemoryError,
    UninitializedError,
    WeftError,
)  # fmt: skip
from weft.ir.dtype import as_dtype
from weft.ir.function import functions
from weft.ir.graph import Graph, in_order_of_creation
from weft.ir.node import Node, TensorType, Value
from weft.ir.shape import compatible, show
from weft.ops.boundary import state
from weft.ops.declaration import Array, op_of
from weft.ops.declaration.attribute import operand_attribute


class State(Protocol):
    """State that lives from run to run: variables by key, and how often each counter has run."""

    @property
    def variables(self) -> MutableMapping[str, Array]:
        """Values of the initialized variables, by key."""
        ...

    @property
    def counters(self) -> MutableMapping[str, int]:
        """How often each counter has run, by key."""
        ...


@dataclass
class Memory:
    """A `State` of plain dictionaries."""

    variables: dict[str, Array] = field(default_factory=dict[str, Array])
    counters: dict[str, int] = field(default_factory=dict[str, int])


def evaluate(
    graph: Graph, fetches: Sequence[Value], feeds: Mapping[Value, Any] | None = None,
    state: State | None = None, targets: Sequence[Node] = (),
    done: Collection[Node] = frozenset(),
) -> list[Array]:  # fmt: skip
    """Runs one step on the references; returns the values of `fetches`.

    Args:
        feeds: arrays by value; any value of the graph may be fed instead of being computed.
        state: variables and counters; they change only if the whole step succeeds.
        targets: nodes to run for their effect.
        done: nodes that have acted before; they only order others.

    A read sees the value from before the step, or of the last assignment that it must follow (with
    `latest`, of the last one that ran).

    Raises:
        FeedError: a feed is missing, or does not fit.
        WeftError: an operation failed; the message names it and the user's line.
    """
    step = _Step(graph, _checked(feeds or {}), Memory() if state is None else state, done)
    roots = [v.node for v in fetches if v not in step.values]
    for node in in_order_of_creation(graph, [*roots, *targets], step.predecessors):
        step.run(node)
    found = [step.fetch(value) for value in fetches]
    step.commit()
    return found


def needs_interpreter(graph: Graph) -> bool:
    """Whether a graph has complex numbers, which are interpreted, not compiled."""
    return _is_complex(graph.nodes)


def _is_complex(nodes: Iterable[Node]) -> bool:
    for node in nodes:
        parts = [*[r.nodes for r in node.regions], *[f.nodes for f in functions(node)]]
        if any(kind.dtype.is_complex for kind in node.types) or any(map(_is_complex, parts)):
            return True
    return False


def evaluate_node(node: Node, arrays: Sequence[Array]) -> tuple[Array, ...]:
    """Outputs of one node for arrays of all its inputs (those that supply attributes last).

    Raises:
        WeftError: the operation failed; the message names it and the user's line.
    """
    op = op_of(node)
    count = len(node.data_inputs)
    data, operands = arrays[:count], arrays[count:]
    supplied = dict(zip(node.operands, map(operand_attribute, operands), strict=True))
    attrs = {**op.attrs, **node.attrs, **supplied}
    try:
        types = _types(node, data, attrs)
        with np.errstate(all="ignore"):
            found = op.reference(*data, **attrs)
    except RecursionError:
        raise  # the caller's line, not the node's
    except WeftError as error:
        raise failed(error, node) from error.__cause__
    except Exception as error:
        raise failed(error, node) from error
    outputs = (found,) if op.outputs == 1 else tuple(found)
    return tuple(as_typed(y, t, node) for y, t in zip(outputs, types, strict=True))


def _types(node: Node, data: Sequence[Array], attrs: Mapping[str, Any]) -> Sequence[TensorType]:
    """The types of the results; of a branch or loop as declared, as it may run only in part."""
    if functions(node) or (not node.operands and all(map(_is_as_declared, data, node.inputs))):
        return node.types
    kinds = [
        TensorType(v.dtype if v.dtype.is_hosted else as_dtype(a.dtype), a.shape)
        for a, v in zip(data, node.inputs, strict=False)
    ]
    return op_of(node).derive(tuple(kinds), attrs)


def _is_as_declared(array: Array, value: Value) -> bool:
    """Whether an array has the type that its node gives; unknown sizes are not compared."""
    return array.shape == value.type.shape and array.dtype == value.type.dtype.numpy


_NAMED: Final = re.compile(r"\w+: ")


def place(node: Node) -> str:
    """Where an error happened: `node decoder/gather, created at train.py:31`."""
    return f"node {node.name}" + ("" if node.source is None else f", created at {node.source}")


def located(error: WeftError, node: Node, title: str = "") -> WeftError:
    """The same error, its message naming the operation, the node and the user's line.

    Args:
        title: what the message calls the operation, if not as the node says.
    """
    title = title or node.attrs.get("title", node.op)
    named = title in ("host_call", "check") and _NAMED.match(str(error))  # it says its own name
    found = type(error)(f"{'' if named else f'{title}: '}{error} ({place(node)})")
    found.node = node.name
    return found


def failed(error: Exception, node: Node, title: str = "") -> WeftError:
    """The exception to raise after a node's reference raised `error`; see `located`."""
    if isinstance(error, WeftError):
        return located(error, node, title)
    if isinstance(error, MemoryError):
        why = str(error) or "an allocation failed"
        return located(OutOfMemoryError(f"not enough memory: {why}"), node, title)
    return located(GraphError(f"the reference failed: {error!r}"), node, title)


def as_typed(array: Any, kind: TensorType, node: Node) -> Array:
    """A reference's result as an array.

    Raises:
        GraphError: it is not of the type `kind`, so the reference is wrong.
    """
    found = np.asarray(array)
    if found.dtype != kind.dtype.numpy or not compatible(found.shape, kind.shape):
        raise GraphError(
            f"{node.op}: expected the reference to give {kind},"
            f" got {found.dtype}{list(found.shape)} ({place(node)})"
        )
    return found


def _checked(feeds: Mapping[Value, Any]) -> dict[Value, Array]:
    arrays: dict[Value, Array] = {}
    for value, given in feeds.items():
        array = _as_fed(value, given)
        if array.dtype != value.dtype.numpy:
            raise FeedError(f"{value.name}: expected a feed of {value.dtype}, got {array.dtype}")
        if not compatible(array.shape, value.shape):
            raise FeedError(
                f"{value.name}: expected a feed of shape {show(value.shape)},"
                f" got {show(array.shape)}"
            )
        arrays[value] = array
    return arrays


def _as_fed(value: Value, given: Any) -> Array:
    """An array as it is; anything else converted to the element type of the fed value."""
    if isinstance(given, np.ndarray | np.generic):
        return np.asarray(given)
    try:
        plain = np.asarray(given)
        if plain.dtype.kind == "c" and not value.dtype.is_complex:
            raise TypeError
        array = plain.astype(value.dtype.numpy)
        exact = value.dtype.is_floating or bool((plain == array).all())
    except (TypeError, ValueError, OverflowError):
        exact, array = False, np.empty(0)
    if not exact:
        raise FeedError(f"{value.name}: expected a feed of {value.dtype}, got {given!r}")
    return array


class _Step:
    """One run of a graph: the values so far, and the state after the run."""

    def __init__(
        self, graph: Graph, feeds: dict[Value, Array], state: State, done: Collection[Node]
    ) -> None:
        self.graph = graph
        self.done = done
        self.feeds = feeds
        self.values = dict(feeds)
        self.state = state
        self.counted: dict[str, int] = {}
        self.assigned: dict[str, list[tuple[int, Array]]] = {}  # key -> numbered, in order
        self.assignments = 0
        self.follows: dict[Node, int] = {}  # a bit per assignment that ran before a node

    def predecessors(self, node: Node) -> list[Node]:
        """The predecessors of `node`, given the feeds."""
        found = [v.node for v in node.inputs if v not in self.feeds]
        found += [*node.control, *self.graph.edges.get(node, ())]
        return [n for n in found if n not in self.done] if self.done else found

    def run(self, node: Node) -> None:
        """Computes a node's outputs, except those that are fed."""
        follows = 0
        for before in self.predecessors(node):
            follows |= self.follows[before]
        outputs = self._outputs(node, follows)
        if op_of(node) is state.assign:
            follows |= 1 << self.assignments
            known = self.assigned.setdefault(state.key_of(node), [])
            known.append((self.assignments, outputs[0]))
            self.assignments += 1
        self.follows[node] = follows
        for value, array in zip(node.outputs, outputs, strict=True):
            self.values.setdefault(value, array)

    def _outputs(self, node: Node, follows: int) -> tuple[Array, ...]:
        op = op_of(node)
        if op is state.placeholder:
            if node.outputs[0] in self.feeds:
                return (self.feeds[node.outputs[0]],)
            raise FeedError(f"{node.op}: expected a feed ({place(node)})")
        if op is state.variable:
            return (np.empty(0),)  # a handle; `read` looks the value up
        if op is state.read:
            return (self._read(node, follows),)
        if op is state.assign:
            handle, value = node.inputs
            return (np.array(self._get(value), dtype=handle.dtype.numpy),)
        if op is state.counter:
            return (self._count(node.attrs["key"], node.attrs.get("start", 0)),)
        return evaluate_node(node, [self._get(v) for v in node.inputs])

    def _read(self, node: Node, follows: int) -> Array:
        handle = node.inputs[0]
        if handle in self.feeds:
            return self.feeds[handle]
        key = state.key_of(node)
        for number, array in reversed(self.assigned.get(key, ())):
            if node.attrs["latest"] or follows >> number & 1:
                return array
        if key not in self.state.variables:
            raise UninitializedError(
                f"variable {key!r}: read before it was initialized ({place(node)})"
            )
        return self.state.variables[key]

    def _count(self, key: str, start: int | None) -> Array:
        before = self.counted.get(key, self.state.counters.get(key))
        before = state.first_count(start) if before is None else before
        self.counted[key] = before + 1
        return np.array(before, np.uint64)

    def _get(self, value: Value) -> Array:
        return self.values[value]

    def fetch(self, value: Value) -> Array:
        """A value to return; for a variable's handle, the variable's value."""
        if op_of(value.node) is state.variable and value not in self.feeds:
            key = value.node.attrs["key"]
            if key not in self.state.variables:
                raise UninitializedError(f"variable {key!r}: fetched before it was initialized")
            return self.state.variables[key]
        return self.values[value]

    def commit(self) -> None:
        """Stores the step's assignments and counts."""
        for key, assigned in self.assigned.items():
            self.state.variables[key] = assigned[-1][1]
        for key, count in self.counted.items():
            self.state.counters[key] = count
