"""`weft cluster status`: tasks, variables, last steps."""

import weft.tf1 as tf
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
