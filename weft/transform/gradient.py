"""Reverse mode: adds the backward pass to the graph, so that it can be differentiated again.

Nodes are visited in reverse order, without recursion. Cotangents from several uses of a value are
summed once. A rule that needs a shape or an attribute known only at run time is deferred: a `vjp`
node takes its place, and applies the rule when the graph is specialized.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from weft.errors import (
    DTypeError,
    GraphError,
    NotDifferentiableError,
    ShapeError,
    UnknownShapeError,
)
from weft.host.deferred import Deferred
from weft.ir.dtype import DType
from weft.ir.graph import Graph, current_graph, toposort
from weft.ir.node import Node, Value
from weft.ir.shape import Shape, compatible, is_static, show
from weft.ops.call import Subgraph, barrier, call, inline
from weft.ops.control.known_input import known_attributes
from weft.ops.declaration import (
    BY_BODY,
    BY_EXPANSION,
    NO_GRADIENT,
    REGISTRY,
    Alias,
    Array,
    Case,
    Composite,
    Op,
    Opaque,
    catalogue,
    constant_of,
    defop,
    op_of,
)
from weft.ops.declaration.attribute import REQUIRED
from weft.ops.declaration.fact import IN_WIDEST
from weft.ops.indexing.row_sparse import Cotangent as Cotangent
from weft.ops.indexing.row_sparse import dense as dense
from weft.ops.shape.creation import ones_like, zeros_like
from weft.transform.cotangent import add_up, checked, filled, together
from weft.transform.interpreter import evaluate, place
from weft.transform.recomputation import Recomputation

if TYPE_CHECKING:
    from weft.transform import region_gradient, region_gradient_reference
else:  # few programs have loops or branches
    region_gradient = Deferred("weft.transform.region_gradient")
    region_gradient_reference = Deferred("weft.transform.region_gradient_reference")


def gradients(
    ys: Sequence[Value],
    xs: Sequence[Value],
    grad_ys: Sequence[Value | None] | None = None,
    stop: Iterable[Value] = (),
) -> list[Cotangent | None]:
    """Gradients of the sum of `ys` with respect to each of `xs`, as nodes of the current graph.

    Args:
        xs: any values of the graph: placeholders, variables' handles, intermediate values.
        grad_ys: cotangents to start from, of the shapes of `ys`; ones by default.
        stop: values to treat as constants.

    Returns:
        One gradient per x: a value, `RowSparse` if only lookups contribute to it, or `None` if no
        floating-point path leads from x to a y.

    Raises:
        NotDifferentiableError: a path leads through an operation that has no gradient.
        ShapeError, DTypeError: a cotangent does not fit its y.
    """
    starts = list(grad_ys) if grad_ys is not None else [None] * len(ys)
    if len(starts) != len(ys):
        raise GraphError(f"gradients: expected {len(ys)} grad_ys, got {len(starts)}")
    graph = current_graph()
    with graph.name_scope("gradients") as scope:
        back = _Backward(graph, scope, xs, stop)
        for y, start in zip(ys, starts, strict=True):
            back.seed(y, start)
        back.run(ys)
        return [back.found(x) for x in xs]


class _Backward:
    """One backward pass: the cotangents that each value has so far."""

    def __init__(
        self, graph: Graph, scope: str, xs: Sequence[Value], stop: Iterable[Value]
    ) -> None:
        self.graph = graph
        self.scope = scope
        self.xs = frozenset(v for x in xs if x.dtype.is_inexact for v in (x, graph.own(x)))
        self.stop = frozenset(v for x in stop for v in (x, graph.own(x)))
        self.parts: dict[Value, list[Cotangent]] = {}
        self.totals: dict[Value, Cotangent | None] = {}
        self.active: set[Node] = set()  # nodes on a path from some x

    def seed(self, y: Value, start: Value | None) -> None:
        """Starts from `y`; an integer or boolean y has no gradient."""
        if not y.dtype.is_inexact:
            return
        if start is None:
            start = ones_like(y)
        if start.dtype is not y.dtype:
            raise DTypeError(f"gradients: expected a grad_y of {y.dtype}, got {start.dtype}")
        if not compatible(start.shape, y.shape):
            raise ShapeError(
                f"gradients: expected a grad_y of shape {show(y.shape)}, got {show(start.shape)}"
            )
        self.parts.setdefault(y, []).append(start)

    def run(self, ys: Sequence[Value]) -> None:
        """Visits nodes in reverse order, each after all of its readers."""
        order = toposort(self.graph, [y.node for y in ys], self._inputs)
        for node in order:
            if any(self._varies(v) for v in node.data_inputs):
                self.active.add(node)
        recomputation = Recomputation(order)
        for node in reversed(order):
            if node in self.active:
                self._visit(node, recomputation)

    def _inputs(self, node: Node) -> list[Node]:
        return [v.node for v in node.data_inputs if v not in self.stop]

    def _varies(self, value: Value) -> bool:
        """Whether the value depends on some x differentiably."""
        if not value.dtype.is_inexact:
            return False
        return value in self.xs or (value not in self.stop and value.node in self.active)

    def total(self, value: Value) -> Cotangent | None:
        """The sum of a value's cotangents; always the same node."""
        if value not in self.totals:
            self.totals[value] = add_up(self.parts.pop(value, []))
        return self.totals[value]

    def found(self, x: Value) -> Cotangent | None:
        """All cotangents of an x: its own, and those of its stand-in in a function being traced."""
        own = self.graph.own(x)
        if own is x:
            return self.total(x)
        return add_up([g for g in (self.total(x), self.total(own)) if g is not None])

    def _visit(self, node: Node, recomputation: Recomputation) -> None:
        if not any(v in self.parts and v not in self.stop for v in node.outputs):
            return
        with self.graph.on_behalf_of(node, f"{self.scope}{node.name}_grad/"):
            outputs = [None if v in self.stop else self.total(v) for v in node.outputs]
            if all(g is None for g in outputs):
                return
            wanted = [self._varies(x) for x in node.data_inputs]
            found = pull_back(recomputation.for_rule(node, outputs), outputs, wanted, node.outputs)
            for x, g in zip(node.data_inputs, found, strict=True):
                if g is not None and self._varies(x):
                    self.parts.setdefault(x, []).append(checked(g, x, node))


def pull_back(
    node: Node,
    outputs: Sequence[Cotangent | None],
    wanted: Sequence[bool] | None = None,
    ys: Sequence[Value] | None = None,
) -> list[Cotangent | None]:
    """Cotangents of a node's data inputs, from those of its outputs (`None`: it has none).

    Args:
        wanted: which inputs need a cotangent; all by default.
        ys: the node's results, if not its own outputs.

    Raises:
        NotDifferentiableError: the operation has no gradient.
    """
    op, ys = op_of(node), node.outputs if ys is None else ys
    if op.vjp is NO_GRADIENT:
        raise NotDifferentiableError(f"{op.name}: has no gradient ({place(node)})")
    gs = [g if op.facts.keeps_rows or g is None else dense(g) for g in outputs]
    attrs = {**op.attrs, **node.attrs}
    if node.operands:
        supplied = dict(zip(node.operands, node.inputs[len(node.data_inputs) :], strict=True))
        if not isinstance(op.lower, Alias):
            return _put_off(op, gs, ys, node.data_inputs, {**attrs, **supplied})
        attrs.update(supplied)
    try:
        return apply_rule(op, gs, ys, node.data_inputs, attrs, wanted)
    except UnknownShapeError:
        return _put_off(op, gs, ys, node.data_inputs, attrs)


def apply_rule(
    op: Op, gs: Sequence[Cotangent | None], ys: Sequence[Value], xs: Sequence[Value],
    attrs: Mapping[str, Any], wanted: Sequence[bool] | None = None,
) -> list[Cotangent | None]:  # fmt: skip
    """Applies an operation's own rule, or differentiates its expansion or its functions."""
    if op.vjp is BY_BODY:
        all_wanted = [x.dtype.is_inexact for x in xs] if wanted is None else wanted
        cotangents = [None if g is None else dense(g) for g in gs]
        pull = region_gradient.Pull(cotangents, ys, xs, attrs, all_wanted, gradients)
        return region_gradient.pull_through_bodies(op, pull)
    if op is call:
        return _through_call(attrs["function"], gs, ys, xs)
    if op.vjp is BY_EXPANSION:
        return _through_expansion(op, gs, xs, attrs)
    if op.outputs == 1:
        found = op.vjp(gs[0], ys[0], *xs, **attrs)
    else:
        found = op.vjp(tuple(filled(gs, ys)), tuple(ys), *xs, **attrs)
    if len(found) != len(xs):
        raise GraphError(
            f"{op.name}: expected {len(xs)} cotangents of its gradient rule, got {len(found)}"
        )
    return list(found)


def _through_expansion(
    op: Op, gs: Sequence[Cotangent | None], xs: Sequence[Value], attrs: Mapping[str, Any]
) -> list[Cotangent | None]:
    assert isinstance(op.lower, Composite | Opaque) and op.lower.expand is not None
    if not all(is_static(x.shape) for x in xs):
        raise UnknownShapeError(f"{op.name}: expected known shapes")
    # Copies of the inputs, so that an input that occurs twice gets each of its cotangents once.
    inputs = [catalogue.identity(x) for x in xs]
    expanded = op.lower.expand(*inputs, **attrs)
    ys = expanded if isinstance(expanded, tuple) else (expanded,)
    return _between(ys, inputs, gs)


def _between(
    ys: Sequence[Value], inputs: Sequence[Value], gs: Sequence[Cotangent | None]
) -> list[Cotangent | None]:
    """Gradients with respect to `inputs`, which are taken as independent variables."""
    pairs = [(y, dense(g)) for y, g in zip(ys, gs, strict=True) if g is not None]
    return gradients([y for y, _ in pairs], inputs, [g for _, g in pairs], stop=inputs)


def _through_call(
    function: Subgraph, gs: Sequence[Cotangent | None], ys: Sequence[Value], xs: Sequence[Value]
) -> list[Cotangent | None]:
    """Uses the function's own gradient, or differentiates a copy of its nodes."""
    if function.backward is not None:
        found = function.backward(filled(gs, ys), ys, xs)
        if len(found) not in (len(xs), len(xs) - function.captured):
            raise GraphError(
                f"call: expected {len(xs) - function.captured} cotangents of the backward function,"
                f" got {len(found)}"
            )
        return [*found, *[None] * (len(xs) - len(found))]
    if not function.rematerialize:
        inputs = [catalogue.identity(x) for x in xs]
        return _between(inline(function, inputs), inputs, gs)
    # Recomputation waits for the cotangents, and the resulting cotangents leave all at once, so
    # that the insides of two functions never need memory at the same time.
    held = barrier.all(*xs, *[dense(g) for g in gs if g is not None])
    inputs, rest = held[: len(xs)], iter(held[len(xs) :])
    waiting = [None if g is None else next(rest) for g in gs]
    return together(_between(inline(function, inputs), inputs, waiting))


# Deferring a rule until shapes and attributes are known

_SLOTS = ("a0", "a1", "a2", "a3", "a4", "a5")  # attributes that inputs supply


def _put_off(
    op: Op, gs: Sequence[Cotangent | None], ys: Sequence[Value], xs: Sequence[Value],
    attrs: Mapping[str, Any],
) -> list[Cotangent | None]:  # fmt: skip
    """Adds a `vjp` node in place of the rule; it gives cotangents of all floating-point inputs."""
    known = [None if g is None else dense(g) for g in gs]
    supplied = {k: v for k, v in attrs.items() if isinstance(v, Value)}
    node = vjp.node(
        (*[g for g in known if g is not None], *ys, *xs),
        {
            "op": op.name,
            "attrs": tuple((k, v) for k, v in attrs.items() if k not in supplied),
            "operands": tuple(supplied),
            "given": tuple(g is not None for g in known),
            "outputs": len(ys),
            "floating": tuple(x.dtype.is_inexact for x in xs),
            **dict(zip(_SLOTS, supplied.values(), strict=False)),
        },
        op.name,
    )
    found = iter(node.outputs)
    return [next(found) if x.dtype.is_inexact else None for x in xs]


def _parts(items: Sequence[Any], given: Sequence[bool], outputs: int) -> tuple[Any, Any, Any]:
    """Cotangents (`None` where there is none), outputs and inputs of the operation."""
    count = sum(given)
    cotangents = iter(items[:count])
    gs = [next(cotangents) if present else None for present in given]
    return gs, items[count : count + outputs], items[count + outputs :]


def _vjp_dtype(*dtypes: DType, given: Any, outputs: int, **_: Any) -> tuple[DType, ...]:
    return tuple(d for d in _parts(dtypes, given, outputs)[2] if d.is_inexact)


def _vjp_shape(
    *shapes: Shape, given: Any, outputs: int, floating: Any, **_: Any
) -> tuple[Shape, ...]:
    xs = _parts(shapes, given, outputs)[2]
    return tuple(x for x, wanted in zip(xs, floating, strict=True) if wanted)


def _vjp_expand(
    *items: Value, op: str, attrs: Any, operands: Any, given: Any, outputs: int, **more: Any
) -> tuple[Value, ...]:
    gs, ys, xs = _parts(items, given, outputs)
    supplied = {name: more[slot] for name, slot in zip(operands, _SLOTS, strict=False)}
    told = known_attributes(REGISTRY[op], {**dict(attrs), **supplied}, xs)
    found = apply_rule(REGISTRY[op], gs, ys, xs, told)
    pairs = [(g, x) for g, x in zip(found, xs, strict=True) if x.dtype.is_inexact]
    return tuple(zeros_like(x) if g is None else dense(g) for g, x in pairs)


def _rule_reference(
    op: Op, gs: Sequence[Array | None], ys: Sequence[Array], xs: Sequence[Array],
    attrs: Mapping[str, Any],
) -> list[Array | None]:  # fmt: skip
    """The cotangents of an operation's inputs that its rule gives for arrays."""
    graph = Graph()
    with graph.as_default():
        starts = [None if g is None else constant_of(g) for g in gs]
        outputs, inputs = list(map(constant_of, ys)), list(map(constant_of, xs))
        found = apply_rule(op, starts, outputs, inputs, attrs)
        there = [dense(g) for g in found if g is not None]
    arrays = iter(evaluate(graph, there))
    return [None if g is None else next(arrays) for g in found]


def _region_reference(
    *arrays: Array, op: str, attrs: Any, operands: Any, given: Any, outputs: int, **more: Any
) -> tuple[Array, ...]:
    gs, _, xs = _parts(arrays, given, outputs)
    supplied = {name: more[slot] for name, slot in zip(operands, _SLOTS, strict=False)}
    whole = {**REGISTRY[op].attrs, **dict(attrs), **supplied}
    found = region_gradient_reference.TurnByTurn(_rule_reference).region(
        REGISTRY[op], gs, xs, whole
    )
    pairs = [(g, x) for g, x in zip(found, xs, strict=True) if x.dtype.kind not in "biu"]
    return tuple([np.zeros_like(x) if g is None else g for g, x in pairs])


def _vjp_reference(*arrays: Array, **attrs: Any) -> tuple[Array, ...]:
    if REGISTRY[attrs["op"]].vjp is BY_BODY:
        return _region_reference(*arrays, **attrs)
    graph = Graph()
    with graph.as_default():
        found = _vjp_expand(*[constant_of(a) for a in arrays], **attrs)
    return tuple(evaluate(graph, found))


def _vjp_cases() -> Iterable[Case]:
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    common = {"attrs": (), "operands": ("reps",), "given": (True,), "outputs": 1}
    y = np.tile(x, (2, 1))
    yield Case((y, y, x), {**common, "op": "tile", "floating": (True,), "a0": (2, 1)})


vjp = defop(
    "vjp",
    inputs="*items",
    attrs={
        **dict.fromkeys(("op", "attrs", "operands", "given", "outputs", "floating"), REQUIRED),
        **dict.fromkeys(_SLOTS),
    },
    dtype=_vjp_dtype,
    shape=_vjp_shape,
    reference=_vjp_reference,
    vjp=BY_EXPANSION,
    lower=Composite(_vjp_expand),
    cases=_vjp_cases,
    outputs=-1,
    partial=True,
    facts=IN_WIDEST,
)
"""The gradient rule of the operation `op`, applied once shapes and attributes are known.

Inputs: cotangents of the outputs that have one, then the outputs, then the data inputs.
"""
