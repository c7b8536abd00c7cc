"""Peers that are killed, stopped, or not there: an error that names the task, in time."""

import os
import signal
import socket
import subprocess
import sys
import threading
import time
from concurrent.futures import Future
from pathlib import Path

import numpy as np
import pytest
from patience import LIMIT, eventually
from server_process import ServerProcess

from weft import errors
from weft.cluster.rpc import Listener, Message, RpcOptions, connect

NAME = "/job:ps/task:1"


@pytest.fixture(params=[False, True], ids=["grpc", "shared"])
def shared(request):
    return request.param


@pytest.fixture
def server():
    with ServerProcess() as server:
        yield server


def fails(channel, what, how):
    """Run `how` while three calls wait; all of them fail in time, and name the task."""
    futures = [channel.start(Message("block")) for _ in range(2)]
    caught = []

    def call():
        try:
            channel.call(Message("block"))
        except errors.UnavailableError as error:
            caught.append(error)

    thread = threading.Thread(target=call)
    thread.start()
    eventually(lambda: channel.call(Message("blocked")).head["count"] == 3)
    how()
    for future in futures:
        with pytest.raises(errors.UnavailableError, match=what):
            future.result(LIMIT)
    thread.join(LIMIT)
    assert [str(e) for e in caught] == [str(futures[0].exception())]
    with pytest.raises(errors.UnavailableError, match=NAME):
        channel.call(Message("echo"))
    assert isinstance(channel.start(Message("echo")).exception(), errors.UnavailableError)
    assert channel.closed


def test_a_killed_server(server, shared):
    with connect(server.address, RpcOptions(shared_memory=shared), NAME) as channel:
        what = f"{NAME} at {server.address}: has "
        fails(channel, what, lambda: os.kill(server.pid, signal.SIGKILL))


def test_a_stopped_server(server, shared):
    options = RpcOptions(shared_memory=shared, patience=0.8)
    with connect(server.address, options, NAME) as channel:
        what = f"{NAME} at {server.address}: (has failed or is cut off|is stopped)"
        fails(channel, what, server.stop)


def test_a_stopped_server_that_goes_on_in_time(server, shared):
    with connect(server.address, RpcOptions(shared_memory=shared, patience=60), NAME) as channel:
        server.stop()
        future = channel.start(Message("echo", {"x": 1}))
        threading.Timer(0.6, os.kill, (server.pid, signal.SIGCONT)).start()
        assert future.result(10).head == {"x": 1}


def test_a_server_that_works_for_long_is_not_taken_for_dead(server, shared):
    def is_taken_for_dead(patience):
        options = RpcOptions(shared_memory=shared, patience=patience)
        with connect(server.address, options, NAME) as channel:
            try:
                return channel.call(Message("sleep", {"seconds": 3 * patience})).kind != "sleep"
            except errors.UnavailableError:
                return True  # as it may be if a busy machine lets it do nothing for long

    assert not all(is_taken_for_dead(patience) for patience in (0.3, 1.0, 3.0))


CLIENT = """
import sys, time
from weft.cluster.rpc import *
channel = connect(sys.argv[1], RpcOptions(shared_memory=sys.argv[2] == "True"))
futures = [channel.start(Message("block")) for _ in range(3)]
print("there", flush=True)
time.sleep(600)
"""


def test_a_killed_client_cancels_its_calls(shared):
    blocked, gone = [], threading.Event()

    def handler(message, peer):
        future = Future()
        if not blocked:
            peer.on_close(gone.set)
        blocked.append(future)
        return future

    with Listener("127.0.0.1:0", handler) as listener:
        root = str(Path(__file__).parents[3])
        command = [sys.executable, "-c", CLIENT, listener.address, str(shared)]
        client = subprocess.Popen(
            command, stdout=subprocess.PIPE, text=True, env={**os.environ, "PYTHONPATH": root}
        )
        client.stdout.readline()
        eventually(lambda: len(blocked) == 3)
        client.kill()
        assert gone.wait(LIMIT)
        eventually(lambda: all(f.cancelled() for f in blocked))
        client.wait()
        client.stdout.close()


def test_an_address_that_does_not_answer():
    begin = time.monotonic()
    with socket.socket() as nobody, pytest.raises(errors.UnavailableError) as caught:
        nobody.bind(("127.0.0.1", 0))  # it does not listen
        port = nobody.getsockname()[1]
        connect(f"127.0.0.1:{port}", RpcOptions(connect_timeout=0.5), NAME)
    assert f"{NAME} at 127.0.0.1:{port}: does not answer after 0.5 s" in str(caught.value)
    assert "onnection refused" in str(caught.value)
    assert time.monotonic() - begin > 0.4


def test_something_that_listens_but_never_answers():
    with socket.socket() as silent, pytest.raises(errors.UnavailableError) as caught:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        port = silent.getsockname()[1]
        connect(f"127.0.0.1:{port}", RpcOptions(connect_timeout=0.5), NAME)
    assert f"{NAME} at 127.0.0.1:{port}: does not answer after 0.5 s" in str(caught.value)


def test_a_stopped_server_does_not_answer(server):
    server.stop()
    with pytest.raises(errors.UnavailableError, match=r"does not answer after 0\.5 s"):
        connect(server.address, RpcOptions(connect_timeout=0.5), NAME)


def test_a_server_that_starts_late_is_waited_for():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    listeners = []

    def listen():
        time.sleep(0.4)
        listeners.append(Listener(f":{port}", lambda message, peer: message))

    thread = threading.Thread(target=listen)
    thread.start()
    try:
        with connect(f":{port}") as channel:
            assert channel.call(Message("echo")).kind == "echo"
    finally:
        thread.join()
        listeners[0].stop()


def test_a_port_in_use():
    with (
        Listener("127.0.0.1:0", lambda message, peer: message) as listener,
        pytest.raises(errors.UnavailableError, match=rf"is port {listener.port} in use"),
    ):
        Listener(listener.address, lambda message, peer: message)


def test_a_restarted_server_is_another_one(shared):
    options = RpcOptions(shared_memory=shared)
    listener = Listener("127.0.0.1:0", lambda message, peer: message, options)
    with connect(listener.address, options, NAME) as channel:
        channel.call(Message("echo"))
        listener.stop()
        with Listener(listener.address, lambda message, peer: message, options):
            with pytest.raises(errors.UnavailableError, match=NAME):
                channel.call(Message("echo"))
            with connect(listener.address, options, NAME) as again:
                assert again.call(Message("echo", {}, [np.ones(2)])).arrays[0].sum() == 2
