"""Tasks that die, stop or come back: errors name them within seconds, and new sessions work."""

import contextlib
import functools
import signal
import sys
import threading
import time
from concurrent.futures import Future
from types import SimpleNamespace

import numpy as np
import pytest
from patience import LIMIT, eventually

import weft.tf1 as tf
from tests.cluster.processes import Cluster, free_addresses
from weft.cluster.client import ClientSession
from weft.cluster.rpc import Message, RpcOptions, connect_patiently
from weft.cluster.status import statuses
from weft.errors import DeniedError, UnavailableError


@pytest.fixture(scope="module")
def own():
    """Two parameter servers and a worker, which tests may kill."""
    made = Cluster({"ps": 2, "worker": 1})
    yield made
    made.stop()


@pytest.fixture
def exchange():
    """A step in which all tasks take part, and its variables."""
    with tf.Graph().as_default():
        variables = []
        for task in range(2):
            with tf.device(f"/job:ps/task:{task}"):
                variables.append(tf.Variable(tf.zeros([4])))
        with tf.device("/job:worker"):
            sums = [tf.tanh(v) + 1.0 for v in reversed(variables)]
        step = tf.group(*[v.assign_add(x) for v, x in zip(variables, sums, strict=True)])
        yield step, variables, tf.global_variables_initializer()


def until_it_fails(session, step):
    """The error of the step that fails."""
    end = time.monotonic() + LIMIT
    with pytest.raises(tf.errors.OpError) as raised:
        while time.monotonic() < end:
            session.run(step)
    return raised.value


def test_values_go_from_task_to_task(own):
    def chain(first, second, worker):
        with tf.Graph().as_default() as graph:
            with tf.device(first):
                a = tf.Variable([1.0, 2.0])
            with tf.device(second):
                b = tf.Variable([3.0, 5.0])
            with tf.device(first):
                c = tf.tanh(b) + a
            with tf.device(second):
                d = tf.sin(c) * b
            with tf.device(worker):
                e = tf.tanh(d) - c
            with tf.device(first):
                f = tf.tanh(e) + d
            update = tf.group(a.assign_add(f), b.assign_sub(e))
            return graph, [c, d, e, f], update, [a, b], tf.global_variables_initializer()

    found = []
    names = ["/job:ps/task:0", "/job:ps/task:1", "/job:worker"]
    for target, devices in (("", [None] * 3), (own.target("worker"), names)):
        graph, values, update, variables, init = chain(*devices)
        with tf.Session(target, graph=graph) as session:
            session.run(init)
            steps = [session.run([*values, update])[:-1] for _ in range(3)]
            found.append([*steps, session.run(variables)])
    for here, there in zip(*found, strict=True):
        assert all(np.array_equal(x, y) for x, y in zip(here, there, strict=True)), (here, there)


def test_a_stopped_task_and_one_that_goes_on(own, exchange):
    step, variables, init = exchange
    with tf.Session(own.target("worker")) as session:
        session.run(init)
        session.run(step)
        own.send("ps", 0, signal.SIGSTOP)
        told = []
        asking = threading.Timer(0.3, lambda: told.extend(statuses(own.spec["worker"][0])))
        asking.start()
        try:
            error = until_it_fails(session, step)
            asking.join()
        finally:
            own.send("ps", 0, signal.SIGCONT)
        assert isinstance(error, tf.errors.UnavailableError)
        assert "/job:ps/replica:0/task:0" in str(error)
        rows = {row["task"]: row for row in told}
        what, tasks, waited = rows["/job:worker/replica:0/task:0"]["waits"][0]
        assert what.startswith("step ") and tasks == ["/job:ps/replica:0/task:0"] and waited > 0.2
        assert "task:0" in rows["/job:ps/replica:0/task:0"]["error"]
        assert isinstance(until_it_fails(session, step), tf.errors.AbortedError)
    with tf.Session(own.target("worker")) as session:
        session.run(step)
        assert (session.run(variables[0]) >= 2).all()  # nothing was lost


def test_a_killed_task_and_one_that_comes_back(own, exchange):
    step, variables, init = exchange
    with tf.Session(own.target("worker")) as session:
        session.run(init)
        threading.Timer(0.2, own.send, ("ps", 1, signal.SIGKILL)).start()
        error = until_it_fails(session, step)
        assert isinstance(error, tf.errors.UnavailableError)
        assert "/job:ps/replica:0/task:1" in str(error)
        own.processes["ps", 1].wait()
        own.start("ps", 1)
        own.wait()
        assert isinstance(until_it_fails(session, step), tf.errors.AbortedError)
    with tf.Session(own.target("worker")) as session:
        with pytest.raises(tf.errors.FailedPreconditionError, match="Variable_1"):
            session.run(step)
        session.run(init)
        session.run(step)
        assert session.run(variables[1]).tolist() == [1, 1, 1, 1]


def test_a_killed_master(own, exchange):
    step, variables, init = exchange
    with tf.Session(own.target("worker")) as session:
        session.run(init)
        threading.Timer(0.2, own.send, ("worker", 0, signal.SIGKILL)).start()
        error = until_it_fails(session, step)
        assert isinstance(error, tf.errors.UnavailableError)
    only = tf.ConfigProto(device_filters=["/job:ps"])
    with tf.Session(own.target("ps"), config=only) as session:  # the others live on
        assert np.isfinite(session.run(variables[0])).all()
        with pytest.raises(tf.errors.InvalidArgumentError, match=r"/job:worker.*does not exist"):
            session.run(step)


def test_an_address_that_does_not_answer(exchange, monkeypatch, caplog):
    monkeypatch.setattr(sys.modules[connect_patiently.__module__], "WARN_SECONDS", 0.1)
    target = f"grpc://{free_addresses(1)[0]}"
    config = tf.ConfigProto(rpc_options=RpcOptions(connect_timeout=0.3))
    with pytest.raises(tf.errors.UnavailableError, match=f"{target}.*0.3 s"):
        tf.Session(target, config=config)
    assert f"a session still waits for {target}" in caplog.text
    assert "Connection refused" in caplog.text
    with pytest.raises(tf.errors.InvalidArgumentError, match="target such as grpc://localhost"):
        tf.Session("localhost:2222")


def test_a_client_without_the_token():
    secret = RpcOptions(token="secret", connect_timeout=5.0)
    server = tf.train.Server({"local": ["localhost:0"]}, options=secret)
    try:
        with pytest.raises(DeniedError, match="token"):
            ClientSession(server.target)
        session = ClientSession(server.target, options=secret)
        assert list(session.devices) == ["/job:local/replica:0/task:0/device:CPU:0"]
        session.close()
    finally:
        server.stop()


def test_nothing_is_left_of_sessions_and_servers():
    before = set(threading.enumerate())
    addresses = free_addresses(2)
    cluster = {"ps": addresses[:1], "worker": addresses[1:]}
    ps, worker = (tf.train.Server(cluster, job, 0) for job in cluster)
    with tf.Graph().as_default():
        with tf.device("/job:ps"):
            v = tf.Variable(tf.zeros([5]))
        with tf.device("/job:worker"):
            noise = tf.random_normal([5])
        step = v.assign_add(noise)
        with tf.Session(worker.target) as session:
            session.run(v.initializer)
            session.run(step.op)
            registered = ps._server.worker
            assert len(registered._sessions) == 1 and not registered._parts
            (name,) = registered._sessions
    late = {"session": name, "step": f"{name}/0.99", "values": [0]}
    registered.deliver(Message("deliver", late, [np.zeros(1)]))
    registered._session(Message("register", late), None)
    assert not registered._sessions and not registered.rendezvous._boxes
    assert not registered.rendezvous._early
    assert next(iter(ps._server.worker.store.states.values())).keys() == {"Variable"}
    assert not next(iter(worker._server.worker.store.states.values())).keys()  # no counter either
    ps.stop()
    worker.stop()
    others = [t for t in threading.enumerate() if t not in before and t.name.startswith("weft-")]
    eventually(lambda: not any(t.is_alive() for t in others))
    with pytest.raises(ValueError, match="is stopped; make another one"):
        ps.start()


def test_servers_that_do_not_fit_together():
    addresses = free_addresses(3)
    quick = RpcOptions(connect_timeout=0.3)
    cluster = {"ps": addresses[:1], "worker": addresses[1:2]}
    ps = tf.train.Server({**cluster, "worker": addresses[2:]}, "ps", 0, options=quick)
    worker = tf.train.Server(cluster, "worker", 0, options=quick)
    try:
        text = rf"spec of /job:ps.*differs.*is {addresses[2]} here, {addresses[1]} there"
        with pytest.raises(tf.errors.InvalidArgumentError, match=text):
            tf.Session(worker.target)
        with pytest.raises(tf.errors.UnavailableError, match=r"worker/replica:0/task:0.*0.3 s"):
            tf.Session(ps.target)
        with pytest.raises(tf.errors.UnavailableError, match=r"cannot listen.*in use"):
            tf.train.Server(cluster, "worker", 0)
        with pytest.raises(tf.errors.InvalidArgumentError, match="'ps' has no task 3"):
            tf.train.Server(cluster, "ps", 3)
        with pytest.raises(ValueError, match="expected job_name, one of ps, worker"):
            tf.train.Server(cluster)
        with pytest.raises(ValueError, match="expected protocol='grpc'"):
            tf.train.Server(cluster, "ps", 0, protocol="grpc+verbs")
    finally:
        ps.stop()
        worker.stop()


def test_values_that_do_not_arrive(monkeypatch):
    """Two tasks cannot reach each other; the part of the sender has ended before it knows."""
    ps, worker = free_addresses(2), free_addresses(1)
    cluster = {"ps": ps, "worker": worker}
    with contextlib.ExitStack() as stack:
        tasks = [tf.train.Server(cluster, "ps", i) for i in range(2)]
        master = tf.train.Server(cluster, "worker", 0)
        for server in (*tasks, master):
            stack.callback(server.stop)
        with tf.Graph().as_default():
            with tf.device("/job:ps/task:0"):
                first = tf.exp(tf.Variable(tf.ones([4]), name="v"))
            with tf.device("/job:ps/task:1"):
                second = tf.sin(first) + tf.cos(first)
            with tf.Session(master.target) as session:
                session.run(tf.global_variables_initializer())
                session.run(second)
                lost = functools.partial(_lost, to="/job:ps/replica:0/task:1")
                links = tasks[0]._server.worker.links
                monkeypatch.setattr(links, "to", functools.partial(lost, links.to))
                limit = tf.RunOptions(timeout_in_ms=100_000)
                with pytest.raises(tf.errors.UnavailableError, match="cut off"):
                    session.run(second, options=limit)


def _lost(found, task, to):
    """A link whose messages are lost, and whose sender learns it later."""
    if task != to:
        return found(task)
    future = Future()
    threading.Timer(0.5, future.set_exception, [UnavailableError(f"{to}: cut off")]).start()
    return SimpleNamespace(channel=SimpleNamespace(start=lambda message: future))


def test_a_connection_that_ends_late():
    """A task may learn of the end of a master's old connection when there is a new one."""
    cluster = {"ps": free_addresses(1), "worker": free_addresses(1)}
    with contextlib.ExitStack() as stack:
        ps, master = (tf.train.Server(cluster, job, 0) for job in cluster)
        for server in (ps, master):
            stack.callback(server.stop)
        links = master._server.worker.links
        old = links._joined("/job:ps/replica:0/task:0", None).channel
        with tf.Graph().as_default(), tf.device("/job:ps"):
            v = tf.Variable(tf.ones([3]))
            more = v.assign_add(tf.ones([3]))
            with tf.Session(master.target) as session:
                session.run(v.initializer)
                session.run(more)
                left = threading.Event()
                worker = ps._server.worker
                close = worker.left

                def noted(owner):
                    close(owner)
                    left.set()

                worker.left = noted
                old.close()
                assert left.wait(LIMIT)
                assert session.run(more).tolist() == [3, 3, 3]
