"""Who may talk to a server, and what a server survives."""

import contextlib
import json
import os
import random
import socket
import threading
import time

import numpy as np
import pytest
from patience import eventually

from weft import errors
from weft.cluster.rpc import (
    Listener,
    Message,
    RpcOptions,
    connect,
    grpc_wire,
    session,
    waiting,
)
from weft.cluster.rpc import packet as packets
from weft.cluster.rpc.library import module
from weft.cluster.rpc.message import encode
from weft.cluster.rpc.socket_link import endpoint

grpc = module("grpc_client").grpc  # with the settings that no other import may forestall


def echo(message, peer):
    return message


def answers(listener, options=None):
    """Whether a server still answers a proper client."""
    with connect(listener.address, options) as channel:
        return channel.call(Message("echo", {"x": 1}, [np.ones(3)])).head == {"x": 1}


# -- tokens and versions


@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize(
    ("token", "what"), [("", "no token"), ("wrong", "another token"), ("sécret", "another token")]
)
def test_without_the_token(token, what, shared):
    with Listener("127.0.0.1:0", echo, RpcOptions(token="secret")) as listener:
        with pytest.raises(errors.DeniedError, match=rf"demands a token, the client has {what}"):
            connect(listener.address, RpcOptions(token=token, shared_memory=shared))
        assert answers(listener, RpcOptions(token="secret", shared_memory=shared))


@pytest.mark.parametrize(("weft", "protocol"), [("9.9.9", 1), (session.__version__, 7)])
def test_a_client_of_another_version(weft, protocol, monkeypatch):
    with Listener("127.0.0.1:0", echo) as listener:
        hello = json.loads(session.hello("", RpcOptions()))
        text = json.dumps({**hello, "weft": weft, "protocol": protocol}).encode()
        monkeypatch.setattr("weft.cluster.rpc.grpc_client.hello", lambda *_: text)
        with pytest.raises(errors.DeniedError) as caught:
            connect(listener.address)
        assert f"the client has Weft {weft} (protocol {protocol})" in str(caught.value)
        assert f"the server {session.__version__} (protocol 1)" in str(caught.value)
        monkeypatch.undo()
        assert answers(listener)


def test_a_call_without_a_session():
    called = []
    with Listener("127.0.0.1:0", lambda *got: called.append(got)) as listener:
        with grpc.insecure_channel(listener.address) as channel:
            call = channel.unary_unary(f"/{grpc_wire.SERVICE}/call")
            secret = bytes(session.SECRET_BYTES)
            request = grpc_wire.REQUEST.pack(secret, 1) + b"".join(encode(Message("echo")))
            assert b"does not know this client" in call(request)
        assert not called


def test_a_socket_without_the_secret():
    called = []
    with Listener("127.0.0.1:0", lambda *got: called.append(got)) as listener:
        for secret in (b"", b"\0" * 16, b"x" * 17, os.urandom(16)):
            with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as stranger:
                stranger.settimeout(5)
                stranger.connect(endpoint(listener._local.name))
                stranger.send(secret)
                with contextlib.suppress(ConnectionResetError):
                    assert stranger.recv(100) == b""
        assert not called


def test_a_secret_is_good_once():
    with Listener("127.0.0.1:0", echo) as listener, connect(listener.address) as channel:
        assert channel.shared
        (secret,) = listener._reception._peers
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as thief:
            thief.settimeout(5)
            thief.connect(endpoint(listener._local.name))
            thief.send(secret)
            assert thief.recv(100) == b""
        assert channel.call(Message("echo")).kind == "echo"


def test_servers_listen_on_the_loopback_address():
    with Listener(":0", echo) as listener:
        assert listener.address == f"127.0.0.1:{listener.port}"
        assert answers(listener)


@pytest.mark.parametrize("address", ["localhost", "127.0.0.1:port", "127.0.0.1:99999", "", "a:-1"])
def test_an_address_that_is_none(address):
    with pytest.raises(errors.ArgumentError, match="address: expected host:port"):
        connect(address)
    with pytest.raises(errors.ArgumentError, match="address: expected host:port"):
        Listener(address, echo)


@pytest.mark.parametrize(
    ("options", "what"),
    [
        ({"certificate": "a"}, "expected certificate and key, got only one"),
        ({"patience": 0}, "RpcOptions.patience: expected a number above 0, got 0"),
        ({"max_message_bytes": -1}, "max_message_bytes: expected a number above 0, got -1"),
        ({"connect_timeout": float("nan")}, "connect_timeout: expected a number above 0, got nan"),
        ({"verify_clients": True}, "verify_clients: needs certificate, key and authority"),
    ],
)
def test_options_that_do_not_go(options, what):
    with pytest.raises(errors.ConfigError, match=what):
        RpcOptions(**options)


# -- limits


@pytest.mark.parametrize("shared", [False, True])
def test_a_message_above_the_limit(shared):
    small = RpcOptions(max_message_bytes=100_000, shared_memory=shared)
    large = RpcOptions(shared_memory=shared)

    def double(message, peer):
        return Message("twice", {}, [np.concatenate([x, x]) for x in message.arrays])

    def feed(channel, size, call="call"):
        return getattr(channel, call)(Message("feed", {}, [np.zeros(size, np.uint8)]))

    with (
        Listener("127.0.0.1:0", double, small) as listener,
        connect(listener.address, large, "/job:ps/task:0") as channel,
    ):
        what = r"feed to /job:ps/task:0 at .*: a message of 100,\d+ bytes, but .* is 100,000"
        with pytest.raises(errors.TooLargeError, match=what):
            feed(channel, 100_001)
        with pytest.raises(errors.TooLargeError, match=what):
            feed(channel, 100_001, "start")
        assert feed(channel, 60_000).kind == "twice"
    with (
        Listener("127.0.0.1:0", double, large) as listener,
        connect(listener.address, small) as channel,
    ):
        what = r"twice to Peer.*: a message of 120,\d+ bytes, but .* is 100,000"
        with pytest.raises(errors.TooLargeError, match=what):
            feed(channel, 60_000)
        assert feed(channel, 10).kind == "twice"


def test_a_lie_about_a_size_takes_no_memory():
    with (
        Listener("127.0.0.1:0", echo, RpcOptions(max_message_bytes=1 << 20)) as listener,
        connect(listener.address, RpcOptions(shared_memory=False)) as channel,
    ):
        start = grpc_wire.REQUEST.pack(channel._secret, 99)
        for total, offset, data in [(1 << 60, 0, b"a"), (10, 9, b"ab"), (10, 1 << 63, b"a")]:
            got = channel._put(start + grpc_wire.SPAN.pack(total, offset) + data)
            assert b"!error" in got
        assert channel.call(Message("echo")).kind == "echo"


# -- garbage


def garbage(drawn):
    """What a port may get: noise, HTTP, half an HTTP/2 greeting, a scan."""
    greeting = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
    settings = bytes.fromhex("000000040000000000")
    return drawn.choice([
        b"",
        drawn.randbytes(drawn.randrange(1, 400)),
        b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + drawn.randbytes(100),
        greeting[: drawn.randrange(1, len(greeting))],
        greeting + settings + drawn.randbytes(drawn.randrange(1, 200)),
        greeting + settings + (1 << 23).to_bytes(3, "big") + b"\0\0\0\0\0\1",
    ])  # fmt: skip


def test_garbage_on_the_port():
    drawn = random.Random(5)
    with Listener("127.0.0.1:0", echo) as listener:
        slow = []
        for number in range(200):
            stranger = socket.create_connection(("127.0.0.1", listener.port), 5)
            stranger.sendall(garbage(drawn))
            if number % 10:
                stranger.close()
            else:
                slow.append(stranger)  # it stays, and says nothing more
        assert answers(listener)
        for stranger in slow:
            stranger.close()


def changed(drawn, text):
    data = bytearray(text)
    for _ in range(drawn.randrange(1, 5)):
        data[drawn.randrange(len(data))] = drawn.randrange(256)
    return bytes(data[: drawn.randrange(len(data) + 1)] if drawn.random() < 0.3 else data)


def test_hostile_messages_over_grpc():
    """500 requests of a client that has a session."""
    drawn = random.Random(6)
    text = b"".join(encode(Message("a", {"x": 1}, [np.arange(5.0), np.array([b"a"], object)])))
    with Listener("127.0.0.1:0", echo) as listener:
        with connect(listener.address, RpcOptions(shared_memory=False)) as channel:
            methods = [channel._ask, channel._put, channel._fetch, channel._cancel]
            for number in range(500):
                start = grpc_wire.REQUEST.pack(channel._secret, drawn.randrange(4))
                request = start[: drawn.randrange(25)] if number % 9 == 0 else start
                request += changed(drawn, text) if number % 2 else drawn.randbytes(20)
                try:
                    drawn.choice(methods)(request, timeout=5)
                except grpc.RpcError as error:
                    assert error.code() != grpc.StatusCode.DEADLINE_EXCEEDED
            assert channel.call(Message("echo", {"x": 1})).head == {"x": 1}
        hello = grpc.insecure_channel(listener.address)
        with hello:
            for request in (
                b"",
                b"{}",
                b"[]",
                b"\xff",
                b"x" * 100_000,
                b'{"weft": []}',
                b"[" * 9999,
            ):
                first = next(iter(hello.unary_stream(f"/{grpc_wire.SERVICE}/hello")(request)))
                assert b"!error" in first
        assert answers(listener)


def test_hostile_packets():
    """500 packets of clients that have a secret, with and without files."""
    drawn = random.Random(7)
    file = os.memfd_create("small", os.MFD_ALLOW_SEALING)
    os.ftruncate(file, 8192)
    reference = packets.REFERENCE.pack(0, 0, 9, 1, 8192, 0, 4096)
    head, kinds = b'["a", {}]', b'[["uint8", [4096]]]'
    text = packets.HEADER.pack(packets.CALL, packets.APART, 1, len(head), 1, len(kinds)) + reference
    text += head + kinds
    with Listener("127.0.0.1:0", echo) as listener:
        sent = 0
        while sent < 500:
            channel = connect(listener.address)
            raw = channel._link.socket
            try:
                for _ in range(50):
                    sent += 1
                    data = changed(drawn, text) or b"\0"
                    rights = np.array([file] * drawn.choice([0, 1, 3]), np.int32).tobytes()
                    extra = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, rights)] if rights else []
                    raw.sendmsg([data], extra)
            except OSError:
                pass  # the server has ended this connection
            channel.close()
        os.close(file)
        assert answers(listener)


def test_a_peer_cannot_take_back_memory():
    """A segment that could become shorter would end the reader with SIGBUS."""
    file = os.memfd_create("unsealed", os.MFD_ALLOW_SEALING)
    os.ftruncate(file, 8192)
    head, kinds = b'["a", {}]', b'[["uint8", [4096]]]'
    reference = packets.REFERENCE.pack(0, 0, 9, 1, 8192, 0, 4096)
    text = (
        packets.HEADER.pack(packets.CALL, packets.APART, 1, len(head), 77, len(kinds)) + reference
    )
    text += head + kinds
    with Listener("127.0.0.1:0", echo) as listener, connect(listener.address) as channel:
        channel._pending[77] = call = waiting.Call(lambda: None, channel.lead)
        rights = np.array([file], np.int32).tobytes()
        channel._link.socket.sendmsg([text], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, rights)])
        os.close(file)
        assert channel.call(Message("echo")).kind == "echo"
        with pytest.raises(errors.DataError, match="without seals"):
            call.result()


def test_nothing_is_left():
    def files():
        return len(os.listdir("/proc/self/fd"))

    def once():
        with Listener("127.0.0.1:0", echo) as listener:
            for shared in (False, True):
                with connect(listener.address, RpcOptions(shared_memory=shared)) as channel:
                    channel.call(Message("a", {}, [np.ones(100_000)]))
                    channel.start(Message("a", {}, [np.ones(100_000)])).result()

    # gRPC opens descriptors of its own as its threads need them; what leaks grows with the rounds.
    rounds, allowed = 24, 10
    for _ in range(3):
        once()
    time.sleep(0.3)
    before, memory = files(), sorted(os.listdir("/dev/shm"))
    for _ in range(rounds):
        once()
    eventually(lambda: files() <= before + allowed)
    assert sorted(os.listdir("/dev/shm")) == memory
    names = [t.name for t in threading.enumerate() if t.name.startswith("weft-rpc-")]
    assert set(names) <= {"weft-rpc-alarms"}
