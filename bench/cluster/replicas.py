"""Steps of four workers: asynchronous, synchronous, with a slow worker, with backup, with shards.

`python -m bench.cluster.replicas` starts a parameter server and four workers. What a worker
computes is a pause of `WORK` seconds, as if it had a machine of its own; one that is slow takes
three times as long. Everything else, from the gradients to the updates, is real.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import time
from typing import Any

import weft.tf1 as tf
from bench.cluster.null_step import free_addresses
from weft.cluster import Shards

WORKERS, STEPS, WORK, SLOW = 4, 40, 0.1, 3.0
MODES = {  # mode: (synchronous, gradients that a step can miss, whether one worker is slow)
    "asynchronous": (False, 0, False),
    "synchronous": (True, 0, False),
    "synchronous, one slow": (True, 0, True),
    "synchronous, one slow, one backup": (True, 1, True),
}


def serve(cluster: Any) -> None:
    """A parameter server, until standard input ends."""
    server = tf.train.Server(cluster, "ps", 0)
    sys.stdin.read()
    server.stop()


def work(cluster: Any, task: int, mode: str) -> None:
    """A worker: prints the seconds of its steps, or how long its shards took."""
    server = tf.train.Server(cluster, "worker", task)
    if mode == "shards":
        print(json.dumps(shards(server, cluster, task)), flush=True)
    else:
        print(json.dumps(steps(server, cluster, task, *MODES[mode])), flush=True)
    sys.stdin.read()
    server.stop()


def pause(task: int, slow: bool) -> None:
    """What a worker computes."""
    time.sleep(WORK * (SLOW if slow and task == WORKERS - 1 else 1.0))


def steps(
    server: Any, cluster: Any, task: int, synchronous: bool, backup: int, slow: bool
) -> dict[str, float]:
    """Trains, and gives the median seconds of a step."""
    place = tf.train.replica_device_setter(
        cluster=cluster, worker_device=f"/job:worker/task:{task}"
    )
    with tf.device(place):
        w = tf.get_variable("w", [100_000], initializer=tf.zeros_initializer())
        step = tf.train.get_or_create_global_step()
        optimizer: Any = tf.train.GradientDescentOptimizer(0.1)
        hooks: list[Any] = []
        if synchronous:
            optimizer = tf.train.SyncReplicasOptimizer(optimizer, WORKERS - backup, WORKERS)
            hooks = [optimizer.make_session_run_hook(task == 0)]
        train = optimizer.minimize(tf.reduce_sum(tf.square(w - 1.0)), global_step=step)
    last = STEPS if synchronous else STEPS * WORKERS
    hooks.append(tf.train.StopAtStepHook(last_step=last))
    times: list[float] = []
    with tf.train.MonitoredTrainingSession(
        server.target, task == 0, hooks=hooks, log_step_count_steps=None
    ) as session:
        before = time.perf_counter()
        while not session.should_stop():
            pause(task, slow)
            session.run(train)
            now = time.perf_counter()
            times.append(now - before)
            before = now
    return {"step": statistics.median(times[3:] or times)}


def shards(server: Any, cluster: Any, task: int) -> dict[str, float]:
    """Works on the shards that it is given, one step each."""
    chief = server if task == 0 else cluster["worker"][0]
    time.sleep(1.0)  # all are there
    given = Shards(STEPS * WORKERS, chief=chief)
    begin, count = time.perf_counter(), 0
    for _ in given:
        pause(task, slow=True)
        count += 1
    return {"seconds": time.perf_counter() - begin, "count": count}


def team(mode: str) -> list[dict[str, float]]:
    """What the workers of a cluster print."""
    addresses = free_addresses(1 + WORKERS)
    cluster = json.dumps({"ps": addresses[:1], "worker": addresses[1:]})
    command = [sys.executable, "-m", "bench.cluster.replicas", "--cluster", cluster]
    roles = [["--ps"], *[["--task", str(i), "--mode", mode] for i in range(WORKERS)]]
    started = [
        subprocess.Popen(
            [*command, *role], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        for role in roles
    ]
    try:
        return [json.loads(p.stdout.readline()) for p in started[1:] if p.stdout is not None]
    finally:
        for process in reversed(started):
            process.communicate("")


def main() -> None:
    """Prints the medians, and what backup and shards restore."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cluster", type=json.loads)
    parser.add_argument("--ps", action="store_true")
    parser.add_argument("--task", type=int, default=0)
    parser.add_argument("--mode")
    given = parser.parse_args()
    if given.ps:
        serve(given.cluster)
        return
    if given.mode:
        work(given.cluster, given.task, given.mode)
        return
    print(f"\nSteps of {WORKERS} workers of {WORK * 1e3:.0f} ms each; a slow one takes {SLOW:g}x")
    times = {mode: statistics.median([found["step"] for found in team(mode)]) for mode in MODES}
    for mode, seconds in times.items():
        print(f"  {mode:34} {seconds * 1e3:7.1f} ms a step")
    alone, together, _, backup = times.values()
    print(f"  synchronous / asynchronous {together / alone:.2f} (bar: 1.10)")
    print(f"  one backup worker restores {together / backup:.0%} (bar: 90%)")
    found = team("shards")
    ideal = STEPS * WORKERS * WORK / (WORKERS - 1 + 1 / SLOW)
    took = max(one["seconds"] for one in found)
    print(f"  shards given out restore {ideal / took:.0%} of all workers' speed (bar: 95%)")


if __name__ == "__main__":
    main()
