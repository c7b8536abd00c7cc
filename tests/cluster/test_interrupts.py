"""Ctrl-C and SIGTERM take effect at once, whatever waits."""

import os
import signal
import subprocess
import sys

import pytest
from patience import LIMIT, eventually

import weft.tf1 as tf
from tests.cluster.processes import SERVE, Cluster
from weft.cluster.status import statuses

BLOCKED = """
import sys
import weft.tf1 as tf
with tf.device("/job:ps"):
    queue = tf.FIFOQueue(7, [tf.int64], [[]], shared_name="interrupted")
got = queue.dequeue()
with tf.Session(sys.argv[1]) as session:
    try:
        session.run(got)
    except KeyboardInterrupt:
        print("Ctrl-C", flush=True)
    session.run(queue.enqueue(5))
    print(session.run(got))
"""
# Ctrl-C may come between the making of a socket and its owner's first line: it is collected then.
pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")


@pytest.fixture(scope="module")
def own():
    made = Cluster({"ps": 1, "worker": 1})
    yield made
    made.stop()


def waits(own):
    rows = {row["task"]: row for row in statuses(own.spec["ps"][0])}
    return rows["/job:ps/replica:0/task:0"]["waits"]


@pytest.mark.slow
@pytest.mark.parametrize("job", ["ps", "worker"])
def test_a_blocked_dequeue(own, job):
    command = [sys.executable, "-c", BLOCKED, own.target(job)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as client:
        eventually(lambda: waits(own))
        client.send_signal(signal.SIGINT)
        assert client.stdout.readline() == "Ctrl-C\n"
        assert client.stdout.readline() == "5\n"  # the interrupted call did not take it
    assert client.returncode == 0
    eventually(lambda: not waits(own))


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_server_while_steps_run(own, number):
    """`join` ends; the client of steps that use it is told who has gone."""
    with tf.Graph().as_default():
        with tf.device("/job:ps"):
            v = tf.Variable(tf.zeros([50_000]))
        with tf.device("/job:worker"):
            step = v.assign_add(tf.tanh(v) + 1.0).op
        with tf.Session(own.target("worker")) as session:
            session.run(v.initializer)
            session.run(step)
            own.send("ps", 0, number)
            lost = tf.errors.UnavailableError, tf.errors.AbortedError  # in a step, between steps
            with pytest.raises(lost, match="/job:ps/replica:0/task:0"):
                while True:
                    session.run(step)
    ended = own.processes["ps", 0].wait(LIMIT)
    assert ended == (143 if number == signal.SIGTERM else -signal.SIGINT)
    own.start("ps", 0)
    own.wait()


@pytest.mark.slow
def test_a_server_that_nobody_uses():
    """Ctrl-C ends `join` as `KeyboardInterrupt`, which a program may handle."""
    end = 'print("ready", flush=True)\nserver.join()\n'
    assert SERVE.endswith(end)
    caught = "try:\n    " + end.replace("\n", "\n    ") + "pass\nexcept KeyboardInterrupt: exit(7)"
    script = SERVE.removesuffix(end) + caught
    told = '[{"a": ["127.0.0.1:0"]}, "a", 0, {}]'
    command = [sys.executable, "-c", script, told]
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=dict(os.environ)) as server:
        assert server.stdout.readline() == b"ready\n"
        server.send_signal(signal.SIGINT)
        assert server.wait(LIMIT) == 7
