"""`bench/results.md`: tables and plots of whatever `bench/results.json` holds."""

from __future__ import annotations

from typing import Any

from bench import plot
from bench.store import FOLDER

TITLES = {
    "weft": "Weft", "torch": "PyTorch", "torch_tuned": "PyTorch, tuned",
    "torch_channels_last": "channels_last", "torch_channels_last_tuned": "channels_last, tuned",
    "torch_compile": "compile", "torch_compile_tuned": "compile, tuned", "jax": "JAX",
    "tf1_session": "TF 1 session", "tf2_function": "TensorFlow", "onnxruntime": "ONNX Runtime",
    "weft_bf16": "Weft, bfloat16", "torch_bf16": "PyTorch, bfloat16",
    "weft_layer": "its layer", "weft_read": "a read", "weft_copy": "a copy",
    "weft_dense": "one layer", "weft_eager": "Weft, interpreted at first",
    "weft_session": "Weft's TF 1 session",
}  # fmt: skip
HALF = ("weft_bf16", "torch_bf16")  # no peers of float32
UNTUNED = ("torch_channels_last", "torch")  # the first that took part
MODELS = {
    "alexnet": "AlexNet, 32", "vgg19": "VGG-19, 4", "resnet50": "ResNet-50, 16",
    "mobilenet": "MobileNet v1, 16", "gnmt": "GNMT v2, 16", "ncf": "NCF, 16,384",
}  # fmt: skip
OTHERS = {
    "perceptron": "perceptron 784-512-512-10, 128", "lstm": "LSTM, 2 x 650, 35 words, 20",
    "resnet50": "ResNet-50", "mobilenet": "MobileNet v1",
}  # fmt: skip
KERNELS = 20  # rows of a roofline's table
Cell = dict[str, Any]
Row = dict[str, Cell]


def write(found: dict[str, Any]) -> None:
    """Make the page and its plots."""
    sections = found["sections"]
    parts = [_head(found)]
    for section, make in PARTS.items():
        if sections.get(section):
            parts.append(make(sections[section]))
    (FOLDER / "results.md").write_text("\n\n".join(parts) + "\n")


def peers(row: Row) -> Row:
    """Contestants that Weft is compared with."""
    return {name: cell for name, cell in row.items() if name != "weft" and name not in HALF}


def fastest(row: Row) -> tuple[str, Cell] | None:
    """The peer, in its best setting, that comes nearest to Weft."""
    return min(peers(row).items(), key=lambda pair: pair[1]["ratio"], default=None)


def untuned(row: Row) -> Cell | None:
    """PyTorch with images' channels last where there are images, and nothing tuned."""
    return next((row[name] for name in UNTUNED if name in row), None)


def _head(found: dict[str, Any]) -> str:
    where, what = found["machine"], found["versions"]
    stamps = [c for s in found["sections"].values() for r in s.values() for c in _stamped(r)]
    dates = sorted(stamps) or ["never"]
    return "\n".join([
        "# Results", "",
        "Made by `python -m bench`; a run updates its own cells. Every ratio was measured within "
        "one run, contestants",
        "in processes of their own and in turns; it is the median over the rounds of a peer's time "
        "divided by Weft's,", "with the least and the most in brackets.", "",
        f"- Machine: {where['processor']}, {where['processors']} processors, "
        f"{where['memory_gb']} GB",
        "- Versions: " + ", ".join(f"{name} {version}" for name, version in what.items()),
        f"- Measured: {dates[0]} to {dates[-1]} UTC",
        "- *tuned*: with `MALLOC_TOP_PAD_`, `MALLOC_MMAP_THRESHOLD_` and `MALLOC_TRIM_THRESHOLD_` "
        "set high",
    ])  # fmt: skip


def _stamped(row: dict[str, Any]) -> list[str]:
    cells = [row, *(value for value in row.values() if isinstance(value, dict))]
    return [cell["date"] for cell in cells if "date" in cell]


def _table(head: list[str], rows: list[list[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def _names(rows: dict[str, Row]) -> list[str]:
    """Contestants of any row, in the order of TITLES."""
    return [name for name in TITLES if any(name in row for row in rows.values())]


def _ms(cell: Cell | None) -> str:
    if cell is None:
        return ""
    digits = 0 if cell["ms"] >= 100 else 1 if cell["ms"] >= 10 else 2
    return f"{cell['ms']:,.{digits}f}"


def _ratio(cell: Cell | None) -> str:
    if cell is None:
        return ""
    return f"{cell['ratio']:.2f} ({cell['ratio_low']:.2f} to {cell['ratio_high']:.2f})"


def _contest(rows: dict[str, Row], titles: dict[str, str]) -> str:
    names = [n for n in _names(rows) if n != "weft"]
    order = [name for name in titles if name in rows]
    head = ["", "Weft, ms", *(TITLES[n] for n in names), "fastest peer / Weft"]
    table = []
    for model in order:
        row = rows[model]
        best = fastest(row)
        won = f"**{_ratio(best[1])}** {TITLES[best[0]]}" if best else ""
        table.append(
            [titles[model], _ms(row.get("weft")), *(_ratio(row.get(n)) for n in names), won]
        )
    return _table(head, table)


def _training(rows: dict[str, Row]) -> str:
    plot.bars(rows, MODELS, FOLDER / "training.svg")
    parts = [
        "## Training steps of the six networks",
        "![How many times as fast as each peer](training.svg)",
        "Batch sizes stand after the names; cells are times of the peers divided by Weft's.",
        _contest(rows, MODELS),
        "### Time of a step, memory, first step",
        _costs(rows),
    ]
    return "\n\n".join(parts)


def _costs(rows: dict[str, Row]) -> str:
    """A line for each network and contestant."""
    head = ["", "contestant", "ms a step", "least to most", "untuned PyTorch / Weft",
            "peak memory, MB", "of PyTorch's", "first step, s", "commit"]  # fmt: skip
    table = []
    for model, title in MODELS.items():
        row = rows.get(model, {})
        for name in (n for n in TITLES if n in row):
            cell, base = row[name], untuned(row)
            ours = name == "weft" and base is not None
            table.append([
                title if name == "weft" else "", TITLES[name], _ms(cell),
                f"{cell['low']:,.1f} to {cell['high']:,.1f}", _ratio(base) if ours else "",
                f"{cell['resident_mb']:,.0f}", f"{base['memory_ratio']:.2f}" if ours else "",
                f"{cell['first_s']:.1f}" + ("" if cell["cold"] else " (code cache kept)"),
                cell["commit"],
            ])  # fmt: skip
    return _table(head, table)


def _others(rows: dict[str, Row]) -> str:
    return "## Other training steps\n\n" + _contest(rows, OTHERS)


def _inference(rows: dict[str, Row]) -> str:
    about = "Weft's networks are under `jit`."
    return f"## Inference, one image\n\n{about}\n\n" + _contest(rows, OTHERS)


def _first(rows: dict[str, Cell]) -> str:
    states = "empty cache", "full cache"
    table = [
        [OTHERS.get(name, MODELS.get(name, name)),
         *[f"{row[of]:.2f}" for state in states for of in (f"{state}, loss", state)], row["commit"]]
        for name, row in rows.items()
    ]  # fmt: skip
    head = ["", "empty code cache: its loss, s", "all of it, s", "full: its loss, s",
            "all of it, s", "commit"]  # fmt: skip
    return "## First training step, in a new process\n\n" + _table(head, table)


def _agreement(rows: dict[str, Cell]) -> str:
    table = [
        [MODELS[name].rpartition(",")[0], row["dtype"], str(row["steps"]), f"{row['weft']:.6f}",
         f"{row['torch']:.6f}", f"{row['difference']:.0e}", row["commit"]]
        for name, row in rows.items()
    ]  # fmt: skip
    head = ["", "type", "steps", "loss in Weft", "in PyTorch", "difference", "commit"]
    about = "The same weights and data, no dropout; why MobileNet differs: `bench/agree.py`."
    return f"## Agreement with PyTorch\n\n{about}\n\n" + _table(head, table)


def _roofline(rows: dict[str, Any]) -> str:
    plot.roofline(rows, MODELS, FOLDER / "roofline.svg")
    parts = [
        "## Rooflines",
        "![GFLOP/s of each kernel over its arithmetic a byte](roofline.svg)",
        "Peaks were measured between the profiled steps: the float32 microkernel on operands in "
        "the first-level cache,\nand reading or copying blocks that no cache holds. *Of peak* is "
        "the larger of both shares; operands in caches,\nand products that are counted but not "
        "needed, let it exceed 100%.",
    ]
    for name in (n for n in MODELS if n in rows):
        parts += [_roofline_title(name, rows[name]), _kernels(rows[name]["kernels"])]
    return "\n\n".join(parts)


def _roofline_title(name: str, row: dict[str, Any]) -> str:
    return (
        f"### {MODELS[name]}: {row['step_ms']:,.1f} ms, of which no kernel was at work "
        f"{row['idle_ms']:.1f} ms\n\nPeak {row['peak_gflops']:.0f} GFLOP/s, "
        f"{row['peak_gbytes']:.1f} GB/s; commit {row['commit']}."
    )


def _kernels(kernels: list[dict[str, Any]]) -> str:
    total = sum(k["ms"] for k in kernels) or 1.0
    table = [
        [f"`{k['name']}`", k["work"], str(k["calls"]), f"{k['ms']:.2f}", f"{k['ms'] / total:.1%}",
         f"{k['gflops']:.1f}", f"{k['gbytes']:.1f}", f"{k['share']:.0%}"]
        for k in kernels[:KERNELS]
    ]  # fmt: skip
    rest = kernels[KERNELS:]
    if rest:
        ms = sum(k["ms"] for k in rest)
        table.append(
            [f"{len(rest)} more", "", str(sum(k["calls"] for k in rest)), f"{ms:.2f}",
             f"{ms / total:.1%}", "", "", ""]
        )  # fmt: skip
    head = ["kernel", "reads -> writes", "calls", "ms", "share", "GFLOP/s", "GB/s", "of peak"]
    return _table(head, table)


def _loops(rows: dict[str, Any]) -> str:
    table: list[list[str]] = []
    for row in rows.values():
        names = [n for n in TITLES if n in row and n != "weft" and n not in row["beside"]]
        cells = [f"{TITLES[n]} {_ratio(row[n])}{_bar(row['bars'].get(n))}" for n in names]
        cells += [f"{TITLES[n]} absent" for n in row["absent"]]
        table.append([row["title"], _ms(row["weft"]), "; ".join(cells), row["figure"],
                      row["weft"]["commit"]])  # fmt: skip
    head = ["", "Weft, ms", "peer / Weft", "", "commit"]
    about = "In parentheses the least and the most of the rounds; bars are what is to be reached."
    return f"## Loops, sequences and what is routed\n\n{about}\n\n" + _table(head, table)


def _bar(bar: float | None) -> str:
    return "" if bar is None else f", bar {bar:g}"


def _unrolled(rows: dict[str, Any]) -> str:
    found: dict[str, dict[str, float]] = rows["lstm"]["first"]
    steps = sorted({step for times in found.values() for step in times}, key=int)
    table = [
        [TITLES[name], *[f"{times[step]:.2f}" if step in times else "" for step in steps]]
        for name, times in found.items()
    ]
    about = (
        "An LSTM of width 128, batch 32, with gradients, that Python's loop unrolls: the first"
        f" call, nothing compiled before; commit {rows['lstm']['commit']}."
    )
    head = ["steps", *steps]
    return f"## First call of an unrolled loop, s\n\n{about}\n\n" + _table(head, table)


PARTS = {
    "training": _training, "others": _others, "inference": _inference, "first": _first,
    "loops": _loops, "unrolled": _unrolled, "agreement": _agreement, "roofline": _roofline,
}  # fmt: skip
