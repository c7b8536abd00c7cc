"""`weft cluster status`: tasks, variables, last steps, who waits for whom."""

import signal
import threading
import time

import pytest

import weft.tf1 as tf
from tests.cluster.processes import Cluster
from weft.cli.main import main
from weft.cluster.status import statuses


def test_the_table_of_a_cluster(cluster, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "240")
    with tf.Graph().as_default():
        with tf.device("/job:ps"):
            v = tf.Variable(tf.zeros([1000]), name="of_status")
        with tf.device("/job:worker"):
            y = tf.reduce_sum(v)
        with tf.Session(cluster.target("worker")) as session:
            session.run(v.initializer)
            session.run(y)
            assert main(["cluster", "status", cluster.spec["ps"][0]]) == 0
    lines = capsys.readouterr().out.splitlines()
    ps = next(line for line in lines if "/job:ps/replica:0/task:0" in line)
    assert "CPU:0" in ps and " s ago" in ps
    rows = {row["task"]: row for row in statuses(cluster.spec["worker"][0])}
    assert rows["/job:ps/replica:0/task:0"]["bytes"] >= 4000
    assert rows["/job:worker/replica:0/task:0"]["sessions"] == 0  # it is closed


def test_who_waits_for_whom():
    cluster = Cluster({"ps": 1, "worker": 1})
    try:
        with tf.Graph().as_default():
            with tf.device("/job:ps"):
                v = tf.Variable(0.0)
            with tf.device("/job:worker"):
                y = v + 1.0
            with tf.Session(cluster.target("worker")) as session:
                session.run(v.initializer)
                session.run(y)
                cluster.send("ps", 0, signal.SIGSTOP)
                thread = threading.Thread(target=_fails, args=(session, y))
                thread.start()
                time.sleep(0.3)
                rows = {row["task"]: row for row in statuses(cluster.spec["worker"][0])}
                thread.join()
        what, tasks, seconds = rows["/job:worker/replica:0/task:0"]["waits"][0]
        assert what.startswith("step ") and tasks == ["/job:ps/replica:0/task:0"] and seconds > 0.2
        assert "task:0" in rows["/job:ps/replica:0/task:0"]["error"]
    finally:
        cluster.stop()


def _fails(session, y):
    with pytest.raises(tf.errors.UnavailableError):
        session.run(y)
