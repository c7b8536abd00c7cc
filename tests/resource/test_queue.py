"""Queues: order, waiting, closing, cancelling, checks."""

import random
import threading
import time
from collections import Counter

import numpy as np
import pytest
from patience import LIMIT, eventually, waits

import weft.resource  # noqa: F401 -- the kinds
from weft.errors import ArgumentError, CancelledError, EndOfDataError, SharingError
from weft.ops.resource.spec import ResourceSpec
from weft.resource.base import Cancellation, Containers

KINDS = ["FIFOQueueV2", "RandomShuffleQueueV2", "PaddingFIFOQueueV2", "PriorityQueueV2"]


class Handle:
    """A queue as its callers see it: numbers of type int64."""

    def __init__(self, kind="FIFOQueueV2", capacity=-1, dtypes=("int64",), shapes=((),), **options):
        pairs = {"capacity": capacity, "dtypes": dtypes, "shapes": shapes, **options}
        self.spec = ResourceSpec(kind, "q", "", tuple(pairs.items()))
        self.containers = Containers()
        self.cancel = Cancellation()

    def call(self, method, *inputs, cancel=None, **options):
        arrays = [np.asarray(x) for x in inputs]
        return self.containers.call(self.spec, method, arrays, options, cancel or self.cancel)

    def put(self, *numbers):
        self.call("enqueue_many", np.array(numbers, np.int64))

    def take(self, count, smaller=False):
        method = "dequeue_up_to" if smaller else "dequeue_many"
        return self.call(method, count)[0].tolist()

    @property
    def size(self):
        return int(self.call("size")[0])


def started(function, *args):
    """A thread whose call is waiting; `outcome` holds its result or its error."""

    def run():
        try:
            thread.outcome = function(*args)
        except BaseException as error:
            thread.outcome = error

    thread = threading.Thread(target=run)
    thread.start()
    eventually(lambda: waits(thread))
    return thread


def ended(thread):
    thread.join(LIMIT)
    assert not thread.is_alive()
    return thread.outcome


def test_a_full_queue_takes_a_part_and_lets_the_rest_wait_in_order():
    q = Handle(capacity=3)
    first = started(q.put, 1, 2, 3, 4)
    second = started(q.put, 5)
    assert q.size == 3
    assert q.take(1) == [1] and ended(first) is None
    assert q.take(4) == [2, 3, 4, 5]  # more than the capacity: taken as they come
    ended(second)


def test_batches_wait_in_order_of_arrival_and_single_elements_behind_them():
    q = Handle()
    many = started(q.take, 3)
    one = started(q.call, "dequeue")
    q.put(1, 2)
    assert many.is_alive() and q.size == 0
    q.put(3, 4)
    assert ended(many) == [1, 2, 3]
    assert ended(one)[0] == 4


@pytest.mark.parametrize("kind", KINDS)
def test_closing_waits_for_enqueues_and_ends_dequeues(kind):
    q = Handle(kind, capacity=2)
    q.put(1, 2)
    waiting = started(q.put, 3)
    closing = started(q.call, "close")
    assert not q.call("is_closed")[0]
    assert sorted(q.take(2, smaller=True)) == [1, 2]
    ended(waiting), ended(closing)
    assert q.call("is_closed")[0]
    name = kind.removesuffix("V2")
    with pytest.raises(CancelledError, match=f"{name} 'q' is closed."):
        q.put(4)
    with pytest.raises(CancelledError, match="already closed"):
        q.call("close")
    text = rf"{name} 'q' is closed and has insufficient elements \(requested 2, current size 1\)"
    with pytest.raises(EndOfDataError, match=text):
        q.take(2)
    assert q.take(2, smaller=True) == [3]
    with pytest.raises(EndOfDataError, match=r"requested 1, current size 0"):
        q.call("dequeue")


def test_a_batch_that_the_end_leaves_short_gives_its_elements_back():
    q = Handle()
    many = started(q.take, 4)
    q.put(1, 2, 3)
    assert q.size == 0
    q.call("close")
    assert isinstance(ended(many), EndOfDataError)
    assert q.take(5, smaller=True) == [1, 2, 3]


def test_cancelling_wakes_one_session_and_loses_nothing():
    q, session = Handle(capacity=2), Cancellation()
    q.put(0)
    batch = started(lambda: q.call("dequeue_many", 3, cancel=session))
    assert q.size == 0
    other = started(q.call, "dequeue")
    session.cancel()
    error = ended(batch)
    assert isinstance(error, CancelledError) and "Dequeue operation was cancelled" in str(error)
    assert ended(other)[0] == 0
    q.put(1, 2)
    waiting = started(q.put, 3, 4)
    q.call("close", cancel_pending_enqueues=True)
    assert "Enqueue operation was cancelled" in str(ended(waiting))
    assert q.take(5, smaller=True) == [1, 2]


def test_reset_ends_all_waits():
    q = Handle()
    waiting = started(q.call, "dequeue")
    q.containers.reset()
    assert isinstance(ended(waiting), CancelledError)
    assert q.size == 0


def test_waiting_burns_no_processor_time():
    q = Handle()
    waiting = started(q.call, "dequeue")

    def burnt():
        before = time.process_time()
        time.sleep(0.2)
        return time.process_time() - before

    assert any(burnt() < 0.1 for _ in range(10))  # other threads may work at first
    q.put(1)
    ended(waiting)


def test_the_smallest_priority_leaves_first_and_equal_ones_in_order():
    q = Handle("PriorityQueueV2", dtypes=("int64", "string"), shapes=((), ()))
    names = np.array([b"c", b"a", b"b", b"a2"], object)
    q.call("enqueue_many", np.array([3, 1, 2, 1]), names)
    assert q.call("dequeue")[1][()] == b"a"
    texts = q.call("dequeue_many", 3)[1].tolist()
    assert texts == [b"a2", b"b", b"c"] and {type(x) for x in texts} == {bytes}
    with pytest.raises(ArgumentError, match="must be type int64, but dtype is: float32"):
        Handle("PriorityQueueV2", dtypes=("float32",)).call("size")
    with pytest.raises(ArgumentError, match="must be a scalar, but shape is: \\(2,\\)"):
        Handle("PriorityQueueV2", shapes=((2,),)).call("size")


def test_batches_of_a_padding_queue_have_the_size_of_the_largest():
    q = Handle("PaddingFIFOQueueV2", dtypes=("int64", "string"), shapes=((None, 2), (None,)))
    for n in (1, 3):
        q.call("enqueue", np.full((n, 2), n), np.array([b"x"] * n, object))
    numbers, texts = q.call("dequeue_many", 2)
    assert numbers.tolist() == [[[1, 1], [0, 0], [0, 0]], [[3, 3]] * 3]
    assert texts.tolist() == [[b"x", b"", b""], [b"x"] * 3]
    assert [x.shape for x in q.call("dequeue_many", 0)] == [(0, 0, 2), (0, 0)]
    with pytest.raises(ArgumentError, match=r"component 0. Expected \[\?,2\], got \[2,3\]"):
        q.call("enqueue", np.ones((2, 3), np.int64), np.array([b"x"], object))
    with pytest.raises(ArgumentError, match="must be provided for all components"):
        Handle("PaddingFIFOQueueV2", shapes=None).call("size")


@pytest.mark.parametrize(
    ("method", "inputs", "text"),
    [
        ("enqueue", [np.int64(1)], "Expected 2, got 1"),
        ("enqueue", [np.int32(1), np.ones(3)], "component 0. Expected int64, got int32"),
        ("enqueue", [np.int64(1), np.ones(2)], r"component 1. Expected \[3\], got \[2\]"),
        ("enqueue_many", [np.ones(2, int), np.ones((1, 3))], r"Expected \[2,3\], got \[1,3\]"),
        ("enqueue_many", [np.int64(1), np.ones(3)], "at least one dimension"),
        ("dequeue_many", [-1], "requested -1 < 0 elements"),
        ("nonsense", [], "expected one of enqueue, .* got 'nonsense'"),
    ],
)
def test_what_does_not_fit_is_refused(method, inputs, text):
    q = Handle(dtypes=("int64", "float64"), shapes=((), (3,)))
    with pytest.raises(ArgumentError, match=text):
        q.call(method, *inputs)
    assert q.size == 0


def test_batches_need_shapes_and_lengths_must_agree():
    q = Handle(dtypes=("int64", "int64"), shapes=None)
    with pytest.raises(ArgumentError, match="specified shapes"):
        q.call("dequeue_many", 1)
    with pytest.raises(ArgumentError, match="Component 1 has 2, and should have 1"):
        q.call("enqueue_many", np.ones(1, int), np.ones(2, int))


def test_elements_are_copies():
    q = Handle(shapes=((2,),))
    x = np.array([[1, 2], [3, 4]])
    q.call("enqueue", x[0])
    q.call("enqueue_many", x)
    x[:] = 0
    assert q.take(3) == [[1, 2], [1, 2], [3, 4]]


def test_a_shared_name_means_the_same_properties():
    q = Handle(capacity=3)
    q.put(1)
    for other, text in [
        (Handle(capacity=4), "capacity 3 but requested capacity was 4"),
        (Handle(capacity=3, dtypes=("int32",)), "component types"),
        (Handle(capacity=3, shapes=((1,),)), "component shapes"),
        (Handle("PriorityQueueV2", capacity=3), "has type FIFOQueueV2"),
    ]:
        with pytest.raises(SharingError, match=text):
            q.containers.get(other.spec)


def test_draws_keep_a_minimum_and_follow_from_the_seed():
    def drawn(**options):
        q = Handle("RandomShuffleQueueV2", min_after_dequeue=5, **options)
        q.put(*range(20))
        found = q.take(15)
        waiting = started(q.call, "dequeue")
        q.call("close")
        assert ended(waiting)[0] not in found
        return found + q.take(10, smaller=True)

    first = drawn(random_seeds=(1, 2))
    assert first != sorted(first) and len(set(first)) == 19
    assert first == drawn(random_seeds=(1, 2))
    assert first != drawn(random_seeds=(1, 3))
    assert drawn() != drawn()


@pytest.mark.parametrize("capacity", [30, 7])  # the smaller one has no room for a whole batch
def test_steady_draws_do_not_depend_on_how_fast_the_queue_is_filled(capacity):
    def drawn(step):
        q = Handle("RandomShuffleQueueV2", capacity, min_after_dequeue=5, random_seeds=(1,),
                   steady=True)  # fmt: skip
        filling = threading.Thread(target=fill, args=(q, step))
        filling.start()
        found = []
        while batch := q.take(4, smaller=True) if len(found) < 40 else []:
            found += batch
        filling.join()
        return found

    def fill(q, step):
        for start in range(0, 40, step):
            q.put(*range(start, start + step))
            time.sleep(0.001 if step == 1 else 0)
        q.call("close")

    found = drawn(1)
    assert sorted(found) == list(range(40)) and found != sorted(found)
    assert all(drawn(step) == found for step in (1, 4, 40))


@pytest.mark.parametrize("kind", KINDS)
def test_drawn_sequences_agree_with_a_list(kind):
    draw = random.Random(kind)
    for _ in range(40):
        q, model = Handle(kind, capacity=8), []
        for step in range(40):
            action = draw.choice(["put", "one", "many", "up to", "close"] if step > 30 else
                                 ["put", "one", "many", "up to"])  # fmt: skip
            count = draw.randrange(0, 4)
            if action == "put" and len(model) + count <= 8:
                numbers = [draw.randrange(100) for _ in range(count)]
                q.put(*numbers)
                model += numbers
            elif action == "close":
                q.call("close")
                break
            elif action != "put" and count <= len(model):
                found = q.take(count, action == "up to") if action != "one" else (
                    [int(q.call("dequeue")[0])] if model else [])  # fmt: skip
                removed(kind, model, found)
            assert q.size == len(model)
        removed(kind, model, q.take(len(model) + 1, smaller=True) if q.size and
                q.call("is_closed")[0] else q.take(len(model)))  # fmt: skip
        assert model == []


def removed(kind, model, found):
    """Check elements against the model, and take them from it."""
    count = len(found)
    if kind.startswith("Priority"):
        assert found == sorted(model)[:count]
    elif "FIFO" in kind:
        assert found == model[:count]
    for number in found:
        model.remove(number)


@pytest.mark.parametrize("kind", KINDS)
def test_sixteen_threads_lose_and_duplicate_nothing(kind):
    """Sessions are cancelled meanwhile: what their dequeues held is given to others."""
    q = Handle(kind, capacity=16)
    sessions = [Cancellation() for _ in range(4)]
    put, taken = [], []

    def fill(worker):
        draw = random.Random(worker)
        for start in range(worker * 1000, worker * 1000 + 400, 4):
            numbers = np.arange(start, start + 4)
            try:
                q.call("enqueue_many", numbers, cancel=sessions[draw.randrange(4)])
            except CancelledError:
                undelivered.append(start)
            put.extend(numbers.tolist())

    def drain(worker):
        draw = random.Random(worker)
        while True:
            try:
                count = draw.randrange(1, 5)
                session = sessions[draw.randrange(4)]
                taken.extend(q.call("dequeue_up_to", count, cancel=session)[0].tolist())
            except CancelledError:
                continue
            except EndOfDataError:
                return

    undelivered = []
    fillers = [threading.Thread(target=fill, args=(n,)) for n in range(8)]
    drainers = [threading.Thread(target=drain, args=(n,)) for n in range(8)]
    for thread in fillers + drainers:
        thread.start()
    for number in range(40):
        time.sleep(0.002)
        stopped, sessions[number % 4] = sessions[number % 4], Cancellation()
        stopped.cancel()
    for thread in fillers:
        thread.join(LIMIT)
    q.call("close")
    for thread in drainers:
        thread.join(LIMIT)
    assert not any(t.is_alive() for t in fillers + drainers)
    missing = Counter(put) - Counter(taken)
    assert not Counter(taken) - Counter(put)
    started_cancelled = {n - n % 4 for n in missing}
    assert started_cancelled <= set(undelivered)  # only of enqueues that raised
