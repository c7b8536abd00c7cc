"""Hash tables on ten servers of one process, beside TensorFlow's: `python -m bench.cluster.tables`.

After Monolith's `distributed_ps_benchmark.py`: 1,000,000 ids of 16 floats are looked up, with and
without repeated ids, then updated. TensorFlow does it three ways, of which the best counts: with
`MutableHashTable`, with `DenseHashTable` (both find rows by id, and insert what a step computes),
and with a variable a server, whose ids are counted beforehand (`embedding_lookup`, gradient
descent). `--processes` puts Weft's servers into processes of their own. `BENCH_TENSORFLOW` names
the Python that has TensorFlow, if it is not this one.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from bench.cluster.null_step import free_addresses

SERVERS, IDS, WIDTH = 10, 1_000_000, 16
BAR = 2.0
TURNS = 5
PEERS = ("dense hash", "hash", "variables")
WORK = ("lookup distinct", "lookup repeated", "update distinct", "update repeated")
Step = Callable[[], Any]


def ids_of(kind: str, counted: bool) -> Any:
    """Distinct or repeated ids; from 0 where they are counted beforehand."""
    rng = np.random.default_rng(0)
    if kind == "repeated":
        return rng.zipf(1.2, IDS) % IDS
    return rng.permutation(IDS) if counted else rng.integers(0, 1 << 60, IDS)


def weft(processes: bool) -> dict[str, Step]:
    """The steps with `HashTable`."""
    from weft.cluster import ClusterSpec, HashTable, Server
    from weft.table import SGD

    if processes:
        servers: list[Any] = [_served() for _ in range(SERVERS)]
    else:
        servers = [Server(ClusterSpec({"ps": ["127.0.0.1:0"]}), "ps", 0) for _ in range(SERVERS)]
        for server in servers:
            server.start()
    table = HashTable("ids", WIDTH, optimizer=SGD(0.1), servers=servers)
    g = gradients()
    ids = {kind: ids_of(kind, False) for kind in ("distinct", "repeated")}
    return {
        "lookup distinct": lambda: table.lookup(ids["distinct"]),
        "lookup repeated": lambda: table.lookup(ids["repeated"]),
        "update distinct": lambda: table.update(ids["distinct"], g),
        "update repeated": lambda: table.update(ids["repeated"], g),
    }


def _served() -> str:
    """The address of a server in a process of its own, which ends with this one's input to it."""
    process = subprocess.Popen(
        [sys.executable, "-m", "bench.cluster.tables", "--serve"],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert process.stdout is not None
    return process.stdout.readline().strip()


def serve() -> None:
    """A server, until standard input ends."""
    from weft.cluster import ClusterSpec, Server

    with Server(ClusterSpec({"ps": ["127.0.0.1:0"]}), "ps", 0) as server:
        print(server.target.partition("//")[2], flush=True)
        sys.stdin.read()


def gradients() -> Any:
    return np.random.default_rng(1).standard_normal((IDS, WIDTH)).astype(np.float32)


def tensorflow(kind: str) -> dict[str, Step]:
    """The steps with TensorFlow's servers and tables."""
    os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
    import tensorflow.compat.v1 as tf  # pyright: ignore[reportMissingImports]

    tf.disable_v2_behavior()
    tf.logging.set_verbosity(tf.logging.ERROR)
    *ps, worker = free_addresses(SERVERS + 1)
    spec = tf.train.ClusterSpec({"ps": ps, "worker": [worker]})
    servers = [tf.train.Server(spec, "ps", i) for i in range(SERVERS)]
    servers.append(tf.train.Server(spec, "worker", 0))
    ids = tf.placeholder(tf.int64, [None])
    g = tf.placeholder(tf.float32, [None, WIDTH])
    with tf.device("/job:worker/task:0"):
        make = _variables if kind == "variables" else _tables
        lookup, update = make(tf, kind, ids, g)
    session = tf.Session(servers[-1].target)
    session.run(tf.global_variables_initializer())
    given = {name: ids_of(name, kind == "variables") for name in ("distinct", "repeated")}
    values = gradients()
    found: dict[str, Step] = {}
    for name, x in given.items():
        found[f"update {name}"] = lambda x=x: session.run(update, {ids: x, g: values})
        found[f"lookup {name}"] = lambda x=x: session.run(lookup, {ids: x})
    for name in given:  # rows are there when they are looked up
        found[f"update {name}"]()
    return found


def _variables(tf: Any, kind: str, ids: Any, g: Any) -> tuple[Any, Any]:
    variables: list[Any] = []
    for i in range(SERVERS):
        with tf.device(f"/job:ps/task:{i}"):
            shape, zeros = [IDS // SERVERS, WIDTH], tf.zeros_initializer()
            variables.append(tf.get_variable(f"v{i}", shape, initializer=zeros))
    lookup = tf.nn.embedding_lookup(variables, ids, partition_strategy="mod")
    pairs = zip(tf.gradients(lookup, variables, g), variables, strict=True)
    return lookup, tf.train.GradientDescentOptimizer(0.1).apply_gradients(pairs)


def _tables(tf: Any, kind: str, ids: Any, g: Any) -> tuple[Any, Any]:
    owner = tf.cast(tf.math.floormod(ids, SERVERS), tf.int32)
    parts = tf.dynamic_partition(ids, owner, SERVERS)
    places = tf.dynamic_partition(tf.range(tf.size(ids)), owner, SERVERS)
    gradients_of = tf.dynamic_partition(g, owner, SERVERS)
    rows, updates, tables = [], [], tf.lookup.experimental
    for i in range(SERVERS):
        with tf.device(f"/job:ps/task:{i}"):
            types = (tf.int64, tf.float32, tf.zeros([WIDTH]))
            table = (
                tables.MutableHashTable(*types, name=f"t{i}")
                if kind == "hash"
                else tables.DenseHashTable(*types, -1, -2, name=f"t{i}")
            )
            rows.append(table.lookup(parts[i]))
            new = table.lookup(parts[i]) - 0.1 * gradients_of[i]
            updates.append(table.insert(parts[i], new))
    return tf.dynamic_stitch(places, rows), tf.group(*updates)


class Contestant:
    """A process that does steps when it is told so."""

    def __init__(self, name: str, processes: bool) -> None:
        python = sys.executable if name == "weft" else os.environ.get("BENCH_TENSORFLOW", "")
        more = ["--processes"] if processes and name == "weft" else []
        self.process = subprocess.Popen(
            [python or sys.executable, "-m", "bench.cluster.tables", "--be", name, *more],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        self.seconds: dict[str, list[float]] = {work: [] for work in WORK}

    def turn(self) -> None:
        """One of each step, after one that is not counted."""
        assert self.process.stdin is not None and self.process.stdout is not None
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        for work, seconds in json.loads(self.process.stdout.readline()).items():
            self.seconds[work].append(seconds)

    def end(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait()


def be(name: str, processes: bool) -> None:
    """A contestant: the seconds of each step, for each line of standard input."""
    steps = weft(processes) if name == "weft" else tensorflow(name)
    for _ in sys.stdin:
        print(json.dumps({work: timed(steps[work]) for work in WORK}), flush=True)


def timed(step: Step) -> float:
    step()
    begin = time.perf_counter()
    step()
    return time.perf_counter() - begin


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--be", choices=("weft", *PEERS))
    parser.add_argument("--serve", action="store_true")
    parser.add_argument("--processes", action="store_true")
    parser.add_argument("--turns", type=int, default=TURNS)
    given = parser.parse_args()
    if given.serve:
        return serve()
    if given.be:
        return be(given.be, given.processes)
    contestants = {name: Contestant(name, given.processes) for name in ("weft", *PEERS)}
    for _ in range(given.turns):
        for contestant in contestants.values():
            contestant.turn()
    for contestant in contestants.values():
        contestant.end()
    print(f"{IDS:,} ids of {WIDTH} floats on {SERVERS} servers, medians in ms (bar: {BAR}x)")
    for work in WORK:
        medians = {n: statistics.median(c.seconds[work]) for n, c in contestants.items()}
        best = min(medians[name] for name in PEERS)
        shown = "  ".join(f"{name} {seconds * 1e3:.0f}" for name, seconds in medians.items())
        print(f"  {work:16} {shown}   {best / medians['weft']:.1f}x")


if __name__ == "__main__":
    main()
