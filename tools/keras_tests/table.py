"""Counts the outcomes and writes the page: `python -m tools.keras_tests.table FOLDER`."""

from __future__ import annotations

import json
import re
import sys
from collections import Counter
from pathlib import Path
from typing import Any

PAGE = Path(__file__).resolve().parent.parent.parent / "docs" / "compat" / "keras_tests.md"
HEAD = """# Keras 3's own tests

Made by `python -m tools.keras_tests CHECKOUT FOLDER` and
`python -m tools.keras_tests.table FOLDER`; do not edit.

Keras 3.15.1's tests of layers and operations (`keras/src/layers`, `keras/src/ops`, at its tag)
with its torch backend, first on PyTorch 2.13, then on Weft by `weft run -m pytest`; neither is
changed. A test that PyTorch passes counts as failed if Weft fails, skips or does not reach it, or
takes more than 20 s of processor time. Groups that have not been run on both are not listed.
"""
CAUSES = 12
"""Causes that are listed."""


def outcomes(path: Path) -> dict[str, dict[str, Any]]:
    """By a test of a group: its outcome; a failure after its body stays one."""
    found: dict[str, dict[str, Any]] = {}
    for text in path.read_text(encoding="utf-8").splitlines():
        row = json.loads(text)
        before = found.get(row["test"])
        if before is None or before["outcome"] != "failed" or "where" not in before:
            found[row["test"]] = row
    return found


def page(folder: Path) -> str:
    """The text of the page."""
    rows: list[str] = []
    causes: Counter[str] = Counter()
    total, passed = 0, 0
    for path in sorted((folder / "torch").glob("*.jsonl")):
        ours = folder / "weft" / path.name
        if not ours.exists() or not ours.stat().st_size:
            continue
        theirs, mine = outcomes(path), outcomes(ours)
        wanted = [test for test, row in theirs.items() if row["outcome"] == "passed"]
        good = [test for test in wanted if mine.get(test, {}).get("outcome") == "passed"]
        causes.update(cause(mine.get(test)) for test in wanted if test not in set(good))
        total, passed = total + len(wanted), passed + len(good)
        if wanted:
            share = 100 * len(good) / len(wanted)
            name = path.stem.replace("-", "/").removesuffix("_test")
            rows.append(f"| {name} | {len(wanted)} | {len(good)} | {share:.1f}% |")
    share = 100 * passed / max(total, 1)
    rows.append(f"| all | {total} | {passed} | {share:.1f}% |")
    listed = [f"| {n} | {text} |" for text, n in causes.most_common(CAUSES)]
    return "\n".join(
        [
            HEAD, "| tests | pass on PyTorch | of these on Weft | |", "|---|---:|---:|---:|", *rows,
            "", "| failures | most frequent causes |", "|---:|---|", *listed, "",
        ]
    )  # fmt: skip


def cause(row: dict[str, Any] | None) -> str:
    """Why a test failed, without numbers and places, so that equal causes are one."""
    if row is None:
        return "not run"
    text = re.sub(r"(?:/[\w.+-]+)+/|\(created at .*?\)", "", row.get("why", "") or row["outcome"])
    return f"`{re.sub(r'[|`]', '/', text)[:110]}`"


if __name__ == "__main__":
    PAGE.write_text(page(Path(sys.argv[1])))
