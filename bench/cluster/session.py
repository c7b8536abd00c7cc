"""What a run through a server costs above a run of a local session, and the rate of a large fetch.

`python -m bench.cluster.session` times a training step of softmax regression, batch 100, in a local
session, through a server in the same process, and through one in another process; then the fetch
of 128 MB from that process, through shared memory and over gRPC alone.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import time
from collections.abc import Callable

import numpy as np

import weft.tf1 as tf
from weft.cluster.rpc import RpcOptions

STEPS, TURNS = 200, 15
LARGE = 32 << 20
"""Elements of the large fetch: 128 MB."""
BARS = {"server, in process": "30 us above", "server, other process": "300 us above"}


def serve() -> None:
    """A server, until standard input ends."""
    server = tf.train.Server.create_local_server()
    print(server.target, flush=True)
    sys.stdin.read()
    server.stop()


def step_of(target: str) -> Callable[[], float]:
    """Seconds of a training step in a session with this target, the median of many."""
    with tf.Graph().as_default():
        x = tf.placeholder(tf.float32, [None, 784])
        labels = tf.placeholder(tf.int64, [None])
        w, b = tf.Variable(tf.zeros([784, 10])), tf.Variable(tf.zeros([10]))
        losses = tf.nn.sparse_softmax_cross_entropy_with_logits(
            labels=labels, logits=tf.matmul(x, w) + b
        )
        train = tf.train.GradientDescentOptimizer(0.1).minimize(tf.reduce_mean(losses))
        session = tf.Session(target)
        session.run(tf.global_variables_initializer())
    random = np.random.default_rng(0)
    feeds = {x: random.normal(size=(100, 784)).astype("f"), labels: random.integers(0, 10, 100)}

    def seconds() -> float:
        times: list[float] = []
        for _ in range(STEPS):
            begin = time.perf_counter()
            session.run(train, feeds)
            times.append(time.perf_counter() - begin)
        return statistics.median(times)

    return seconds


def fetch_of(target: str, shared_memory: bool) -> Callable[[], float]:
    """Seconds to fetch a large variable."""
    config = tf.ConfigProto(rpc_options=RpcOptions(shared_memory=shared_memory))
    with tf.Graph().as_default():
        large = tf.Variable(tf.zeros([LARGE]))
        session = tf.Session(target, config=config)
        session.run(large.initializer)

    def seconds() -> float:
        begin = time.perf_counter()
        session.run(large)
        return time.perf_counter() - begin

    return seconds


def copied() -> float:
    """Seconds of a plain copy of as much memory."""
    source, target = np.ones(LARGE, np.float32), np.empty(LARGE, np.float32)
    begin = time.perf_counter()
    np.copyto(target, source)
    return time.perf_counter() - begin


def best(works: dict[str, Callable[[], float]]) -> dict[str, float]:
    """The least seconds of each, measured in turns."""
    found = {name: work() for name, work in works.items()}
    for _ in range(TURNS):
        for name, work in works.items():
            found[name] = min(found[name], work())
    return found


def main() -> None:
    """Prints the times."""
    if sys.argv[1:] == ["serve"]:
        serve()
        return
    own = tf.train.Server.create_local_server()
    other = subprocess.Popen(
        [sys.executable, "-m", "bench.cluster.session", "serve"],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert other.stdout is not None
    target = other.stdout.readline().strip()
    try:
        steps = {"local": "", "server, in process": own.target, "server, other process": target}
        times = best({name: step_of(each) for name, each in steps.items()})
        print("\nA training step of softmax regression, batch 100")
        for name, seconds in times.items():
            above = f"  {(seconds - times['local']) * 1e6:6.0f} us above" if name in BARS else ""
            print(f"  {name:22} {seconds * 1e6:7.0f} us{above}  {BARS.get(name, '')}".rstrip())
        print("\nA fetch of 128 MB from another process")
        ways = {"shared memory": True, "gRPC": False}
        rates = {name: fetch_of(target, way) for name, way in ways.items()}
        for name, seconds in best({**rates, "a plain copy": copied}).items():
            bar = "  (bar: 1 GB/s)" if name == "gRPC" else ""
            print(f"  {name:22} {4 * LARGE / seconds / 1e9:7.2f} GB/s{bar}")
    finally:
        other.communicate("")
        own.stop()


if __name__ == "__main__":
    main()
