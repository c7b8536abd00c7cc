"""The table of contents of the compiler's graph half."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

from weft import config
from weft.errors import GraphError
from weft.ir.graph import Graph
from weft.ir.printer import format_graph
from weft.ir.verify import verify
from weft.ops.base import Boundary, op_of
from weft.passes.layout import layout
from weft.passes.rematerialise import rematerialise
from weft.passes.simplify import cse, fold, prune, simplify
from weft.passes.step import Step

PASSES: tuple[Callable[[Step], Step], ...] = (
    prune,  # what no output needs
    fold,  # arithmetic on constants
    simplify,  # algebra: identities, transposes into matmul, reshape chains
    layout,  # images with their channels last
    cse,  # the same thing computed twice
    prune,  # what became unused
    rematerialise,  # what is cheap to compute again
)


def optimise(step: Step) -> Step:
    """Run `PASSES` in order; `WEFT_VERIFY=1` verifies and `WEFT_DEBUG=3` prints after each."""
    check, show = bool(config.get("verify")), int(config.get("debug")) >= 3
    for run in PASSES:
        start = time.perf_counter()
        step = run(step)
        if check:
            verify(step.graph)
            verify_types(step.graph)
        if show:
            spent = (time.perf_counter() - start) * 1e3
            print(f"# {run.__name__}: {spent:.2f} ms", file=sys.stderr)
            print(format_graph(step.graph), file=sys.stderr)
    return step


def verify_types(graph: Graph) -> None:
    """Derive every type again from the operations' rules.

    Raises:
        GraphError: a node's types are not what its inputs and attributes give.
    """
    for node in graph.nodes:
        op = op_of(node)
        if isinstance(op.lower, Boundary):
            continue
        types = op.derive(tuple(v.type for v in node.inputs), node.attrs)
        if types != node.types:
            raise GraphError(
                f"verify: {node.describe()} has types {', '.join(map(str, node.types))}, "
                f"but its rules give {', '.join(map(str, types))}"
            )
