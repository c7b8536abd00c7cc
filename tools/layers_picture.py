"""`python -m tools.layers_picture` renews the picture of the packages in docs/ARCHITECTURE.md.

An arrow points from a package to one that it imports. Arrows implied by others are left out.
"""

from __future__ import annotations

import re
from typing import Final

from tools.imports import ROOT, imported, modules

PAGE: Final = ROOT / "docs" / "ARCHITECTURE.md"
BLOCK: Final = re.compile(r"^```mermaid\n.*?^```\n", re.MULTILINE | re.DOTALL)
Arrows = dict[str, set[str]]
"""For each package those that it imports."""


def package_of(module: str) -> str:
    """`ops` for `weft.ops.declaration`; `tf1.keras` and the parts of `eager` are packages."""
    first, *rest = module.split(".")[1:]
    if first == "tf1" and rest[:1] in (["keras"], ["eager"]):
        return f"tf1.{rest[0]}"
    if first != "eager":
        return first
    return f"eager.{rest[0]}" if rest else "eager.functions"


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
