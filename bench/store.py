"""What was measured, in `bench/results.json`, from which `bench/results.md` and its plots are made.

A run updates its own cells. A ratio was always measured within one run, in turns; a cell tells of
which commit it is. Results of another machine are dropped as soon as there are new ones, and in a
row those beside another Weft.
"""

from __future__ import annotations

import datetime
import importlib.metadata
import json
import os
import platform
import subprocess
from pathlib import Path
from typing import Any

from bench.contest import Contestant, spread

FOLDER = Path(__file__).resolve().parent
FILE = FOLDER / "results.json"
PACKAGES = {
    "NumPy": "numpy", "llvmlite": "llvmlite", "PyTorch": "torch", "JAX": "jax",
    "TensorFlow": "tensorflow_cpu", "ONNX Runtime": "onnxruntime",
}  # fmt: skip


def machine() -> dict[str, Any]:
    """What decides speed and does not change between runs."""
    return {"processor": _processor(), "processors": len(os.sched_getaffinity(0)),
            "memory_gb": round(_memory() / 2**30)}  # fmt: skip


def _processor() -> str:
    lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    found = dict(line.split(":", 1) for line in lines if ":" in line)
    values = {key.strip(): value.strip() for key, value in found.items()}
    name = values.get("model name", platform.processor())
    family, model = values.get("cpu family", "?"), values.get("model", "?")
    return f"{name} (family {family}, model {model})"


def _memory() -> int:
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def versions() -> dict[str, str]:
    """Of what takes part."""
    found = {"Python": platform.python_version(), "Linux": platform.release()}
    for name, package in PACKAGES.items():
        try:
            found[name] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found


def stamp() -> dict[str, str]:
    """When, and the package's last commit; a plus stands for changes since then."""
    now = datetime.datetime.now(datetime.UTC)
    changed = "+" if _git("status", "--porcelain", "--", "../weft") else ""
    commit = _git("log", "-1", "--format=%h", "--abbrev=10", "--", "../weft") + changed
    return {"date": now.strftime("%Y-%m-%d %H:%M"), "commit": commit}


def _git(*command: str) -> str:
    asked = subprocess.run(["git", *command], capture_output=True, text=True, cwd=FOLDER)
    return asked.stdout.strip()


def cells(contestants: list[Contestant]) -> dict[str, dict[str, Any]]:
    """One cell for each contestant that took part; peers have their ratio to Weft."""
    ours = next(one for one in contestants if one.name == "weft")
    found: dict[str, dict[str, Any]] = {}
    for one in contestants:
        if one.absent or not one.seconds:
            continue
        cell = {
            "ms": one.median * 1e3, "low": min(one.seconds) * 1e3, "high": max(one.seconds) * 1e3,
            "first_s": one.first, "cold": one.cold, "resident_mb": one.resident / 2**20,
            "rounds": len(one.seconds), **stamp(),
        }  # fmt: skip
        if one is not ours and ours.seconds:
            cell["ratio"], cell["ratio_low"], cell["ratio_high"] = spread(one, ours)
            cell["memory_ratio"] = ours.resident / one.resident
        found[one.name] = cell
    return found


def load() -> dict[str, Any]:
    """What was measured on this machine."""
    empty = {"machine": machine(), "versions": versions(), "sections": {}}
    if not FILE.exists():
        return empty
    found = json.loads(FILE.read_text())
    return found if found["machine"] == machine() else empty


def save(section: str, row: str, values: dict[str, Any], whole: bool = False) -> dict[str, Any]:
    """Update cells of a row, or the `whole` row; everything that is known now."""
    found = load()
    found["versions"] = versions()
    rows = found["sections"].setdefault(section, {})
    rows[row] = values if whole else {**_beside(values, rows.get(row, {})), **values}
    FILE.write_text(json.dumps(found, indent=1) + "\n")
    return found


def _beside(values: dict[str, Any], row: dict[str, Any]) -> dict[str, Any]:
    """What of a row was measured beside the same Weft as the new values."""
    ours = values.get("weft")
    if not isinstance(ours, dict):  # no contest
        return row
    return {name: cell for name, cell in row.items() if cell["commit"] == ours["commit"]}
