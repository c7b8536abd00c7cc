"""Cuts the nodes of a device and a level into pieces, so that values are sent early.

A piece ends where a value is ready that another device waits for, if enough work is left that the
other device need not wait for.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Final

from weft.ir.node import Node
from weft.ops.boundary.state import variable
from weft.ops.declaration import op_of
from weft.passes.placement.cost import node_ns
from weft.passes.staging.build import Position
from weft.passes.staging.level import Layout, Levels

WORTH_NS: Final = 50_000.0
"""Time of a piece that is worth a stage of its own, which costs some 20 us."""
MOST: Final = 8
"""Pieces of one level: each cut keeps kernels from being fused across it."""

Time = Callable[[Node], float]


def pieces(
    layout: Layout, nodes: Collection[Node], variables: bool, time_of: Time
) -> list[list[Node]]:
    """The nodes of a stage in pieces that run one after another.

    Args:
        nodes: of one device and one level, in order.
        variables: whether the stage sends variables as well, which are ready at once.
        time_of: the estimated time of a node in nanoseconds.

    Returns:
        The pieces; the first one is empty if only variables are sent early.
    """
    here = dict.fromkeys(nodes)
    time = {node: time_of(node) for node in here}
    left = sum(time.values())
    sent = [n for n in here if _is_sent(n, layout.device_of[n], layout)]
    if left < WORTH_NS or not (sent or variables):
        return [list(here)]
    needs = {n: _ancestors(n, here) for n in sent}
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


def _is_sent(node: Node, device: str, layout: Layout) -> bool:
    return any([layout.device_of[reader] != device for reader in layout.readers(node)])


def _ancestors(node: Node, here: Mapping[Node, object]) -> set[Node]:
    """A node and what it needs of these nodes."""
    found: set[Node] = set()
    waiting = [node]
    while waiting:
        each = waiting.pop()
        if each in here and each not in found:
            found.add(each)
            waiting += [v.node for v in each.inputs]
    return found


def positions(
    levels: Levels, early: bool, time_of: Time = node_ns
) -> tuple[dict[Node, Position], dict[str, Position]]:
    """The position of each computed node, and of the store of each updated variable.

    Args:
        early: whether to cut levels into pieces.
    """
    layout = levels.layout
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
        parts = pieces(layout, nodes, variables, time_of) if early else [nodes]
        last[level, device] = len(parts) - 1
        for number, part in enumerate(parts):
            places.update(dict.fromkeys(part, Position(level, number, device)))
    stores = {key: (level, layout.home(key)) for key, level in levels.stores.items()}
    return places, {
        key: Position(at[0], last.get(at, 0), at[1]) for key, at in stores.items()
    }  # fmt: skip
