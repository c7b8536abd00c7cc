"""Calls between a client and a server: answers, errors, cancellation, limits."""

import threading
from concurrent.futures import Future, as_completed, wait

import numpy as np
import pytest
from patience import LIMIT, eventually

from weft import errors
from weft.cluster.rpc import Listener, Message, RpcOptions, connect

PATHS = {"grpc": RpcOptions(shared_memory=False), "shared": RpcOptions()}


class Echo:
    """A handler: answers with what it got; `block` answers when `release` is called."""

    def __init__(self):
        self.blocked = []
        self.peers = []

    def __call__(self, message, peer):
        self.peers.append(peer)
        if message.kind == "block":
            self.blocked.append(Future())
            return self.blocked[-1]
        if message.kind == "fail":
            raise getattr(errors, message.head["class"])(message.head["text"])
        return Message(message.kind, message.head, message.arrays)

    def wait_for(self, count):
        eventually(lambda: len(self.blocked) >= count)
        assert len(self.blocked) == count


@pytest.fixture(params=PATHS)
def options(request):
    return PATHS[request.param]


@pytest.fixture
def echo():
    return Echo()


@pytest.fixture
def listener(echo, options):
    with Listener("127.0.0.1:0", echo, options) as listener:
        yield listener


@pytest.fixture
def channel(listener, options):
    with connect(listener.address, options, name="/job:ps/task:1") as channel:
        yield channel


def test_an_answer(channel):
    answer = channel.call(Message("add", {"x": [1, "a", None]}, [np.arange(3.0)]))
    assert answer.kind == "add"
    assert answer.head == {"x": [1, "a", None]}
    np.testing.assert_array_equal(answer.arrays[0], np.arange(3.0))


def test_a_large_message_arrives_whole(channel):
    x = np.random.default_rng(0).integers(0, 255, 9_000_001).astype(np.uint8)
    y = channel.start(Message("echo", {}, [x[::-1], x[:3]])).result(10).arrays
    np.testing.assert_array_equal(y[0], x[::-1])
    np.testing.assert_array_equal(y[1], x[:3])


def test_an_error_is_raised_as_its_class(channel):
    with pytest.raises(errors.UninitializedError, match="variable w") as caught:
        channel.call(Message("fail", {"class": "UninitializedError", "text": "variable w"}))
    assert caught.value.__notes__ == [f"raised by /job:ps/task:1 at {channel.address}"]


def test_a_late_answer(channel, echo):
    answers = [channel.start(Message("block")) for _ in range(3)]
    echo.wait_for(3)
    assert not any(a.done() for a in answers)
    for number, future in enumerate(echo.blocked):
        future.set_result(Message("late", {"number": number}))
    assert sorted(a.result(LIMIT).head["number"] for a in answers) == [0, 1, 2]


def test_a_deadline_cancels_the_call(channel, echo):
    for ask in (channel.call, lambda *args, **by: channel.start(*args, **by).result(LIMIT)):
        echo.blocked.clear()
        while not echo.blocked:  # a busy machine may begin no call in time
            with pytest.raises(
                errors.DeadlineError, match=r"block to /job:ps/task:1 .* after 0.1 s"
            ):
                ask(Message("block"), timeout=0.1)
        eventually(echo.blocked[0].cancelled)


def test_cancelling_a_call_reaches_the_handler(channel, echo):
    answer = channel.start(Message("block"))
    echo.wait_for(1)
    assert answer.cancel()
    eventually(echo.blocked[0].cancelled)


def test_a_client_that_leaves_cancels_its_calls(channel, echo):
    answer = channel.start(Message("block"))
    echo.wait_for(1)
    gone = threading.Event()
    echo.peers[0].on_close(gone.set)
    channel.close()
    with pytest.raises(errors.UnavailableError, match="the channel is closed"):
        answer.result(LIMIT)
    eventually(echo.blocked[0].cancelled)
    assert gone.wait(LIMIT)


def test_a_server_that_ends_fails_the_calls(channel, echo, listener):
    answer = channel.start(Message("block"))
    echo.wait_for(1)
    listener.stop()
    with pytest.raises(errors.UnavailableError, match="/job:ps/task:1 at 127"):
        answer.result(3)
    with pytest.raises(errors.UnavailableError, match="/job:ps/task:1 at 127"):
        channel.call(Message("echo"))
    assert channel.closed


def test_arrays_are_aligned(channel, echo):
    """Native code reads them as they are."""
    early = channel.call(Message("echo", {"a": 1}, [np.ones(3, np.int8), np.ones(5)]))
    late = channel.start(Message("block"))
    echo.wait_for(1)
    echo.blocked[0].set_result(Message("late", {}, [np.ones(3, np.int8), np.ones(70_000)]))
    for message in (early, late.result(LIMIT)):
        assert [x.ctypes.data % 16 for x in message.arrays] == [0, 0]


def test_whoever_asks_whether_it_is_closed_disturbs_nobody(channel):
    """Asking while another thread waits with a deadline."""
    stop, faults = threading.Event(), []

    def ask():
        while not stop.is_set():
            try:
                assert not channel.closed
            except BaseException as error:
                faults.append(error)
                return

    threads = [threading.Thread(target=ask) for _ in range(2)]
    for thread in threads:
        thread.start()
    for _ in range(3):
        with pytest.raises(errors.DeadlineError):
            channel.call(Message("block"), timeout=0.05)
    stop.set()
    for thread in threads:
        thread.join()
    assert not faults


def test_an_idle_channel_knows_that_its_server_has_ended(channel, listener):
    assert not channel.closed
    listener.stop()
    eventually(lambda: channel.closed)


def test_several_threads_wait_for_one_answer(channel, echo):
    future = channel.start(Message("block"))
    other = channel.start(Message("block"))
    got = []
    threads = [
        threading.Thread(target=lambda f=f: got.append(f.result().kind))
        for f in (future, future, other, future)
    ]
    for thread in threads:
        thread.start()
    echo.wait_for(2)
    with pytest.raises(TimeoutError):
        other.result(0.05)
    for blocked in echo.blocked:
        blocked.set_result(Message("late"))
    for thread in threads:
        thread.join(LIMIT)
    assert got == ["late"] * 4


def test_a_future_works_with_the_standard_library(channel, echo):
    futures = [channel.start(Message("echo", {"x": i})) for i in range(3)]
    assert not wait(futures, 5).not_done
    assert [f.result(0).head["x"] for f in as_completed(futures, 5) if f.done()]
