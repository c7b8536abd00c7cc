"""Writes `docs/compat/programs.md` from results: `python -m tools.programs.table FOLDER...`.

The second folder is that of the programs of `later.json`, then those of `drawn.json`,
`unseen.json`, `varied.json`, `further.json`, `third.json`, `fourth.json`, `jax.json` and
`jax_later.json`, `swept.json`, `runs_in_jax.json`, `proven.json`, `filtered.json`,
`hard.json`, `unlisted_jax.json` and `harder.json`.
"""

from __future__ import annotations

import json
import re
import sys
from collections import Counter
from pathlib import Path
from typing import Any

from tools.programs.__main__ import programs

PAGE = Path(__file__).resolve().parent.parent.parent / "docs" / "compat" / "programs.md"
KINDS = {
    "torch": "PyTorch", "lightning": "Lightning", "horovod": "Horovod",
    "lightning2": "Lightning, second draw", "TensorFlow 1": "TensorFlow 1", "tf.keras": "tf.keras",
    "TensorFlow 1, second draw": "TensorFlow 1, second draw",
    "tf.keras, second draw": "tf.keras, second draw", "jax": "JAX",
    "jax2": "JAX, second draw",
}  # fmt: skip


def results(folder: Path, framework: str) -> dict[str, dict[str, Any]]:
    """What became of each program under a framework."""
    file = folder / f"{framework}.json"
    return json.loads(file.read_text()) if file.exists() else {}


def outcome(result: dict[str, Any] | None) -> str:
    """A cell of the table."""
    if result is None:
        return "not run"
    if result["code"] == 0:
        return "runs"
    text = re.sub(r"(?:/[\w.+ -]+)+/", "", result["stop"]).replace("|", "/")
    return f"`{text[:160].replace('`', chr(39))}`"


def losses(result: dict[str, Any] | None) -> str:
    """A cell of the table: how far losses are apart, the first and all."""
    if not result or not result["losses"]:
        return ""
    return f"{result['losses']}: {result['first']:.0e}, {result['all']:.0e}"


def steps(result: dict[str, Any] | None) -> str:
    """A cell of the table: processor time of the first steps, beside the original's."""
    theirs = result and result[result.get("peer", "torch")]
    if not result or not theirs or not result["weft"]:
        return ""
    ratio = result["weft"] / theirs
    pack = ", pack" if result.get("pack") else ""
    return f"{ratio:.2f} ({result['weft']:.1f} / {theirs:.1f} s, {result['steps']}{pack})"


def further(name: str, folder: Path | None) -> list[str]:
    """The rows of another list of programs."""
    found = {} if folder is None else results(folder, "weft")
    if not found:
        return []
    assert folder is not None
    theirs = results(folder, "torch") | results(folder, "tensorflow") | results(folder, "jax")
    rows = [(p, f"{p['repository']}/{p['script']}") for p in programs(name)]
    run = sum([found.get(key, {}).get("code") == 0 for _, key in rows])
    peer = sum([theirs.get(key, {}).get("code") == 0 for _, key in rows])
    head = (Path(__file__).parent / f"{name}.md").read_text().rstrip("\n")
    told = head.format(run=run, all=len(rows), peer=peer)
    if not theirs:
        lines = [f"| {link_of(p)} | {outcome(found.get(key))} |" for p, key in rows]
        return [told, "", "| program | Weft |", "|---|---|", *lines, ""]
    cells = [(link_of(p), outcome(theirs.get(key)), outcome(found.get(key))) for p, key in rows]
    lines = [f"| {' | '.join(row)} |" for row in cells]
    return [told, "", "| program | the original | Weft |", "|---|---|---|", *lines, ""]


def link_of(program: dict[str, Any]) -> str:
    """A program's name, with a link to its text."""
    link = f"https://github.com/{program['repository']}/blob/{program['commit']}"
    link += f"/{program['script'].replace(' ', '%20')}"
    name = f"{program['repository'].partition('/')[2]}/{program['script'].rpartition('/')[2]}"
    return f"[{name}]({link})"


MORE = (
    "later", "drawn", "unseen", "varied", "further", "third", "fourth", "jax", "jax_later",
    "swept", "runs_in_jax", "proven", "filtered", "hard", "unlisted_jax", "harder",
)  # fmt: skip
"""Lists with a section of their own, in the order of their folders."""


def page(folder: Path, *more: Path) -> str:
    """The text of the page; `more` are the folders of further lists."""
    weft, values = results(folder, "weft"), results(folder, "values")
    times = results(folder, "steps")
    peers = results(folder, "torch") | results(folder, "tensorflow") | results(folder, "jax")
    rows: list[str] = []
    count: Counter[str] = Counter()
    for program in programs():
        key = f"{program['repository']}/{program['script']}"
        ours, theirs = weft.get(key), peers.get(key)
        kind = KINDS[program["kind"]]
        count[f"{kind} all"] += 1
        count[f"{kind} run"] += bool(ours and ours["code"] == 0)
        count[f"{kind} peer"] += bool(theirs and theirs["code"] == 0)
        count[f"{kind} both"] += bool(ours and theirs and ours["code"] and theirs["code"])
        cells = [kind, link_of(program), outcome(theirs), outcome(ours)]
        cells += [losses(values.get(key)), steps(times.get(key))]
        rows.append(f"| {' | '.join(cells)} |")
    parts = ("all", "peer", "run", "both")
    lines = [f"| {k} | {' | '.join([str(count[f'{k} {x}']) for x in parts])} |"
             for k in KINDS.values()]  # fmt: skip
    head = (Path(__file__).parent / "page.md").read_text().rstrip("\n")
    return "\n".join(
        [
            head, "",
            "| kind | drawn | run under the original | run under Weft | stop in both |",
            "|---|---:|---:|---:|---:|",
            *lines, "",
            "| kind | program | the original | Weft | losses | steps |",
            "|---|---|---|---|---|---|", *rows, "",
            *[line for name, of in zip(MORE, more, strict=False) for line in further(name, of)],
        ]
    )  # fmt: skip


if __name__ == "__main__":
    PAGE.write_text(page(*map(Path, sys.argv[1:])))
