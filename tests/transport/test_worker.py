"""The communication thread, and calls that are deferred until somebody waits for them."""

import random
import threading

import numpy as np
import pytest

from weft.runtime.execution import driver
from weft.transport.native import BUSY, Words
from weft.transport.worker import Worker


def test_deferred_work_is_done_by_whoever_waits_for_it():
    words, done = Words(), []
    worker = Worker(words)
    found = [worker.submit(lambda i=i: done.append((i, threading.current_thread())), True)
             for i in range(3)]  # fmt: skip
    assert not done and worker.busy and words[BUSY] == 1
    worker.catch_up()
    assert done == [(i, threading.current_thread()) for i in range(3)]
    assert all([f.done() for f in found])
    worker.drain()
    assert not worker.busy and words[BUSY] == 0


def test_order_is_that_of_submission_however_work_is_done():
    rng = random.Random(0)
    for _ in range(50):
        done, wanted = [], []
        worker = Worker(Words())
        for i in range(30):
            worker.submit(lambda i=i, done=done: done.append(i), rng.random() < 0.6)
            wanted.append(i)
            if rng.random() < 0.2:
                rng.choice([worker.drain, worker.catch_up])()
        worker.drain()
        assert done == wanted


def test_deferred_work_may_ask_for_all_before_it():
    """As every call does: it waits for those before it, and not for itself."""
    worker, done = Worker(Words()), []
    worker.submit(lambda: done.append("first"), True)
    worker.submit(lambda: (worker.drain(), done.append("second")), True)
    worker.drain()
    assert done == ["first", "second"]


def test_errors_of_deferred_work_are_of_whoever_waits_for_it():
    worker = Worker(Words())
    wrong = worker.submit(lambda: 1 // 0, True)
    right = worker.submit(lambda: 5, True)
    worker.drain()
    with pytest.raises(ZeroDivisionError):
        wrong.result()
    assert right.result() == 5


def test_threads_that_submit_and_wait_at_once_do_everything_once():
    """And never two pieces at a time."""
    worker, done, inside, together = Worker(Words()), [], [], []

    def work(who, i):
        inside.append(i)
        together.append(len(inside))
        inside.pop()
        done.append((who, i))

    def run(who):
        rng = random.Random(who)
        for i in range(300):
            worker.submit(lambda i=i: work(who, i), rng.random() < 0.7)
            if rng.random() < 0.2:
                rng.choice([worker.drain, worker.catch_up])()
        worker.drain()

    threads = [threading.Thread(target=run, args=(who,)) for who in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(done) == sorted(set(done)) and len(done) == 1200 and set(together) == {1}
    for who in range(4):
        assert [i for w, i in done if w == who] == list(range(300))
    assert not worker.busy


@pytest.mark.parametrize("size", [0, 1, 63, 64, 65, 1000, 4096, 100_003])
def test_copies_past_the_caches_have_all_bytes(size):
    data = np.random.default_rng(size).integers(0, 256, size + 128, np.uint8)
    for to, source in ((0, 0), (1, 0), (0, 1), (3, 7), (63, 1)):
        out = np.zeros(size + 256, np.uint8)
        start = (-out.ctypes.data) % 64 + to
        driver.entries().stream(out[start:].ctypes.data, data[source:].ctypes.data, size)
        assert (out[start : start + size] == data[source : source + size]).all()
        assert not out[:start].any() and not out[start + size :].any()
