"""Forward mode: adds nodes that compute tangents of results from tangents of arguments.

A linear operation is applied to the tangents. For any other, the gradient rule is linear in the
cotangent g, so the gradient of <vjp(g), tangents> with respect to g is the tangent of the result,
whatever g is (J. Townsend, "A new trick for calculating Jacobian vector products", 2017). The nodes
of vjp(g) itself are then dead code: a compiled program computes only the tangent.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from weft.errors import DTypeError, GraphError, NotDifferentiableError, ShapeError
from weft.ir.graph import current_graph, toposort
from weft.ir.node import Node, Value
from weft.ir.shape import compatible, show
from weft.ops.boundary.state import identity, read
from weft.ops.call import Subgraph, call, inline
from weft.ops.declaration import BY_BODY, NO_GRADIENT, Op, catalogue, op_of
from weft.ops.elementwise.arithmetic import add, add_n, subtract
from weft.ops.elementwise.convert import cast
from weft.ops.indexing.sort import sort, top_k
from weft.ops.shape.creation import zeros_like
from weft.transform.gradient import dense, gradients, pull_back
from weft.transform.interpreter import place
from weft.transform.region_forward import push_through_bodies

__all__ = ["pushforward"]


def pushforward(
    ys: Sequence[Value], xs: Sequence[Value], tangents: Sequence[Value | None]
) -> list[Value | None]:
    """Directional derivatives of `ys` along the tangents of `xs`, as nodes of the current graph.

    Args:
        xs: any values of the graph.
        tangents: of the types of `xs`; `None` for an input that is constant (as integers are).

    Returns:
        One tangent per y, `None` where it does not depend on the tangents.

    Raises:
        NotDifferentiableError: a path leads through an operation that has no gradient.
        ShapeError, DTypeError: a tangent does not fit its x.

    Example:
        >>> x = catalogue.iota(shape=(3,), dtype="float32")
        >>> (t,) = pushforward([catalogue.sum(x * x)], [x], [catalogue.cos(x)])
        >>> print(t.type)
        float32[]
    """
    if len(xs) != len(tangents):
        raise GraphError(f"pushforward: expected {len(xs)} tangents, got {len(tangents)}")
    graph = current_graph()
    found: dict[Value, Value | None] = {}
    for x, t in zip(xs, tangents, strict=True):
        found[x] = found[graph.own(x)] = _checked(x, t)
    roots = [y.node for y in ys if y not in found]
    with graph.name_scope("tangents") as scope:
        for node in toposort(graph, roots, lambda node: _before(node, found)):
            with graph.on_behalf_of(node, f"{scope}{node.name}_tangent/"):
                outputs = push_through(node, [found.get(v) for v in node.data_inputs])
            for y, t in zip(node.outputs, outputs, strict=True):
                found.setdefault(y, t)
    return [found.get(y) for y in ys]


def _before(node: Node, found: Mapping[Value, Value | None]) -> list[Node]:
    return [v.node for v in node.data_inputs if v not in found]


def _checked(x: Value, t: Value | None) -> Value | None:
    if t is None:
        return None
    if t.dtype is not x.dtype or not x.dtype.is_inexact:
        raise DTypeError.here(
            f"pushforward: expected a tangent of {x.dtype} for {x.name}, or None if that is"
            f" not floating-point, got {t.dtype}"
        )
    if not compatible(t.shape, x.shape):
        raise ShapeError.here(
            f"pushforward: expected a tangent of shape {show(x.shape)} for {x.name},"
            f" got {show(t.shape)}"
        )
    return t


def push_through(node: Node, tangents: Sequence[Value | None]) -> Sequence[Value | None]:
    """Tangents of a node's outputs from those of its data inputs.

    Raises:
        NotDifferentiableError: the operation has no gradient.
    """
    op = op_of(node)
    moving = any(t is not None for t in tangents)
    if not moving or not any(y.dtype.is_inexact for y in node.outputs):
        return [None] * len(node.outputs)
    if op.vjp is NO_GRADIENT:
        raise NotDifferentiableError(f"{op.name}: has no gradient ({place(node)})")
    own = _RULES.get(op)
    moved = None if own is None else own(node, tangents)
    if op.vjp is BY_BODY:
        moved = push_through_bodies(node, tangents, pushforward)
    if moved is not None:
        return moved
    if op.facts.linear:
        return _linear(op, node, tangents)
    return _by_gradient(node, tangents)


def _by_gradient(node: Node, tangents: Sequence[Value | None]) -> list[Value | None]:
    """Differentiates the gradient rule by its cotangents, in the direction of the tangents."""
    # Not a constant: a rule may leave out the gradient of a constant 0.
    cotangents = [
        catalogue.identity(zeros_like(y)) if y.dtype.is_inexact else None for y in node.outputs
    ]
    back = pull_back(node, cotangents)
    both = zip(back, tangents, strict=True)
    pairs = [(dense(g), t) for g, t in both if g is not None and t is not None]
    own = [c for c in cotangents if c is not None]
    found = iter(gradients([g for g, _ in pairs], own, [t for _, t in pairs]))
    wanted = [None if c is None else next(found) for c in cotangents]
    return [None if t is None else dense(t) for t in wanted]


# Operations with a direct rule


def _linear(op: Op, node: Node, tangents: Sequence[Value | None]) -> Sequence[Value | None]:
    supplied = zip(node.operands, node.inputs[len(node.data_inputs) :], strict=True)
    attrs: dict[str, Any] = {**node.attrs, **dict(supplied)}
    if "value" in attrs:  # the padding value has no tangent
        attrs["value"] = 0
    moved = op.all(*_filled(node, tangents), **attrs)
    return [t if t.dtype.is_inexact else None for t in moved]


def _filled(node: Node, tangents: Sequence[Value | None]) -> list[Value]:
    """Tangents, with zeros for missing ones; values without tangents stay as they are."""

    def one(x: Value, t: Value | None) -> Value:
        if t is not None:
            return t
        return zeros_like(x) if x.dtype.is_inexact else x

    return list(map(one, node.data_inputs, tangents))


def _same(node: Node, tangents: Sequence[Value | None]) -> Sequence[Value | None]:
    return tangents


def _sum(node: Node, tangents: Sequence[Value | None]) -> list[Value | None]:
    moving = [t for t in tangents if t is not None]
    return [moving[0] if len(moving) == 1 else catalogue.add_n(*moving)]


def _add(node: Node, tangents: Sequence[Value | None]) -> list[Value | None] | None:
    """Adds tangents; a single one passes through if it has the full shape."""
    op = op_of(node)
    x, y = tangents
    if x is not None and y is not None:
        return [op(x, y)]
    only = y if x is None else x
    if only is None or only.shape != node.outputs[0].shape:
        return None
    return [catalogue.negative(only) if x is None and op is subtract else only]


def _cast(node: Node, tangents: Sequence[Value | None]) -> list[Value | None]:
    (t,) = tangents
    return [None if t is None else catalogue.cast(t, dtype=node.outputs[0].dtype)]


def _sorted(node: Node, tangents: Sequence[Value | None]) -> list[Value | None]:
    (t,) = tangents
    assert t is not None
    order, axis = node.outputs[1], node.attrs.get("axis", -1)
    return [catalogue.take_along_axis(t, order, axis=axis), None]


def _call(node: Node, tangents: Sequence[Value | None]) -> list[Value | None] | None:
    """Pushes through the function's nodes, unless it has a gradient of its own."""
    function = node.attrs["function"]
    assert isinstance(function, Subgraph)
    if function.backward is not None:
        return None
    xs = [catalogue.identity(x) for x in node.data_inputs]
    return pushforward(inline(function, xs), xs, tangents)


_Rule = Callable[[Node, Sequence[Any]], "Sequence[Value | None] | None"]
_RULES: Final[dict[Op, _Rule]] = {
    identity: _same,
    read: _same,
    add_n: _sum,
    add: _add,
    subtract: _add,
    cast: _cast,
    sort: _sorted,
    top_k: _sorted,
    call: _call,
}
