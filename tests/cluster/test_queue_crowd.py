"""Many clients of one queue: nothing is lost, nothing comes twice."""

import json
import os
import signal
import subprocess
import sys

import pytest
from patience import eventually

import weft.tf1 as tf
from tests.cluster.processes import Cluster
from weft.cluster.status import statuses

CROWD = """
import json, sys, threading
import weft.tf1 as tf
target, number, each, method = json.loads(sys.argv[1])
with tf.Graph().as_default() as graph:
    with tf.device("/job:ps"):
        make = {"fifo": tf.FIFOQueue, "shuffle": lambda n, *a, **k: tf.RandomShuffleQueue(n, 0, *a, **k)}
        queue = make[method](7, [tf.int64], [[]], shared_name="crowd")
        done = tf.FIFOQueue(-1, [tf.int64], [[]], shared_name="done")
    x, xs = tf.placeholder(tf.int64, []), tf.placeholder(tf.int64, [None])
    put, put_many, got, got_some = queue.enqueue(x), queue.enqueue_many([xs]), queue.dequeue(), queue.dequeue_up_to(3)
    told = done.enqueue_many([xs])
found, failed = [[] for _ in range(4)], []
def work(which):
    try:
        if which < 2:
            mine = range((4 * number + which) * each, (4 * number + which + 1) * each)
            for i in mine if which else ():
                session.run(put, {x: i})
            for i in range(0, each, 5) if not which else ():
                session.run(put_many, {xs: mine[i:i + 5]})
            return
        fetch = got if which == 2 else got_some
        options = tf.RunOptions(timeout_in_ms=20)
        while True:
            try:
                value = session.run(fetch, options=options) if number % 2 else session.run(fetch)
                found[which] += value.ravel().tolist()
            except tf.errors.DeadlineExceededError:
                pass
    except tf.errors.OutOfRangeError:
        pass
    except BaseException as error:
        failed.append(repr(error))
        raise
with tf.Session(target, graph=graph) as session:
    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for t in threads: t.start()
    for t in threads[:2]: t.join()
    print("put", flush=True)
    for t in threads[2:]: t.join()
print(json.dumps([failed, sum(found, [])]), flush=True)
"""  # noqa: E501
BLOCKED = """
import sys
import weft.tf1 as tf
with tf.device("/job:ps"):
    queue = tf.FIFOQueue(7, [tf.int64], [[]], shared_name="crowd")
got = queue.dequeue_many(3)
tf.Session(sys.argv[1]).run(got)
"""


@pytest.fixture(scope="module")
def own():
    made = Cluster({"ps": 1, "worker": 1})
    yield made
    assert made.stop() == [143, 143]


@pytest.fixture
def start():
    """Starts a client in a process of its own."""
    made = []

    def begin(script, argument):
        command = [sys.executable, "-c", script, argument]
        environment = {**os.environ, "WEFT_THREADS": "1"}
        made.append(subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment))
        return made[-1]

    yield begin
    for process in made:
        process.kill()
        process.wait()
        process.stdout.close()


def waiting(own):
    """The calls that wait at the parameter server."""
    rows = {row["task"]: row for row in statuses(own.spec["ps"][0])}
    return len(rows["/job:ps/replica:0/task:0"]["waits"])


def crowd(own, start, method, each):
    """Four processes with four threads each, half of which give what the other half takes."""
    with tf.Graph().as_default(), tf.device("/job:ps"):
        queue = tf.FIFOQueue(7, [tf.int64], [[]], shared_name="crowd")
        if method == "shuffle":
            queue = tf.RandomShuffleQueue(7, 0, [tf.int64], [[]], shared_name="crowd")
        close, size = queue.close(), queue.size()
        with tf.Session(own.target("ps")) as session:
            blocked = []
            if method == "fifo":  # these die while they wait, and take nothing
                blocked = [start(BLOCKED, own.target(job)) for job in ("ps", "worker")]
                eventually(lambda: waiting(own) == 2)
                for process in blocked:
                    process.send_signal(signal.SIGKILL)
            jobs = ["ps", "worker"] * 2
            clients = [
                start(CROWD, json.dumps([own.target(job), i, each, method]))
                for i, job in enumerate(jobs)
            ]
            for client in clients:
                assert client.stdout.readline() == "put\n"
            session.run(close)
            found = [json.loads(client.stdout.readline()) for client in clients]
            assert session.run(size) == 0
            tf.Session.reset(own.target("ps"))
    assert [failed for failed, _ in found] == [[]] * 4
    taken = sorted([value for _, values in found for value in values])
    given = [(4 * i + which) * each + n for i in range(4) for which in (0, 1) for n in range(each)]
    assert taken == sorted(given)
    assert waiting(own) == 0


@pytest.mark.slow
@pytest.mark.parametrize("method", ["fifo", "shuffle"])
def test_sixteen_threads_of_four_processes(own, start, method):
    crowd(own, start, method, 500)
