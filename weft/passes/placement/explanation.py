"""Why each node of a step is where it is, and what its stages exchange."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from weft.ir.node import Node
from weft.ops.boundary.state import CONSTANT, placeholder
from weft.ops.declaration import op_of
from weft.passes.partition import Partition
from weft.passes.placement.choose import Choice
from weft.passes.staging.text import format_partition
from weft.passes.step import Step


class Place(NamedTuple):
    """Where a node is."""

    node: str
    device: str
    why: str


@dataclass(frozen=True, repr=False)
class PlacementExplanation:
    """A step over several devices; printing it shows where each node is and why, and the stages.

    Attributes:
        places: of all nodes but feeds and constants, which are wherever they are read.
        partition: the stages, with what they receive and send.
    """

    places: tuple[Place, ...]
    partition: Partition

    def __str__(self) -> str:
        lines = [f"{p.node} on {p.device}: {p.why}" for p in self.places]
        return "\n".join(["# placement", *lines, "", "# stages", format_partition(self.partition)])

    __repr__ = __str__


def explained(
    step: Step, choice: Choice, reasons: Mapping[Node, str], partition: Partition
) -> PlacementExplanation:
    """The explanation of a partitioned step.

    Args:
        choice: where its nodes are.
        reasons: why nodes of the user's graph are where they are.
    """
    by_name = {node.name: why for node, why in reasons.items()}
    return PlacementExplanation(
        tuple([
            Place(node.name, choice.devices[node], choice.reasons.get(node) or _why(node, by_name))
            for node in step.graph.nodes
            if op_of(node) not in (placeholder, CONSTANT)
        ]),
        partition,
    )  # fmt: skip


def _why(node: Node, reasons: Mapping[str, str]) -> str:
    """The reason of the user's node that a node was made of."""
    name = node.name.removeprefix("variable/")
    while name:
        if name in reasons:
            return reasons[name]
        name = name.rpartition("/")[0]
    return "with the operation that it was made of"
