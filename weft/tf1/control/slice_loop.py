"""A loop over the slices of tensors along their first axis, as in `dynamic_rnn`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import islice
from typing import Any, NamedTuple

import numpy as np

from weft import ops
from weft.errors import DTypeError, ShapeError
from weft.ir.node import TensorType, Value
from weft.ir.shape import compatible
from weft.ops.call import Subgraph, inline, trace
from weft.ops.control.agreement import lines
from weft.tf1.control.region import ITERATION_STRIDE, Join, Region, inside, stand_in
from weft.tf1.framework.convert import constant
from weft.tf1.framework.graph import computes_at_once, fail, get_default_graph, name_scope
from weft.tf1.framework.tensor import Tensor
from weft.tf1.shaping.arrangement import stack

Step = Callable[[list[Tensor], list[Tensor]], tuple[list[Tensor], list[Tensor]]]
"""From the state and one slice of each tensor to the next state and the results to stack."""


def over_slices(
    step: Step, state: Sequence[Tensor], xs: Sequence[Tensor], reverse: bool = False,
    pure: bool = False,
) -> tuple[list[Tensor], list[Tensor]]:  # fmt: skip
    """The last state, and the stacked results.

    Args:
        xs: at least one; all have the same length.
        reverse: start with the last slices; results keep the order of `xs`.
        pure: whether the step may be called once for all slices in eager execution, too.

    Raises:
        ShapeError, DTypeError: the step returns the state with other types.
    """
    graph = get_default_graph()
    if computes_at_once(graph):
        found = graph.at_once.scanned(step, state, xs, reverse) if pure else None
        return found or _one_by_one(step, list(state), xs, reverse)
    first = len(graph.ir.nodes)
    with inside(graph), name_scope("step"):
        held = [stand_in(graph, x.value.type, "state") for x in state]
        rows = [stand_in(graph, _slice(x), "slice") for x in xs]
        new, ys = step(held, rows)
    _fits(state, new)
    arguments = [x.value for x in (*held, *rows)]
    region = Region(graph, first, arguments, [x.used for x in (*new, *ys)])
    join = Join(graph, [region])
    now = join.now()
    iteration = [constant(np.zeros((), np.uint64)).used] if join.draws else []
    count, mapped, given = len(state), len(xs), len(ys)

    def build(*values: Value) -> Any:
        inits = [*values[:count], *now, *iteration]
        types = [
            *[v.type for v in arguments[:count]], *[v.type for v in (*now, *iteration)],
            *[v.type for v in arguments[count:]], *[v.type for v in join.outer],
        ]  # fmt: skip
        counts = _Counts(count, len(now), len(iteration), mapped, given)
        body = _body(join.function(region, join.draws), types, counts)
        attrs: dict[str, Any] = {"body": body, "length": _length(values[count])}
        found = ops.scan.all(
            *inits, *values[count:], *join.outer, **attrs, carried=len(inits), mapped=mapped,
            reverse=reverse,
        )  # fmt: skip
        stacks = found[len(inits) :]
        after = found[count : count + len(now)]
        return join.after_assignments([*found[:count], *stacks, *after], count + given)

    op = graph.emit("While", [*state, *xs], build, name="Exit")
    return list(op.outputs[:count]), list(op.outputs[count:])


def _one_by_one(
    step: Step, state: list[Tensor], xs: Sequence[Tensor], reverse: bool
) -> tuple[list[Tensor], list[Tensor]]:
    """The same in eager execution."""
    rows: list[list[Tensor]] = []
    order = range(len(xs[0]))
    for i in reversed(order) if reverse else order:
        new, ys = step(state, [x[i] for x in xs])
        _fits(state, new)
        state = new
        rows.append(ys)
    if reverse:
        rows.reverse()
    return state, [stack(list(ys)) for ys in zip(*rows, strict=True)]


def _slice(x: Tensor) -> TensorType:
    shape = x.value.shape
    return TensorType(x.value.dtype, None if shape is None else shape[1:])


def _length(x: Value) -> Any:
    """The number of slices: a number, or a value."""
    if x.shape is not None and x.shape[0] is not None:
        return x.shape[0]
    return ops.reshape(ops.slice(ops.shape_of(x), begin=(0,), end=(1,)), shape=())


def _fits(state: Sequence[Tensor], new: Sequence[Tensor]) -> None:
    before, after = [x.value.type for x in state], [x.value.type for x in new]
    pairs = list(zip(before, after, strict=False))
    same = len(before) == len(after) and all([a.dtype is b.dtype for a, b in pairs])
    if same and all([compatible(a.shape, b.shape) for a, b in pairs]):
        return
    shown = lines([str(t) for t in before], [str(t) for t in after])
    raise fail(
        ShapeError if same else DTypeError,
        f"expected the state back in the types that it had (before | after):{shown}\n",
    )


class _Counts(NamedTuple):
    """The numbers of carried values, of slices and of a step's results."""

    state: int
    variables: int
    iteration: int
    slices: int
    results: int


def _body(function: Subgraph, types: Sequence[TensorType], n: _Counts) -> Subgraph:
    """A region's function in a scan's argument order: variables and iteration are carried."""

    def run(*xs: Value) -> list[Value]:
        rest = iter(xs)
        state, now, iteration, rows = (list(islice(rest, count)) for count in n[:4])
        found = inline(function, [*state, *rows, *now, *iteration, *rest])
        given = n.state + n.results
        more = [t + ITERATION_STRIDE for t in iteration]
        return [*found[: n.state], *found[given:], *more, *found[n.state : given]]

    return trace(run, types)
