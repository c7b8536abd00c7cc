"""The figures of a run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from tools.suites.runner import Outcome

MOST_NAMES = 12  # tests listed for each error; `--json` has all


def table(outcomes: Sequence[Outcome]) -> str:
    """Markdown: a row per file, a total, then the reasons for tests out of scope."""
    files = list(dict.fromkeys(outcome.file for outcome in outcomes))
    lines = ["| file | passed | failed | in scope | out of scope | skipped by the suite |"]
    lines.append("|---|---|---|---|---|---|")
    lines += [_row(name, [o for o in outcomes if o.file == name]) for name in files]
    if len(files) > 1:
        lines.append(_row("all", outcomes))
    reasons = Counter(outcome.error for outcome in outcomes if outcome.outcome == "excluded")
    if reasons:
        lines += ["", "| out of scope | tests |", "|---|---|"]
        lines += [f"| {reason} | {count:,} |" for reason, count in reasons.most_common()]
    return "\n".join(lines)


def _row(name: str, outcomes: Sequence[Outcome]) -> str:
    counts = Counter(outcome.outcome for outcome in outcomes)
    passed, failed = counts["passed"], counts["failed"]
    share = f"{passed / (passed + failed):.1%}" if passed + failed else ""
    figures = f"{passed:,} | {failed:,} | {share} | {counts['excluded']:,} | {counts['skipped']:,}"
    return f"| {name} | {figures} |"


def failures(outcomes: Sequence[Outcome]) -> str:
    """Failed tests and their errors, a paragraph for each error, most frequent first."""
    groups: dict[str, list[Outcome]] = {}
    for outcome in outcomes:
        if outcome.outcome == "failed":
            groups.setdefault(outcome.error, []).append(outcome)
    paragraphs = []
    for error, group in sorted(groups.items(), key=lambda item: -len(item[1])):
        names = "\n".join(f"{o.file}::{o.test}" for o in group[:MOST_NAMES])
        if len(group) > MOST_NAMES:
            names += f"\n... and {len(group) - MOST_NAMES} more"
        paragraphs.append(f"{names}\n    " + error.replace("\n", "\n    "))
    return "\n\n".join(paragraphs)
