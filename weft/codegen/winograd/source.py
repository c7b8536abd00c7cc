"""The transformed source of a convolution: for each block and point, squares x channels."""

from __future__ import annotations

from weft.codegen.builder import integer, kernel_builder
from weft.codegen.contraction.emit import divide, smaller, subtract
from weft.codegen.contraction.tile import ceil_div
from weft.codegen.convolution.geometry import Correlation
from weft.codegen.winograd.plan import Plan
from weft.codegen.winograd.window import Windows, WindowTransform, zeros_for
from weft.passes.launch import Argument, Kernel, Launch, Scratch

PARTS = 8
"""Parts of a block if the source is transformed before."""


def windows_of(problem: Correlation, plan: Plan) -> Windows:
    """The windows that a convolution's squares read; a transform covers all channels."""
    _, down, across = problem.axes
    return Windows(
        plan.transform.source, (integer(plan.down), integer(plan.across)), plan.transform.outputs,
        (down.phases[0].offset, across.phases[0].offset),
        (integer(down.source), integer(across.source)), integer(problem.depth), 0, plan.tile.lanes,
        plan.source_pitch(problem.depth), integer(0), integer(plan.source_point(problem.depth)),
        zeros_for(problem.depth), problem.depth % plan.tile.lanes == 0,
    )  # fmt: skip


def launch_source(problem: Correlation, plan: Plan, source: Argument) -> tuple[Launch, Scratch]:
    """The launch that transforms all of the source, and the layout of its blocks."""
    b = kernel_builder()
    scratch = Scratch(plan.blocks * plan.points * plan.source_point(problem.depth))
    x, to = b.argument(0), b.argument(1)
    windows = WindowTransform(b, windows_of(problem, plan))
    share = ceil_div(plan.tiles, PARTS)
    with b.loop(b.params[1], b.params[2]) as chunk:
        block, part = divide(b, chunk.index, integer(PARTS))
        goal = b.offset(to, b.mul(block, plan.points * plan.source_point(problem.depth)))
        own = b.mul(part, share)
        first = b.add(b.mul(block, plan.tiles), own)
        rest = smaller(b, subtract(b, integer(plan.total), first), share)
        count = smaller(b, subtract(b, integer(plan.tiles), own), rest)
        windows.write(x, b.offset(goal, b.mul(own, plan.source_pitch(problem.depth))), first, count)
    name = f"winograd{plan.transform.outputs}_source_{problem.label}"
    moved = float(scratch.size + problem.bytes)
    launch = Launch(
        Kernel(name, b.module()), (source, scratch), (1,), plan.blocks * PARTS, bytes=moved
    )
    return launch, scratch
