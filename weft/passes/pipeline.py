"""Lists every stage of the compiler, from a request to launches with memory.

1. `specialize`: a request at concrete shapes becomes a pure step. 2. `optimize`: rewrites the step
(`PASSES`). 3. `grouped`: groups nodes into kernels (`fuse`, then `JOINS`). 4. `plan`: orders the
launches of the groups and places them in memory. A pass says whose bits it may change.
"""

from __future__ import annotations

import functools
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from weft import config
from weft.errors import GraphError
from weft.host.deferred import Deferred
from weft.ir.graph import Graph
from weft.ir.node import Node
from weft.ir.printer import format_graph
from weft.ir.verify import verify
from weft.ops.declaration import Boundary, Opaque, is_region, op_of
from weft.passes import memory
from weft.passes.blueprint import Blueprint
from weft.passes.control.body import Planner
from weft.passes.cse import cse
from weft.passes.fold import fold
from weft.passes.fuse import fuse
from weft.passes.group import Fused, Group
from weft.passes.launch import Generator, Kernel, Launch
from weft.passes.layout import layout
from weft.passes.place import Placing, only_checks
from weft.passes.prune import prune
from weft.passes.recompute import recompute
from weft.passes.rematerialize import rematerialize
from weft.passes.schedule import schedule
from weft.passes.sibling_fusion import fuse_siblings
from weft.passes.simplify import simplify
from weft.passes.specialize import specialize as specialize
from weft.passes.step import Step
from weft.passes.whole_axes import whole_axes

if TYPE_CHECKING:
    from weft.passes.control import merge, region
else:  # few programs have loops or branches
    merge, region = Deferred("weft.passes.control.merge"), Deferred("weft.passes.control.region")


def bodies(step: Step) -> Step:
    """The same pass for bodies of loops and branches; hoists loop-invariant work."""
    if not any(map(is_region, step.graph.nodes)):
        return step
    step = merge.trimmed(merge.unstacked(merge.merged(step)))
    step = region.moved_out(region.within(step, optimize))
    for run in (simplify, cse, prune, merge.trimmed, prune):
        step = run(step)
    return step


class Pass(NamedTuple):
    """A pass, and what it does to results.

    Attributes:
        changes: whose bits it may change, and why no other tier differs; "" if it keeps all bits.
    """

    run: Callable[..., Any]
    changes: str = ""


PASSES: tuple[Pass, ...] = (
    Pass(prune),  # dead code
    Pass(fold),  # constant folding, where NumPy and kernels give the same bits
    Pass(whole_axes, "sums over axes that a kernel covers whole, in every tier"),
    Pass(simplify),  # algebra: identities, transposes into matmul, reshape chains
    Pass(layout),  # images with their channels last
    Pass(cse),  # common subexpressions
    Pass(prune),  # dead code again
    Pass(bodies, "matmuls of all iterations at once, in every tier"),
    Pass(rematerialize),  # recomputes what is cheap, to save memory
)


Has = Callable[[Group], bool]
"""Whether there are kernels of a group."""
Watch = Callable[[str, float, Step], None]
"""Is told a pass, how many seconds it took, and the step after it."""


def optimize(step: Step, watch: Watch | None = None) -> Step:
    """Runs `PASSES` in order; `WEFT_VERIFY=1` verifies and `WEFT_DEBUG=3` prints after each."""
    check = bool(config.get("verify"))
    if watch is None and int(config.get("debug")) >= 3:
        watch = _print
    for run, _ in PASSES:
        start = time.perf_counter()
        step = run(step)
        if check:
            verify(step.graph)
            verify_types(step.graph)
        if watch is not None:
            watch(run.__name__, time.perf_counter() - start, step)
    return step


def _print(name: str, seconds: float, step: Step) -> None:
    print(f"# {name}: {seconds * 1e3:.2f} ms\n{format_graph(step.graph)}", file=sys.stderr)


FUSE: Pass = Pass(fuse, "half precision, which a kernel rounds once: see docs/EAGER.md")
JOINS: tuple[Pass, ...] = (
    Pass(recompute),  # recomputes what is cheaper than reading it
    Pass(fuse_siblings),  # fuses kernels that read the same arrays
)


def grouped(step: Step, has: Has | None = None) -> Fused:
    """The groups of a simplified step.

    Args:
        has: which groups of several nodes there may be; the nodes of others have one each.
    """
    found = FUSE.run(step) if has is None else _of_those(step, has)
    for join, _ in JOINS if has is None else ():
        found = join(found)
    if not (step.lasting or step.repeated):
        return found
    lasting = step.lasting_values()
    return found.with_groups([
        replace(g, lasting=lasting & {*g.inputs}, repeated=step.repeated) for g in found.groups
    ])  # fmt: skip


def _of_those(step: Step, has: Has) -> Fused:
    apart: set[Node] = set()
    while True:
        found = FUSE.run(step, apart)
        lacking = {n for g in found.groups if not has(g) for n in _first_part(g)} - apart
        if not lacking:
            return found
        apart |= lacking  # what was open for them may form other groups now


def _first_part(group: Group) -> tuple[Node, ...]:
    """The opaque node of a group with an epilogue; else all nodes."""
    node = group.nodes[0]
    opaque = isinstance(op_of(node).lower, Opaque)
    return (node,) if opaque and len(group.all_nodes) > 1 else group.all_nodes


def plan(
    step: Step, generator: Generator, threads: int, has: Has | None = None,
    announce: Callable[[Kernel], None] | None = None,
) -> Blueprint:  # fmt: skip
    """Plans the launches of a simplified step and its memory.

    Args:
        step: what `optimize` returned.
        generator: makes the launches of a group.
        threads: how many copies of per-thread scratch memory to plan.
        has: as for `grouped`.
        announce: called with each kernel once its text is known.
    """
    fused, lowered = _lowered(step, generator, has, announce)  # makes each group's launches
    placing = Placing(step, threads, fused, lowered, generator.copy)
    placing.order(schedule(fused, *placing.wishes()))  # orders the launches
    placing.add_copies()  # copies what cannot be updated in place
    placing.keep()  # finds what need not run again while lasting feeds are unchanged
    return placing.finish(memory.plan(*placing.needs()))  # offsets in one arena


def _lowered(
    step: Step, generator: Generator, has: Has | None, announce: Callable[[Kernel], None] | None
) -> tuple[Fused, dict[Group, tuple[Launch, ...]]]:
    fused = grouped(step, has)
    inner = functools.partial(_lowered, generator=generator, has=has, announce=None)
    planner = Planner(inner, generator.copy, generator.serial if has is None else None)
    lowered: dict[Group, tuple[Launch, ...]] = {}
    told: set[int] = set()
    for group in fused.groups:
        inside = is_region(group.nodes[0])
        made = region.lower_region(group, planner) if inside else generator.lower(group)
        lowered[group] = made
        if announce is None:
            continue
        for kernel in _kernels(made):
            if id(kernel) not in told:
                told.add(id(kernel))
                announce(kernel)
    return fused, lowered


def _kernels(launches: Iterable[Launch]) -> Iterator[Kernel]:
    """The kernels that launches will call, those in loops and branches too."""
    for launch in launches:
        if launch.inside is not None:
            yield from _kernels([x for x, _ in launch.inside.launches])
        elif launch.kernel.ir and not only_checks(launch):
            yield launch.kernel


def verify_types(graph: Graph) -> None:
    """Checks every type against the operations' rules.

    Raises:
        GraphError: a node's types do not follow from its inputs and attributes.
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
