"""The placeholders that a tensor or operation needs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from weft.tf1.keras.engine.graph_state import graph_state


def needs_only(element: Any, inputs: Sequence[Any]) -> bool:
    """Whether a tensor or an operation can be computed from these inputs."""
    known = {id(x) for x in inputs} | {id(graph_state(element.graph).phase)}
    op = element if not hasattr(element, "op") else element.op
    if hasattr(element, "op") and id(element) in known:
        return True
    waiting, seen = [op], {id(op)}
    while waiting:
        op = waiting.pop()
        if op.type == "Placeholder" and not any(id(y) in known for y in op.outputs):
            return False
        if any(id(y) in known for y in op.outputs):
            continue
        for before in [*[x.op for x in op.inputs], *op.control_inputs]:
            if id(before) not in seen:
                seen.add(id(before))
                waiting.append(before)
    return True
