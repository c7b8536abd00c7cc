"""The null step on rows of a table of 16 GB, beside a table of 16 MB, in turns:
`python -m bench.cluster.large_table`.

Both tables lie on two parameter servers, processes of this machine; the large one is in sparse
files, or with `--memory` in memory. A step reads 32 rows, or adds to them, drawn among 1,000 rows
of each table: all of the small one, and any of the large one. What differs is the size alone.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from bench.cluster.null_step import free_addresses, read

SERVERS, TOUCHED, WIDTH = 2, 32, 4096
ROWS = {"small": 1_000, "large": 1_000_000}
USED = 1_000
BAR = 0.05
TURNS, STEPS = 15, 100


@contextmanager
def servers(cluster: dict[str, list[str]], folder: str) -> Iterator[list[subprocess.Popen[str]]]:
    """The processes of the parameter servers, while inside."""
    program = Path(__file__).with_name("null_step.py")
    command = [sys.executable, str(program), "serve", "--cluster", json.dumps(cluster), "--task"]
    env = {**os.environ, "WEFT_VARIABLE_FOLDER": folder}
    found = [
        subprocess.Popen(
            [*command, str(task)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=env
        )
        for task in range(SERVERS)
    ]
    try:
        for process in found:
            assert read(process) == "ready"
        yield found
    finally:
        for process in found:
            process.communicate()


def resident(processes: list[subprocess.Popen[str]]) -> int:
    """Bytes of memory that processes have, pages of files included."""
    pages = [Path(f"/proc/{p.pid}/statm").read_text(encoding="ascii").split()[1] for p in processes]
    return sum(map(int, pages)) * os.sysconf("SC_PAGE_SIZE")


def table_of(tf: Any, name: str) -> tuple[Any, dict[str, Any], list[Any]]:
    """A table's ids for each server, what the steps run, and its variables."""
    ids = tf.placeholder(tf.int32, [SERVERS, TOUCHED // SERVERS])
    variables, rows, updates = [], [], []
    for task in range(SERVERS):
        with tf.device(f"/job:ps/task:{task}"):
            shape, zeros = [ROWS[name] // SERVERS, WIDTH], tf.zeros_initializer()
            variables.append(tf.get_variable(f"{name}{task}", shape, initializer=zeros))
            rows.append(tf.gather(variables[-1], ids[task]))
        with tf.device("/job:worker/task:0"):
            g = tf.ones([TOUCHED // SERVERS, WIDTH])
        updates.append(tf.scatter_add(variables[-1], ids[task], g).op)
    with tf.device("/job:worker/task:0"):
        read = tf.add_n([tf.identity(x)[0, 0] for x in rows])
    return ids, {"read": read, "update": tf.group(*updates)}, variables


def step_of(session: Any, ids: Any, fetched: Any, used: Any) -> Callable[[], float]:
    """The seconds of a step on rows that are drawn among those that are used."""
    rng = np.random.default_rng(1)

    def step() -> float:
        drawn = rng.permutation(used)[:TOUCHED].reshape(SERVERS, -1).astype(np.int32)
        begin = time.perf_counter()
        session.run(fetched, {ids: drawn})
        return time.perf_counter() - begin

    return step


def measure(session: Any, tables: dict[str, Any], turns: int) -> None:
    """Prints a line for each kind of step."""
    rng = np.random.default_rng(0)
    used = {n: rng.choice(ROWS[n] // SERVERS, USED // SERVERS, replace=False) for n in ROWS}
    for kind in ("update", "read"):  # rows that are read have values
        steps = {n: step_of(session, t[0], t[1][kind], used[n]) for n, t in tables.items()}
        seconds: dict[str, list[float]] = {name: [] for name in steps}
        for name, step in steps.items():
            found = [step() for _ in range(3 * STEPS)]
            first = statistics.median(found[2:10]) * 1e3
            print(f"  {kind:6} {name}: {first:.3f} ms while rows are touched for the first time")
        for _ in range(turns * STEPS):
            for name, step in steps.items():
                seconds[name].append(step())
        small, large = (statistics.median(seconds[name]) * 1e3 for name in ROWS)
        print(f"  {kind:6} small {small:.3f} ms, large {large:.3f} ms, ", end="")
        print(f"{large / small - 1:+.1%} (bar: {BAR:.0%})", flush=True)


def main() -> None:
    """Prints the times of steps, and the memory of the servers."""
    import weft.tf1 as tf
    from weft.cluster import ClusterSpec, Server

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--turns", type=int, default=TURNS)
    parser.add_argument("--memory", action="store_true", help="the large table is in memory")
    given = parser.parse_args()
    addresses = free_addresses(SERVERS + 1)
    cluster = {"ps": addresses[:SERVERS], "worker": addresses[SERVERS:]}
    with (
        tempfile.TemporaryDirectory(prefix="weft-table-") as folder,
        servers(cluster, "" if given.memory else folder) as processes,
        Server(ClusterSpec(cluster), "worker", 0) as worker,
        tf.Graph().as_default(),
    ):
        tables = {name: table_of(tf, name) for name in ROWS}
        with tf.Session(worker.target) as session:
            begin, before = time.perf_counter(), resident(processes)
            session.run(tf.global_variables_initializer())
            print(f"Tables of 16 MB and 16 GB on {SERVERS} servers, {TOUCHED} rows a step")
            print(f"  initialized in {time.perf_counter() - begin:.2f} s")
            measure(session, tables, given.turns)
            more = (resident(processes) - before) / 1e6
            print(f"  memory of the servers: {more:.0f} MB more than before")


if __name__ == "__main__":
    main()
