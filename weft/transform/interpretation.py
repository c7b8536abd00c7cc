"""A graph prepared for repeated runs on NumPy; eager programs run so before they compile.

`interpreter.evaluate`, the oracle, examines everything in each run. Here everything that does not
depend on the arrays is decided once: which function a node calls, where its inputs lie, which
values are dead after it, and where a NumPy ufunc may write into a dead input.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from weft import config
from weft.errors import FeedError, GraphError, OutOfMemoryError, WeftError
from weft.ir.dtype import bool_
from weft.ir.graph import Graph
from weft.ir.node import Node, TensorType, Value
from weft.ir.shape import Shape, compatible, is_static, show, size
from weft.ops.boundary.state import CONSTANT, assign, counter, placeholder, read, variable
from weft.ops.declaration import Array, Op, op_of
from weft.ops.declaration.numeric import HALVES, unwidened
from weft.transform.blas import single_thread
from weft.transform.interpreter import as_typed, evaluate_node, failed

_EFFECTS: Final = frozenset({variable, read, assign, counter})
_BOUNDARY: Final = _EFFECTS | {placeholder}

MAPPED: Final = 128 << 10  # bytes from which the C library initially serves an array by mmap
LARGEST: Final = 31 << 20  # bytes; freeing a mapped array raises that threshold, up to 32 MiB


@functools.cache
def _keep_freed() -> None:
    """Makes the C library reuse freed arrays of up to twice `LARGEST`, for the whole process.

    It maps large arrays anew each time, and the page faults (one per 4 KiB) take longer than
    filling them, until a larger one has been freed. So this frees one, whose pages were never
    touched.
    """
    if config.get("keep_freed"):
        np.empty(LARGEST, np.uint8)


class Step(NamedTuple):
    """One node: `y = function(*slots)`, checked, stored in a slot; then dead slots are cleared."""

    function: Callable[..., Any]
    a: int  # slots of the first two inputs (-1: none)
    b: int
    inputs: tuple[int, ...] | None  # slots of all inputs, unless there are one or two
    into: int  # slot of the input whose memory the result reuses (-1: none)
    output: int  # slot of the result (negative: ~slot of the first of several)
    dtype: np.dtype[Any] | None  # dtype of a single result; its shape
    shape: Shape
    dead: Sequence[int]  # slots that are dead after this step
    types: tuple[TensorType, ...]  # types of all results
    node: Node


class Interpretation:
    """The values `fetches` of a pure graph, as a function of the arrays for `feeds`.

    ```python
    run = Interpretation(graph, [loss], feeds=[x, labels])
    (value,) = run([images, numbers])
    ```

    Results are contiguous and share no memory. References compute half precision in float32; for
    wider types an operation's `fast` form is used if it has one.

    Raises:
        GraphError: the graph has effects (variables, counters), which `evaluate` can run.
        FeedError: a placeholder is needed that is not fed.
    """

    def __init__(self, graph: Graph, fetches: Sequence[Value], feeds: Sequence[Value]) -> None:
        slots: dict[Value, int] = {value: i for i, value in enumerate(feeds)}
        self.feeds = tuple([value.type for value in feeds])
        self._names = tuple([value.name for value in feeds])
        self._initial: list[Any] = [None] * len(feeds)
        self.steps = self._plan(graph, fetches, slots)
        self._fetches = tuple([slots[value] for value in fetches])
        if any(map(_is_mapped, self.steps)):
            _keep_freed()

    def __call__(self, arrays: Sequence[Array]) -> list[Array]:
        """Values of the fetches for these arrays, one per feed.

        Raises:
            FeedError: an array does not fit its feed.
            WeftError: an operation failed; the message names it and the user's line.
        """
        slots = self._initial.copy()
        for slot, (kind, array) in enumerate(zip(self.feeds, arrays, strict=True)):
            if array.dtype != kind.dtype.numpy or not compatible(array.shape, kind.shape):
                raise FeedError(
                    f"{self._names[slot]}: expected a feed of {kind},"
                    f" got {array.dtype} of shape {show(array.shape)}"
                )
            slots[slot] = array
        with np.errstate(all="ignore"), single_thread():
            _run(self.steps, slots)
        try:
            return _own([slots[i] for i in self._fetches], arrays)
        except MemoryError as error:
            raise OutOfMemoryError(f"results: not enough memory: {error}") from error

    def _plan(self, graph: Graph, fetches: Sequence[Value], slots: dict[Value, int]) -> list[Step]:
        """The steps that compute the fetches; assigns slots to values."""
        fed, initial = frozenset(slots), self._initial
        order, last, private = _needed(graph, fetches, fed)
        steps: list[Step] = []
        for node in order:
            first = len(initial)
            for i, value in enumerate(node.outputs):
                slots.setdefault(value, first + i)
                initial.append(None)
            if op_of(node) is CONSTANT:
                initial[first] = node.attrs["value"].array
            elif op_of(node) in _BOUNDARY:
                _refuse(node, fed)
            else:
                steps.append(_step(node, first, slots, last.get(node, ()), private))
        return steps


def _run(steps: Sequence[Step], slots: list[Any]) -> None:
    array = np.ndarray
    node = None
    try:
        for function, a, b, inputs, into, output, dtype, shape, dead, types, node in steps:
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
                for i, (part, kind) in enumerate(zip(y, types, strict=True)):
                    slots[~output + i] = as_typed(part, kind, node)
            elif y.__class__ is array and y.dtype is dtype and y.shape == shape:
                slots[output] = y
            else:
                slots[output] = as_typed(y, types[0], node)
            for i in dead:
                slots[i] = None
    except RecursionError:
        raise  # the caller's line, not the node's
    except Exception as error:
        assert node is not None
        raise failed(error, node) from (error.__cause__ if isinstance(error, WeftError) else error)


def _own(found: list[Any], given: Sequence[Array]) -> list[Array]:
    """Copies results that are views, not contiguous, feeds, frozen or returned twice."""
    taken = set(map(id, given))
    results: list[Array] = []
    for y in found:
        flags = y.flags
        if y.base is not None or id(y) in taken or not (flags.c_contiguous and flags.writeable):
            y = np.array(y, order="C")
        taken.add(id(y))
        results.append(y)
    return results


def _needed(
    graph: Graph, fetches: Sequence[Value], fed: frozenset[Value]
) -> tuple[list[Node], dict[Node, list[Value]], set[Value]]:
    """Nodes in order; the values that are dead after each; values whose memory is not shared.

    Not shared are results of ufuncs and the like that only such functions read.
    """
    wanted = {v.node for v in fetches if v not in fed}
    alive, shared = set(fetches), {*fetches, *fed}
    order: list[Node] = []
    last: dict[Node, list[Value]] = {}
    private: set[Value] = set()
    for node in reversed(graph.nodes):
        if node not in wanted:
            continue
        order.append(node)
        inputs = node.inputs
        if not _manner(node).fresh:
            shared.update(inputs)
        elif node.outputs[0] not in shared:
            private.add(node.outputs[0])
        for value in inputs:
            if value not in alive:
                alive.add(value)
                last.setdefault(node, []).append(value)
            if value not in fed:
                wanted.add(value.node)
    order.reverse()
    return order, last, private


class _Manner(NamedTuple):
    """How the nodes of an operation are run."""

    op: Op
    function: Callable[..., Any]  # if no input is of half precision
    ufunc: bool
    fresh: bool  # the result never shares memory with an input
    single: bool  # one output


_manners: dict[Op, _Manner] = {}


def _manner(node: Node) -> _Manner:
    op = op_of(node)
    found = _manners.get(op)
    if found is None:
        function = unwidened(op.reference) if op.fast is None else op.fast
        ufunc = isinstance(function, np.ufunc)
        fresh = ufunc or op.facts.fresh
        found = _manners[op] = _Manner(op, function, ufunc, fresh, op.outputs == 1)
    return found


def _step(
    node: Node, output: int, slots: dict[Value, int], dead: Sequence[Value], private: set[Value]
) -> Step:
    op, function, ufunc, _, single = _manner(node)
    inputs = [slots[v] for v in node.inputs]
    for value in node.inputs:
        if value.type.dtype in HALVES:
            function, ufunc = op.reference, False
    kind = node.types[0] if single else _SEVERAL
    into = -1
    if ufunc:
        for value in dead:
            if value in private and value.type == kind:
                into = slots[value]
    if node.operands or node.attrs:
        function = _bound(op, node, function)
    few = 0 < len(inputs) < 3
    return Step(
        function,
        inputs[0] if few else -1,
        inputs[1] if few and len(inputs) == 2 else -1,
        None if few else tuple(inputs),
        into,
        output if single else ~output,
        kind.dtype.numpy,
        kind.shape,
        [slots[v] for v in dead],
        node.types,
        node,
    )


def _is_mapped(step: Step) -> bool:
    """Whether a result is so large that the C library would serve it by mmap."""
    known = step.output >= 0 and is_static(step.shape)
    return known and step.types[0].dtype.size * size(step.shape) >= MAPPED


_SEVERAL: Final = TensorType(bool_, None)


def _bound(op: Op, node: Node, function: Callable[..., Any]) -> Callable[..., Any]:
    """The function with the node's attributes bound."""
    if node.operands:
        return lambda *arrays: evaluate_node(node, arrays)[0 if op.outputs == 1 else slice(None)]
    attrs = node.attrs if len(node.attrs) == len(op.attrs) else {**op.attrs, **node.attrs}
    return functools.partial(function, **attrs)


def _refuse(node: Node, fed: frozenset[Value]) -> None:
    """Raises if a node cannot be run here, unless its output is fed."""
    if op_of(node) in _EFFECTS:
        raise GraphError(f"{node.op}: expected a graph without effects: {node.describe()}")
    if node.outputs[0] not in fed:
        raise FeedError(f"placeholder: expected a feed of {node.describe()}")
