"""Queues, containers and limits of time over a cluster."""

import threading
import time

import pytest
from patience import eventually

import weft.tf1 as tf
from weft.cluster.status import statuses


@pytest.fixture
def graph():
    with tf.Graph().as_default() as made:
        yield made


def waits(cluster, job):
    """What waits in the first task of a job."""
    rows = {row["task"]: row for row in statuses(cluster.spec["worker"][0])}
    return [wait[0] for wait in rows[f"/job:{job}/replica:0/task:0"]["waits"]]


def in_thread(session, fetch):
    """Runs something that waits; the list gets its result or error."""
    found = []

    def run():
        try:
            found.append(session.run(fetch))
        except tf.errors.OpError as error:
            found.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    return thread, found


def test_clients_share_queues(cluster, graph):
    with tf.device("/job:ps"):
        queue = tf.FIFOQueue(10, [tf.float32, tf.string], [[2], []], shared_name="of_two_clients")
    put = queue.enqueue([tf.constant([1.0, 2.0]), tf.constant("text")])
    got, size = queue.dequeue(), queue.size()
    with tf.Session(cluster.target("worker")) as one, tf.Session(cluster.target("ps")) as other:
        thread, found = in_thread(one, got)
        eventually(lambda: waits(cluster, "ps") == ["dequeue of of_two_clients"])
        other.run([put])
        thread.join()
        assert found[0][0].tolist() == [1, 2] and found[0][1] == b"text"
        one.run(put)
    with tf.Session(cluster.target("ps")) as later:  # it outlives its sessions
        assert later.run(size) == 1
        with pytest.raises(tf.errors.OpError, match="has type"):
            with tf.device("/job:ps"):
                wrong = tf.RandomShuffleQueue(
                    10, 0, [tf.float32], [[2]], shared_name="of_two_clients"
                )
            later.run(wrong.size())


def test_waits_end_with_their_session_or_client(cluster, graph):
    with tf.device("/job:ps"):
        queue = tf.FIFOQueue(1, [tf.float32], [[]], shared_name="for_ever")
    got = queue.dequeue()
    for end in ("close", "vanish"):
        session = tf.Session(cluster.target("worker"))
        thread, found = in_thread(session, got)
        eventually(lambda: waits(cluster, "ps") == ["dequeue of for_ever"])
        if end == "close":
            session.close()
        else:
            session._backend._session._channel.close()  # as a process that is killed
        thread.join()
        expected = tf.errors.CancelledError if end == "close" else tf.errors.UnavailableError
        assert isinstance(found[0], expected), found
        eventually(lambda: waits(cluster, "ps") == [])


def test_runs_have_limits_of_time(cluster, graph):
    with tf.device("/job:ps"):
        queue = tf.FIFOQueue(1, [tf.float32], [[]], shared_name="late")
    got = queue.dequeue() + 1.0
    options = tf.RunOptions(timeout_in_ms=200)
    config = tf.ConfigProto(operation_timeout_in_ms=200)
    late = pytest.raises(tf.errors.DeadlineExceededError, match=r"limit of 0\.2 s")
    for target in ("", cluster.target("worker")):
        fetch = got if target else tf.FIFOQueue(1, tf.float32).dequeue()
        begin = time.monotonic()
        with tf.Session(target) as session, late:
            session.run(fetch, None, options)
        with tf.Session(target, config=config) as session, late:
            session.run(fetch)
        assert time.monotonic() - begin > 0.35
    eventually(lambda: waits(cluster, "ps") == [])


@pytest.mark.parametrize("job", ["worker", "ps"])  # whether the master has the queue
def test_a_run_that_gave_up_takes_nothing_later(cluster, graph, job):
    with tf.device("/job:ps"):
        queue = tf.FIFOQueue(9, [tf.int64], [[]], shared_name=f"given_up_{job}")
    put, got, size = queue.enqueue(1), queue.dequeue(), queue.size()
    with tf.Session(cluster.target(job)) as session, tf.Session(cluster.target("ps")) as other:
        with pytest.raises(tf.errors.DeadlineExceededError):
            session.run(got, options=tf.RunOptions(timeout_in_ms=100))
        other.run(put)
        eventually(lambda: waits(cluster, "ps") == [])
        assert other.run(size) == 1


def test_containers_are_reset(cluster, graph):
    with tf.device("/job:ps"), tf.container("experiment"):
        inside = tf.Variable(1.0, name="reset_inside")
        queue = tf.FIFOQueue(9, [tf.float32], [[]], shared_name="reset_queue")
    with tf.device("/job:ps"):
        outside = tf.Variable(2.0, name="reset_outside")
    put, size = queue.enqueue(1.0), queue.size()
    target = cluster.target("worker")
    with tf.Session(target) as session:
        session.run(tf.global_variables_initializer())
        session.run(put)
        assert session.run([inside + outside, size]) == [3, 1]
        tf.Session.reset(target, ["experiment"])
        with pytest.raises(tf.errors.AbortedError, match=r"closed by Session\.reset"):
            session.run(size)  # its session is closed
    with tf.Session(target) as session:
        assert session.run([outside, size]) == [2, 0]
        with pytest.raises(tf.errors.FailedPreconditionError, match="reset_inside"):
            session.run(inside + 1.0)


def test_a_reset_ends_sessions_that_need_no_other_task(graph):
    server = tf.train.Server.create_local_server()
    v = tf.Variable(1.0, name="alone")
    with tf.Session(server.target) as session:
        session.run(v.initializer)
        assert session.run(v) == 1
        tf.Session.reset(server.target)
        with pytest.raises(tf.errors.AbortedError, match=r"closed by Session\.reset"):
            session.run(v)
    server.stop()


def test_what_a_resource_calls_is_in_its_task(cluster, graph):
    with tf.device("/job:ps"):
        names = tf.FIFOQueue(10, tf.string, [[]], name="names")
        queues = [tf.FIFOQueue(10, tf.int32, [[]], name=f"numbers{i}") for i in range(2)]
        reader = tf.TextLineReader()
    index = tf.placeholder(tf.int32, [])
    chosen = tf.QueueBase.from_list(index, queues)
    key, value = reader.read(names)
    with tf.Session(cluster.target("worker")) as session:
        session.run(names.enqueue(__file__))
        assert session.run([key, value]) == [f"{__file__}:1".encode(), b'"""Queues, containers and '
                                             b'limits of time over a cluster."""']  # fmt: skip
        session.run(queues[1].enqueue(5))
        assert session.run(chosen.dequeue() + 1, {index: 1}) == 6
    with tf.device("/job:worker"):
        tf.TextLineReader().read(names)
    refused = pytest.raises(tf.errors.InvalidArgumentError, match="expected one device for both")
    with tf.Session(cluster.target("worker")) as session, refused:
        session.run(names.size())


def test_a_wait_that_is_given_up_takes_no_element(cluster, graph):
    with tf.device("/job:worker"):  # the task of the master itself
        queue = tf.FIFOQueue(3, [tf.float32], [[]], shared_name="given_up")
    got = queue.dequeue()
    with tf.Session(cluster.target("worker")) as session:
        other = tf.Session(cluster.target("worker"))
        thread, found = in_thread(other, got)
        eventually(lambda: waits(cluster, "worker") == ["dequeue of given_up"])
        other.close()
        thread.join()
        assert isinstance(found[0], tf.errors.CancelledError)
        session.run(queue.enqueue(1.0))
        assert session.run(queue.size()) == 1
