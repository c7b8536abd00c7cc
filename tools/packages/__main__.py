"""Runs scripts that use packages: `python -m tools.packages FOLDER [--only PART ...]`.

Each runs with PyTorch, then with Weft by `weft run`, from the same initial values, and reports
values, which are compared. Reports are kept in FOLDER; docs/compat/packages.md is written from
all that lie there. PyTorch and the packages must be installed.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any

SCRIPTS = Path(__file__).resolve().parent / "scripts"
ROOT = SCRIPTS.parent.parent.parent
PACKS = ROOT / "weft" / "library" / "packs"
PAGE = ROOT / "docs" / "compat" / "packages.md"
CASES = {
    **{f"transformers: Trainer, {name}, 200 steps": f"trainer.py {key} 200" for name, key in (
        ("BERT", "bert"), ("GPT-2", "gpt2"), ("Llama", "llama"), ("T5", "t5"))},
    **{f"transformers: generate in 12 modes, files both ways, {name}": f"generation.py {key}"
       for name, key in (("GPT-2", "gpt2"), ("Llama", "llama"), ("T5", "t5"))},
    "peft: LoRA on GPT-2": "adapters.py gpt2 20",
    "peft: LoRA on Llama": "adapters.py llama 20",
    "accelerate: prepare, accumulate, clip, save and load state": "accelerated.py 20",
}  # fmt: skip
HEAD = """# Packages, used as they are

Made by `python -m tools.packages FOLDER`; do not edit.

The scripts in [tools/packages/scripts](../../tools/packages/scripts) use {versions}. They run with
PyTorch 2.13, then by `weft run`, from the same initial values. "Apart" is the largest relative
difference of all losses, norms and other numbers that a script reports; texts and generated tokens
must be equal. Seconds are processor time of one thread, with other work on the machine: of the
training loop where there is one, compiling included, else of the whole script. Weft had {pack}.
"""


def run(command: str, framework: str, folder: Path) -> dict[str, Any]:
    """What a script reports under a framework; kept in the folder."""
    script, *arguments = command.split()
    env = dict(os.environ) | {
        "PORTS": str(folder), "OMP_NUM_THREADS": "1", "WEFT_THREADS": "1", "HF_HUB_OFFLINE": "1",
    }  # fmt: skip
    weft = ["-m", "weft", "run"] if framework == "weft" else []
    if framework == "weft":
        env["PYTHONPATH"] = str(ROOT)
    done = subprocess.run(
        [sys.executable, *weft, str(SCRIPTS / script), *arguments],
        env=env, cwd=folder, capture_output=True, text=True, check=False,
    )  # fmt: skip
    rows = [row for row in done.stdout.splitlines() if row.startswith("{")]
    failed = done.returncode != 0 or not rows
    found = {"error": done.stderr.strip()[-300:]} if failed else json.loads(rows[-1])
    file_of(command, framework, folder).write_text(json.dumps(found))
    return found


def file_of(command: str, framework: str, folder: Path) -> Path:
    """Where a report is kept."""
    return folder / f"{command.replace('.py', '').replace(' ', '-')}.{framework}.json"


def apart(wanted: Any, found: Any) -> float:
    """The largest relative difference of numbers; infinite if anything else differs."""
    if isinstance(wanted, list) and isinstance(found, list) and len(wanted) == len(found):
        return max(map(apart, wanted, found), default=0.0)
    if isinstance(wanted, float) and isinstance(found, float):
        return abs(wanted - found) / max(abs(wanted), 1e-3)
    return 0.0 if wanted == found else float("inf")


def row(name: str, torch: dict[str, Any], weft: dict[str, Any]) -> str:
    """A row of the table."""
    for side, report in (("PyTorch", torch), ("Weft", weft)):
        if "error" in report:
            text = report["error"].splitlines()[-1][:120].replace("|", "/")
            return f"| {name} | {side} stops: `{text}` | | |"
    clocks = ("seconds", "train")
    far = {key: apart(torch[key], weft.get(key)) for key in torch if key not in clocks}
    other = [key for key, distance in far.items() if distance == float("inf")]
    told = f"other: {', '.join(other)}" if other else f"{max(far.values(), default=0.0):.0e}"
    clock = "train" if "train" in torch else "seconds"
    return f"| {name} | {told} | {torch[clock]:.1f} | {weft[clock]:.1f} |"


def page(folder: Path) -> str:
    """The text of the page."""
    rows: list[str] = []
    for name, command in CASES.items():
        files = [file_of(command, framework, folder) for framework in ("torch", "weft")]
        if all(file.exists() for file in files):
            rows.append(row(name, *[json.loads(file.read_text()) for file in files]))
        else:
            rows.append(f"| {name} | not run | | |")
    named = [f"{name} {version(name)}" for name in ("transformers", "peft", "accelerate")]
    head = HEAD.format(
        versions=f"{named[0]}, {named[1]} and {named[2]}",
        pack="a pack of kernels, as a wheel has" if PACKS.exists() else "no pack of kernels",
    )
    return "\n".join(
        [head, "| script | apart | PyTorch s | Weft s |", "|---|---|---:|---:|", *rows, ""]
    )


def main() -> None:
    """Runs what is asked for, and writes the page."""
    parser = argparse.ArgumentParser(prog="python -m tools.packages", description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--only", nargs="*", default=[""], help="parts of scripts' commands")
    given = parser.parse_args()
    folder = given.folder.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    for name, command in CASES.items():
        if any(part in command for part in given.only):
            print(
                row(name, *[run(command, side, folder) for side in ("torch", "weft")]), flush=True
            )
    PAGE.write_text(page(folder))


if __name__ == "__main__":
    main()
