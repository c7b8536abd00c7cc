"""Branches as launches: each branch computes into the memory of the results."""

from __future__ import annotations

from weft.ir.node import Node, Value
from weft.ir.shape import known, size
from weft.passes.control.body import Body, Planner, plan_body
from weft.passes.control.loop import record
from weft.passes.control.record import Control, Kind
from weft.passes.launch import Flat


def flat_switch(node: Node, planner: Planner) -> Flat:
    """The launches of a `switch`."""
    branches = [plan_body(branch, planner) for branch in node.attrs["branches"]]
    last = Control(Kind.JUMP)
    jumps = [*[Control(Kind.JUMP, None, (last,)) for _ in branches[1:]], last]
    flat = Flat()
    args = (node.inputs[0], *node.outputs)
    choose = Control(Kind.CHOOSE, None, tuple(jumps[:-1]))
    flat.add(record(choose, args, range(1, len(args))))
    for branch, jump in zip(branches, jumps, strict=True):
        _add(flat, node, branch, planner)
        flat.add(record(jump))
    return flat


def _add(flat: Flat, node: Node, branch: Body, planner: Planner) -> None:
    flat.include(branch.flat)
    flat.aliases.update(zip(branch.inputs, node.inputs[1:], strict=True))
    flat.launches.extend(branch.flat.launches)
    claimed: set[Value] = set()
    for value, result in zip(branch.outputs, node.outputs, strict=True):
        if value in branch.written and value not in claimed:
            claimed.add(value)
            flat.aliases[value] = result
        else:
            count = int(size(known(value.shape))) * value.dtype.size
            flat.add(planner.copy(value, result, count))
