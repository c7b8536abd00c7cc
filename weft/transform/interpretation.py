"""A graph prepared for running over NumPy many times: what eager does before it compiles.

`interpreter.evaluate` is the oracle and looks at everything again in each run. Here all that
does not depend on the arrays is settled once: which function a node calls, where its inputs lie,
what dies after it, and where a NumPy ufunc may write into an input that dies.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final, NamedTuple

import numpy as np

from weft.errors import FeedError, GraphError, WeftError
from weft.ir.graph import Graph
from weft.ir.node import Node, TensorType, Value
from weft.ir.shape import compatible, is_static, show
from weft.ops.base import Array, Op, op_of
from weft.ops.numeric import HALVES, unwidened
from weft.transform.interpreter import as_typed, evaluate_node, failed

_EFFECTS: Final = frozenset(("variable", "read", "assign", "counter"))
_FRESH: Final = frozenset(("matmul", "sum", "max", "min", "prod", "select"))
"""Operations, besides ufuncs, whose result never shares memory with an input."""


class _Step(NamedTuple):
    """One node: `y = function(*slots)`, checked, kept in a slot; then the dead are forgotten."""

    function: Callable[..., Any]
    first: int  # slots of the inputs, where there are one or two,
    second: int
    inputs: tuple[int, ...] | None  # else all of them
    into: int  # slot of the input whose memory takes the result; -1: none
    output: int  # slot; -1: `node` has several outputs, from slot `outputs`
    dtype: np.dtype[Any] | None
    shape: tuple[int, ...] | None
    dead: tuple[int, ...]
    node: Node
    outputs: int


class Interpretation:
    """The values `fetches` of a pure graph, as a function of arrays for `feeds`.

    ```python
    run = Interpretation(graph, [loss], feeds=[x, labels])
    (value,) = run([images, numbers])
    ```

    Results are contiguous, and nobody else's memory. References compute half precision in float32;
    for wider types an operation's `fast` form is taken where it has one.

    Raises:
        GraphError: the graph has effects (variables, counters), which `evaluate` can run.
        FeedError: a placeholder is needed that is not fed.
    """

    def __init__(self, graph: Graph, fetches: Sequence[Value], feeds: Sequence[Value]) -> None:
        plan = _Planner(feeds)
        needed = plan.needed(graph, fetches)
        self._feeds = tuple([(value, plan.slot(value)) for value in feeds])
        self._steps = tuple([step for node in needed for step in plan.steps(node)])
        self._fetches = tuple([plan.slots[value] for value in fetches])
        self._initial = plan.initial

    def __call__(self, arrays: Sequence[Array]) -> list[Array]:
        """Values of the fetches for these arrays, one a feed.

        Raises:
            FeedError: an array does not fit its feed.
            WeftError: an operation failed; the message names it and the user's line.
        """
        slots = self._initial.copy()
        for (value, slot), array in zip(self._feeds, arrays, strict=True):
            if array.dtype != value.dtype.numpy or not compatible(array.shape, value.shape):
                raise FeedError(
                    f"{value.name}: expected a feed of {value.type},"
                    f" got {array.dtype} of shape {show(array.shape)}"
                )
            slots[slot] = array
        with np.errstate(all="ignore"):
            _run(self._steps, slots)
        return _own([slots[i] for i in self._fetches], arrays)


def _run(steps: Sequence[_Step], slots: list[Any]) -> None:
    array = np.ndarray
    node = None
    try:
        for function, a, b, inputs, into, output, dtype, shape, dead, node, outputs in steps:
            if inputs is not None:
                y = function(*[slots[i] for i in inputs])
            elif b < 0:
                y = function(slots[a]) if into < 0 else function(slots[a], out=slots[into])
            else:
                y = (
                    function(slots[a], slots[b])
                    if into < 0
                    else function(slots[a], slots[b], out=slots[into])
                )
            if output < 0:
                for i, (part, kind) in enumerate(zip(y, node.types, strict=True)):
                    slots[outputs + i] = as_typed(part, kind, node)
            elif y.__class__ is array and y.dtype is dtype and y.shape == shape:
                slots[output] = y
            else:
                slots[output] = as_typed(y, node.types[0], node)
            for i in dead:
                slots[i] = None
    except Exception as error:
        assert node is not None
        raise failed(error, node) from (error.__cause__ if isinstance(error, WeftError) else error)


def _own(found: list[Any], given: Sequence[Array]) -> list[Array]:
    """The arrays; copies of those that are views, not contiguous, given, frozen or twice there."""
    taken = set(map(id, given))
    results: list[Array] = []
    for y in found:
        flags = y.flags
        if y.base is not None or id(y) in taken or not (flags.c_contiguous and flags.writeable):
            y = np.array(y, order="C")
        taken.add(id(y))
        results.append(y)
    return results


class _Planner:
    """Gives values their slots, and makes a step of each node."""

    def __init__(self, feeds: Sequence[Value]) -> None:
        self.fed = frozenset(feeds)
        self.slots: dict[Value, int] = {}
        self.initial: list[Any] = []
        self.last: dict[Node, list[Value]] = {}  # values that nobody needs after the node
        self.reusable: set[Value] = set()  # memory that only ufuncs and the like ever see

    def slot(self, value: Value) -> int:
        """The slot of a value; a new one where it has none."""
        slot = self.slots.get(value)
        if slot is None:
            slot = self.slots[value] = len(self.initial)
            self.initial.append(None)
        return slot

    def needed(self, graph: Graph, fetches: Sequence[Value]) -> list[Node]:
        """The nodes that the fetches need, in order; notes where values are used last."""
        wanted = {v.node for v in fetches if v not in self.fed}
        alive = set(fetches)
        shared = set(fetches)
        found: list[Node] = []
        for node in reversed(graph.nodes):
            if node not in wanted:
                continue
            found.append(node)
            fresh = node.op in _FRESH or isinstance(unwidened(op_of(node).reference), np.ufunc)
            if fresh:
                self.reusable.update([y for y in node.outputs if y not in shared])
            else:
                shared.update(node.inputs)
            for value in node.inputs:
                if value not in alive:
                    alive.add(value)
                    self.last.setdefault(node, []).append(value)
                if value not in self.fed:
                    wanted.add(value.node)
        found.reverse()
        return found

    def steps(self, node: Node) -> tuple[_Step, ...]:
        """The step of a node; none where it is a constant or is fed."""
        if node.op == "constant":
            self.initial[self.slot(node.outputs[0])] = node.attrs["value"].array
            return ()
        if node.op in _EFFECTS:
            raise GraphError(f"{node.op}: expected a graph without effects: {node.describe()}")
        if node.op == "placeholder":
            if node.outputs[0] in self.fed:
                return ()
            raise FeedError(f"placeholder: expected a feed of {node.describe()}")
        return (self._step(node),)

    def _step(self, node: Node) -> _Step:
        op = op_of(node)
        half = any([v.dtype in HALVES for v in node.inputs])
        function = _function(op, half)
        dead = self.last.get(node, ())
        into = self._into(node, dead) if isinstance(function, np.ufunc) else -1
        inputs = [self.slot(v) for v in node.inputs]
        few = 0 < len(inputs) < 3
        return _Step(
            _bound(op, node, function),
            inputs[0] if few else -1,
            inputs[1] if few and len(inputs) == 2 else -1,
            None if few else tuple(inputs),
            into,
            self._output(node),
            *_expected(node),
            tuple([self.slots[v] for v in dead]),
            node,
            self._outputs(node),
        )

    def _output(self, node: Node) -> int:
        return self.slot(node.outputs[0]) if op_of(node).outputs == 1 else -1

    def _outputs(self, node: Node) -> int:
        """The first of adjacent slots for all outputs."""
        if op_of(node).outputs == 1:
            return -1
        first = len(self.initial)
        for value in node.outputs:
            self.slot(value)
        return first

    def _into(self, node: Node, dead: Sequence[Value]) -> int:
        """The slot of an input that dies here and whose memory fits the result."""
        for value in dead:
            if value.type == node.types[0] and value in self.reusable and value not in self.fed:
                return self.slots[value]
        return -1


def _expected(node: Node) -> tuple[np.dtype[Any] | None, tuple[int, ...] | None]:
    """Element type and shape of the only output; `None` where that is for `as_typed` to see."""
    kind: TensorType | None = node.types[0] if len(node.types) == 1 else None
    if kind is None or not is_static(kind.shape):
        return None, None
    return kind.dtype.numpy, kind.shape  # pyright: ignore[reportReturnType]


def _function(op: Op, half: bool) -> Callable[..., Any]:
    if half:
        return op.reference
    return unwidened(op.reference) if op.fast is None else op.fast


def _bound(op: Op, node: Node, function: Callable[..., Any]) -> Callable[..., Any]:
    """The function with the node's attributes."""
    if node.operands:
        return lambda *arrays: evaluate_node(node, arrays)[0 if op.outputs == 1 else slice(None)]
    attrs = node.attrs if len(node.attrs) == len(op.attrs) else {**op.attrs, **node.attrs}
    return partial(function, **attrs) if attrs else function
