"""Dense parameters over a link of 1 Gbit/s: the share of it that a step uses, beside TensorFlow,
in turns: `python -m bench.cluster.link`.

A parameter server and a worker are in two network namespaces that such a link joins, as on two
hosts; this takes root, `ip` and `tc`. The worker fetches 100 MB of parameters, sends 100 MB that
are added to them, or does both, as a training step does. `BENCH_TENSORFLOW` names the Python that
has TensorFlow, if it is not this one. This file is also the program of the processes.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from bench.cluster.null_step import framework, read
from bench.link import ADDRESSES, Link, absence, limited_link

MBITS, MB, PARTS = 1000, 100, 20
PORTS = {"weft": 5101, "tensorflow": 5201}
BAR = 0.9
TURNS = 7


# -- the processes


def server_of(name: str, tf: Any, job: str) -> Any:
    """The server of a task, whose values travel over the network although the host is one."""
    ports = PORTS[name], PORTS[name] + 1
    jobs = zip(("ps", "worker"), ADDRESSES, ports, strict=True)
    cluster = {job: [f"{address}:{port}"] for job, address, port in jobs}
    if name != "weft":
        return tf.train.Server(cluster, job, 0)
    from weft.cluster import RpcOptions

    return tf.train.Server(cluster, job, 0, options=RpcOptions(shared_memory=False))


def steps_of(tf: Any) -> dict[str, Any]:
    """What the kinds of steps run, and what initializes the variables."""
    elements = MB * 250_000 // PARTS
    zeros, fetched, pushes, trained = tf.zeros_initializer(), [], [], []
    for i in range(PARTS):
        with tf.device("/job:ps/task:0"):
            w = tf.get_variable(f"w{i}", [elements], initializer=zeros)
        with tf.device("/job:worker/task:0"):
            g = tf.get_variable(f"g{i}", [elements], initializer=tf.ones_initializer())
            here = tf.identity(w)
            fetched.append(here[0])
            step = here * 0.5 + g
        pushes.append(tf.assign_sub(w, g).op)
        trained.append(tf.assign_sub(w, step).op)
    with tf.device("/job:worker/task:0"):
        found = {"fetch": tf.add_n(fetched), "push": tf.group(*pushes), "both": tf.group(*trained)}
    return {**found, "init": tf.global_variables_initializer()}


def serve(name: str) -> None:
    """The parameter server, until standard input ends."""
    server = server_of(name, framework(name), "ps")
    print("ready", flush=True)
    sys.stdin.read()
    if name == "weft":
        server.stop()


def work(name: str) -> None:
    """The worker: for each line of standard input, seconds and bytes of a step of that kind."""
    tf = framework(name)
    server = server_of(name, tf, "worker")
    steps = steps_of(tf)
    with tf.Session(server.target) as session:
        session.run(steps["init"])
        print("ready", flush=True)
        for line in sys.stdin:
            before, begin = travelled(), time.perf_counter()
            session.run(steps[line.strip()])
            print(json.dumps([time.perf_counter() - begin, travelled() - before]), flush=True)
    if name == "weft":
        server.stop()


def travelled() -> int:
    """Bytes that this namespace's end of the link has received and sent."""
    lines = Path("/proc/net/dev").read_text(encoding="ascii").splitlines()[2:]
    ends = [line.split(":")[1].split() for line in lines if line.strip().startswith("wv")]
    return sum([int(end[0]) + int(end[8]) for end in ends])


# -- the contest


class Team:
    """The server and the worker of a framework, on the two sides of a link."""

    def __init__(self, name: str, link: Link) -> None:
        python = sys.executable
        if name == "tensorflow":
            python = os.environ.get("BENCH_TENSORFLOW", python)
        self.processes = [
            subprocess.Popen(
                [*side, python, "-m", "bench.cluster.link", role, "--framework", name],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            )
            for side, role in zip(link.sides, ("serve", "work"), strict=True)
        ]  # fmt: skip
        for process in self.processes:
            assert read(process) == "ready"

    def step(self, kind: str) -> tuple[float, int]:
        """The seconds of a step, and the bytes that it put on the link."""
        worker = self.processes[1]
        assert worker.stdin is not None
        worker.stdin.write(f"{kind}\n")
        worker.stdin.flush()
        seconds, count = json.loads(read(worker))
        return seconds, count

    def stop(self) -> None:
        """Ends the processes."""
        for process in reversed(self.processes):
            process.communicate()


def contest(names: list[str], turns: int) -> None:
    """Prints a line for each kind of step."""
    teams: dict[str, Team] = {}
    with limited_link(MBITS) as link:
        try:
            for name in names:
                teams[name] = Team(name, link)
            for kind, size in {"fetch": MB, "push": MB, "both": 2 * MB}.items():
                found: dict[str, list[tuple[float, int]]] = {name: [] for name in names}
                for turn in range(turns + 1):
                    for name, team in teams.items():
                        taken = team.step(kind)
                        if turn:  # the first one warms up
                            found[name].append(taken)
                show(kind, size, found)
        finally:
            for team in teams.values():
                team.stop()


def show(kind: str, size: int, found: dict[str, list[tuple[float, int]]]) -> None:
    """Prints the share of the link that each framework uses."""
    parts: list[str] = []
    for name, steps in found.items():
        seconds = statistics.median([seconds for seconds, _ in steps])
        sent = statistics.median([count for _, count in steps])
        assert sent > size * 1e6, f"{name}: {sent} bytes over the link for {size} MB"
        parts.append(f"{name} {seconds:.3f} s, {size * 8 / seconds / MBITS:.3f} of the link")
    print(f"  {kind:5} {size} MB: {'  '.join(parts)} (bar: {BAR})", flush=True)


def main() -> None:
    """The contest, or one of its processes."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("role", nargs="?", choices=("serve", "work"))
    parser.add_argument("--framework", choices=tuple(PORTS), default="weft")
    parser.add_argument("--only", nargs="+", choices=tuple(PORTS), default=list(PORTS))
    parser.add_argument("--turns", type=int, default=TURNS)
    given = parser.parse_args()
    if given.role is not None:
        (serve if given.role == "serve" else work)(given.framework)
        return
    print(f"Dense parameters over {MBITS} Mbit/s; TCP carries about 0.95 of it")
    if reason := absence():
        sys.exit(f"bench.cluster.link: it takes root, `ip` and `tc` (package iproute2): {reason}")
    contest(given.only, given.turns)


if __name__ == "__main__":
    main()
