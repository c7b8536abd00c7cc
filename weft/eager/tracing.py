"""Functions of tensors as graphs: recorded once, on arguments without values."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from weft.eager.handle import Handle
from weft.eager.lazy import Drawn, Lazy, Tracer, array_of, begun, next_serial, trace
from weft.eager.plan import Plan, intern, recall, remember, settled
from weft.eager.structure import is_cut, needed
from weft.interrupt import Uninterrupted
from weft.ir.graph import Graph, toposort
from weft.ir.node import TensorType
from weft.ir.shape import known
from weft.ops.base import catalogue, constant_of
from weft.ops.call import Subgraph
from weft.transform.gradient import Cotangent, dense


class Traced(NamedTuple):
    """A function of tensors as a graph.

    Attributes:
        function: its inputs are the arguments, then the captured values.
        captured: values from outside that it uses.
        result: what the function returned beside its outputs.
        changed: tensors from outside that it changed in place; their new values are the last
            outputs.
    """

    function: Subgraph
    captured: tuple[Lazy, ...]
    result: Any
    changed: tuple[Handle, ...]


def trace_tensors(
    run: Callable[[tuple[Lazy, ...]], tuple[Sequence[Lazy], Any]],
    types: Sequence[TensorType],
    constants: bool = False,
) -> Traced:
    """Record `run` on stand-ins for arguments of these types.

    Args:
        run: from the arguments to its outputs and whatever else its caller wants to know.
        constants: values from outside through which no gradient flows become part of the
            function, instead of being captured.

    Raises:
        TracerError: the function looks at the value of an argument.
    """
    arguments = tuple(
        [
            begun(Tracer(), intern(t.dtype, known(t.shape)), None, 0, t.dtype.is_inexact)
            for t in types
        ]
    )
    since = next_serial()
    now = trace.now
    before = now.pending, now.limit, now.changed
    handles: dict[Handle, Lazy] = {}
    now.pending, now.limit, now.changed = [], sys.maxsize, handles
    now.depth += 1
    try:
        outputs, result = run(arguments)
    finally:  # no call comes before the thread's state is what it was, as Ctrl-C comes after calls
        now.pending, now.limit, now.changed = before
        now.depth -= 1
        with Uninterrupted():
            changed = _restored(handles, since)
    results = (*outputs, *changed.values())
    subgraph, captured = _closed(arguments, results, since, constants)
    return Traced(subgraph, captured, result, tuple(changed))


def _restored(changed: dict[Handle, Lazy], since: int) -> dict[Handle, Lazy]:
    """Give tensors from outside their values back; the values that the function gave them."""
    found: dict[Handle, Lazy] = {}
    for handle, old in changed.items():
        own = isinstance(old, Tracer) or (old.record is not None and old.record.serial >= since)
        if not own:
            found[handle] = handle.exchange(old)
    return found


def _closed(
    arguments: tuple[Lazy, ...], outputs: tuple[Lazy, ...], since: int, constants: bool
) -> tuple[Subgraph, tuple[Lazy, ...]]:
    """The graph from arguments to outputs, and the other values that it begins with."""
    records = needed(outputs, since)
    produced = {y for r in records for y in r.outputs}
    used = [x for r in records for x in r.inputs] + list(outputs)
    outside = dict.fromkeys(x for x in used if x not in produced and x not in arguments)
    graph = Graph()
    env: dict[Lazy, Cotangent] = {}
    with graph.as_default():
        for lazy in [x for x in outside if constants and _is_constant(x)]:
            env[lazy] = constant_of(array_of(lazy))
            del outside[lazy]
        for lazy in (*arguments, *outside):
            env[lazy] = catalogue.placeholder(dtype=lazy.type.dtype, shape=lazy.type.shape)
        for record in records:
            values = [settled(env[x], record.plan) for x in record.inputs]
            with graph.at(record.source):
                found = record.plan.expand(*values)
                # A gradient is differentiated from outside, whatever it was recorded for.
                if is_cut(record) and not record.plan.follows:
                    found = [catalogue.stop_gradient(dense(y)) for y in found]
            env.update(record.paired(found))
        results = tuple([dense(env[y]) for y in outputs])
        order = toposort(graph, [y.node for y in results])
    nodes = tuple([n for n in order if n.op != "placeholder"])
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
        found = remember(function, Plan("call", function.output_types, expand, flows=flows))
    return found
