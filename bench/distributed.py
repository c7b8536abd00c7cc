"""Several processes: all-reduce, training beside one process and PyTorch, a slow link, the start.

`python -m bench.distributed [SECTION ...] [--quick]`; all sections if none is named.
"""

from __future__ import annotations

import argparse
import json
import os
import socket
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from bench.link import Link, absence, limited_link
from bench.scaling import Network, Training, step_seconds, tables
from weft.cli.workload import workload

ROOT = Path(__file__).resolve().parent.parent
SECONDS, TURNS = 3.0, 3
MBITS = 1000
NETWORKS = {"alexnet": 8, "vgg19": 2, "resnet50": 4, "mobilenet": 4, "gnmt": 4, "ncf": 2048}
"""The six networks, and a small batch: a step's fixed work, which all ranks do, counts most.

Without `--quick` the ordinary batch is measured, too."""
OVERLAPPED = {"alexnet": (32, 8), "bert": (512, 64)}  # batch of a rank; the same with `--quick`
SHARDED_WIDTH, SHARDED_BATCH = 768, 4096  # about as long to compute as to send
ZERO_WIDTH = 2048  # 12 layers of it: 201 MB of parameters
GREATEST_SECONDS = 900.0  # of a job


def run(command: Sequence[Any], env: dict[str, str] | None = None) -> str:
    """What a command prints."""
    whole = {**os.environ, "PYTHONPATH": str(ROOT), **(env or {})}
    done = subprocess.run(
        [str(word) for word in command], env=whole, cwd=ROOT, capture_output=True, text=True,
        check=False, timeout=GREATEST_SECONDS,
    )  # fmt: skip
    if done.returncode:
        raise RuntimeError(f"{' '.join(map(str, command))} failed:\n{done.stderr[-2000:]}")
    return done.stdout


def last(text: str) -> Any:
    """The JSON of the last line."""
    return json.loads(text.strip().split("\n")[-1])


def job(
    ranks: int, threads: int, *arguments: Any, link: Link | None = None,
    env: dict[str, str] | None = None,
) -> Any:  # fmt: skip
    """What rank 0 of a job of `bench.work.ranks` prints."""
    prefix, options, more = (link.prefix, link.options, link.env) if link else ((), (), {})
    command = [*prefix, sys.executable, "-m", "weft", "launch", "-n", ranks, "--plain", *options]
    command += ["--threads", threads, "-m", "bench.work.ranks", *arguments]
    return last(run(command, {**(env or {}), **more}))


def torch_job(ranks: int, *arguments: Any) -> Any:
    """What rank 0 of a job of PyTorch on gloo prints."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    started: list[subprocess.Popen[str]] = []
    try:
        for rank in range(ranks):
            env = {
                **os.environ, "PYTHONPATH": str(ROOT), "RANK": str(rank), "WORLD_SIZE": str(ranks),
                "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "OMP_NUM_THREADS": "1",
                "GLOO_SOCKET_IFNAME": "lo",
            }  # fmt: skip
            command = [sys.executable, "-m", "bench.work.ddp_torch", *map(str, arguments)]
            started.append(
                subprocess.Popen(
                    command, env=env, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                    text=True,
                )
            )  # fmt: skip
        return last(started[0].communicate(timeout=GREATEST_SECONDS)[0])
    finally:
        for process in started:
            process.kill()
            process.wait()


def reductions(quick: bool) -> None:
    """All-reduce beside MPI's own and gloo's."""
    del quick
    print("\nAll-reduce of 2 ranks, float32, medians (bar: 1.1x of MPI's own, below gloo)")
    print(f"  {'bytes':>11} {'Weft us':>10} {'MPI us':>10} {'gloo us':>10} {'of MPI':>7}")
    gloo = torch_job(2, "reductions")
    for size, (ours, mpi) in job(2, 1, "reductions", 0).items():
        print(
            f"  {int(size):>11,} {ours * 1e6:10.1f} {mpi * 1e6:10.1f} {gloo[size] * 1e6:10.1f} "
            f"{ours / mpi:6.2f}x"
        )


def networks(quick: bool) -> None:
    """Six networks: two ranks of one thread, one process of two, PyTorch's on gloo."""
    print(
        "\nExamples/s of a step, medians of turns (bars: 0.95 of one process, 1.3x of PyTorch's "
        "DistributedDataParallel); the batch of one process is that of all ranks"
    )
    print(
        f"  {'':10} {'batch':>6} {'1 process':>10} {'2 ranks':>10} {'PyTorch':>10} {'ratio':>6} "
        f"{'ratio':>6}"
    )
    for name, small in NETWORKS.items():
        for batch in (small,) if quick else (small, workload(name).batch):
            found = _network(name, batch, 1 if quick else TURNS)
            one, two, torch = [statistics.median(each) for each in found]
            print(
                f"  {name:10} {batch:6} {one:10.1f} {two:10.1f} {torch:10.1f} {two / one:5.2f}x "
                f"{two / torch:5.2f}x",
                flush=True,
            )  # fmt: skip


def _network(name: str, batch: int, turns: int) -> list[list[float]]:
    """Examples/s of one process, of two ranks, and of PyTorch's, in turns."""
    found: list[list[float]] = [[], [], []]
    command = [sys.executable, "-m", "weft", "bench", name, "--json", "--seconds", SECONDS]
    command += ["--batch", batch]
    for _ in range(turns):
        one = last(run([*command, "--threads", 2]))
        two = last(run([*command, "--threads", 1, "--ranks", 2]))
        for rates, result in zip(found, (one, two), strict=False):
            rates.append(result["batch"] / result["step_ms"] * 1e3)
        found[2].append(torch_job(2, name, batch, SECONDS))
    return found


def link(quick: bool) -> None:
    """Overlap of communication and computation over a slow link."""
    print(f"\nA step over {MBITS} Mbit/s (bar: 1.1x of the longer of the two)")
    reason = absence()
    if reason:
        print(f"  left out: {reason}")
        return
    with limited_link(MBITS) as found:
        for name, batches in OVERLAPPED.items():
            batch = batches[quick]
            row = job(2, 1, "overlap", 2 if quick else 5, name, batch, link=found)
            longer = max(row["compute"], row["communication"])
            print(
                f"  {name:8} batch {batch:4}, {row['bytes'] / 1e6:.0f} MB: compute "
                f"{row['compute']:.2f} s, communication {row['communication']:.2f} s, together "
                f"{row['step']:.2f} s: {row['step'] / longer:.2f}x",
                flush=True,
            )  # fmt: skip
        _sharded_link(found)


def _sharded_link(over: Link) -> None:
    """`fully_shard` over a link, beside the step without one and what the wire takes."""
    width, batch = SHARDED_WIDTH, SHARDED_BATCH
    for way, gathers in {"kept": 1, "again": 2}.items():
        alone = job(2, 1, "sharded", width, way, batch)
        row = job(2, 1, "sharded", width, way, batch, link=over)
        wire = row["parameters"] / 2 * (gathers + 1) * 8 / MBITS / 1e6
        print(
            f"  fully_shard, {way:5} batch {batch}, {row['parameters'] / 1e6:.0f} MB: in shared "
            f"memory {alone['seconds']:.2f} s, the wire {wire:.2f} s, together "
            f"{row['seconds']:.2f} s: {row['seconds'] / max(alone['seconds'], wire):.2f}x",
            flush=True,
        )


def tree(quick: bool) -> None:
    """What the fixed tree of sums costs."""
    turns = 1 if quick else TURNS
    for name in ("perceptron", "convolutions"):
        print(f"\n{name}: examples/s (bars: 0.95 of one process; shards within 1.15x)")
        ways: dict[str, tuple[Any, ...]] = {
            "1 process, 2 threads": (1, 2, name, SECONDS),
            "2 ranks, 1 thread": (2, 1, name, SECONDS),
            "2 ranks, 2 shards": (2, 1, name, SECONDS, 2),
        }
        found: dict[str, list[float]] = {way: [] for way in ways}
        for _ in range(turns):
            for way, arguments in ways.items():
                found[way].append(job(*arguments))
        first = statistics.median(next(iter(found.values())))
        for way, values in found.items():
            middle = statistics.median(values)
            print(f"  {way:22} {middle:10.0f}  {middle / first:.2f}")


def zero(quick: bool) -> None:
    """Memory of a rank with divided optimizer state."""
    width = ZERO_WIDTH // 2 if quick else ZERO_WIDTH
    print("\nMemory of a rank, ZeRO 1 with Adam (bar: parameters + gradients + state / ranks, 5%)")
    for ranks in (1, 2):
        # What the C library keeps for the next step is no part of it.
        row = job(ranks, 1, "memory", width, env={"WEFT_KEEP_FREED": "0"})
        wanted = row["parameters"] * (2 + 2 / ranks)
        print(
            f"  {ranks} ranks: {row['resident'] / 1e6:.0f} MB, {row['resident'] / wanted:.3f} of "
            f"{wanted / 1e6:.0f} MB"
        )


def sharded(quick: bool) -> None:
    """Memory and time of a model whose parameters are divided."""
    width = ZERO_WIDTH // 2 if quick else ZERO_WIDTH
    print("\nfully_shard with Adam, 12 layers, beside (parameters + gradients + state) / ranks")
    for ranks in (1, 2, 4):
        row = job(ranks, 1, "sharded", width, "again", env={"WEFT_KEEP_FREED": "0"})
        wanted = row["parameters"] * 4 / ranks
        more = (row["resident"] - wanted) / 1e6
        print(f"  {ranks} ranks: {row['resident'] / 1e6:.0f} MB, {more:+.0f} of {wanted / 1e6:.0f}")
    print("\nA step of it, 2 ranks of one thread, and one process of two threads, ms")
    ways = {"one process": (1, 2, "whole"), "DistributedDataParallel": (2, 1, "ddp"),
            "fully_shard, kept": (2, 1, "kept"), "fully_shard, again": (2, 1, "again")}  # fmt: skip
    found: dict[str, list[float]] = {way: [] for way in ways}
    for _ in range(1 if quick else TURNS):
        for way, (ranks, threads, name) in ways.items():
            found[way].append(job(ranks, threads, "sharded", width // 2, name)["seconds"])
    for way, times in found.items():
        print(f"  {way:24} {statistics.median(times) * 1e3:8.1f}")


def start(quick: bool) -> None:
    """Time to the end of the first collective."""
    print("\nStart of a job to its end, one collective (bar: 4 ranks 1.5 s above one process)")
    times: dict[str, list[float]] = {}
    for _ in range(1 if quick else TURNS):
        for ranks in (0, 1, 2, 4):
            begin = time.perf_counter()
            if ranks:
                job(ranks, 1, "start", 0)
            else:
                run([sys.executable, "-m", "bench.work.ranks", "start", 0])
            title = f"{ranks} ranks" if ranks else "no launcher"
            times.setdefault(title, []).append(time.perf_counter() - begin)
    alone = statistics.median(times["no launcher"])
    for title, taken in times.items():
        middle = statistics.median(taken)
        print(f"  {title:12} {middle:6.2f} s, {middle - alone:+.2f} s")


def scaling(quick: bool) -> None:
    """The model of `bench.scaling` beside steps on 1 to 4 ranks, its constants measured first."""
    del quick
    times = {int(size): ours for size, (ours, _) in job(2, 1, "reductions", 0).items()}
    cores = len(os.sched_getaffinity(0))
    most = 16 << 20
    network = Network(times[4], times[most] / most)
    print(
        f"\nSteps with the same batch for each rank, beside the model; a message takes "
        f"{network.alpha * 1e6:.1f} us, a byte {network.beta * 1e9:.2f} ns, {cores} cores"
    )
    for name in ("perceptron", "convolutions"):
        alone = job(1, 1, "grow", SECONDS, name)
        for ranks in (1, 2, 3, 4):
            row = alone if ranks == 1 else job(ranks, 1, "grow", SECONDS, name)
            share = max(1.0, ranks / cores)  # ranks take turns where there are more than cores
            step = Training(alone["step"] * share, alone["bytes"])
            expected = step_seconds(step, replace(network, beta=network.beta * share), ranks)
            print(
                f"  {name:12} {ranks} ranks: {row['step'] * 1e3:7.2f} ms, model "
                f"{expected * 1e3:7.2f} ms: {row['step'] / expected:.2f}",
                flush=True,
            )  # fmt: skip
    tables()


SECTIONS: dict[str, Callable[[bool], None]] = {
    "reductions": reductions, "networks": networks, "link": link, "tree": tree, "zero": zero,
    "sharded": sharded, "start": start, "scaling": scaling,
}  # fmt: skip


def report(names: Sequence[str] = (), quick: bool = False) -> None:
    """Print tables; all if none is named."""
    for name in names or SECTIONS:
        SECTIONS[name](quick)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.distributed", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="SECTION", help=", ".join(SECTIONS))
    parser.add_argument("--quick", action="store_true", help="one turn, small batches")
    given = parser.parse_args()
    wrong = [name for name in given.names if name not in SECTIONS]
    if wrong:
        parser.error(f"expected {', '.join(SECTIONS)}, got {wrong[0]!r}")
    report(given.names, given.quick)


if __name__ == "__main__":
    main()
