"""The collective calls of a graph, in order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from weft.ir.node import PLACE, Node
from weft.ops.declaration import op_of
from weft.transport.sequence import CallSequence, Planned

SHOWN: Final = 3  # types shown for a call with many inputs; the digest covers all

GROUPS: Final = ("group", "replicas", "within")  # attributes that differ between ranks


def call_sequence(nodes: Sequence[Node]) -> CallSequence | None:
    """The collective calls of nodes in program order; `None` if there are none."""
    found = [
        (int(node.attrs["group"]), planned(node))
        for node in nodes
        if op_of(node).facts.ordered and "group" in node.attrs
    ]
    return CallSequence(found) if found else None


def planned(node: Node) -> Planned:
    """A node's call, as errors name it."""
    attrs = [f"{k}={v!r}" for k, v in node.attrs.items() if k not in GROUPS]
    types = [str(x.type) for x in node.inputs]
    if len(types) > SHOWN:
        digest = Planned(" ".join(types), "").digest
        types = [*types[:SHOWN], f"and {len(types) - SHOWN} more ({digest:08x})"]
    line = "" if node.source is None else f"{PLACE}{node.source})"
    return Planned(f"{node.op}({', '.join(attrs)}) of {', '.join(types)}", line)
