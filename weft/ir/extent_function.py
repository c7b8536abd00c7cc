"""Extents as a function of the base sizes: a few microseconds where `Extents.values` takes tens."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from weft.ir.extent import DECISIONS, Extents

Evaluate = Callable[[Sequence[int]], Sequence[int] | None]
"""The wanted numbers for base sizes; `None` if a guard fails."""


def evaluation(extents: Extents, wanted: Iterable[int]) -> Evaluate:
    """The function that gives the extents with these indices, in this order, if all guards hold."""
    state = extents.state
    made: list[tuple[str, int, int]] = state["made"]
    guards: list[tuple[str, int, int, bool]] = state["guards"]
    least: list[tuple[int, int]] = state["least"]
    results = list(wanted)
    needed = {*results, *[i for i, _ in least], *[i for _, a, b, _ in guards for i in (a, b)]}
    for i in range(len(made) - 1, -1, -1):
        kind, a, b = made[i]
        if i in needed and kind in DECISIONS:
            needed |= {*range(a, a + b)}
        elif i in needed and kind not in ("base", "number"):
            needed |= {a, b}
    lines = [f" e{i} = {_term(*made[i])}" for i in sorted(needed)]
    conditions = [f"e{i} >= {n}" for i, n in least]
    conditions += [
        f"({pair(kind, f'e{a}', f'e{b}')}) is {expected}" for kind, a, b, expected in guards
    ]
    if conditions:
        lines.append(f" if not ({' and '.join(conditions)}): return None")
    lines.append(f" return ({''.join([f'e{i}, ' for i in results])})")
    scope: dict[str, Any] = {"decisions": DECISIONS}
    exec("\n".join(["def evaluate(bases):", *lines]), scope)
    return scope["evaluate"]


def _term(kind: str, a: int, b: int) -> str:
    if kind == "base":
        return f"bases[{a}]"
    if kind in DECISIONS:
        return f"decisions[{kind!r}]({', '.join([f'e{i}' for i in range(a, a + b)])})"
    return str(a) if kind == "number" else pair(kind, f"e{a}", f"e{b}")


def pair(kind: str, x: str, y: str) -> str:
    """What an extent or a guard is, as an expression."""
    return f"{kind}({x}, {y})" if kind in ("min", "max") else f"{x} {kind} {y}"
