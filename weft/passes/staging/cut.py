"""Cuts the nodes of a device and a level into pieces, so that values are sent early, received late.

A piece ends where a value is ready that another device waits for, if enough work is left that the
other device need not wait for; and before a node that needs a value which is still on its way from
another process, if enough work can be done until it comes.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Final

from weft.ir.node import Node, Value
from weft.ops.boundary.state import variable
from weft.ops.declaration import op_of
from weft.passes.placement.choose import LinkOf, link_between
from weft.passes.placement.cost import nbytes, node_ns
from weft.passes.staging.build import Position
from weft.passes.staging.level import Layout, Levels

WORTH_NS: Final = 50_000.0
"""Time of a piece that is worth a stage of its own, which costs some 20 us."""
MOST: Final = 8
"""Pieces of one level: each cut keeps kernels from being fused across it."""
WAIT_NS: Final = 300_000.0
"""Time of waiting that is worth a stage of its own, and of work that is done meanwhile."""

Time = Callable[[Node], float]


def pieces(
    layout: Layout, nodes: Collection[Node], variables: bool, time_of: Time,
    before: Mapping[Node, Node],
) -> list[list[Node]]:  # fmt: skip
    """The nodes of a stage in pieces that run one after another.

    Args:
        nodes: of one device and one level, in order.
        variables: whether the stage sends variables as well, which are ready at once.
        time_of: the estimated time of a node in nanoseconds.
        before: the node after which another one acts, in the order of the program.

    Returns:
        The pieces; the first one is empty if only variables are sent early.
    """
    here = dict.fromkeys(nodes)
    time = {node: time_of(node) for node in here}
    left = sum(time.values())
    sent = [n for n in here if _is_sent(n, layout.device_of[n], layout)]
    if left < WORTH_NS or not (sent or variables):
        return [list(here)]
    needs = {n: _ancestors(n, here, before) for n in sent}
    sent.sort(key=lambda n: sum([time[x] for x in needs[n]]))  # stable: the order of the step
    found: list[set[Node]] = [set()] if variables else []
    taken: set[Node] = set()
    piece: set[Node] = set()
    for node in sent:
        piece |= needs[node] - taken
        spent = sum([time[x] for x in piece])
        if min(spent, left - spent) >= WORTH_NS and len(found) < MOST:
            found.append(piece)
            taken |= piece
            left, piece = left - spent, set()
    rest = here.keys() - taken - piece
    if piece and sum([time[x] for x in rest]) >= WORTH_NS:
        found.append(piece)
        piece = set()
    found.append(piece | rest)
    return [[n for n in here if n in part] for part in found if part or part is found[0]]


def received_late(
    layout: Layout, nodes: Sequence[Node], time_of: Time, link_of: LinkOf
) -> list[list[Node]]:
    """The nodes of a piece, in order, cut where values are waited for while there is work before.

    Values come one after another, in the order in which they are needed.
    """
    here = set(nodes)
    arrivals: dict[Value, float] = {}
    found: list[list[Node]] = [[]]
    coming = ready = spent = 0.0  # of all values so far; of the piece; its work
    for node in nodes:
        for value in node.inputs:
            giver = layout.giver(value)
            if value in arrivals or giver in (None, layout.device_of[node]) or value.node in here:
                continue
            coming += nbytes(value) / link_of(str(giver), layout.device_of[node]).bytes_per_ns
            arrivals[value] = coming
        needed = max([arrivals.get(v, 0.0) for v in node.inputs], default=0.0)
        if min(needed - ready, spent) >= WAIT_NS and len(found) < MOST:
            found.append([])
            ready, spent = max(needed, ready + spent), 0.0
        ready = max(ready, needed) if not found[-1] else ready
        found[-1].append(node)
        spent += time_of(node)
    return found


def _is_sent(node: Node, device: str, layout: Layout) -> bool:
    return any([layout.device_of[reader] != device for reader in layout.readers(node)])


def _ancestors(node: Node, here: Mapping[Node, object], before: Mapping[Node, Node]) -> set[Node]:
    """A node and what it needs of these nodes, or acts after."""
    found: set[Node] = set()
    waiting = [node]
    while waiting:
        each = waiting.pop()
        if each in here and each not in found:
            found.add(each)
            waiting += [v.node for v in each.inputs]
            waiting += [before[each]] if each in before else []
    return found


def positions(
    levels: Levels, early: bool, time_of: Time = node_ns, link_of: LinkOf = link_between
) -> tuple[dict[Node, Position], dict[str, Position]]:
    """The position of each computed node, and of the store of each updated variable.

    Args:
        early: whether to cut levels into pieces.
    """
    layout, before = levels.layout, {second: first for first, second in levels.ordered}
    stages: dict[tuple[int, str], list[Node]] = {}
    for node, level in levels.of.items():
        stages.setdefault((level, layout.device_of[node]), []).append(node)
    sending = {
        layout.home(n.attrs["key"])
        for n in layout.step.graph.nodes
        if op_of(n) is variable and _is_sent(n, layout.home(n.attrs["key"]), layout)
    }
    places: dict[Node, Position] = {}
    last: dict[tuple[int, str], int] = {}
    for (level, device), nodes in stages.items():
        variables = level == 0 and device in sending
        parts = pieces(layout, nodes, variables, time_of, before) if early else [nodes]
        if early:
            parts = [p for part in parts for p in received_late(layout, part, time_of, link_of)]
        last[level, device] = len(parts) - 1
        for number, part in enumerate(parts):
            places.update(dict.fromkeys(part, Position(level, number, device)))
    stores = {key: (level, layout.home(key)) for key, level in levels.stores.items()}
    return places, {
        key: Position(at[0], last.get(at, 0), at[1]) for key, at in stores.items()
    }  # fmt: skip
