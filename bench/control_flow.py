"""`python -m bench loops`: loops, sequences, decoding, attention and what is routed, beside peers.

Each row of the table is a contest of its own, in turns; the bars are how many times as fast as a
contestant Weft is to be.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from bench import page, sections, store
from bench.contest import Contestant, contest, report, spread
from bench.work import decoding, graphs, iterations

STEPS = 10, 50, 100, 200
JAX_STEPS = 50
"""Beyond so many unrolled steps JAX compiles for minutes."""
LENGTHS = 2048, 4096


@dataclass(frozen=True)
class Row:
    """A contest.

    Attributes:
        bars: how many times as long as Weft a contestant should take, by its name.
        beside: other forms of Weft, which are no peers.
        figure: of the row, from the contestants that took part.
    """

    title: str
    workload: str
    peers: Sequence[str]
    bars: dict[str, float]
    beside: Sequence[str] = ()
    figure: Callable[[dict[str, Contestant]], str] = lambda _: ""


def _nanoseconds(found: dict[str, Contestant]) -> str:
    return f"{found['weft'].median / iterations.COUNT * 1e9:.1f} ns an iteration (bar: 20)"


def _of_reading(found: dict[str, Contestant]) -> str:
    share = spread(found["weft_read"], found["weft"])[0]
    each = found["weft"].median / decoding.TOKENS * 1e3
    return f"{each:.2f} ms a token; {share:.0%} of the speed of reading the weights (bar: 70%)"


def _of_a_copy(found: dict[str, Contestant]) -> str:
    copied = 2 * 4 * graphs.EDGES * graphs.WIDTH
    share = spread(found["weft_copy"], found["weft"])[0] * graphs.BYTES / copied
    return f"{share:.0%} of the bandwidth of a copy (bar: 80%)"


def _of_a_layer(found: dict[str, Contestant]) -> str:
    return f"{1 / spread(found['weft_dense'], found['weft'])[0]:.2f}x one layer (bar: 1.2)"


def _of_the_layer(found: dict[str, Contestant]) -> str:
    share = spread(found["weft_layer"], found["weft"])[0]
    return f"{share:.2f} of the layer's speed (bar: 0.8)"


ELSEWHERE = ["torch", "jax", "tf2_function"]
ROWS: dict[str, Row] = {
    "lstm": Row(
        "LSTM 512 wide, batch 32, 50 steps, training step", "sequence:lstm", ELSEWHERE,
        {"torch": 1.7, "jax": 2.0, "tf2_function": 2.0},
    ),
    "gru": Row(
        "GRU, the same", "sequence:gru", ELSEWHERE, {"torch": 1.5},
    ),
    "cell": Row(
        "the LSTM as a scan of the user's cell", "sequence:cell", ["jax"], {"jax": 2.0},
        ["weft_layer"], _of_the_layer,
    ),
    "iterations": Row(
        "`while_loop`, 1 M iterations of a scalar", "iterations", ["jax"], {}, (), _nanoseconds,
    ),
    "decoding": Row(
        "GPT 6 x 384, 256 tokens, batch 1, cached", "decoding", ["torch", "torch_compile"],
        {"torch": 3.0, "torch_compile": 1.5}, ["weft_read"], _of_reading,
    ),
    "attention": Row(
        f"attention, 8 heads of 64, {LENGTHS[0]:,}, causal, forward and backward",
        f"attention:{LENGTHS[0]}", ["torch"], {"torch": 1.2},
    ),
    "sorted": Row(
        "segment sum, 1 M edges, width 64, sorted", "graphs:sorted", ["torch"], {},
        ["weft_copy"], _of_a_copy,
    ),
    "unsorted": Row(
        "segment sum, unsorted", "graphs:unsorted", ["torch"], {}, ["weft_copy"], _of_a_copy,
    ),
    "experts": Row(
        "8 experts, top-1, training step", "graphs:experts", [], {}, ["weft_dense"], _of_a_layer,
    ),
}  # fmt: skip


NAMES = (*ROWS, "unrolled", "memory")


def loops(names: Sequence[str], plan: sections.Plan) -> None:
    """All rows, or those named; `unrolled` and `memory` are what a first call and lengths take."""
    for name in names or NAMES:
        if name == "unrolled":
            unrolled(plan)
        elif name == "memory":
            memory(plan)
        else:
            _row(name, plan)


def _row(name: str, plan: sections.Plan) -> None:
    row = ROWS[name]
    peers = [p for p in row.peers if not plan.only or p in plan.only]
    names = ["weft", *peers, *row.beside]
    found = contest(row.workload, names, plan.threads, plan.rounds)
    present = {one.name: one for one in found if not one.absent}
    beside = [one for one in found if one.name in row.beside]
    bars = ", ".join(f"{bar}x {page.TITLES[peer]}" for peer, bar in row.bars.items())
    title = f"{row.title}, {plan.threads} threads" + (f" (bar: {bars})" if bars else "")
    report(title, found, baselines=beside)
    if not {"weft", *row.beside} <= present.keys():
        return
    figure = row.figure(present)
    if figure:
        print(f"  {figure}")
    values: dict[str, Any] = {
        **store.cells(found), "title": row.title, "bars": row.bars, "figure": figure,
        "absent": [one.name for one in found if one.absent], "beside": list(row.beside),
    }  # fmt: skip
    page.write(store.save("loops", name, values, whole=True))


def unrolled(plan: sections.Plan) -> None:
    """First calls of an LSTM that Python's loop unrolls, nothing compiled before."""
    print("\nUnrolled LSTM of width 128 with gradients, first call (bar: linear, 5 s at 200)")
    rows: dict[str, dict[str, float]] = {}
    for steps in STEPS:
        names = ["weft", "weft_eager", "weft_session", "torch", "tf1_session"]
        names += ["jax"] if steps <= JAX_STEPS else []
        found = contest(f"unrolled:{steps}", names, plan.threads, 0, cold=True)
        for one in found:
            if one.absent:
                print(f"  {steps:4} {one.name:14} absent: {one.absent}")
                continue
            print(f"  {steps:4} {one.name:14} {one.first:8.2f} s")
            rows.setdefault(one.name, {})[str(steps)] = one.first
    values = {"first": rows, **store.stamp()}
    page.write(store.save("unrolled", "lstm", values, whole=True))


def memory(plan: sections.Plan) -> None:
    """Attention of two lengths: its memory above that of the imports."""
    print("\nMemory of attention, forward and backward, above the imports (bar: linear)")
    for length in LENGTHS:
        for one in contest(f"attention:{length}", ["weft", "torch"], plan.threads, 1):
            said = one.absent or f"{one.peak / 2**20:8.0f} MB"
            print(f"  {length:6,} {one.name:10} {said}")
