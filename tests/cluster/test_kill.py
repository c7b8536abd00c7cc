"""Tasks are killed or stopped at random moments, many times."""

import random
import signal
import threading

import pytest
from patience import LIMIT

import weft.tf1 as tf
from tests.cluster.processes import Cluster

ROUNDS = 20
SERVERS = 2


def counters():
    """A step that adds 1 to a counter on each server, through the worker."""
    counts = []
    for task in range(SERVERS):
        with tf.device(f"/job:ps/task:{task}"):
            counts.append(tf.Variable(0.0, name=f"count{task}"))
    with tf.device("/job:worker"):
        ones = [tf.tanh(c) * 0.0 + 1.0 for c in counts]
    step = tf.group(*[c.assign_add(one) for c, one in zip(counts, ones, strict=True)])
    return counts, step, tf.global_variables_initializer()


@pytest.mark.slow
def test_no_acknowledged_update_is_lost():
    draw = random.Random(0)
    cluster = Cluster({"ps": SERVERS, "worker": 1})
    try:
        with tf.Graph().as_default():
            counts, step, init = counters()
            for number in range(ROUNDS):
                job, task = draw.choice([("ps", 0), ("ps", 1), ("worker", 0)])
                kill = draw.random() < 0.5
                _round(cluster, (job, task), kill, draw.random() * 0.2, (counts, step, init))
                if kill:
                    cluster.processes[job, task].wait(LIMIT)
                    cluster.start(job, task)
                    cluster.wait()
                else:
                    cluster.send(job, task, signal.SIGCONT)
                _compare(cluster, (job, task) if kill else None, counts, number)
    finally:
        assert all(code in (143, -9) for code in cluster.stop())


acknowledged = [0]


def _round(cluster, victim, kill, delay, graph):
    """Steps until the victim is killed or stopped, and what the client is told."""
    _, step, init = graph
    target = cluster.target("worker")
    with tf.Session(target) as session:
        session.run(init)
        session.run(step)
        acknowledged[0] = 1
        number = signal.SIGKILL if kill else signal.SIGSTOP
        timer = threading.Timer(delay, cluster.send, (*victim, number))
        timer.start()
        with pytest.raises((tf.errors.UnavailableError, tf.errors.AbortedError)) as raised:
            while True:
                session.run(step)
                acknowledged[0] += 1
        timer.join()
        name = target if victim[0] == "worker" else f"/job:{victim[0]}/replica:0/task:{victim[1]}"
        assert name in str(raised.value)


def _compare(cluster, lost, counts, number):
    """Each counter that is still there has all acknowledged updates, and at most one more."""
    with tf.Session(cluster.target("worker")) as session:
        for task, count in enumerate(counts):
            if lost != ("ps", task):
                value = session.run(count)
                assert acknowledged[0] <= value <= acknowledged[0] + 1, (number, task)
