"""A process that `tools/attack/tasks.py` starts: a parameter server, a worker, or a client.

Workers and clients train until the folder has a file `stop`, and write what they know as lines.
"""

from __future__ import annotations

import contextlib
import faulthandler
import json
import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

import weft.tf1 as tf

WIDTH = 20_000  # numbers of a variable: large enough for shared memory
faulthandler.register(signal.SIGUSR1)  # a finding tells where threads are
given = json.loads(sys.argv[1])
spec, job, index = given["spec"], given["job"], given["index"]
monitored, sync, folder = given["monitored"], given["sync"], Path(given["folder"])
workers, trainers = len(spec["worker"]), given["trainers"]
number = index if job == "worker" else workers


def say(*words: object) -> None:
    """A line at once, with the time."""
    text = " ".join([str(word) for word in (time.monotonic(), *words)])
    os.write(1, text.replace("\n", " ").encode() + b"\n")


def graph() -> tuple[Any, Any, list[Any], list[Any]]:
    """Step, fetches, counters of all trainers, and hooks."""
    worker = number if number < workers else 0
    place = tf.train.replica_device_setter(
        worker_device=f"/job:worker/task:{worker}", cluster=tf.train.ClusterSpec(spec)
    )
    hooks: list[Any] = []
    with tf.device(place):
        step = tf.train.get_or_create_global_step()
        counters = [
            tf.get_variable(f"counter{i}", [], tf.int64, tf.zeros_initializer(), trainable=False)
            for i in range(trainers)
        ]
        weights = [tf.get_variable(f"w{i}", [WIDTH], initializer=tf.zeros_initializer())
                   for i in range(2)]  # fmt: skip
        loss = tf.add_n([tf.reduce_sum(w) for w in weights])
        optimizer: Any = tf.train.GradientDescentOptimizer(1.0)
        if sync:
            optimizer = tf.train.SyncReplicasOptimizer(optimizer, trainers, trainers)
            hooks.append(optimizer.make_session_run_hook(number == 0))
        train = optimizer.minimize(loss, global_step=step)
        bump = counters[number].assign_add(1)
    return train, [bump, step, *weights], [step, *counters, *weights], hooks


def run_one(session: Any, train: Any, fetches: list[Any]) -> None:
    """A step, acknowledged."""
    bumped, step, *weights = session.run([train, *fetches])[1:]
    torn = [int(np.ptp(w) != 0) for w in weights]
    say("ack", bumped, step, *[-int(w[0]) for w in weights], *torn)


def stopped() -> bool:
    """Whether the parent asks for the end."""
    return (folder / "stop").exists()


def plain(target: str, config: Any) -> None:
    """Trains with sessions that do not recover: a new one after each error."""
    train, fetches, variables, _ = graph()
    names = tf.report_uninitialized_variables(variables)
    begin = {v.op.name.encode(): v.initializer for v in variables}
    while not stopped():
        try:
            with tf.Session(target, config=config) as session:
                while (missing := session.run(names)).size:
                    if number == 0:
                        session.run([begin[name] for name in missing])
                    time.sleep(0.05)
                say("session")
                while not stopped():
                    run_one(session, train, fetches)
        except tf.errors.OpError as error:
            say("error", type(error).__name__, error)
            time.sleep(0.05)


def recovering(target: str, config: Any) -> None:
    """Trains with a session that recovers."""
    train, fetches, _, hooks = graph()
    with tf.train.MonitoredTrainingSession(
        target, number == 0, str(folder / "checkpoints"), config=config, hooks=hooks,
        save_checkpoint_secs=None, save_checkpoint_steps=10, save_summaries_steps=None,
        save_summaries_secs=None, log_step_count_steps=None, stop_grace_period_secs=5,
    ) as session:  # fmt: skip
        say("session")
        while not (session.should_stop() or stopped()):
            run_one(session, train, fetches)


def main() -> None:
    """Runs the process until it is told to stop."""
    mine = [] if number >= workers else [f"/job:worker/task:{number}"]
    config = tf.ConfigProto(device_filters=["/job:ps", *mine] if given["filtered"] else [])
    target = f"grpc://{spec['worker'][0]}"
    server = None
    if job != "client":
        server = tf.train.Server(spec, job, index)
        target = server.target
        say("listens")
    if job == "ps":
        assert server is not None
        server.join()
        return
    with contextlib.suppress(KeyboardInterrupt):  # a step waits for others that have ended
        (recovering if monitored or sync else plain)(target, config)
    say("ended")
    while not (folder / "leave").exists():  # others may still need this server
        time.sleep(0.02)
    if server is not None:
        server.stop()


main()
