"""Specialize: concrete shapes, attributes for computed operands, values for reads and assigns.

The user's graph has effects (`read`, `assign`, `counter`) and dimensions known only from the feeds.
One walk in execution order turns it into a pure graph: it tracks each variable's current value as
an ordinary value, so reads, assigns and control dependencies disappear.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, Final

import numpy as np

from weft.errors import CompileError, FeedError, GraphError, ShapeError, WeftError
from weft.ir.dtype import DType, bool_
from weft.ir.extent import symbolic, varies
from weft.ir.function import functions
from weft.ir.graph import Graph, toposort
from weft.ir.node import Literal, Node, TensorType, Value
from weft.ir.shape import is_stack, is_static, size
from weft.ir.shape import known as known_shape
from weft.ops.boundary import state
from weft.ops.boundary.state import CONSTANT
from weft.ops.call import Subgraph, call
from weft.ops.control.known_input import inputs_of_shapes, with_known_inputs
from weft.ops.control.switch import switch
from weft.ops.declaration import (
    REGION,
    Boundary,
    Composite,
    Op,
    as_given,
    constant_of,
    family_of,
    inner_nodes,
    is_hosted,
    op_of,
)
from weft.ops.declaration.attribute import is_complete, known_value
from weft.ops.effect import has_effect, is_host
from weft.passes.complex_number import is_complex, without_complex
from weft.passes.composite import expand_composites
from weft.passes.step import Request, Step, needed, predecessors
from weft.passes.taken_branch import TakenBranches
from weft.transform.interpreter import located, place

# Integer arithmetic on up to this many elements is evaluated here, because it may become a shape.
SMALL = 1024

Made = Mapping[Node, tuple[TensorType, ...]]
"""Nodes that have acted before the step, with the types of their results."""
_NONE: Final[Made] = {}


class OnlyInterpretedError(CompileError):
    """Shapes inside a branch or a loop depend on what the step computes: it is interpreted."""


class ValuesNeededError(FeedError):
    """A shape depends on values that follow from feeds; specialize again with these values.

    Attributes:
        values: what must be known, in the user's graph: few small integers.
        effects: nodes of the user's graph that act when they compute, such as collectives: those
            that the values depend on, and all before them, with the types of their results.
        step: computes the values, then the results of `effects`, and nothing else.
    """

    def __init__(self, values: tuple[Value, ...], effects: Made, step: Step, message: str) -> None:
        super().__init__(message)
        self.values, self.effects, self.step = values, effects, step


def specialize(
    request: Request, types: Sequence[TensorType], variables: Mapping[str, TensorType],
    decided: Mapping[Value, np.ndarray[Any, Any]], made: Made = _NONE,
) -> Step:  # fmt: skip
    """The step for feeds of these concrete types.

    Args:
        request: the values and nodes to run.
        types: concrete type of each feed.
        variables: types of the variables that already have a value.
        decided: values of the user's graph that shapes depend on; the step is valid for these only.
        made: nodes that are not to act again; their results are further feeds.

    Raises:
        ShapeError: the concrete shapes do not fit together.
        ValuesNeededError: a shape depends on a value that is not among the `decided` ones.
    """
    walk = _Walk(request, variables, decided, made)
    results = [
        pair for node, kinds in made.items() for pair in zip(node.outputs, kinds, strict=True)
    ]
    with walk.out.as_default():
        given = [*zip(request.feeds, types, strict=True), *results]
        for position, (value, kind) in enumerate(given):
            walk.feed(position, value, kind)
        for node in needed(request):
            walk.visit(node)
    return expand_composites(walk.finish())


class _Walk:
    """One walk over the user's graph, building the pure one."""

    def __init__(
        self, request: Request, variables: Mapping[str, TensorType],
        decided: Mapping[Value, np.ndarray[Any, Any]], made: Made,
    ) -> None:  # fmt: skip
        self.request = request
        self.decided = decided
        self.made = made
        self.effects: dict[Node, Node] = {}  # in the pure graph -> in the user's, in order
        self.fed = frozenset(request.feeds)
        self.predecessors = predecessors(request)
        self.variables = variables
        self.out = Graph()
        self.env: dict[Value, Value] = {}
        self.feeds: list[str] = []
        self.first: dict[str, Value] = {}  # key -> value before the step
        self.current: dict[str, Value] = {}  # key -> value now; changed keys only
        self.assigned: dict[str, list[tuple[int, Value]]] = {}  # key -> numbered, in order
        self.assignments = 0
        self.follows: dict[Node, int] = {}  # a bit per assignment that a node must follow
        self.taken = TakenBranches(self.env.__getitem__)
        self.names: dict[Node, str] = {}  # of nodes of taken branches

    def feed(self, position: int, value: Value, kind: TensorType) -> None:
        _require_compiled(value.node, (kind,))
        attrs = {"dtype": kind.dtype, "shape": kind.shape}
        name = f"feed{position}/{value.node.name}"
        node = self.out.add("placeholder", (), attrs, (kind,), name, source=value.node.source)
        self.feeds.append(node.name)
        self.env.setdefault(value, self._as_decided(value, node.outputs[0]))

    def _as_decided(self, old: Value, new: Value) -> Value:
        """A constant instead of `new`, if the step is for one value of it."""
        array = self.decided.get(old)
        if array is None:
            return new
        name, source = f"{new.node.name}/value", old.node.source
        attrs = {"value": Literal(array)}
        return self.out.add("constant", (), attrs, (new.type,), name, source=source).outputs[0]

    def visit(self, node: Node) -> None:
        """Maps the outputs of one node."""
        follows = 0
        for before in self.predecessors(node):
            follows |= self.follows[before]
        self.follows[node] = follows
        if node in self.made:
            return
        with self._on_behalf_of(node):
            match op_of(node):
                case state.variable | state.group:
                    return
                case state.placeholder if node.outputs[0] in self.env:  # fed; it orders others
                    return
                case state.placeholder:
                    raise FeedError(
                        f"placeholder {node.name!r} must be fed, but the feeds lack it: "
                        f"{node.describe()}"
                    )
                case state.read:
                    results = (self._read(node),)
                case state.assign:
                    results = (self._assign(node),)
                case state.counter:
                    results = (self._count(node),)
                case _:
                    results = self._compute(node)
        self._store(node, results)

    def _on_behalf_of(self, node: Node) -> AbstractContextManager[None]:
        """Gives new nodes the scope and line of a node, and the device where it was placed."""
        return self.out.on_behalf_of(node, device=self.request.placed.get(node, node.device))

    def _store(self, node: Node, results: Sequence[Value]) -> None:
        for old, new in zip(node.outputs, results, strict=True):
            if old not in self.env:  # a fed output keeps its feed
                self.env[old] = self._as_decided(old, new)

    def _state(self, node: Node) -> Value:
        """The value before the step of a `variable` (or `counter`) node."""
        key: str = node.attrs["key"]
        if key not in self.first:
            kind = self.variables.get(key, node.types[0])
            attrs: dict[str, Any] = {"key": key, "dtype": kind.dtype, "shape": kind.shape}
            if op_of(node) is state.counter:
                attrs |= {"counter": True, "start": node.attrs.get("start", 0)}  # never assigned
            name = f"variable/{node.name}"
            with self._on_behalf_of(node), self.out.prefix(""):
                before = self.out.add("variable", (), attrs, (kind,), name, source=node.source)
            self.first[key] = before.outputs[0]
        return self.first[key]

    def _read(self, node: Node) -> Value:
        variable = node.inputs[0].node
        key = state.key_of(node)
        follows: int = -1 if node.attrs["latest"] else self.follows[node]
        if follows:  # rarely: most reads see the value from before the step
            for number, value in reversed(self.assigned.get(key, ())):
                if follows >> number & 1:
                    return value
        return self._state(variable)

    def _assign(self, node: Node) -> Value:
        key = state.key_of(node)
        value = self.env[node.inputs[1]]
        self.current[key] = value
        self.follows[node] |= 1 << self.assignments
        self.assigned.setdefault(key, []).append((self.assignments, value))
        self.assignments += 1
        return value

    def _count(self, node: Node) -> Value:
        key: str = node.attrs["key"]
        before = self.current.get(key, self._state(node))
        self.current[key] = before + 1
        return before

    def _compute(self, node: Node) -> tuple[Value, ...]:
        """The results of a node; of a branch or a call, those of its nodes if need be."""
        _require_in_program(node)
        if not functions(node):
            return self._add(node)
        try:
            return self._add(self._as_taken(node))
        except (ValuesNeededError, CompileError):
            raise
        except WeftError as error:
            if op_of(node) is call:
                return self._inlined(node, node.attrs["function"], node.inputs)
            if op_of(node) is not switch:
                raise _only_interpreted(error, node) from error
            return self._taken(node, error)

    def _as_taken(self, node: Node) -> Node:
        """The node; for a deferred gradient of a branch that is taken, the gradient of that."""
        found = self.taken.gradient(node)
        self.names[found] = self.names.get(node, node.name)
        return found

    def _taken(self, node: Node, error: WeftError) -> tuple[Value, ...]:
        """The results of the branch that is taken, if another one does not fit these shapes."""
        try:
            self._demand(node, node.inputs[:1], "the branch")
        except ShapeError:
            raise _only_interpreted(error, node) from error
        branches = node.attrs["branches"]
        index: Any = known_value(self.env[node.inputs[0]])
        branch = branches[min(max(index, 0), len(branches) - 1)]
        return self._inlined(node, branch, node.inputs[1:])

    def _inlined(
        self, node: Node, function: Subgraph, inputs: Sequence[Value]
    ) -> tuple[Value, ...]:
        """The results of a function, computed in place of the node that holds it."""
        if not self.taken.add(node, function, inputs):
            raise _only_interpreted(GraphError("two nodes share a branch"), node)
        for inner, outer in zip(function.inputs, inputs, strict=True):
            self.env[inner] = self._as_decided(inner, self.env[outer])
        for inner in function.nodes:
            if inner not in self.made:
                self.names[inner] = self.out.unique_name(f"{node.name}/taken/{inner.name}")
                with self.out.on_behalf_of(inner):
                    self._store(inner, self._compute(inner))
        return tuple([self.env[y] for y in function.outputs])

    def _add(self, node: Node) -> tuple[Value, ...]:
        op = op_of(node)
        inputs = tuple([self.env[v] for v in node.inputs])
        if functions(node):
            self._demand(node, [node.inputs[i] for i in inputs_of_shapes(node)], "a shape inside")
        attrs = dict(with_known_inputs(node, inputs).attrs if functions(node) else node.attrs)
        data = inputs[: len(inputs) - len(node.operands)]
        for name, operand in zip(node.operands, node.inputs[len(data) :], strict=True):
            self._demand(node, [operand], name)
            attrs[name] = known_value(self.env[operand])
        kinds = tuple([v.type for v in data])
        told = node.operands or functions(node) or not all([is_static(t.shape) for t in node.types])
        if told or kinds != tuple([v.type for v in node.inputs]):
            types = op.infer(kinds, attrs, lambda: f": {node.describe()}")
        else:
            types = node.types  # as they were derived
        _require_compiled(node, types)
        if op.normal is not as_given or len(attrs) != len(op.attrs):
            attrs = dict(op.normal(*[kind.shape for kind in kinds], **{**op.attrs, **attrs}))
        new = Node(
            node.op,
            data,
            attrs,
            types,
            self.names.get(node, node.name),
            (),
            (),
            self.request.placed.get(node, node.device),
            node.source,
            node.regions,
        )
        if op is call and is_complex(new):
            return self._inlined(node, attrs["function"], node.inputs)
        new = without_complex(new)
        _require_compiled_inside(new)
        self.out.append(new)
        if has_effect(new):
            self.effects[new] = node
        folded = _fold_small(op, new)
        return new.outputs if folded is None else (folded,)

    def _demand(self, node: Node, operands: Sequence[Value], name: str) -> None:
        """Raises if values of the user's graph that an attribute of `node` needs are unknown."""
        unknown = [v for v in operands if not self._is_known(v)]
        if not unknown:
            return
        values = self._decisive(unknown)
        found = tuple([self.env[v] for v in values])
        before = toposort(self.out, [v.node for v in found], self._sources)
        sources = {op_of(n) for n in before if n not in self.effects}
        effects = self._until([n for n in before if n in self.effects])
        if state.variable in sources or not (effects or state.placeholder in sources):
            error = OnlyInterpretedError if is_hosted(node) else ShapeError
            raise error(
                f"{node.op}: {name} must be known before the step runs, "
                f"but it depends on a variable or a computed value: {node.describe()}"
            )
        self.out.outputs = (*found, *[y for new in effects for y in new.outputs])
        step = expand_composites(Step(self.out, tuple(self.feeds), ()))
        text = f"{node.op}: {name} depends on the values of feeds: {node.describe()}"
        made = {self.effects[new]: new.types for new in effects}
        raise ValuesNeededError(values, made, step, text)

    def _sources(self, node: Node) -> list[Node]:
        """The predecessors of a node of the pure graph; none of one that acts."""
        return [] if node in self.effects else [v.node for v in node.inputs]

    def _until(self, needed: Sequence[Node]) -> list[Node]:
        """The nodes that act, up to the last of these: all ranks act in the order of the graph."""
        acting = list(self.effects)
        return acting[: max([acting.index(node) + 1 for node in needed], default=0)]

    def _decisive(self, unknown: Sequence[Value]) -> tuple[Value, ...]:
        """The few integers that determine these: the largest length, not all lengths.

        Walks back as long as the unknown inputs are integers and not more numerous, and stops at
        what acts.
        """
        found: dict[Value, None] = {}
        waiting = list(unknown)
        while waiting:
            value = waiting.pop()
            while value in self.taken.outer:
                value = self.taken.outer[value]
            node = value.node
            inputs = [] if value in self.fed else [v for v in node.inputs if not self._is_known(v)]
            alike = all([self._is_smaller(v, value) for v in inputs])
            if inputs and alike and not (functions(node) or has_effect(node)):
                waiting += inputs
            else:
                found[value] = None
        return tuple(found)

    def _is_known(self, value: Value) -> bool:
        return value in self.env and is_complete(known_value(self.env[value]))

    def _is_smaller(self, value: Value, than: Value) -> bool:
        """Whether a value is integers, and has at most as many elements as the other."""
        shapes = self.env[than].shape, self.env[value].shape if value in self.env else None
        if not value.dtype.is_integer or not all(map(is_static, shapes)):
            return False
        return size(shapes[1]) <= size(shapes[0])

    def finish(self) -> Step:
        """The pure step."""
        fetches = tuple(self._fetched(v) for v in self.request.fetches)
        self.out.outputs = (*fetches, *self.current.values())
        return Step(self.out, tuple(self.feeds), tuple(self.current))

    def _fetched(self, value: Value) -> Value:
        """The value to return; for a variable's handle, its value before the step."""
        if op_of(value.node) is state.variable and value not in self.env:
            return self._state(value.node)
        return self.env[value]


def _only_interpreted(error: WeftError, node: Node) -> OnlyInterpretedError:
    """The error of a region whose shapes are not known before the step, for this reason."""
    return OnlyInterpretedError(f"{error} ({place(node)})")


def _require_compiled_inside(node: Node) -> None:
    """Raises if something in a branch or loop cannot be compiled, unless Python runs it."""
    if family_of(node).family != REGION or is_hosted(node):
        return
    for inner in inner_nodes(node):
        _require_in_program(inner)
        _require_compiled(inner, inner.types)
        if inner.operands:
            raise ShapeError(f"{inner.op}: {inner.operands[0]} is not known before the step")
        _require_compiled_inside(inner)


def _require_in_program(node: Node) -> None:
    """Raises if a node runs on the host between programs."""
    if is_host(node):
        raise CompileError(
            f"{node.op}: expected what a program computes, got an operation that runs on the host"
            f" between programs (a queue, a reader, Python, texts); a session runs it, but not"
            f" inside a loop or branch: {node.describe()}"
        )


def _require_compiled(node: Node, types: tuple[TensorType, ...]) -> None:
    """Raises if a type cannot be compiled."""
    for kind in types:
        if kind.dtype.is_hosted:
            raise CompileError(
                f"{node.op}: no program has values of type {kind}: {node.describe()}"
            )
        stack = family_of(node).family == REGION and is_stack(kind.shape)
        if not (is_static(kind.shape) or stack):
            error = OnlyInterpretedError if is_hosted(node) else ShapeError
            raise error(f"{node.op}: the shape {kind} is not known: {node.describe()}")


def _decides(dtype: DType) -> bool:
    """Whether values of this type may become a shape, or choose a branch."""
    return dtype.is_integer or dtype is bool_


def _fold_small(op: Op, node: Node) -> Value | None:
    """A constant for shape arithmetic: by the operation's rule, or by the reference if small."""
    if len(node.types) != 1 or op.stateful or not _decides(node.types[0].dtype):
        return None
    kind = node.types[0]
    if isinstance(op.lower, Boundary) or varies(kind.shape) or size(kind.shape) > SMALL:
        return None
    if symbolic(*node.attrs.values()):
        return None
    if all(op_of(v.node) is CONSTANT for v in node.inputs) and not isinstance(op.lower, Composite):
        arrays = [v.node.attrs["value"].array for v in node.inputs]
        try:
            array = np.asarray(op.reference(*arrays, **node.attrs), kind.dtype.numpy)
        except WeftError as error:
            raise located(error, node) from None
    else:
        known = known_value(node.outputs[0])
        if not is_complete(known):
            return None
        array = np.asarray(known, kind.dtype.numpy)
    return constant_of(array.reshape(known_shape(kind.shape)))
