"""Several processes: all-reduce beside MPI's own, training beside one process, and the start."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
SECONDS, TURNS = 3.0, 3


def job(ranks: int, threads: int, *arguments: Any) -> Any:
    """What rank 0 of a job prints."""
    command = [sys.executable, "-m", "weft", "launch", "-n", str(ranks), "--plain"]
    command += ["--threads", str(threads), "-m", "bench.work.ranks", *map(str, arguments)]
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, env=env, cwd=ROOT, capture_output=True, text=True, check=True)
    return json.loads(done.stdout.strip().split("\n")[-1])


def report(threads: int) -> None:
    """All tables."""
    print("\nAll-reduce of 2 ranks, median of turns (bar: 1.1x of MPI's own)")
    for size, (ours, mpi) in job(2, 1, "reductions", 0).items():
        print(
            f"  {int(size):>11,} bytes {ours * 1e6:10.1f} us, MPI {mpi * 1e6:10.1f} us: "
            f"{ours / mpi:5.2f}x"
        )
    for name in ("perceptron", "convolutions"):
        print(f"\n{name}: examples/s, median of {TURNS} turns (bar: 0.95 of one process)")
        ways = {
            f"1 process, {threads} threads": (1, threads, name, SECONDS),
            f"{threads} ranks, 1 thread": (threads, 1, name, SECONDS),
            f"{threads} ranks, {threads} shards": (threads, 1, name, SECONDS, threads),
        }
        found: dict[str, list[float]] = {way: [] for way in ways}
        for _ in range(TURNS):
            for way, arguments in ways.items():
                found[way].append(job(*arguments))
        first = statistics.median(next(iter(found.values())))
        for way, values in found.items():
            middle = statistics.median(values)
            print(f"  {way:22} {middle:10.0f}  {middle / first:.2f}")
    print("\nStart of a job to its end, one collective (bar: 1.5 s above one process)")
    for ranks in (1, 2, 4):
        times: list[float] = []
        for _ in range(TURNS):
            begin = time.perf_counter()
            job(ranks, 1, "start", 0)
            times.append(time.perf_counter() - begin)
        print(f"  {ranks} ranks {statistics.median(times):6.2f} s")
