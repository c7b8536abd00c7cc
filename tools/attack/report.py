"""The table of a run, and its findings."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from tools.attack.plan import ATTACKS
from tools.attack.state import Plan
from tools.attack.verdict import KINDS, PASSED, Row

TITLES = ("deaths", "hangs", "silent/wrong", "plain errors", "other")


def table(plan: Plan, rows: Sequence[Row]) -> str:
    """Markdown: a row per attack."""
    lines = ["| attack | count | " + " | ".join(TITLES) + " |", "|---" * (2 + len(TITLES)) + "|"]
    for name, planned in plan.counts.items():
        own = [row for row in rows if row.attack == name]
        kinds = Counter(row.kind for row in own)
        done = len({row.case for row in own})
        count = f"{done:,}" if done == planned else f"{done:,} of {planned:,}"
        figures = " | ".join(f"{kinds[kind]:,}" for kind in KINDS)
        lines.append(f"| {name}: {ATTACKS[name].about} | {count} | {figures} |")
    return "\n".join(lines)


def findings(rows: Sequence[Row]) -> list[list[Row]]:
    """Cases that did not pass, by attack, kind and description; the most frequent first."""
    groups: dict[tuple[str, str, str], list[Row]] = {}
    for row in rows:
        if row.kind != PASSED:
            groups.setdefault((row.attack, row.kind, row.what), []).append(row)
    order = sorted(groups.values(), key=lambda g: (KINDS.index(g[0].kind), -len(g)))
    return [sorted(group, key=lambda row: row.case) for group in order]


def command(row: Row, seed: int) -> str:
    """The command that repeats a case, with earlier cases if it needs them."""
    cases = str(row.case) if row.first == row.case else f"{row.first}-{row.case}"
    parts = ["python", "-m", "tools.attack", "--only", row.attack]
    return shlex.join([*parts, "--seed", str(seed), "--case", cases])


def listed(rows: Sequence[Row], seed: int) -> str:
    """The findings, a paragraph each: how often, what, details and command of the first case."""
    paragraphs: list[str] = []
    for group in findings(rows):
        first = group[0]
        lines = [f"{first.attack}: {first.kind}, {len(group)}x: {first.what}"]
        lines += [f"    {line}" for line in first.detail.strip().splitlines()]
        paragraphs.append("\n".join([*lines, f"    {command(first, seed)}"]))
    return "\n\n".join(paragraphs)


def as_json(plan: Plan, rows: Sequence[Row]) -> dict[str, Any]:
    """Counts of each attack, and every finding with its command."""
    counts = {
        name: dict(Counter(row.kind for row in rows if row.attack == name)) for name in plan.counts
    }
    found = [row for group in findings(rows) for row in group]
    told = [{**asdict(row), "seed": plan.seed, "command": command(row, plan.seed)} for row in found]
    return {"seed": plan.seed, "planned": dict(plan.counts), "counts": counts, "findings": told}
