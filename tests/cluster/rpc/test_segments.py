"""Arrays in memory that two processes of a host share; and many threads on both paths."""

import gc
import os
import random
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from patience import LIMIT, eventually
from server_process import ServerProcess
from strategies import at_most
from test_message import arrays, same

from weft import errors
from weft.cluster.rpc import Listener, Message, RpcOptions, connect, pages, segment
from weft.cluster.rpc import packet as packets

LARGE = packets.SHARED_BYTES


@pytest.fixture
def pool(monkeypatch):
    """A pool without what other tests have left."""
    monkeypatch.setattr(segment, "_pools", [segment.Pool()])
    return segment.pool()


@pytest.fixture
def kept():
    return []


@pytest.fixture
def channel(pool, kept):
    """A channel to a server that keeps what it gets and answers with it."""

    def handler(message, peer):
        if message.kind == "keep":
            kept.append(message)
            return Message("kept")
        return Message(message.kind, message.head, message.arrays)

    with Listener("127.0.0.1:0", handler) as listener, connect(listener.address) as channel:
        assert channel.shared
        yield channel


def address(x):
    return x.__array_interface__["data"][0]


def segments(pool):
    pool.collect()
    return len(pool._lent), len(pool._idle)


def test_what_is_allocated_is_sent_without_a_copy(channel, pool, kept):
    x = channel.allocate((3, LARGE), "float32")
    assert x.shape == (3, LARGE)
    assert x.dtype == np.float32
    x[:] = 1
    channel.call(Message("keep", {}, [x, x[1:]]))
    first, second = kept[0].arrays
    assert not first.flags.writeable
    assert first.shape == (3, LARGE)
    x[2, 5] = 7  # only a test may: the receiver sees it, because the memory is one
    assert first[2, 5] == second[1, 5] == 7


def test_other_arrays_are_copied_once(channel, pool, kept):
    x = np.arange(LARGE, dtype=np.int16)
    channel.call(Message("keep", {}, [x, x[::2], np.ones(3), x.reshape(2, -1).T]))
    x[:] = 0
    first, second, third, fourth = kept[0].arrays
    assert first[-1] == LARGE - 1 - (1 << 16 if LARGE > 1 << 15 else 0)
    np.testing.assert_array_equal(second, first[::2])
    np.testing.assert_array_equal(third, np.ones(3))
    np.testing.assert_array_equal(fourth, first.reshape(2, -1).T)
    assert segments(pool) == (1, 0)  # one segment for all three large ones


def test_memory_is_used_again_after_both_have_let_it_go(channel, pool, kept):
    x = channel.allocate((LARGE,), np.uint8)
    place = address(x)
    channel.call(Message("keep", {}, [x]))
    del x
    gc.collect()
    assert segments(pool) == (1, 0)  # the receiver reads it
    assert address(channel.allocate((LARGE,), np.uint8)) != place
    view = kept.pop().arrays[0][5:].reshape(-1, 1)
    gc.collect()
    assert segments(pool)[0] == 1  # a view is enough
    del view
    gc.collect()
    assert segments(pool) == (0, 2)
    assert address(channel.allocate((LARGE,), np.uint8)) == place


def test_memory_in_use_here_is_not_given_out(channel, pool):
    x = channel.allocate((LARGE,), np.uint8)
    channel.call(Message("echo", {}, [x]))
    part = x[10:]
    del x
    gc.collect()
    eventually(lambda: segments(pool) == (0, 1))  # that of the answer
    others = [channel.allocate((LARGE,), np.uint8) for _ in range(2)]
    assert address(part) - 10 not in [address(other) for other in others]


def test_steps_use_the_same_memory(channel, pool):
    x = np.ones(10 * LARGE, np.uint8)
    for _ in range(20):
        channel.call(Message("echo", {}, [x]))
    assert sum(segments(pool)) <= 6


def test_a_borrower_that_leaves_with_its_views(channel, pool, kept):
    x = channel.allocate((LARGE,), np.uint8)
    x[:] = 5
    channel.call(Message("keep", {}, [x]))
    channel.close()
    del x
    gc.collect()
    assert segments(pool) == (0, 0)  # never used again, because the view may live for ever
    np.testing.assert_array_equal(kept[0].arrays[0], np.full(LARGE, 5))


def test_several_borrowers(pool):
    kept = []
    with Listener("127.0.0.1:0", lambda m, peer: kept.append(m) or Message("k")) as listener:
        channels = [connect(listener.address) for _ in range(3)]
        x = channels[0].allocate((LARGE,), np.uint8)
        for channel in channels:
            channel.call(Message("a", {}, [x]))
        assert len(segment.lease_of(x).segment.words.tolist()) > 3
        del x
        while kept:
            assert segments(pool) == (1, 0)
            kept.pop()
            gc.collect()
        assert segments(pool) == (0, 1)
        for channel in channels:
            channel.close()


def test_more_borrowers_than_loans_get_copies(pool):
    kept = []
    with (
        Listener("127.0.0.1:0", lambda m, peer: kept.append(m) or Message("k")) as listener,
        connect(listener.address) as channel,
    ):
        x = channel.allocate((LARGE,), np.uint8)
        x[:] = 3
        for _ in range(segment.LOANS + 2):
            channel.call(Message("a", {}, [x]))
        assert all((m.arrays[0] == 3).all() for m in kept)
        kept.clear()
        gc.collect()
        assert segments(pool) == (0, 2)


def test_idle_memory_is_bounded(pool, monkeypatch):
    monkeypatch.setattr(segment, "MOST_IDLE_BYTES", 1 << 20)
    held = [pool.allocate((1 << 19,), np.uint8) for _ in range(6)]
    held.clear()
    gc.collect()
    pool.collect()
    assert 0 < pool.idle_bytes <= 1 << 20


def test_large_pages_keep_what_is_there(channel, pool, kept):
    """Often used memory changes its pages, here and at the receiver, while both use it."""
    size = 5 * pages.LARGE + 12345
    x = np.random.default_rng(1).integers(0, 255, size).astype(np.uint8)
    for _ in range(2 * segment.OFTEN):
        channel.call(Message("keep", {}, [x]))
        np.testing.assert_array_equal(kept.pop().arrays[0], x)
        gc.collect()
    assert segments(pool) == (0, 1)
    assert pool._idle[0]._uses > segment.OFTEN
    assert pool._idle[0].address % pages.LARGE == segment.PAGE
    for thread in threading.enumerate():
        if thread.name == "weft-rpc-pages":
            thread.join(LIMIT)
    channel.call(Message("keep", {}, [x]))
    np.testing.assert_array_equal(kept.pop().arrays[0], x)


@pytest.mark.parametrize(
    "message",
    [
        Message("text", {"graph": "x" * 300_000}, [np.ones(3)]),
        Message("many", {}, [np.full(20, i) for i in range(3000)]),
        Message("larger", {}, [np.full(1500, i) for i in range(300)]),
        Message("strings", {}, [np.array([b"a" * 30_000, b"", b"c" * 50_000], object)]),
        Message("none", {}, [np.zeros((0, 3)), np.zeros((), "int8")]),
    ],
    ids=lambda m: m.kind,
)
def test_messages_that_do_not_fit_a_packet(channel, message):
    got = channel.call(message)
    assert (got.kind, got.head) == (message.kind, message.head)
    for x, y in zip(message.arrays, got.arrays, strict=True):
        same(x, y)


@at_most(40)
@given(st.lists(arrays(), max_size=5), st.integers(0, 3))
def test_every_type_on_both_paths(both_paths, xs, repeat):
    xs = xs + [np.broadcast_to(x, (20_000, *x.shape)) for x in xs[:repeat] if x.dtype != object]
    for channel in both_paths:
        for x, y in zip(xs, channel.call(Message("a", {}, xs)).arrays, strict=True):
            same(x, y)


@pytest.fixture(scope="module")
def both_paths():
    with (
        Listener("127.0.0.1:0", lambda message, peer: message) as listener,
        connect(listener.address) as shared,
        connect(listener.address, RpcOptions(shared_memory=False)) as plain,
    ):
        yield shared, plain


@pytest.mark.parametrize("shared", [False, True])
def test_sixteen_threads(shared):
    """Each gets its own answers, by both ways to ask, whether they are early or late."""
    drawn, faults = random.Random(3), []

    def handler(message, peer):
        if message.head["late"]:
            return pool.submit(lambda: message)
        return message

    def work(seed):
        drawn = random.Random(seed)
        try:
            for i in range(30):
                x = np.full(drawn.choice([1, 1000, 100_000]), seed * 100 + i)
                message = Message("a", {"id": [seed, i], "late": drawn.random() < 0.5}, [x])
                if drawn.random() < 0.5:
                    got = channel.start(message, timeout=30).result()
                else:
                    got = channel.call(message, timeout=30)
                assert got.head["id"] == [seed, i]
                np.testing.assert_array_equal(got.arrays[0], x)
        except BaseException as error:
            faults.append(error)

    with (
        ThreadPoolExecutor(4) as pool,
        Listener("127.0.0.1:0", handler) as listener,
        connect(listener.address, RpcOptions(shared_memory=shared)) as channel,
    ):
        threads = [threading.Thread(target=work, args=(seed,)) for seed in range(16)]
        drawn.shuffle(threads)
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(LIMIT)
        assert not faults


@pytest.mark.parametrize("shared", [False, True])
def test_a_thousand_blocked_calls_take_no_threads(shared):
    with (
        ServerProcess() as server,
        connect(server.address, RpcOptions(shared_memory=shared)) as channel,
    ):
        calls = [channel.start(Message("block")) for _ in range(1000)]
        assert channel.call(Message("echo", {"x": 2})).head == {"x": 2}
        assert len(os.listdir(f"/proc/{server.pid}/task")) < 200
        assert threading.active_count() < 200
        assert not any(call.done() for call in calls)


def test_a_callback_may_call(channel):
    got = []
    done = threading.Event()

    def ask(future):
        got.append(channel.call(Message("second", {"x": future.result().head["x"] + 1})))
        done.set()

    channel.start(Message("first", {"x": 1})).add_done_callback(ask)
    assert done.wait(LIMIT)
    assert got[0].head == {"x": 2}


def test_a_process_that_forks_does_not_use_its_parents_memory(pool):
    x = pool.allocate((LARGE,), np.uint8)
    child = os.fork()
    if not child:
        os._exit(int(segment.pool() is pool))
    assert os.waitpid(child, 0)[1] == 0
    assert segment.pool() is pool
    del x


def test_what_a_killed_server_has_sent_stays_readable():
    def mapped():
        return Path("/proc/self/maps").read_text().count("memfd:weft")

    gc.collect()
    before = mapped()
    with ServerProcess() as server, connect(server.address) as channel:
        got = channel.call(Message("ones", {"size": 10 * LARGE})).arrays[0]
        server.process.kill()
        with pytest.raises(errors.UnavailableError):
            channel.call(Message("echo"))
        assert got.sum() == 10 * LARGE
        assert mapped() == before + 1
    del got
    gc.collect()
    assert mapped() == before
