"""What a cluster refuses, in words that help; and it lives on afterwards."""

import os
import socket

import numpy as np
import pytest

import weft.tf1 as tf
from tests.cluster.processes import free_addresses
from weft.cluster.rpc import RpcOptions

LIMITS = RpcOptions(token="secret", max_message_bytes=1 << 16, connect_timeout=5)
BOTH = "/job:worker/replica:0/task:0/device:CPU:0, /job:ps/replica:0/task:0/device:CPU:0"
PS, WORKER = "/job:ps/task:0", "/job:worker/task:0"


@pytest.fixture(scope="module")
def servers():
    """A parameter server and a worker in this process, with a token and a limit of size."""
    addresses = free_addresses(2)
    spec = {"ps": addresses[:1], "worker": addresses[1:]}
    made = [tf.train.Server(spec, job, 0, options=LIMITS) for job in spec]
    yield made
    for server in made:
        server.stop()


@pytest.fixture
def refuses(servers):
    """Runs what `build` gives; it must fail with these words, and then something else works."""

    def check(error, words, build):
        with (
            tf.Graph().as_default(), tf.Session(servers[1].target) as session,
            pytest.raises(error, match=words),
        ):  # fmt: skip
            run, *feeds = build()
            session.run(tf.global_variables_initializer())
            session.run(run, *feeds)
        with tf.Graph().as_default(), tf.Session(servers[1].target) as session:
            with tf.device(PS):
                there = tf.constant(2.0) + 1.0
            assert session.run(there + 1.0) == 4

    return check


@pytest.mark.parametrize("what", ["constant", "variable", "queue"])
@pytest.mark.parametrize("device", ["/job:ps/task:7", "/job:evaluator", "/job:ps/device:GPU:0"])
def test_a_device_that_does_not_exist(refuses, what, device):
    def build():
        with tf.device(device):
            if what == "queue":
                return (tf.FIFOQueue(1, tf.float32, [[]]).size(),)
            return (tf.Variable(1.0) if what == "variable" else tf.constant(1.0) + 1.0,)

    words = f"asks for {device}, which does not exist; expected one of {BOTH}"
    refuses(tf.errors.InvalidArgumentError, words, build)


def test_colocation_that_contradicts_a_device(refuses):
    def build():
        with tf.device(PS):
            one = tf.Variable(1.0)
        with tf.device(WORKER):
            other = tf.Variable(1.0)
        with tf.colocate_with(one.op), tf.colocate_with(other.op):
            return (tf.identity(one),)

    words = f"asks for {PS}, but .* asks for {WORKER}; .* is colocated with"
    refuses(tf.errors.InvalidArgumentError, words, build)


@pytest.mark.parametrize("way", ["feed", "value", "element"])
def test_too_large_a_message(refuses, way):
    def build():
        x = tf.placeholder(tf.float32, [None])
        feeds = {x: np.ones(20_000)}
        with tf.device(PS):
            if way == "element":
                return tf.FIFOQueue(9, tf.float32).enqueue(x), feeds
            if way == "feed":
                return tf.reduce_sum(tf.tanh(x)), feeds
            large = tf.Variable(np.ones(20_000, np.float32))
            return (large.value(),)

    words = r"a message of 8\d,\d+ bytes, but max_message_bytes is 65,536; raise it in the"
    refuses(tf.errors.InvalidArgumentError, words, build)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"dtypes": [tf.int32]}, "has component types .* requested component types was"),
        ({"shapes": [[2]]}, "has component shapes .* requested component shapes was"),
        ({"capacity": 9}, "has capacity 4 but requested capacity was 9"),
    ],
)
def test_a_queue_of_another_kind_under_the_same_name(refuses, change, words):
    def build():
        same = {"capacity": 4, "dtypes": [tf.float32], "shapes": [[]], "shared_name": "one"}
        with tf.device(PS):
            first, second = tf.FIFOQueue(**same).size(), tf.FIFOQueue(**{**same, **change}).size()
        with tf.control_dependencies([first]):
            return (tf.group(second),)

    refuses(tf.errors.InvalidArgumentError, f"Shared queue 'one' {words}", build)


def test_an_empty_closed_queue(refuses):
    def build():
        with tf.device(PS):
            queue = tf.FIFOQueue(4, tf.float32, [[]], shared_name="ended")
        with tf.control_dependencies([queue.close()]):
            return (queue.dequeue(),)

    words = r"'ended' is closed and has insufficient elements \(requested 1, current size 0\)"
    refuses(tf.errors.OutOfRangeError, words, build)


@pytest.mark.parametrize(
    ("token", "version", "words"),
    [
        ("", None, "demands a token, the client has no token"),
        ("wrong", None, "demands a token, the client has another token"),
        ("secret", "0.0.1", "the client has Weft 0.0.1 .*install the same version on both"),
    ],
)
def test_strangers(servers, refuses, monkeypatch, token, version, words):
    target = servers[1].target.replace("127.0.0.1", "localhost")  # as another process
    options = tf.ConfigProto(rpc_options=RpcOptions(token=token))
    with monkeypatch.context() as patch:
        if version:
            own = b'"weft": "0.0.1", "protocol": 1, "token": "secret"'
            patch.setattr("weft.cluster.rpc.grpc_client.hello", lambda *_: b"{%s}" % own)
        with pytest.raises(tf.errors.PermissionDeniedError, match=words):
            tf.Session(target, config=options)
    with tf.Session(target, config=tf.ConfigProto(rpc_options=LIMITS)) as session:
        assert len(session.list_devices()) == 2


@pytest.mark.parametrize(
    "data", [b"GET / HTTP/1.1\r\n\r\n", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + os.urandom(9999), b""]
)
def test_garbage_on_the_port(servers, data):
    target = servers[0].target
    host, port = target.removeprefix("grpc://").split(":")
    with socket.create_connection((host, int(port))) as stranger:
        stranger.sendall(data)
    config = tf.ConfigProto(rpc_options=LIMITS)
    with tf.Session(target.replace("127.0.0.1", "localhost"), config=config) as session:
        assert len(session.list_devices()) == 2


@pytest.mark.parametrize(
    ("index", "address", "words"),
    [
        (1, "127.0.0.1:0", "job 'ps' has no task 1; its tasks are 0"),
        (-1, "127.0.0.1:0", "job 'ps' has no task -1; its tasks are 0"),
        (0, "nonsense", "expected host:port, as in 127.0.0.1:2222, got 'nonsense'"),
        (0, "localhost:99999", "expected host:port.* got 'localhost:99999'"),
    ],
)
def test_a_task_that_the_cluster_lacks(index, address, words):
    with pytest.raises(tf.errors.InvalidArgumentError, match=words):
        tf.train.Server({"ps": [address]}, "ps", index)


def test_a_target_that_is_none():
    for target in ("grpc://nonsense", "grpc://127.0.0.1:99999"):
        with pytest.raises(tf.errors.InvalidArgumentError, match="expected host:port"):
            tf.Session(target)
    config = tf.ConfigProto(rpc_options=RpcOptions(connect_timeout=0.3))
    with pytest.raises(tf.errors.UnavailableError, match=r"no\.such\.host.*after 0\.3 s"):
        tf.Session("grpc://no.such.host.invalid:2222", config=config)
