"""`python -m tools.layers_picture` renews the picture of the packages in docs/ARCHITECTURE.md.

An arrow points from a package to one that it imports. Arrows implied by others are left out.
"""

from __future__ import annotations

import re
from typing import Final

from tools.imports import ROOT, imported, modules

PAGE: Final = ROOT / "docs" / "ARCHITECTURE.md"
BLOCK: Final = re.compile(r"^```mermaid\n.*?^```\n", re.MULTILINE | re.DOTALL)
ABOVE_TENSORS: Final = ("checkpointer", "random_state", "restoring", "slices")
"""Of `weft.checkpoint`; its other modules know arrays only, and lie below tensors."""

APART: Final = (
    "distributed.checkpoint",
    "distributed.fsdp",
    "distributed.pipelining",
    "distributed.tensor",
    "horovod.keras",
    "tf1.keras",
)
"""Parts of packages that lie above these."""

ELSEWHERE: Final = {"horovod.tensorflow.keras": "horovod.keras"}
"""Modules that belong to another package than their folder's."""

Arrows = dict[str, set[str]]
"""For each package those that it imports."""


def package_of(module: str) -> str:
    """`ops` for `weft.ops.base`; parts of `eager`, and files of arrays, count as packages."""
    parts = module.split(".")[1:]
    if parts[:1] == ["checkpoint"] and parts[1:2] and parts[1] not in ABOVE_TENSORS:
        return "checkpoint.arrays"
    if ".".join(parts) in ELSEWHERE:
        return ELSEWHERE[".".join(parts)]
    if ".".join(parts[:2]) in APART:
        return ".".join(parts[:2])
    if parts[:1] != ["eager"]:
        return "".join(parts[:1])
    return ".".join(["eager", *parts[1:2]]) if parts[1:] else "eager.functions"


def arrows() -> Arrows:
    """The imports between Weft's packages."""
    found: Arrows = {}
    for name, tree in modules().items():
        if name in ("weft", "weft.__main__"):  # they import everything
            continue
        targets = {package_of(t) for t in imported(tree) if t.startswith("weft.")}
        found.setdefault(package_of(name), set()).update(targets - {package_of(name)})
    return found


def _reached(graph: Arrows, start: str) -> set[str]:
    seen: set[str] = set()
    left = [*graph[start]]
    while left:
        name = left.pop()
        if name not in seen:
            seen.add(name)
            left += graph[name]
    return seen


def reduced(graph: Arrows) -> Arrows:
    """The transitive reduction of a graph without cycles."""
    below = {name: _reached(graph, name) for name in graph}
    return {
        name: {t for t in targets if not any(t in below[other] for other in targets)}
        for name, targets in graph.items()
    }


def picture(graph: Arrows) -> str:
    """A Mermaid block of a graph."""
    lines = [f"    {a} --> {b}" for a, targets in sorted(graph.items()) for b in sorted(targets)]
    return "\n".join(["```mermaid", "flowchart TD", *lines, "```", ""])


def main() -> None:
    """Write the picture into the document."""
    PAGE.write_text(BLOCK.sub(lambda _: picture(reduced(arrows())), PAGE.read_text()))


if __name__ == "__main__":
    main()
