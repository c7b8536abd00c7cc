"""Functions as values: `call` applies a traced function, `barrier` prevents merging.

A `Subgraph` is a function of values, traced once on placeholders. A call of it is one node until
shapes are concrete, and is then inlined, so that passes see inside. The use of a call is a custom
gradient: `backward` or `rematerialize`.

>>> from weft.ir.dtype import float32
>>> from weft.ir.node import TensorType
>>> double = trace(lambda x: x + x, [TensorType(float32, (3,))])
>>> double == trace(lambda x: x + x, [TensorType(float32, (3,))])
True
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Final, cast

import numpy as np

from weft.errors import DTypeError, GraphError, ShapeError
from weft.ir.dtype import DType, as_dtype, float64
from weft.ir.function import Function
from weft.ir.graph import Graph, current_graph, toposort
from weft.ir.hooks import HOOKS
from weft.ir.node import Attrs, Node, Region, Source, TensorType, Value
from weft.ir.shape import Shape, compatible, merge, show, size
from weft.ops.control.function_reference import prepared
from weft.ops.declaration import (
    BY_EXPANSION,
    NO_GRADIENT,
    Alias,
    Array,
    Case,
    Composite,
    catalogue,
    constant_of,
    defop,
    op_of,
)
from weft.ops.declaration.attribute import KINDS, REQUIRED
from weft.ops.declaration.example import count
from weft.ops.declaration.fact import AS_GIVEN, Facts
from weft.ops.indexing.row_sparse import RowSparse

__all__ = ["Subgraph"]

Backward = Callable[[Sequence[Any], Sequence[Value], Sequence[Value]], Sequence[Any]]
"""`backward(gs, ys, xs)` returns a cotangent or `None` for each input; see `Subgraph.backward`."""

# Larger constants are captured as inputs, so that their bytes are no part of the structure.
COPIED: Final = 64
# Operations that belong outside a function: it captures their results.
OUTSIDE: Final = frozenset({"variable", "read", "counter"})
EFFECTS: Final = frozenset({"assign", "group"})


@dataclass(frozen=True, eq=False)
class Subgraph(Function):
    """A pure function of values, equal if structure and gradient are, so that programs are reused.

    Args:
        inputs: placeholders.
        outputs: its results.
        nodes: all that the outputs need, in order, without the placeholders.
        captured: how many of the last inputs `trace_closure` has added.
        backward: a custom gradient: maps the cotangents of the outputs (zeros if missing), the
            outputs and the inputs to cotangents of the inputs, or `None`. Cotangents of captured
            inputs may be omitted. It is compared by identity, a `TracedBackward` by its structure.
        rematerialize: the gradient recomputes the nodes from the inputs, so that nothing inside is
            kept for the backward pass.
    """

    captured: int = 0
    backward: Backward | None = None
    rematerialize: bool = False

    @property
    def details(self) -> Mapping[str, Any] | None:
        """How many values are captured, and the custom gradient, if any."""
        found: dict[str, Any] = {}
        if self.captured:
            found["captured"] = self.captured
        if self.rematerialize:
            found["rematerialize"] = True
        if isinstance(self.backward, TracedBackward):
            return {**found, "backward": self.backward.function, "given": self.backward.given}
        return found if self.backward is None else None

    @cached_property
    def flowing(self) -> tuple[int, ...]:
        """For each output, a bit mask of the inputs that its gradient may reach."""
        if self.backward is not None:
            return tuple([-int(t.dtype.is_inexact) for t in self.output_types])
        reached = {v: 1 << i for i, v in enumerate(self.inputs) if v.dtype.is_inexact}
        for node in self.nodes:
            inputs = [reached.get(v, 0) for v in node.data_inputs]
            for y, flows in zip(node.outputs, _flowing(node), strict=True):
                reached[y] = 0
                for i, x in enumerate(inputs):
                    reached[y] |= x if flows >> i & 1 else 0
        return tuple([reached.get(y, 0) for y in self.outputs])

    @cached_property
    def structure(self) -> Any:
        """Everything that decides what is computed, without names and user lines."""
        places = {v: (-1, i) for i, v in enumerate(self.inputs)}
        rows: list[Any] = []
        for number, node in enumerate(self.nodes):
            inputs = tuple([places[v] for v in node.inputs])
            attrs = tuple(sorted(node.attrs.items()))
            rows.append((node.op, inputs, node.operands, attrs, node.types, node.regions))
            places.update({v: (number, v.index) for v in node.outputs})
        outputs = tuple([places[v] for v in self.outputs])
        return self.input_types, tuple(rows), outputs, self.rematerialize, self.backward

    @cached_property
    def _hash(self) -> int:
        return hash(self.structure)

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        same = isinstance(other, Subgraph) and self._hash == other._hash
        return same and self.structure == cast(Subgraph, other).structure

    def with_gradient(
        self, backward: Backward | None = None, rematerialize: bool = False
    ) -> Subgraph:
        """The same function with another gradient."""
        return replace(self, backward=backward, rematerialize=rematerialize)

    def reading(self, types: Sequence[TensorType]) -> Subgraph:
        """The same function with further captured inputs, which its gradient may use."""
        with Graph().as_default():
            more = tuple([catalogue.placeholder(dtype=t.dtype, shape=t.shape) for t in types])
        captured = self.captured + len(more)
        return replace(self, inputs=(*self.inputs, *more), captured=captured)

    def __repr__(self) -> str:
        types = ", ".join(map(str, self.input_types))
        return f"<Subgraph of {len(self.nodes)} nodes ({types})>"


KINDS["Subgraph"] = (Subgraph,)


def _flowing(node: Node) -> Sequence[int]:
    """For each output of a node, a bit mask of the inputs that its gradient may reach."""
    if node.op == "call":
        return cast(Subgraph, node.attrs["function"]).flowing
    if "branches" in node.attrs:
        columns = zip(*[b.flowing for b in node.attrs["branches"]], strict=True)
        return [functools.reduce(operator.or_, column) << 1 for column in columns]
    if "carried" in node.attrs:
        return _through_loop(node.attrs["body"], node.attrs["carried"])
    continuous = node.op != "stop_gradient" and op_of(node).vjp is not NO_GRADIENT
    return [-int(continuous and y.dtype.is_inexact) for y in node.outputs]


def _through_loop(body: Subgraph, carried: int) -> list[int]:
    """The masks of a loop's outputs, once the carry has converged."""
    every = (1 << len(body.inputs)) - 1
    found = [mask & every for mask in body.flowing]
    inside = [v.dtype.is_inexact for v in body.inputs[:carried]]
    reached = [1 << i if flows else 0 for i, flows in enumerate(inside)]

    def through(mask: int) -> int:
        """The loop's inputs behind inputs of the body."""
        rest = mask >> carried << carried
        return functools.reduce(
            operator.or_, [r for i, r in enumerate(reached) if mask >> i & 1], rest
        )

    while True:
        new = [r | through(mask) for r, mask in zip(reached, found, strict=False)]
        if new == reached:
            return [*reached, *map(through, found[carried:])]
        reached = new


@dataclass(frozen=True)
class TracedBackward:
    """A `backward` traced once, equal to others with the same structure.

    Args:
        function: takes the cotangents of the floating-point outputs, the outputs, and the inputs;
            its own gradient serves second derivatives.
        given: the inputs for which it gives a cotangent.
    """

    function: Subgraph
    given: tuple[bool, ...]

    def __call__(
        self, gs: Sequence[Any], ys: Sequence[Value], xs: Sequence[Value]
    ) -> list[Value | None]:
        values = [*[g for g in gs if g is not None], *ys, *xs]
        ruled = self.function.backward is not None
        found = iter(
            catalogue.call.all(*values, function=self.function)
            if ruled
            else inline(self.function, values)
        )
        return [next(found) if given else None for given in self.given]


def _built(
    inputs: tuple[Value, ...], outputs: tuple[Value, ...], nodes: tuple[Node, ...],
    captured: int = 0, rematerialize: bool = False, backward: Subgraph | None = None,
    given: tuple[bool, ...] = (),
) -> Subgraph:  # fmt: skip
    """A function parsed from its printed form."""
    rule = None if backward is None else TracedBackward(backward, given)
    return Subgraph(inputs, outputs, nodes, captured, rule, rematerialize)


HOOKS.function = _built


class _Tracing(Graph):
    """The graph of a function being traced; it may capture values of an `outer` graph."""

    def __init__(self, outer: Graph | None) -> None:
        super().__init__()
        self.outer = outer
        self.lifted: dict[Value, Value] = {}  # value of the outer graph -> its stand-in here

    def add(
        self, op: str, inputs: tuple[Value, ...], attrs: Attrs, types: tuple[TensorType, ...],
        name: str | None = None, operands: tuple[str, ...] = (), regions: tuple[Region, ...] = (),
        source: Source | None = None, device: str = "",
    ) -> Node:  # fmt: skip
        """Add a node; operations on variables are added to the outer graph."""
        if op in EFFECTS or (op in OUTSIDE and self.outer is None):
            raise GraphError.here(
                f"trace: expected a function without effects, got {op}; pass values in and"
                f" results out"
            )
        if op in OUTSIDE:
            assert self.outer is not None
            return self.outer.add(op, inputs, attrs, types, name, operands, regions, source, device)
        own = tuple([self.lift(v) for v in inputs])
        return super().add(op, own, attrs, types, name, operands, regions, source, device)

    def own(self, value: Value) -> Value:
        """The input or constant that stands for an outer value, if the function uses it."""
        return self.lifted.get(value, value)

    def lift(self, value: Value) -> Value:
        """`value` in this graph: itself, a copy of a small constant, or a new input."""
        if value.node in self:
            return value
        if value not in self.lifted:
            self.lifted[value] = self._lift(value).outputs[0]
        return self.lifted[value]

    def _lift(self, value: Value) -> Node:
        node = value.node
        if node.op == "constant" and size(value.shape) <= COPIED:
            return super().add("constant", (), node.attrs, node.types)
        if self.outer is None:
            raise GraphError.here(
                f"trace: expected a function of its arguments only, but it uses {node.describe()};"
                f" pass it as an argument, or use trace_closure"
            )
        attrs = {"dtype": value.dtype, "shape": value.shape}
        return super().add("placeholder", (), attrs, (value.type,), "captured")

    def captured(self) -> dict[Value, Value]:
        """Values of the outer graph, and the inputs that stand for them."""
        return {v: x for v, x in self.lifted.items() if x.node.op == "placeholder"}


def trace(
    function: Callable[..., Any],
    types: Sequence[TensorType],
    backward: Backward | None = None,
    rematerialize: bool = False,
) -> Subgraph:
    """Run `function` once on placeholders of `types`; it returns one value or several.

    Raises:
        GraphError: it uses values other than its arguments, or variables, or returns no values.
    """
    return _trace(function, types, None, backward, rematerialize)[0]


def trace_closure(
    function: Callable[..., Any],
    types: Sequence[TensorType],
    backward: Backward | None = None,
    rematerialize: bool = False,
) -> tuple[Subgraph, tuple[Value, ...]]:
    """Like `trace`, for a function that may use values of the current graph and read variables.

    Returns:
        The function with the values that it uses as further inputs, and these values.

    Example:
        >>> w = constant_of(np.ones((8, 16)))
        >>> x = constant_of(np.ones((4, 8)))
        >>> function, captured = trace_closure(lambda x: x @ w, [x.type])
        >>> print(catalogue.call(x, *captured, function=function).shape)
        (4, 16)
    """
    return _trace(function, types, current_graph(), backward, rematerialize)


def _trace(
    function: Callable[..., Any],
    types: Sequence[TensorType],
    outer: Graph | None,
    backward: Backward | None,
    rematerialize: bool,
) -> tuple[Subgraph, tuple[Value, ...]]:
    graph = _Tracing(outer)
    with graph.as_default():
        xs = [catalogue.placeholder(dtype=t.dtype, shape=t.shape) for t in types]
        found = function(*xs)
        several = cast("Sequence[Any]", found if isinstance(found, tuple | list) else (found,))
        outputs = tuple([graph.lift(_as_value(y)) for y in several])
    captured = graph.captured()
    inputs = (*xs, *captured.values())
    order = toposort(graph, [v.node for v in outputs])
    nodes = tuple([n for n in order if n.op != "placeholder"])
    return Subgraph(
        inputs, outputs, nodes, len(captured), backward, rematerialize
    ), tuple(captured)  # fmt: skip


def _as_value(y: Any) -> Value:
    if isinstance(y, Value):
        return y
    if isinstance(y, bool | int | float | np.ndarray | np.generic):
        return constant_of(y)
    raise GraphError.here(f"trace: expected the function to return values, got {y!r}")


def trace_backward(backward: Backward, function: Subgraph) -> TracedBackward:
    """Run `backward` once, for the types of `function`.

    Raises:
        GraphError: it uses values other than its arguments.
    """
    given: list[bool] = []
    floating = [t.dtype.is_inexact for t in function.output_types]

    def run(*values: Value) -> list[Value]:
        rest = iter(values)
        gs = [next(rest) if f else None for f in floating]
        found = backward(gs, [next(rest) for _ in floating], list(rest))
        given.extend(g is not None for g in found)
        return [g.dense() if isinstance(g, RowSparse) else g for g in found if g is not None]

    pairs = zip(function.output_types, floating, strict=True)
    cotangents = [t for t, f in pairs if f]
    types = [*cotangents, *function.output_types, *function.input_types]
    return TracedBackward(trace(run, types), tuple(given))


def inline(function: Subgraph, xs: Sequence[Value]) -> tuple[Value, ...]:
    """Inline the nodes of `function` into the current graph; its outputs for the inputs `xs`.

    Raises:
        UnknownShapeError: a node needs a shape that is unknown in `xs`.
    """
    graph = current_graph()
    found = dict(zip(function.inputs, xs, strict=True))
    for node in function.nodes:
        inputs = tuple([found[v] for v in node.inputs])
        same = all(x.type == v.type for x, v in zip(inputs, node.inputs, strict=True))
        if same and not node.operands:
            new = graph.add(
                node.op, inputs, node.attrs, node.types, node.name, (), node.regions, node.source,
                node.device,
            )  # fmt: skip
        else:
            new = _rebuilt(graph, node, inputs)
        found.update(zip(node.outputs, new.outputs, strict=True))
    return tuple([found[y] for y in function.outputs])


def _rebuilt(graph: Graph, node: Node, inputs: tuple[Value, ...]) -> Node:
    """The same operation on inputs of other types, checked again by its rules."""
    data = inputs[: len(inputs) - len(node.operands)]
    supplied = dict(zip(node.operands, inputs[len(data) :], strict=True))
    with graph.on_behalf_of(node):
        return op_of(node).node(data, {**node.attrs, **supplied})


def retyped(function: Subgraph, shapes: Sequence[Shape]) -> Subgraph:
    """The function for inputs of these shapes, which may be known better than when it was traced.

    Raises:
        ShapeError: a shape contradicts that of an input.
    """
    for i, (shape, kind) in enumerate(zip(shapes, function.input_types, strict=True)):
        if not compatible(shape, kind.shape):
            raise ShapeError(f"expected input {i} of shape {show(kind.shape)}, got {show(shape)}")
    merged = [merge(s, t.shape) for s, t in zip(shapes, function.input_types, strict=True)]
    if all(s == t.shape for s, t in zip(merged, function.input_types, strict=True)):
        return function
    graph = Graph()
    with graph.as_default():
        pairs = zip(function.inputs, merged, strict=True)
        xs = [catalogue.placeholder(dtype=x.dtype, shape=s, name=x.node.name) for x, s in pairs]
        ys = inline(function, xs)
    order = toposort(graph, [y.node for y in ys])
    inputs = {x.node for x in xs}
    nodes = tuple([node for node in order if node not in inputs])
    return replace(function, inputs=tuple(xs), outputs=ys, nodes=nodes)


# call


def _call_dtype(*dtypes: DType, function: Subgraph) -> tuple[DType, ...]:
    wanted = tuple(t.dtype for t in function.input_types)
    if dtypes != wanted:
        raise DTypeError(
            f"expected inputs of {', '.join(map(str, wanted))}, for which the function was traced,"
            f" got {', '.join(map(str, dtypes))}"
        )
    return tuple(t.dtype for t in function.output_types)


def _call_shape(*shapes: Shape, function: Subgraph) -> tuple[Shape, ...]:
    return tuple([t.shape for t in retyped(function, shapes).output_types])


def _call_reference(*arrays: Array, function: Subgraph) -> tuple[Array, ...]:
    return tuple(prepared(function)(arrays))


def types_of(arrays: Sequence[Array]) -> list[TensorType]:
    """The types of arrays."""
    return [TensorType(as_dtype(a.dtype), a.shape) for a in arrays]


def _call_cases() -> Iterator[Case]:
    x, w = count((2, 3), float64) * 0.25, count((3,), float64) * 0.5
    n = np.array([2, 0], np.int32)
    smooth = trace(lambda x, w: (catalogue.tanh(x * w), catalogue.sum(x)), types_of([x, w]))
    yield Case((x, w), {"function": smooth})
    yield Case((x, w), {"function": smooth.with_gradient(rematerialize=True)})
    nested = trace(lambda x, w: catalogue.call(x, w, function=smooth) * w, types_of([x, w]))
    yield Case((x, w), {"function": nested})
    yield Case((x, n), {"function": trace(_picked, types_of([x, n]))})


def _picked(x: Value, n: Value) -> tuple[Value, Value]:
    return catalogue.gather(x, n, axis=1), n


call = defop(
    "call",
    inputs="*xs",
    attrs={"function": REQUIRED},
    dtype=_call_dtype,
    shape=_call_shape,
    reference=_call_reference,
    vjp=BY_EXPANSION,
    lower=Composite(lambda *xs, function: inline(function, xs)),
    cases=_call_cases,
    outputs=-1,
    partial=True,
    facts=AS_GIVEN,
)
"""The outputs of a `Subgraph` for inputs of the types for which it was traced."""

# barrier

barrier = defop(
    "barrier",
    inputs="*xs",
    dtype=lambda *dtypes: dtypes,
    shape=lambda *shapes: shapes,
    reference=lambda *xs: xs,
    vjp=lambda gs, ys, *xs: gs,
    lower=Alias(),
    cases=lambda: [
        Case((count((2, 3), float64), count((), float64), np.arange(3, dtype=np.int32))),
        Case((count((4,), float64),)),
    ],
    outputs=-1,
    partial=True,
    facts=Facts(linear=True),
)
"""Its inputs, which the compiler treats as new values that depend on all of them.

Computations from its outputs are not merged with equal ones from its inputs.
"""
