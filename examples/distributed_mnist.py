"""Digits with parameter servers: `python examples/distributed_mnist.py --workers 3 --sync`.

It starts a process for each parameter server and worker, on free ports, and prints the chief's test
accuracy. Each worker builds the same graph: variables on the servers, the rest on itself. Workers
update the variables whenever they have gradients; with `--sync`, the mean of all workers' gradients
makes a step, and with `--backup 1` besides, that of all but the slowest.

On several machines, start each task with `--job_name`, `--task_index`, `--ps_hosts` and
`--worker_hosts`.
"""

from __future__ import annotations

import socket
import subprocess
import sys
from argparse import Namespace
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from typing import Any

from common import options

import weft.tf1 as tf
from weft.datasets import get_mnist

BATCH = 100


def main(arguments: Sequence[str] | None = None) -> float | None:
    """Be a task, or start all; returns the test accuracy where it is known."""
    parser = options(__doc__, 200)
    parser.add_argument("--servers", type=int, default=1, help="parameter servers")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--sync", action="store_true", help="workers make each step together")
    parser.add_argument("--backup", type=int, default=0, help="gradients that a step can miss")
    parser.add_argument("--checkpoints", help="a folder, from which training goes on")
    parser.add_argument("--save_every", type=int, default=500, help="steps between checkpoints")
    parser.add_argument("--job_name", choices=("ps", "worker"), help="be one task, not all")
    parser.add_argument("--task_index", type=int, default=0)
    parser.add_argument("--ps_hosts", default="", help="host:port, separated by commas")
    parser.add_argument("--worker_hosts", default="", help="host:port, separated by commas")
    given = parser.parse_args(arguments)
    if given.job_name is None:
        return start(given, sys.argv[1:] if arguments is None else arguments)
    cluster = tf.train.ClusterSpec(
        {"ps": given.ps_hosts.split(","), "worker": given.worker_hosts.split(",")}
    )
    server = tf.train.Server(cluster, given.job_name, given.task_index)
    if given.job_name == "ps":
        server.join()
        return None
    accuracy = work(given, cluster, server.target)
    if given.task_index == 0:
        print(f"test accuracy {accuracy:.3f}", flush=True)
    return accuracy


def work(given: Namespace, cluster: tf.train.ClusterSpec, target: str) -> float:
    """A worker: build the graph, train with the others, test."""
    mnist = get_mnist(seed=given.task_index)
    place = tf.train.replica_device_setter(
        worker_device=f"/job:worker/task:{given.task_index}", cluster=cluster
    )
    is_chief = given.task_index == 0
    with tf.Graph().as_default(), tf.device(place):
        tf.set_random_seed(0)
        x, labels, loss, accuracy = network()
        step = tf.train.get_or_create_global_step()
        optimizer: Any = tf.train.AdamOptimizer(0.003)
        test = tf.train.FinalOpsHook(accuracy, {x: mnist.test.images, labels: mnist.test.labels})
        hooks: list[Any] = [tf.train.StopAtStepHook(last_step=given.steps), test]
        if given.sync:
            count = cluster.num_tasks("worker")
            optimizer = tf.train.SyncReplicasOptimizer(optimizer, count - given.backup, count)
            hooks.append(optimizer.make_session_run_hook(is_chief))
        train = optimizer.minimize(loss, global_step=step)
        alone = [f"/job:worker/task:{given.task_index}", "/job:ps"]  # who else fails is no matter
        with tf.train.MonitoredTrainingSession(
            target, is_chief, given.checkpoints, hooks=hooks, log_step_count_steps=None,
            save_checkpoint_steps=given.save_every, config=tf.ConfigProto(device_filters=alone),
        ) as session:  # fmt: skip
            while not session.should_stop():
                images, truth = mnist.train.next_batch(BATCH)
                session.run(train, {x: images, labels: truth})
        return float(test.final_ops_values)


def network() -> tuple[tf.Tensor, tf.Tensor, tf.Tensor, tf.Tensor]:
    """Images, labels, loss and accuracy of a network with a hidden layer."""
    x = tf.placeholder(tf.float32, [None, 784])
    labels = tf.placeholder(tf.float32, [None, 10])
    hidden = tf.layers.dense(x, 100, tf.nn.relu)
    scores = tf.layers.dense(hidden, 10)
    loss = tf.losses.softmax_cross_entropy(labels, scores)
    hits = tf.equal(tf.argmax(scores, 1), tf.argmax(labels, 1))
    return x, labels, loss, tf.reduce_mean(tf.cast(hits, tf.float32))


def start(given: Namespace, arguments: Sequence[str]) -> float:
    """Start a process for each task; returns the chief's accuracy."""
    ports = free_ports(given.servers + given.workers)
    hosts = [f"localhost:{port}" for port in ports]
    servers, workers = hosts[: given.servers], hosts[given.servers :]
    told = [*arguments, "--ps_hosts", ",".join(servers), "--worker_hosts", ",".join(workers)]

    def task(job: str, index: int) -> Any:
        name = ["--job_name", job, "--task_index", str(index)]
        return process([sys.executable, __file__, *told, *name])

    with ExitStack() as stack:
        for index in range(given.servers):
            stack.enter_context(task("ps", index))
        running = [stack.enter_context(task("worker", i)) for i in range(given.workers)]
        text, _ = running[0].communicate()
        codes = [worker.wait() for worker in running]
    if any(codes):
        raise SystemExit(f"expected all workers to end well, got exit codes {codes}")
    print(text, end="")
    return float(text.split("test accuracy ")[1].split()[0])


@contextmanager
def process(command: Sequence[str]) -> Iterator[subprocess.Popen[str]]:
    """A process that is ended with the block."""
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as made:
        try:
            yield made
        finally:
            made.terminate()


def free_ports(count: int) -> list[int]:
    """Ports that nothing listens on."""
    with ExitStack() as stack:
        found = [stack.enter_context(closing(socket.socket())) for _ in range(count)]
        for one in found:
            one.bind(("localhost", 0))
        return [one.getsockname()[1] for one in found]


if __name__ == "__main__":
    main()
