"""Sessions over servers in other processes: results are those of one process, bit by bit."""

import signal
import threading

import numpy as np
import pytest

import weft.tf1 as tf
from weft.errors import ClosedError, CompileError, ConfigError

RNG = np.random.RandomState(0)
X = RNG.rand(50, 20).astype(np.float32)
LABELS = np.eye(10, dtype=np.float32)[RNG.randint(0, 10, 50)]


class Model:
    """A softmax regression, with its variables and its arithmetic on devices."""

    def __init__(self, variables=None, compute=None, optimizer=tf.train.AdamOptimizer):
        self.graph = tf.Graph()
        with self.graph.as_default():
            tf.set_random_seed(1)
            with tf.device(variables):
                self.step = tf.train.get_or_create_global_step()
                self.w = tf.Variable(tf.random_normal([20, 10]), name="w")
                self.b = tf.Variable(tf.zeros([10]), name="b")
            with tf.device(compute):
                self.x = tf.placeholder(tf.float32, [None, 20])
                self.labels = tf.placeholder(tf.float32, [None, 10])
                logits = tf.matmul(tf.nn.dropout(self.x, 0.9), self.w) + self.b
                self.loss = tf.reduce_mean(
                    tf.nn.softmax_cross_entropy_with_logits(labels=self.labels, logits=logits)
                )
                self.train = optimizer(0.1).minimize(self.loss, global_step=self.step)
            self.init = tf.global_variables_initializer()

    def run(self, target, steps=5):
        """Losses and variables after some steps."""
        feeds = {self.x: X, self.labels: LABELS}
        with tf.Session(target, graph=self.graph) as session:
            session.run(self.init)
            losses = [session.run([self.loss, self.train], feeds)[0] for _ in range(steps)]
            return [*losses, *session.run([self.w, self.b, self.step])]


def test_training_on_a_parameter_server_is_that_of_one_process(cluster):
    here = Model().run("")
    there = Model("/job:ps/task:0", "/job:worker/task:0").run(cluster.target("worker"))
    swapped = Model("/job:worker", "/job:ps").run(cluster.target("worker"))
    for found in (there, swapped):
        assert len(found) == len(here)
        assert all(np.array_equal(a, b) for a, b in zip(found, here, strict=True))


def test_variables_outlive_sessions_and_are_shared(cluster):
    target = cluster.target("worker")
    with tf.Graph().as_default():
        with tf.device("/job:ps"):
            v = tf.Variable([1.0, 2.0], name="kept")
        more = v.assign_add([1.0, 1.0])
        with tf.Session(target) as first:
            first.run(v.initializer)
            with tf.Session(target) as second:
                assert second.run(more).tolist() == [2, 3]
            assert first.run(v).tolist() == [2, 3]
        with pytest.raises((ClosedError, RuntimeError), match="closed"):
            first.run(v)
        with tf.Session(cluster.target("ps")) as third:  # another master
            assert third.run(v).tolist() == [2, 3]
            names = [f"/job:{job}/replica:0/task:0/device:CPU:0" for job in ("ps", "worker")]
            assert [device.name for device in third.list_devices()] == names


def test_clients_of_all_tasks_share_what_names_no_task(cluster):
    with tf.Graph().as_default():
        bare = tf.Variable([1.0, 2.0], name="bare")
        with tf.device("/cpu:0"):
            on_cpu = tf.Variable([3.0], name="on_cpu")
        queue = tf.FIFOQueue(10, tf.float32, [()], shared_name="bare_queue")
        fill, take = queue.enqueue(7.0), queue.dequeue()
        init = tf.global_variables_initializer()
        with tf.Session(cluster.target("worker")) as chief:
            chief.run([init, fill])
        with tf.Session(cluster.target("ps")) as other:
            found = other.run([bare, on_cpu, take])
            assert [np.ravel(x).tolist() for x in found] == [[1, 2], [3], [7]]


def test_sessions_of_a_cluster_are_not_isolated(cluster):
    config = tf.ConfigProto(isolate_session_state=True)
    with pytest.raises(ConfigError, match=r"isolate_session_state: .*tf\.container"):
        tf.Session(cluster.target("worker"), config=config)


def test_errors_are_those_of_one_process(cluster):
    with tf.Graph().as_default(), tf.Session(cluster.target("worker")) as session:
        with tf.device("/job:ps"):
            v = tf.Variable([1.0], name="never")
        with pytest.raises(tf.errors.FailedPreconditionError, match=r"'never'.*test_session.py"):
            session.run(v + 1.0)
        table, i = tf.constant([1.0, 2.0]), tf.placeholder(tf.int32, [])
        with tf.device("/job:ps"):
            y = tf.gather(table, i)
        assert session.run(y, {i: 1}) == 2
        with pytest.raises(tf.errors.InvalidArgumentError, match=r"7.*test_session.py"):
            session.run(y, {i: 7})
        assert session.run(y, {i: 0}) == 1  # the servers live on
        with tf.device("/job:ps/task:4"):
            z = y + 1.0
        with pytest.raises(tf.errors.InvalidArgumentError, match=r"/job:ps/task:4.*does not exist"):
            session.run(z, {i: 1})


def test_a_timeline_of_all_tasks(cluster):
    ps, worker = (f"/job:{job}/replica:0/task:0/device:CPU:0" for job in ("ps", "worker"))
    model = Model("/job:ps", "/job:worker")
    with tf.Session(cluster.target("worker"), graph=model.graph) as session:
        session.run(model.init)
        metadata = tf.RunMetadata()
        options = tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE)
        for _ in range(2):
            session.run(model.train, {model.x: X, model.labels: LABELS}, options, metadata)
    computed = [i for i in metadata.timeline.intervals if i.kind == "compute"]
    devices = [i.device for i in sorted(computed, key=lambda i: i.begin)]
    assert set(devices) == {ps, worker} and devices[-1] == ps  # the update
    events = metadata.timeline.chrome_trace()["traceEvents"]
    assert {e["args"]["name"] for e in events if e["ph"] == "M"} >= {ps, worker}
    assert {"wait", "compute", "recv"} <= {e["cat"] for e in events if e["ph"] == "X"}


def test_checkpoints_of_variables_on_servers(cluster, tmp_path):
    model = Model("/job:ps", "/job:worker")
    with model.graph.as_default():
        saver = tf.train.Saver()
        with tf.device("/job:worker"):
            apart = tf.Variable([7.0], name="apart")
        both = tf.train.Saver([model.w, apart])
    with tf.Session(cluster.target("worker"), graph=model.graph) as session:
        session.run([model.init, apart.initializer])
        path = saver.save(session, str(tmp_path / "model"))
        other = both.save(session, str(tmp_path / "both"))
        session.run(model.train, {model.x: X, model.labels: LABELS})
        after = session.run(model.w)
        tf.Session.reset(cluster.target("worker"))
    with tf.Session(cluster.target("worker"), graph=model.graph) as session:
        with pytest.raises(tf.errors.FailedPreconditionError, match="has no value"):
            saver.save(session, str(tmp_path / "none"))
        saver.restore(session, path)  # to the tasks where the graph's variables are
        both.restore(session, other)
        assert not np.array_equal(session.run(model.w), after)
        session.run(model.train, {model.x: X, model.labels: LABELS})
        assert session.run([model.step, apart])[1].tolist() == [7]


def test_no_update_of_several_clients_is_lost(cluster):
    with tf.Graph().as_default():
        with tf.device("/job:ps"):
            total = tf.Variable(tf.zeros([3]), name="of_several_clients")
        with tf.device("/job:worker"):
            change = tf.placeholder(tf.float32, [3])
            add = total.assign_add(change * 2.0)
        targets = [cluster.target("worker"), cluster.target("ps")]
        sessions = [tf.Session(target) for target in targets]
        sessions[0].run(total.initializer)

        def work(session):
            for _ in range(40):
                session.run(add.op, {change: [1.0, 2.0, 3.0]})

        threads = [threading.Thread(target=work, args=(s,)) for s in sessions for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sessions[1].run(total).tolist() == [320, 640, 960]
        for session in sessions:
            session.close()


def test_random_streams_belong_to_sessions(cluster):
    with tf.Graph().as_default(), tf.Session() as session:
        drawn = tf.random_normal([3], seed=1)
        expected = [session.run(drawn) for _ in range(2)]
    with tf.Graph().as_default():
        with tf.device("/job:worker"):
            drawn = tf.random_normal([3], seed=1)
        one, other = (tf.Session(cluster.target(job)) for job in ("worker", "ps"))
        with one, other:
            assert np.array_equal(one.run(drawn), expected[0])
            assert np.array_equal(other.run(drawn), expected[0])
            assert np.array_equal(one.run(drawn), expected[1])
        for job in ("worker", "ps"):  # where it is, and on another task
            with tf.Session(cluster.target(job)) as later:
                assert np.array_equal(later.run(drawn), expected[0])


def test_python_runs_in_the_client(cluster):
    with tf.Graph().as_default(), tf.Session(cluster.target("worker")) as session:
        seen = []
        with tf.device("/job:ps"):
            v = tf.Variable([1.0, 2.0], name="seen_by_python")
        y = tf.py_func(lambda x: (seen.append(x.tolist()), x * 2)[1], [v + 1.0], tf.float32)
        y.set_shape([2])
        session.run(v.initializer)
        assert session.run(y + 1.0).tolist() == [5, 7] and seen == [[2, 3]]


def test_results_belong_to_the_caller(cluster):
    with tf.Graph().as_default(), tf.Session(cluster.target("worker")) as session:
        with tf.device("/job:ps"):
            v = tf.Variable(tf.zeros([30_000]), name="of_the_caller")
        session.run(v.initializer)
        for value in (v, v + 0.0):
            found = session.run(value)
            found[:] = 7
            assert not session.run(value).any() and not session.run(v).any()


def test_what_becomes_of_a_run(cluster):
    with tf.Graph().as_default(), tf.Session(cluster.target("worker")) as session:
        with tf.device("/job:ps"):
            v = tf.Variable(tf.zeros([1000]), name="explained")
        total = tf.reduce_sum(v, name="total")
        with tf.device("/job:worker"):
            y = total + 1.0
        session.run(v.initializer)
        text = str(session.explain(y))
        assert "total on /job:ps/replica:0/task:0/device:CPU:0: its inputs of 4,000 bytes" in text
        with pytest.raises(CompileError, match="FULL_TRACE"):
            session.profile(y)


def test_a_step_ends_with_the_wait_of_its_client(cluster):
    """It would keep its variables from all others until it ends by itself, a minute later."""

    def interrupt(number, frame):
        raise KeyboardInterrupt

    with tf.Graph().as_default(), tf.device("/job:worker"):
        v = tf.Variable(tf.ones([64, 64]))
        body = lambda i, x: (i + 1, tf.tanh(tf.matmul(x, v)))  # noqa: E731
        last = tf.while_loop(lambda i, x: i < 10_000_000, body, [0, v])[1]
        for others in ([], [last * 2.0]):
            with tf.device("/job:ps"):
                found = [tf.reduce_sum(x) for x in others] or last
            with tf.Session(cluster.target("worker")) as session:
                session.run(v.initializer)
                before = signal.signal(signal.SIGALRM, interrupt)
                signal.setitimer(signal.ITIMER_REAL, 1.5)
                try:
                    with pytest.raises(KeyboardInterrupt):
                        session.run(found)
                finally:
                    signal.signal(signal.SIGALRM, before)
                assert session.run(tf.reduce_sum(v)) == 64 * 64
