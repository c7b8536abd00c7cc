"""Tracing: records a function of tensors once, on arguments without values, as a graph."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple, NoReturn, TypeVar

from weft.eager.record.call.interned_type import intern
from weft.eager.record.call.placed_type import refuse_placed
from weft.eager.record.call.plan import Plan, accepted_input, plan_of, recall, remember
from weft.eager.record.pending.access import array_of
from weft.eager.record.pending.lazy import Drawn, Lazy, Tracer, begun, serials
from weft.eager.record.pending.mode import Setting
from weft.eager.record.pending.state import trace
from weft.eager.record.recognition.structure import is_cut, needed
from weft.eager.tensor.autograd.backward import history, is_watched, walk
from weft.eager.tensor.autograd.custom_function import Custom
from weft.eager.tensor.handle import Handle
from weft.errors import GradientError
from weft.host.interrupt import Uninterrupted
from weft.ir.graph import Graph, toposort
from weft.ir.node import TensorType
from weft.ir.shape import known
from weft.ops.boundary.state import placeholder
from weft.ops.call import Subgraph, TracedBackward
from weft.ops.declaration import catalogue, constant_of, op_of
from weft.transform.gradient import Cotangent, dense

T = TypeVar("T")


class Traced(NamedTuple):
    """A function of tensors as a graph.

    Attributes:
        function: its inputs are the arguments, then the captured values.
        captured: outside values that it uses.
        result: what the function returned besides its outputs.
        changed: outside tensors that it changed in place; their new values are the last outputs.
    """

    function: Subgraph
    captured: tuple[Lazy, ...]
    result: Any
    changed: tuple[Handle, ...]


def _no_second(*_: Any) -> NoReturn:
    raise GradientError.here(
        "backward: the gradient that a Function gives inside a traced function has none of its "
        "own; take both derivatives inside the traced function"
    )


def tracers(types: Sequence[TensorType]) -> tuple[Tracer, ...]:
    """Tracer arguments of these types."""
    refuse_placed(types)
    kinds = [intern(t.dtype, known(t.shape)) for t in types]
    return tuple([begun(Tracer(), t, None, 0, t.dtype.is_inexact) for t in kinds])


def trace_tensors(
    run: Callable[[tuple[Lazy, ...]], tuple[Sequence[Lazy], Any]],
    types: Sequence[TensorType],
    constants: bool = False,
) -> Traced:
    """Record `run` on tracer arguments of these types.

    Args:
        run: maps the arguments to its outputs and anything else for the caller.
        constants: whether outside values without gradients become part of the function instead of
            being captured.

    Raises:
        TracerError: the function reads the value of an argument.
    """
    arguments = tracers(types)
    since = next(serials)
    (outputs, result), changed = _aside(lambda: run(arguments), arguments, since)
    results = (*outputs, *changed.values())
    subgraph, captured = _closed(arguments, results, since, constants)
    inputs = (*arguments, *captured)
    backward = _ruled(results, inputs, since)
    if backward is not None:
        subgraph = subgraph.with_gradient(backward)
    return Traced(subgraph, captured, result, tuple(changed))


def _aside(run: Callable[[], T], own: Sequence[Lazy], since: int) -> tuple[T, dict[Handle, Lazy]]:
    """The result of `run`, recorded apart from the rest, and the outside tensors that it changed.

    Outside values are neither among its `own` arguments nor recorded `since` it began.
    """
    now, mode = trace.now, trace.now.grad_mode
    handles: dict[Handle, Lazy] = {}
    now.outer = now.pending, now.limit, now.changed, now.outer
    now.pending, now.limit, now.changed = [], sys.maxsize, handles
    now.depth += 1
    try:
        found = run()
    except BaseException:
        now.grad_mode = mode  # Ctrl-C may have come at the exit of a `no_grad()` of the function
        raise
    finally:  # no call before the thread's state is restored, as Ctrl-C comes after calls
        now.pending, now.limit, now.changed, now.outer = now.outer
        now.depth -= 1
        with Uninterrupted():
            changed = _restored(handles, own, since)
    return found, changed


@contextlib.contextmanager
def outside() -> Iterator[None]:
    """Records inside it belong to the caller of the innermost traced function."""
    now = trace.now
    inside = now.pending, now.limit, now.changed
    now.pending, now.limit, now.changed, now.outer = now.outer
    now.depth -= 1
    try:
        yield
    finally:
        now.depth += 1
        now.outer = now.pending, now.limit, now.changed, now.outer
        now.pending, now.limit, now.changed = inside


def so_far(outputs: tuple[Lazy, ...], since: int) -> tuple[Subgraph, tuple[Lazy, ...]]:
    """The part of a function being traced that leads to some values, and what it uses."""
    subgraph, captured = _closed((), outputs, since, False)
    backward = _ruled(outputs, captured, since)
    return (subgraph if backward is None else subgraph.with_gradient(backward)), captured


def _ruled(
    results: tuple[Lazy, ...], inputs: tuple[Lazy, ...], since: int
) -> TracedBackward | None:
    """The gradient of a traced function, if hooks or custom functions are part of it.

    Raises:
        GradientError: these use outside tensors, or the function uses results of operations
            outside.
    """
    ys = [y for y in results if y.type.dtype.is_inexact]
    own = [y for r in needed(results, since) for y in r.outputs]
    if not any([is_watched(x) for x in (*own, *[x for x in inputs if isinstance(x, Tracer)])]):
        return None
    xs = [x for x in inputs if x.tracked]
    past = history(ys).towards(xs)
    outer = [x for x in xs if not isinstance(x, Tracer)]  # their hooks are called outside
    gs, stand_ins = tracers([y.type for y in ys]), tracers([y.type for y in results])

    def run() -> list[Lazy | None]:
        starts = [(y, g) for y, g in zip(ys, gs, strict=True) if y in past.values]
        with Setting("grad_mode", True):
            return walk(starts, xs, past, outside=outer)

    found, _ = _aside(run, (*gs, *stand_ins, *inputs), since)
    pulled = {x: g for x, g in zip(xs, found, strict=True) if g is not None}
    function, captured = _closed((*gs, *stand_ins, *inputs), tuple(pulled.values()), since, True)
    if captured:
        raise GradientError.here(
            "backward: a hook or a gradient of one's own uses tensors that the traced function "
            "was not given; pass them as arguments"
        )
    if any([isinstance(y, Custom) for y in own]):
        function = function.with_gradient(_no_second)
    return TracedBackward(function, tuple([x in pulled for x in inputs]))


def _restored(changed: dict[Handle, Lazy], own: Sequence[Lazy], since: int) -> dict[Handle, Lazy]:
    """Restore the values of outside tensors; returns the values that the function gave them."""
    found: dict[Handle, Lazy] = {}
    for handle, old in changed.items():
        inside = old.record is not None and old.record.serial >= since
        if not inside and old not in own:
            found[handle] = handle.exchange(old)
    return found


def _closed(
    arguments: tuple[Lazy, ...], outputs: tuple[Lazy, ...], since: int, constants: bool
) -> tuple[Subgraph, tuple[Lazy, ...]]:
    """The graph from arguments to outputs, and the other values that it reads."""
    records = needed(outputs, since)
    produced = {y for r in records for y in r.outputs}
    used = [x for r in records for x in r.inputs] + list(outputs)
    outside = dict.fromkeys(x for x in used if x not in produced and x not in arguments)
    refuse_placed([x.type for x in used])
    graph = Graph()
    env: dict[Lazy, Cotangent] = {}
    with graph.as_default():
        for lazy in [x for x in outside if constants and _is_constant(x)]:
            env[lazy] = constant_of(array_of(lazy))
            del outside[lazy]
        for lazy in (*arguments, *outside):
            env[lazy] = catalogue.placeholder(dtype=lazy.type.dtype, shape=lazy.type.shape)
        for record in records:
            values = [accepted_input(env[x], record.plan) for x in record.inputs]
            with graph.at(record.source):
                found = record.plan.expand(*values)
                # A gradient may be differentiated outside, whatever it was recorded for.
                if is_cut(record) and not record.plan.follows:
                    found = [catalogue.stop_gradient(dense(y)) for y in found]
            env.update(record.paired(found))
        results = tuple([dense(env[y]) for y in outputs])
        order = toposort(graph, [y.node for y in results])
    nodes = tuple([n for n in order if op_of(n) is not placeholder])
    inputs = tuple([dense(env[x]) for x in (*arguments, *outside)])
    return Subgraph(inputs, results, nodes, len(outside)), tuple(outside)


def _is_constant(lazy: Lazy) -> bool:
    return not (lazy.tracked or isinstance(lazy, Drawn | Tracer)) and (
        lazy.array is not None or lazy.record is not None
    )


def subgraph_plan(function: Subgraph) -> Plan:
    """The plan of a call of a traced function."""
    found = recall(function)
    if found is None:

        def expand(*values: Any) -> Sequence[Cotangent]:
            return catalogue.call.all(*values, function=function)

        flows = function.flowing
        given = [x.type for x in function.inputs]
        found = plan_of("call", given, function.output_types, expand, flows=flows)
        found.pattern.traced = True
        remember(function, found)
    return found
