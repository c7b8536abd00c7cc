"""10, 100 and 1,000 embedding tables, forward and row-sparse update, beside PyTorch's:
`python -m bench.cluster.embedding_bags`.

Bags of ten ids, batch 256, rows of 64 floats; tables of 10,000 rows (1,000 of 1,000 tables). The
contestants take turns in processes of their own: `EmbeddingBagCollection`, which updates in the
backward pass; Weft's `EmbeddingBag`s with an optimizer, which the compiler makes one program of;
PyTorch's with `sparse=True`.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

COUNTS = (10, 100, 1000)
OPTIMIZERS = ("SGD", "Adagrad")
CONTESTANTS = ("collection", "bags", "torch")
WIDTH, BATCH, BAG = 64, 256, 10
BAR = 3.0  # at 100 tables
TURNS, STEPS = 5, 4


def rows_of(count: int) -> int:
    return 1_000 if count >= 1_000 else 10_000


def features(count: int) -> list[Any]:
    rng = np.random.default_rng(0)
    return [rng.integers(0, rows_of(count), (BATCH, BAG)) for _ in range(count)]


def collection(count: int, optimizer: str) -> Callable[[], float]:
    """One step of a collection."""
    import weft as wf
    from weft import table

    configs = [
        wf.nn.EmbeddingBagConfig(f"t{t}", WIDTH, rows_of(count), [f"f{t}"]) for t in range(count)
    ]
    bags = wf.nn.EmbeddingBagCollection(configs, getattr(table, optimizer)(0.1))
    given = {f"f{t}": wf.tensor(x) for t, x in enumerate(features(count))}

    def step() -> float:
        loss = bags(given).values.sum()
        loss.backward()
        return float(loss)

    return step


def bags(count: int, optimizer: str, library: str) -> Callable[[], float]:
    """One step of bags and an optimizer, of Weft or PyTorch."""
    if library == "weft":
        import weft as lib
    else:
        import torch as lib
    tables = lib.nn.ModuleList(
        [lib.nn.EmbeddingBag(rows_of(count), WIDTH, mode="sum", sparse=True) for _ in range(count)]
    )
    rule = getattr(lib.optim, optimizer)(tables.parameters(), lr=0.1)
    given = [lib.tensor(x) for x in features(count)]

    def step() -> float:
        rule.zero_grad()
        sums = [table(x) for table, x in zip(tables, given, strict=True)]
        loss = lib.cat(sums, 1).sum()
        loss.backward()
        rule.step()
        return float(loss)

    return step


def be(name: str, count: int, optimizer: str) -> None:
    """A contestant: the seconds of steps, for each line of standard input."""
    warnings.simplefilter("ignore")
    if name == "collection":
        step = collection(count, optimizer)
    else:
        step = bags(count, optimizer, "torch" if name == "torch" else "weft")
    for _ in range(4):  # compiles
        step()
    for _ in sys.stdin:
        seconds: list[float] = []
        for _ in range(STEPS):
            begin = time.perf_counter()
            step()
            seconds.append(time.perf_counter() - begin)
        print(json.dumps(seconds), flush=True)


def contest(count: int, optimizer: str, turns: int) -> dict[str, float]:
    """The median seconds of each contestant."""
    command = [sys.executable, "-m", "bench.cluster.embedding_bags", "--be"]
    processes = {
        name: subprocess.Popen(
            [*command, name, str(count), optimizer],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )
        for name in CONTESTANTS
    }  # fmt: skip
    seconds: dict[str, list[float]] = {name: [] for name in CONTESTANTS}
    for _ in range(turns):
        for name, process in processes.items():
            assert process.stdin is not None and process.stdout is not None
            process.stdin.write("\n")
            process.stdin.flush()
            seconds[name] += json.loads(process.stdout.readline())
    for process in processes.values():
        assert process.stdin is not None
        process.stdin.close()
        process.wait()
    return {name: statistics.median(found) for name, found in seconds.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--be", nargs=3)
    parser.add_argument("--turns", type=int, default=TURNS)
    parser.add_argument("--counts", type=int, nargs="*", default=COUNTS)
    given = parser.parse_args()
    if given.be:
        name, count, optimizer = given.be
        return be(name, int(count), optimizer)
    print(f"Bags of {BAG} ids, batch {BATCH}, {WIDTH} floats; ms (bar: {BAR}x at 100 tables)")
    for count in given.counts:
        for optimizer in OPTIMIZERS:
            medians = contest(count, optimizer, given.turns)
            shown = "  ".join(f"{name} {s * 1e3:7.1f}" for name, s in medians.items())
            ratio = medians["torch"] / medians["collection"]
            print(f"  {count:5} tables, {optimizer:8} {shown}   {ratio:.1f}x", flush=True)


if __name__ == "__main__":
    main()
