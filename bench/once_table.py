"""Work that does not repeat: `first`, `lengths`, `generate`, `repl`, `complaints`, as one table."""

from __future__ import annotations

import os
import statistics
from collections.abc import Sequence

from bench.once import Call, Measure, Program, Runner
from bench.sections import Plan

Calls = Sequence[Call]


def _each(call: Call) -> float:
    return call.whole / max(1, len(call.laps))


def _slowest(calls: Calls) -> float:
    laps = [lap for call in calls for lap in call.laps]
    return max(laps) / statistics.median(laps)


def _later(calls: Calls) -> float:
    return statistics.median(_each(call) for call in calls[len(calls) // 2 :])


WHOLE = Measure("", lambda calls: calls[0].whole)
LOSS = Measure("loss", lambda calls: calls[0].laps[0])
STEP = Measure("whole step", lambda calls: calls[0].whole)
EACH = Measure("each", lambda calls: _each(calls[0]))
LATER = Measure("later", _later)
LATER_WHOLE = Measure("later", lambda calls: calls[-1].whole)
TOTAL = Measure("all calls", lambda calls: sum(call.whole for call in calls))
SLOWEST = Measure("slowest / median", _slowest, "times")
TOKEN = tuple(
    Measure(f"a token of call {i + 1}", lambda calls, i=i: _each(calls[i])) for i in range(4)
)
MEDIAN = Measure(
    "median token", lambda calls: statistics.median(lap for call in calls for lap in call.laps)
)
TEXT = (TOKEN[0], TOKEN[1])

PARTS: dict[str, tuple[Program, ...]] = {
    "first": (
        Program("first:sampler", "50 steps of a diffusion sampler", (WHOLE,)),
        Program("first:matmul", "1000x1000 matmul", (WHOLE,)),
        Program("first:resnet50_two", "ResNet-50, batch 2", (LOSS, STEP)),
        Program("first:decoder", "decoder of 6x384", (LOSS, STEP)),
        Program("first:bert", "BERT-base, 2 x 128", (LOSS, STEP)),
        Program("first:batches", "500 steps, each of another batch", (EACH, SLOWEST)),
        Program("first:examples", "vmap(grad) without jit", (WHOLE, LATER), calls=10),
        Program("first:cells", "1,000 LSTMCell under LBFGS", (WHOLE,)),
    ),
    "lengths": (
        Program("lengths:lengths", "200 lengths", (WHOLE, LATER_WHOLE, TOTAL), calls=5),
    ),
    "generate": (
        Program("generate:text", "GPT of 4x128, 128 tokens", (*TOKEN, MEDIAN, SLOWEST), calls=4),
        *(
            Program(f"generate:{name}", title, TEXT, calls=2, mirrored=True)
            for name, title in {
                "gpt2_greedy": "transformers, GPT-2, greedy",
                "gpt2_sampled": "transformers, GPT-2, sampled",
                "gpt2_beams": "transformers, GPT-2, 3 beams",
                "gpt2_static": "transformers, GPT-2, static cache",
                "llama_greedy": "transformers, Llama, greedy",
            }.items()
        ),
    ),
    "repl": (
        Program("repl:total", "(x + y).sum().item()", (EACH, LATER), calls=8),
        Program("repl:elements", "c[i] = a[i] + b[i]", (EACH, LATER), calls=8),
        Program("repl:sizes", "four calls in ever new sizes", (EACH, SLOWEST)),
        Program("repl:policy", "a policy's action", (EACH, LATER), calls=8),
        Program("repl:episodes", "an episode of REINFORCE, learned", (EACH, LATER), calls=8),
        Program("repl:notebook", "thirty cells of a notebook", (WHOLE, SLOWEST)),
    ),
    "complaints": (
        Program("complaints:neuron", "many tiny kernels in a step", (WHOLE, LATER), calls=10),
        Program("complaints:rotation", "scan of a 3x3 matrix", (WHOLE, LATER), calls=10),
        Program("complaints:differences", "sums of slices, gradient", (WHOLE, LATER), calls=10),
        Program("complaints:search", "while loop of small arrays", (WHOLE, LATER), calls=10),
    ),
}  # fmt: skip
HEAD = (
    f"  {'work':50}{'Weft':>10}{'CPU':>10}{'threads':>10}{'peer':>10}{'CPU':>10}{'':10}{'ratio':>8}"
    f"{'CPU':>8}{'bar':>6}"
)


def programs(names: Sequence[str]) -> list[Program]:
    """The programs of the parts, and those that are named themselves."""
    return [
        one for part, own in PARTS.items() for one in own if part in names or one.place in names
    ]


def known() -> set[str]:
    """What may be named."""
    return {*PARTS, *(one.place for own in PARTS.values() for one in own)}


def runners(program: Program, plan: Plan) -> list[Runner]:
    """Weft and PyTorch, both on one thread, too, and JAX where it has the program."""
    named = ["weft", "torch"] + (["jax"] if program.place.startswith("complaints") else [])
    chosen = [one for one in named if one == "weft" or not plan.only or one in plan.only]
    return [
        Runner(program, framework, count)
        for framework in chosen
        for count in sorted({1, plan.threads})
        if framework != "jax" or count == plan.threads
    ]


def measure(names: Sequence[str], plan: Plan) -> None:
    """Runs the programs in turns and prints their table, a row when it is known."""
    state = "warm" if plan.warm else f"cold, {'with' if plan.library else 'without'} the library"
    print(f"\nWork that does not repeat, {state}; load {os.getloadavg()[0]:.1f}")
    print(HEAD, flush=True)
    ratios: list[tuple[float, float]] = []
    met = 0
    for program in programs(names):
        found = runners(program, plan)
        for _ in range(plan.rounds):
            for one in found:
                if not one.absent:
                    one.run(plan.warm, plan.library)
        for row in program.measures:
            ratio = _row(program, row, found)
            if ratio is not None:
                ratios.append(ratio)
                met += ratio[0] >= program.bar
    if ratios:
        wall, processor = (statistics.geometric_mean(of) for of in zip(*ratios, strict=True))
        print(
            f"  geometric mean {wall:.2f}x, by processor time {processor:.2f}x; "
            f"{met} of {len(ratios)} rows meet their bar; load {os.getloadavg()[0]:.1f}"
        )


def _row(program: Program, row: Measure, found: Sequence[Runner]) -> tuple[float, float] | None:
    """Prints one: of each side the best; the ratios by the wall's clock and by the processor's."""
    title = f"{program.title}{', ' if row.title else ''}{row.title}"
    for one in found:
        if one.absent and row is program.measures[0]:
            print(f"  {title:50}{one.title}: {one.absent}", flush=True)
    ours = [one for one in found if one.wall and one.framework == "weft"]
    peers = [one for one in found if one.wall and one.framework != "weft"]
    if not ours or not peers:
        return None
    columns, figures = "", []
    for side in (ours, peers):
        best = min(side, key=lambda one: one.figures(row)[0])
        wall = best.figures(row)[0]
        processor = max(1e-9, min(one.figures(row)[1] for one in side))  # of any of them
        figures.append((wall, processor))
        columns += f"{_text(wall, row)}{_text(processor, row)}  {best.title:8}"
    ratio, by_processor = (theirs / own for own, theirs in zip(*figures, strict=True))
    print(
        f"  {title:50}{columns}{ratio:7.2f}x{by_processor:7.2f}x{program.bar:5.1f}x"
        f"  {'met' if ratio >= program.bar else 'NOT MET'}",
        flush=True,
    )
    return ratio, by_processor


def _text(figure: float, row: Measure) -> str:
    if row.unit != "s":
        return f"{figure:9.1f}x"
    scale, unit = next(
        (s, u)
        for least, s, u in ((1, 1, "s"), (1e-3, 1e3, "ms"), (0, 1e6, "us"))
        if figure >= least
    )
    return f"{figure * scale:7.{'0' if figure * scale >= 100 else '2'}f} {unit:2}"
