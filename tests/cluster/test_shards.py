"""Data shards: each counts once in each epoch, whatever happens to workers."""

import os
import signal
import subprocess
import sys
import threading
from collections import Counter

import numpy as np
import pytest
from patience import LIMIT, eventually, waits

import weft.tf1 as tf
from weft.cluster.server import Server
from weft.cluster.shards.keeper import ShardKeeper, ShardSpec
from weft.cluster.shards.shards import Shards
from weft.cluster.spec import ClusterSpec
from weft.data import Dataset
from weft.errors import ArgumentError, ClosedError, DataError, ExistsError


class Clock:
    now = 0.0

    def __call__(self):
        return self.now


@pytest.fixture
def chief():
    with Server(ClusterSpec({"chief": ["127.0.0.1:0"]}), "chief", 0) as server:
        yield server


def keeper(**options):
    clock = Clock()
    return ShardKeeper(ShardSpec("s", **options), clock), clock


def test_a_lease_that_ends_is_given_to_another():
    made, clock = keeper(count=2, timeout=10.0)
    slow, other = made.take("slow"), made.take("other")
    assert (slow.shard, other.shard) == (0, 1)
    clock.now = 6
    assert made.renew(slow.number)
    clock.now = 11  # the other's has ended
    again = made.take("third", 0)
    assert again.shard == 1 and again.number not in (slow.number, other.number)
    assert not made.renew(other.number)
    assert not made.done(other.number)  # a late report does not count
    assert made.done(again.number) and not made.done(again.number)
    clock.now = 17
    last = made.take("third", 0)
    assert last.shard == 0 and not made.done(slow.number) and not made.is_over()
    assert made.done(last.number) and made.is_over()
    assert made.take("slow", 0) is None
    assert made.report() == {
        "epochs": 1, "done": 2, "waiting": 0, "held": [], "again": 2, "by_worker": {"third": 2}
    }  # fmt: skip


def test_nobody_waits_for_a_slow_worker_between_epochs():
    made, _ = keeper(count=3, epochs=2, seed=5)
    slow = made.take("slow")
    rest = [made.take("fast") for _ in range(5)]
    pairs = {(x.epoch, x.shard) for x in [slow, *rest]}
    assert pairs == {(epoch, shard) for epoch in range(2) for shard in range(3)}
    assert made.take("fast", 0) is None and not made.is_over()
    made.give_back("slow")
    assert made.take("fast", 0)[1:] == slow[1:]


def test_a_worker_that_goes_while_it_waits_gets_nothing():
    made = ShardKeeper(ShardSpec("s", count=1, timeout=60.0))
    lease, found = made.take("slow"), []

    def wait():
        try:
            found.append(made.take("gone", LIMIT))
        except ClosedError as error:
            found.append(error)

    thread = threading.Thread(target=wait)
    thread.start()
    eventually(lambda: waits(thread))
    made.give_back("gone")
    made.give_back("slow", lease.number)
    thread.join()
    assert isinstance(found[0], ClosedError)
    assert made.take("slow", 0).shard == 0


def test_orders():
    first = [x.shard for x in map(keeper(count=50, seed=1, epochs=3)[0].take, "w" * 150)]
    again = [x.shard for x in map(keeper(count=50, seed=1, epochs=3)[0].take, "w" * 150)]
    other = [x.shard for x in map(keeper(count=50, seed=2, epochs=3)[0].take, "w" * 150)]
    epochs = [first[:50], first[50:100], first[100:]]
    assert first == again != other and epochs[0] != epochs[1] != epochs[2]
    assert all(sorted(epoch) == list(range(50)) for epoch in epochs)
    assert [x.shard for x in map(keeper(count=3)[0].take, "www")] == [0, 1, 2]


def test_what_was_saved_goes_on_where_it_was():
    made, _ = keeper(count=4, epochs=3, seed=0)
    done = []
    for _ in range(5):
        lease = made.take("w")
        made.done(lease.number)
        done.append(lease[1:])
    held = made.take("w")
    state = made.state_dict()
    other, _ = keeper(count=4, epochs=3, seed=0)
    other.load_state_dict(state)
    assert other.take("w")[1:] == held[1:]
    rest = [held[1:]]
    while (lease := other.take("w", 0)) is not None:
        rest.append(lease[1:])
    assert Counter(done + rest) == Counter((e, s) for e in range(3) for s in range(4))
    with pytest.raises(DataError, match=r"expected the state of .*'count': 5.* got that of"):
        keeper(count=5)[0].load_state_dict(state)


def test_threads_share_all_elements(chief):
    got, lock = Counter(), threading.Lock()

    def work():
        with Shards(103, size=5, epochs=2, chief=chief) as shards:
            for element in shards.elements():
                with lock:
                    got[element] += 1

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert got == dict.fromkeys(range(103), 2)
    report = Shards(103, size=5, epochs=2, chief=chief).report()
    assert report["done"] == 42 and report["again"] == 0 and sum(report["by_worker"].values()) == 42


def test_a_loop_that_is_left_gives_its_shard_back(chief):
    address = chief.target.partition("//")[2]
    shards = Shards(3, shuffle=False, chief=address)
    for shard in shards:
        assert shard.renew()
        break
    with pytest.raises(ZeroDivisionError):
        for _ in shards:
            1 / 0
    assert [shard.number for shard in shards] == [0, 1, 2]
    assert shards.report()["again"] == 2


def test_pipelines_of_weft_and_tensorflow(chief):
    table = np.arange(20) ** 2
    mine = Shards(20, size=3, name="weft", chief=chief)
    data = Dataset.from_generator(lambda: mine.elements(table)).batch(4)
    assert sorted(np.concatenate([np.asarray(x) for x in data]).tolist()) == table.tolist()
    theirs = Shards(20, size=3, name="tf", chief=chief)
    with tf.Graph().as_default():
        source = tf.data.Dataset.from_generator(theirs.elements, tf.int64, [])
        element = source.make_one_shot_iterator().get_next()
        seen = []
        with tf.Session() as session, pytest.raises(tf.errors.OutOfRangeError):
            while True:
                seen.append(int(session.run(element)))
    assert sorted(seen) == list(range(20))


def test_what_is_refused(chief):
    with pytest.raises(ArgumentError, match="expected a size of at least 1, got 0"):
        Shards(3, size=0)
    with pytest.raises(ArgumentError, match="expected at least one element, got 0"):
        Shards([])
    with pytest.raises(ArgumentError, match="expected a timeout above 0, got 0"):
        Shards(1, timeout=0)
    with pytest.raises(ArgumentError, match="expected epochs of at least 0, got -1"):
        Shards(1, epochs=-1)
    Shards(3, chief=chief)
    with pytest.raises(ExistsError, match="shards 'train': they exist with other options"):
        Shards(4, chief=chief)


WORKER = """
import sys, time
from weft.cluster.shards.shards import Shards
shards = Shards(60, name="killed", timeout=600.0, chief=sys.argv[1])
for shard in shards:
    time.sleep(0.02)
    print(shard.number, flush=True)
"""


def test_a_killed_process_loses_nothing(chief):
    """Its connection ends, so that nobody waits for the timeout."""
    address = chief.target.partition("//")[2]
    workers = [
        subprocess.Popen([sys.executable, "-c", WORKER, address], stdout=subprocess.PIPE, text=True)
        for _ in range(3)
    ]
    try:
        for _ in range(3):
            workers[0].stdout.readline()
        os.kill(workers[0].pid, signal.SIGKILL)
        told = [worker.communicate(timeout=LIMIT)[0] for worker in workers]
    finally:
        for worker in workers:
            worker.kill()
            worker.wait()
    report = Shards(60, name="killed", timeout=600.0, chief=chief).report()
    assert report["done"] == 60 and not report["held"] and report["again"] <= 1
    assert len(told[1].split()) + len(told[2].split()) >= 55
