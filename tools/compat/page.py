"""Writes `docs/compat`: a page a library, from the listings and from what Weft answers."""

from __future__ import annotations

import gzip
from collections import Counter
from pathlib import Path

from tools.compat.listing import LEFT_OUT, read
from tools.compat.same import read_same
from weft.mirror import table
from weft.mirror.mirror import found, has, has_itself

DOCS = Path(__file__).resolve().parent.parent.parent / "docs" / "compat"
LACKING = DOCS.parent.parent / "weft" / "mirror" / "lacking.gz"
TITLES = {
    "torch": "PyTorch", "lightning": "Lightning", "torchmetrics": "torchmetrics",
    "horovod": "Horovod", "tensorflow": "TensorFlow", "keras": "tf.keras of TensorFlow",
    "jax": "JAX",
}  # fmt: skip
ABOUT = {
    "torch": "Modules for other hardware and for PyTorch's own tools are left out of the listing.",
    "lightning": "`pytorch_lightning` has the names of `lightning.pytorch`.",
    "torchmetrics": "Metrics are Weft's own classes ([TRAINING.md](../TRAINING.md)).",
    "horovod": "The listing has what its Python text defines, without its runner, Spark, Ray and "
    "MXNet.",
    "tensorflow": "`tf.compat.v1` has the same names. `tf.raw_ops`, and modules for other "
    "hardware, are left out of the listing; [TF1.md](../TF1.md) tells of `tf.contrib`.",
    "keras": "As in TensorFlow 1, on graphs and sessions ([KERAS.md](../KERAS.md)).",
    "jax": "Kernels of one's own, export, other devices and JAX's own tools are left out of the "
    "listing. [JAX.md](../JAX.md) says what differs.",
}

UNLISTED = {
    **{library: LEFT_OUT[library] for library in ("torch", "lightning", "torchmetrics", "horovod")},
    "tensorflow": ("contrib", "python"),
    "keras": (),
}
"""Modules whose names are not known: by a library of which names may be imported and not used."""


def state(path: str) -> str:
    """`present`, `on purpose` (absent, and there is a reason) or `absent`."""
    if is_there(path):
        return "present"
    return "on purpose" if table.reason(path) else "absent"


def is_there(path: str) -> bool:
    """Whether Weft has a name, or a class has a member."""
    owner, _, name = path.rpartition(".")
    if owner in table.modules() or owner not in CLASSES:
        return has(path)
    return has(owner) and hasattr(found(owner), name)


CLASSES: set[str] = set()


def page(library: str) -> str:
    """The text of a library's page."""
    version, modules = read(library)
    CLASSES.update([m for m in modules if m.rpartition(".")[2][:1].isupper()])
    rows: list[str] = []
    sections: list[str] = []
    total: Counter[str] = Counter()
    for module, names in modules.items():
        states = {name: state(f"{module}.{name}") for name in names}
        count = Counter(states.values())
        total += count
        if not names:
            continue
        numbers = " | ".join([str(count[k]) for k in ("present", "on purpose", "absent")])
        rows.append(f"| `{module}` | {numbers} |")
        sections += section(module, states)
    share = f"{total['present']} of {sum(total.values())}"
    return (
        "\n".join(
            [
                f"# {TITLES[library]} {version}: what Weft has",
                "",
                f"Made by `python -m tools.compat`; do not edit. {ABOUT[library]}",
                "",
                f"Weft has {share} public names; {total['on purpose']} are absent on purpose or "
                "have a known way around.",
                "",
                "| module or class | present | on purpose | absent |",
                "|---|---:|---:|---:|",
                *rows,
                f"| all | {total['present']} | {total['on purpose']} | {total['absent']} |",
                "",
                "## By module",
                "",
                *sections,
            ]
        ).rstrip("\n")
        + "\n"
    )


def section(module: str, states: dict[str, str]) -> list[str]:
    """The names of a module: present, then absent with reasons, then absent."""
    lines = [f"### `{module}`", ""]
    present = [n for n, s in states.items() if s == "present"]
    absent = [n for n, s in states.items() if s == "absent"]
    reasons: dict[str, list[str]] = {}
    for name, s in states.items():
        if s == "on purpose":
            reasons.setdefault(table.reason(f"{module}.{name}"), []).append(name)
    if present:
        lines += ["| present |", "|---|", f"| {joined(present)} |", ""]
    if reasons:
        lines += ["| absent on purpose | why, and what to do |", "|---|---|"]
        lines += [f"| {joined(names)} | {why} |" for why, names in reasons.items()]
        lines.append("")
    if absent:
        lines += ["| absent |", "|---|", f"| {joined(absent)} |", ""]
    return lines


def joined(names: list[str]) -> str:
    """Names in code marks."""
    return ", ".join([f"`{name}`" for name in names])


def lacking() -> bytes:
    """`weft/mirror/lacking.gz`: a module a line, with the names that Weft lacks."""
    others: dict[str, str] = {}
    for group in read_same():
        if table.later().intersection(group):
            continue  # what Weft has by that name is another thing
        there = [path for path in group if has_itself(path)]
        others |= {path: min(there, key=len) for path in group if there and path not in there}
    rows: list[str] = []
    for library, unlisted in UNLISTED.items():
        for module, names in read(library)[1].items():
            inside = [p.rpartition(".")[2] for p in others if p.rpartition(".")[0] == module]
            every = [*names, *sorted(set(inside).difference(names))]
            absent = [name for name in every if not has_itself(f"{module}.{name}")]
            paths = [f"{name}={others.get(f'{module}.{name}', '')}".rstrip("=") for name in absent]
            if absent or module not in table.modules():
                rows.append(" ".join([module, *paths]))
        rows += [f"{library}.{name} *" for name in unlisted]
    return gzip.compress("\n".join(rows).encode(), mtime=0)


def pages() -> dict[Path, str]:
    """The text of each page."""
    return {DOCS / f"{library}.md": page(library) for library in TITLES}
