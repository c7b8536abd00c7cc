"""Steps as text, for another process to plan."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from weft.host.deferred import Deferred
from weft.ir.parser import parse_graph
from weft.ir.printer import format_graph
from weft.passes.step import Step

if TYPE_CHECKING:
    import json
else:
    json = Deferred("json")

FIELDS: Final = ("feeds", "updates", "repeated")


def format_step(step: Step) -> str:
    """A step as text that parses back, if all attributes of its nodes have text."""
    head = {name: getattr(step, name) for name in FIELDS}
    head |= {"lasting": sorted(step.lasting), "graph": format_graph(step.graph)}
    return json.dumps(head)


def parse_step(text: str) -> Step:
    """The step that `format_step` wrote.

    Raises:
        GraphError: a node is of an operation that is not declared here.
    """
    head = json.loads(text)
    return Step(
        parse_graph(head["graph"]), tuple(head["feeds"]), tuple(head["updates"]),
        frozenset(head["lasting"]), head["repeated"],
    )  # fmt: skip
