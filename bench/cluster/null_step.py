"""The null step of TensorFlow's paper: one fetch that touches every parameter server, beside
TensorFlow's own servers, in turns: `python -m bench.cluster.null_step`.

Workers and servers are processes of this machine. A step reads a scalar from each server, or dense
parameters, or some rows of a table, and does nothing with them. `BENCH_TENSORFLOW` names the Python
that has TensorFlow, if it is not this one. This file is also the program of the processes: it
imports nothing of Weft where TensorFlow runs.
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
from collections.abc import Sequence
from typing import Any

SERVERS = 2
ROWS, WIDTH = 32, 256
KINDS = ("scalar", "sparse", "dense")
BAR = 0.5
STEPS = {"scalar": 300, "sparse": 300, "dense": 8}
TURNS = 5


def free_addresses(count: int) -> list[str]:
    """Addresses with ports that are free now."""
    sockets = [socket.socket() for _ in range(count)]
    for one in sockets:
        one.bind(("127.0.0.1", 0))
    found = [f"127.0.0.1:{one.getsockname()[1]}" for one in sockets]
    for one in sockets:
        one.close()
    return found


# -- the processes


def framework(name: str) -> Any:
    """TensorFlow 1 as this package has it, or TensorFlow's."""
    if name == "weft":
        import weft.tf1 as tf
    else:
        os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
        import tensorflow.compat.v1 as tf  # pyright: ignore[reportMissingImports]

        tf.disable_v2_behavior()
        tf.logging.set_verbosity(tf.logging.ERROR)
    return tf


def fetches(tf: Any, servers: int, worker: int, dense_mb: int, table_mb: int) -> dict[str, Any]:
    """What the kinds of steps fetch, and how its variables are initialized."""
    scalars, parts, rows = [], [], []
    ids = tf.placeholder(tf.int32, [ROWS // servers], name="ids")
    for task in range(servers):
        with tf.device(f"/job:ps/task:{task}"):
            scalars.append(tf.get_variable(f"scalar{task}", initializer=1.0))
            size = dense_mb * 250_000 // servers
            zeros = tf.zeros_initializer()
            parts.append(tf.get_variable(f"dense{task}", [size], initializer=zeros))
            height = table_mb * 1_000_000 // (4 * WIDTH * servers)
            table = tf.get_variable(f"table{task}", [height, WIDTH], initializer=zeros)
            rows.append(tf.gather(table, ids))
    with tf.device(f"/job:worker/task:{worker}"):
        # an element of what has arrived: there is no arithmetic to wait for
        found = {
            "scalar": tf.add_n([tf.identity(x) for x in scalars]),
            "dense": tf.add_n([tf.identity(x)[0] for x in parts]),
            "sparse": tf.add_n([tf.identity(x)[0, 0] for x in rows]),
        }
    return {**found, "init": tf.global_variables_initializer(), "ids": ids}


def serve(given: argparse.Namespace) -> None:
    """A parameter server, until standard input ends."""
    tf = framework(given.framework)
    server = tf.train.Server(json.loads(given.cluster), "ps", given.task)
    print("ready", flush=True)
    sys.stdin.read()
    if given.framework == "weft":
        server.stop()


def work(given: argparse.Namespace) -> None:
    """A worker: for each line of standard input, the seconds of steps of a kind."""
    tf = framework(given.framework)
    cluster = json.loads(given.cluster)
    server = tf.train.Server(cluster, "worker", given.task)
    found = fetches(tf, len(cluster["ps"]), given.task, given.dense_mb, given.table_mb)
    config = tf.ConfigProto(device_filters=["/job:ps", f"/job:worker/task:{given.task}"])
    with tf.Session(server.target, config=config) as session:
        if given.task == 0:
            session.run(found["init"])
        print("ready", flush=True)
        for line in sys.stdin:
            print(json.dumps(measured(session, found, *line.split())), flush=True)
    if given.framework == "weft":
        server.stop()


def measured(session: Any, found: dict[str, Any], kind: str, steps: str) -> list[float]:
    """The seconds of each step."""
    rows = [(17 * i + 3) * 101 for i in range(found["ids"].shape.as_list()[0])]
    feeds = {found["ids"]: rows} if kind == "sparse" else {}
    seconds: list[float] = []
    for _ in range(int(steps)):
        begin = time.perf_counter()
        session.run(found[kind], feeds)
        seconds.append(time.perf_counter() - begin)
    return seconds


# -- the contest


class Team:
    """The servers and workers of one framework."""

    def __init__(self, name: str, given: argparse.Namespace, workers: int) -> None:
        python = sys.executable
        if name == "tensorflow":
            python = os.environ.get("BENCH_TENSORFLOW", python)
        addresses = free_addresses(given.servers + workers)
        cluster = {"ps": addresses[: given.servers], "worker": addresses[given.servers :]}
        sizes = ["--dense-mb", str(given.dense_mb), "--table-mb", str(given.table_mb)]

        def start(role: str, task: int) -> subprocess.Popen[str]:
            what = [
                role,
                "--framework",
                name,
                "--cluster",
                json.dumps(cluster),
                "--task",
                str(task),
            ]
            pipe = subprocess.PIPE
            command = [python, __file__, *what, *sizes]
            return subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True)

        self.servers = [start("serve", task) for task in range(given.servers)]
        self.workers = [start("work", task) for task in range(workers)]
        for process in (*self.servers, *self.workers):
            assert read(process) == "ready"

    def step(self, kind: str, steps: int) -> float:
        """The median seconds of a step, while all workers run them."""
        for process in self.workers:
            assert process.stdin is not None
            process.stdin.write(f"{kind} {steps}\n")
            process.stdin.flush()
        return statistics.median([s for p in self.workers for s in json.loads(read(p))])

    def stop(self) -> None:
        """End the processes."""
        for process in (*self.workers, *self.servers):
            assert process.stdin is not None and process.stdout is not None
            process.stdin.close()
            try:
                process.wait(5)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            process.stdout.close()


def read(process: subprocess.Popen[str]) -> str:
    """The next line of a process."""
    assert process.stdout is not None
    line = process.stdout.readline().strip()
    if not line:
        raise RuntimeError(f"a process of the benchmark has ended: {process.args!r:.200}")
    return line


def contest(given: argparse.Namespace, workers: int) -> dict[tuple[str, str], float]:
    """Median seconds by framework and kind: the medians of turns."""
    teams = {name: Team(name, given, workers) for name in given.only or ("weft", "tensorflow")}
    found: dict[tuple[str, str], list[float]] = {}
    try:
        for kind in given.kinds:
            for turn in range(given.turns + 1):
                for name, team in teams.items():
                    seconds = team.step(kind, STEPS[kind] if turn else max(3, STEPS[kind] // 3))
                    if turn:  # the first one warms up
                        found.setdefault((name, kind), []).append(seconds)
    finally:
        for team in teams.values():
            team.stop()
    return {key: statistics.median(times) for key, times in found.items()}


def show(workers: int, kinds: Sequence[str], found: dict[tuple[str, str], float]) -> None:
    """Prints a line a kind."""
    for kind in kinds:
        mine, theirs = found.get(("weft", kind)), found.get(("tensorflow", kind))
        parts = [f"{workers} worker{'s' * (workers > 1)}, {kind:6}"]
        if mine is not None:
            parts.append(f"weft {mine * 1e3:8.3f} ms")
        if theirs is not None:
            parts.append(f"tensorflow {theirs * 1e3:8.3f} ms")
        if mine is not None and theirs is not None:
            parts.append(f"ratio {mine / theirs:.2f} (bar: {BAR})")
        print("  ".join(parts), flush=True)


def main(arguments: Sequence[str] | None = None) -> None:
    """The contest, or one of its processes."""
    parser = argparse.ArgumentParser(description="The null step, beside TensorFlow.")
    parser.add_argument("role", nargs="?", choices=("serve", "work"))
    parser.add_argument("--framework", choices=("weft", "tensorflow"), default="weft")
    parser.add_argument("--cluster")
    parser.add_argument("--task", type=int, default=0)
    parser.add_argument("--servers", type=int, default=SERVERS)
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2, 4])
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=KINDS)
    parser.add_argument("--dense-mb", type=int, default=100)
    parser.add_argument("--table-mb", type=int, default=1000)
    parser.add_argument("--turns", type=int, default=TURNS)
    parser.add_argument("--only", nargs="+", choices=("weft", "tensorflow"))
    given = parser.parse_args(arguments)
    if given.role is not None:
        (serve if given.role == "serve" else work)(given)
        return
    for workers in given.workers:
        show(workers, given.kinds, contest(given, workers))


if __name__ == "__main__":
    main()
