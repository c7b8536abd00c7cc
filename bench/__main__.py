"""`python -m bench [NAME ...]`: the workloads, beside whatever peers are installed.

`python -m bench resnet50 --rounds 3 --only torch_compile` trains one network beside one peer;
`agree`, `first`, `inference` and `roofline` take networks: `python -m bench agree resnet50`, and
`loops` and `cluster` take rows: `python -m bench loops lstm unrolled`. These and the networks
update `bench/results.md`.

`python -m bench first lengths generate repl complaints` gives one table of work that does not
repeat; `python -m bench repl:policy` gives its rows of one program.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence

from bench import (
    checkpoint,
    control_flow,
    conv,
    data,
    distributed,
    matmul,
    once_table,
    overhead,
    recording,
    sections,
    startup,
)  # fmt: skip
from bench.cluster import report as cluster
from bench.contest import contest, report
from bench.depth import compile_seconds
from bench.work import graphs as work_of_graphs

PEERS = ["torch", "torch_compile", "jax", "tf1_session", "tf2_function"]
PRODUCTS = {"512x512x512": 512**3, "1024x1024x1024": 1024**3, "2048x2048x2048": 2048**3,
            "4096x64x4096": 64 * 4096**2}  # fmt: skip


def softmax(threads: int) -> None:
    report(
        f"Softmax regression, 784 to 10, batch 100, training step, {threads} threads (bar: 4x)",
        contest("softmax", ["weft", *PEERS], threads),
    )
    whole, native = overhead.measure(threads)
    print(
        f"  a run is {whole * 1e6:.1f} us, its arithmetic {native * 1e6:.1f} us: "
        f"{(whole - native) * 1e6:.1f} us above it (bar: 10 us)"
    )


def perceptron(threads: int) -> None:
    report(
        f"Perceptron 784-512-512-10, batch 128, Adam, training step, {threads} threads (bar: 1.5x)",
        contest("perceptron", ["weft", *PEERS], threads),
    )


def eager(threads: int) -> None:
    found = contest("perceptron", ["weft_eager", *PEERS, "torch_tuned"], threads)
    found[0].name = "weft"
    report(
        f"The same, eager, no decorator, {threads} threads (bar: 1.5x PyTorch, 1x the fastest)",
        found,
    )
    sections.keep("others", "perceptron", found)


def record(threads: int) -> None:
    print(
        "\nRecording one call on small tensors, value not looked at: known types (bar: 2 us), "
        "new sizes (bar: 3 us)"
    )
    rows = recording.measure()
    rows["forward, of 17 calls"], rows["backward, of 17 calls"] = recording.measure_backward()
    for name, (known, new) in rows.items():
        print(f"  {name:26} {known * 1e6:6.2f} us {new * 1e6:6.2f} us")


def decoder(threads: int) -> None:
    names = ["weft", "weft_bf16", "torch", "torch_compile", "torch_bf16", "jax"]
    found = contest("decoder", names, threads)
    halves = [one for one in found if one.name.endswith("_bf16")]
    times = report(
        f"GPT decoder, 6 layers of 384, context 256, batch 8, AdamW, {threads} threads"
        " (bar: 1.3x fp32)",
        found,
        baselines=halves,
    )
    if {"weft", "weft_bf16"} <= times.keys():
        print(f"  bf16 against our own fp32 (bar: 1.7x): {times['weft'] / times['weft_bf16']:.2f}x")
    peaks = {one.name: one.peak for one in found if not one.absent}
    print("  peak memory above what the imports took:")
    for name, peak in peaks.items():
        ratio = f"  {peak / peaks['torch']:.2f} of PyTorch's" if "torch" in peaks else ""
        print(f"  {name:14} {peak / 2**20:8.0f} MB{ratio}")


def products(threads: int) -> None:
    print("\nProducts of networks (bar: never below 0.9x PyTorch, 1.1x in the mean; cubes 90%)")
    matmul.measure(threads=threads)
    for count in sorted({1, threads}):
        for shape, multiplied in PRODUCTS.items():
            found = contest(f"products:{shape}", ["weft", "torch", "jax", "numpy"], count, 3)
            report(
                f"fp32 product {shape}, {count} threads (bar: never below a peer)",
                found, 2e-9 * multiplied, "GFLOP/s",
            )  # fmt: skip


def chain(threads: int) -> None:
    found = contest("chain", ["weft", "torch", "jax", "weft_copy", "numpy_copy"], threads, 3)
    title = "Ten elementwise operations on 64 M floats (bar: 90% of a copy)"
    copies = [one for one in found if one.name.endswith("_copy")]
    medians = report(title, found, 2 * 4 * 64 * 1024**2 / 1e9, "GB/s", baselines=copies)
    copy = min(one.median for one in copies)
    print(f"  of the bandwidth of the faster copy: {copy / medians['weft']:.0%}")


def graphs(threads: int) -> None:
    for task, peers in (("sorted", ["torch", "numpy"]), ("unsorted", ["torch"])):
        found = contest(f"graphs:{task}", ["weft", *peers, "weft_copy"], threads, 3)
        title = f"Sums by node of 1 M rows of 64 floats, {task} ids (bar: 80% of a copy)"
        times = report(title, found, work_of_graphs.BYTES / 1e9, "GB/s", baselines=found[-1:])
        copied = 2 * 4 * work_of_graphs.EDGES * work_of_graphs.WIDTH / times["weft_copy"]
        share = work_of_graphs.BYTES / times["weft"] / copied
        print(f"  of the bandwidth of a copy, {copied / 1e9:.1f} GB/s: {share:.0%}")
    for task, peers, title in (
        ("product", ["torch", "scipy"], "A sparse matrix of 1 M entries times a dense one"),
        ("network", ["torch"], "Two graph convolutions on 1 M edges, training step"),
    ):
        report(f"{title}, {threads} threads", contest(f"graphs:{task}", ["weft", *peers], threads))
    found = contest("graphs:experts", ["weft", "torch", "weft_dense"], threads)
    title = "Eight experts, one a token, training step; PyTorch and weft_dense: one layer"
    times = report(f"{title} (bar: 1.2x of it)", found, baselines=found[-1:])
    print(f"  against one layer: {times['weft'] / times['weft_dense']:.2f}x")


def convs(threads: int) -> None:
    print("\nConvolutions of four networks (bar: never below 0.9x PyTorch, 1.1x in the mean)")
    conv.measure(threads=threads)


def depth(threads: int) -> None:
    print("\nFirst step of 2,000 dense layers of width 32 with gradients (bar: 10 s)")
    print(f"  {compile_seconds(2000):.1f} s")


def pipelines(threads: int) -> None:
    del threads
    data.report()


def trainers(threads: int) -> None:
    del threads
    from bench import trainer  # it needs Weft at once, whose import others measure

    trainer.report()


def ranks(threads: int) -> None:
    del threads
    distributed.report()


def checkpoints(threads: int) -> None:
    del threads
    checkpoint.report()


def start(threads: int) -> None:
    times = startup.imports()
    print("\nImport (bar: 1.6x numpy)")
    for module, seconds in times.items():
        print(f"  import {module:7} {seconds * 1e3:8.1f} ms")
    print(f"  ratio {times['weft'] / times['numpy']:.2f}")
    print("\nFirst step of the perceptron, graph building included (bar: 0.6 s / 0.15 s)")
    for state, seconds in startup.first_steps(threads).items():
        print(f"  {state:12} {seconds * 1e3:8.1f} ms")


WORK: dict[str, Callable[[int], None]] = {
    "softmax": softmax, "perceptron": perceptron, "eager": eager, "recording": record,
    "decoder": decoder, "products": products, "chain": chain,
    "convs": convs, "graphs": graphs, "data": pipelines, "checkpoint": checkpoints,
    "trainer": trainers,
    "start": start, "distributed": ranks, "depth": depth,
}  # fmt: skip


TOPICS: dict[str, Callable[[Sequence[str], sections.Plan], None]] = {
    "agree": sections.agreement, "loops": control_flow.loops, "first": sections.first,
    "inference": sections.inference, "roofline": sections.roofline, "cluster": cluster.report,
}  # fmt: skip


def run(name: str, plan: sections.Plan) -> None:
    """Measure one thing."""
    if name in WORK:
        WORK[name](plan.threads)
    elif name in once_table.PARTS:
        once_table.measure([name], plan)
    elif name in TOPICS:
        TOPICS[name]((), plan)
    elif name == "lstm":
        sections.lstm(plan)
    else:
        sections.training(name, plan)


def main() -> None:
    known = list(dict.fromkeys([*WORK, "lstm", *sections.NETWORKS, *TOPICS, *once_table.PARTS]))
    parser = argparse.ArgumentParser(
        prog="python -m bench", description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(known))
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=5, help="turns of each contestant")
    parser.add_argument(
        "--seconds", type=float, default=2.0, help="of a turn, where steps are long"
    )
    parser.add_argument("--only", nargs="+", default=(), metavar="PEER", help="beside these only")
    parser.add_argument(
        "--warm", action="store_true", help="use code that earlier processes compiled"
    )
    parser.add_argument(
        "--no-library", action="store_true", help="first runs without the kernel library"
    )
    given = parser.parse_args()
    plan = sections.Plan(
        given.threads, given.rounds, given.seconds, given.only, given.warm, not given.no_library
    )
    names = given.names or known
    if given.names and once_table.known().issuperset(names):
        once_table.measure(names, plan)
        return
    parts = {"loops": control_flow.NAMES, "cluster": cluster.PARTS}
    taken = [names[0], *parts[names[0]]] if names[0] in parts else known
    for name in names:
        if name not in taken:
            parser.error(f"expected {', '.join(taken)}, got {name!r}")
    if names[0] in TOPICS and given.names[1:]:
        TOPICS[names[0]](names[1:], plan)
        return
    failures: list[str] = []
    for name in names:
        try:
            run(name, plan)
        except AssertionError as error:  # the others can still be measured
            failures.append(str(error))
    if failures:
        sys.exit("\n".join(failures))


if __name__ == "__main__":
    main()
