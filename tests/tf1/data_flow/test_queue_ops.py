"""Queues in the graph: names, shapes, dictionaries, sessions, threads."""

import signal
import threading

import numpy as np
import pytest
from patience import LIMIT

import weft.tf1 as tf
from weft.errors import ArgumentError, DTypeError, ShapeError, TreeError


@pytest.fixture(autouse=True)
def _graph():
    tf.reset_default_graph()


def waiting(function):
    """A thread whose call waits; `outcome` is its result or its error."""

    def run():
        try:
            thread.outcome = function()
        except Exception as error:
            thread.outcome = error

    thread = threading.Thread(target=run)
    thread.start()
    thread.join(0.05)
    assert thread.is_alive()
    return thread


def outcome(thread):
    thread.join(LIMIT)
    assert not thread.is_alive()
    return thread.outcome


def test_a_queue_carries_elements_from_step_to_step():
    q = tf.FIFOQueue(10, [tf.float32, tf.string], shapes=[[2], []], name="q")
    x = tf.placeholder(tf.float32, [None, 2])
    fill = q.enqueue_many([x * 2, tf.constant([b"a", b"b", b"c"])])
    numbers, texts = q.dequeue_many(2)
    assert [numbers.shape.as_list(), texts.shape.as_list()] == [[2, 2], [2]]
    assert q.dequeue_up_to(2)[0].shape.as_list() == [None, 2]
    assert q.dequeue()[0].shape.as_list() == [2]
    assert (fill.type, numbers.op.type) == ("QueueEnqueueManyV2", "QueueDequeueManyV2")
    assert (fill.name, numbers.op.name, q.name) == ("q_EnqueueMany", "q_DequeueMany", "q")
    assert q.queue_ref.op.get_attr("capacity") == 10
    with tf.Session() as sess:
        sess.run(fill, {x: np.arange(6).reshape(3, 2)})
        found = sess.run([tf.reduce_sum(numbers), texts])
        assert found[0] == 12 and found[1].tolist() == [b"a", b"b"]
        assert sess.run(q.size()) == 1 and not sess.run(q.is_closed())
    with tf.Session() as other:  # each session has its own
        assert other.run(q.size()) == 0


def test_the_size_of_a_batch_may_be_data():
    q = tf.FIFOQueue(-1, tf.int32, shapes=[[]])
    n = tf.placeholder(tf.int32, [])
    batch = q.dequeue_many(n)
    assert batch.shape.as_list() == [None]
    with tf.Session() as sess:
        sess.run(q.enqueue_many([list(range(10))]))
        assert sess.run(tf.reduce_sum(batch), {n: 3}) == 3
        assert sess.run(tf.reduce_sum(batch), {n: 4}) == 18
        with pytest.raises(tf.errors.InvalidArgumentError, match="requested -1 < 0 elements"):
            sess.run(batch, {n: -1})


def test_elements_with_names_are_dictionaries():
    q = tf.FIFOQueue(10, [tf.int32, tf.float32], names=["i", "f"], shapes=[[], []])
    with tf.Session() as sess:
        sess.run(q.enqueue({"f": 1.5, "i": 3}))
        assert sess.run(q.dequeue_many(1)) == {"i": [3], "f": [1.5]}
    for given, text in [
        ([1, 2.0], "enqueue a dictionary"),
        ({"i": 1}, "do not match names of Queue"),
    ]:
        with pytest.raises(ValueError, match=text):
            q.enqueue(given)
    with pytest.raises(ValueError, match="must have names"):
        tf.FIFOQueue(1, tf.int32).enqueue({"i": 1})


def test_a_queue_chosen_by_an_index():
    queues = [tf.FIFOQueue(9, tf.int32, shapes=[[]], name=f"q{i}") for i in range(3)]
    index = tf.placeholder(tf.int32, [])
    q = tf.QueueBase.from_list(index, queues)
    assert q.shapes[0].as_list() == []
    with tf.Session() as sess:
        for i in (0, 1, 1, 2):
            sess.run(q.enqueue(i * 10), {index: i})
        assert sess.run([each.size() for each in queues]) == [1, 2, 1]
        assert sess.run(q.dequeue(), {index: 2}) == 20
        with pytest.raises(tf.errors.InvalidArgumentError, match=r"index 3 is not in \[0, 3\)"):
            sess.run(q.size(), {index: 3})
    with pytest.raises(TypeError, match="matching component dtypes"):
        tf.QueueBase.from_list(0, [queues[0], tf.FIFOQueue(1, tf.float32)])
    with pytest.raises(TypeError, match="A list of queues expected"):
        tf.QueueBase.from_list(0, [])


def test_errors_name_the_queue_and_the_line():
    q = tf.FIFOQueue(10, tf.int32, shapes=[[]], name="q")
    x = tf.placeholder(tf.int32)
    with tf.Session() as sess:
        with pytest.raises(tf.errors.InvalidArgumentError, match=r"component 0.*test_queue_ops"):
            sess.run(q.enqueue(x), {x: [1, 2]})
        sess.run(q.close())
        with pytest.raises(tf.errors.CancelledError, match="FIFOQueue 'q' is closed"):
            sess.run(q.enqueue(1))
        with pytest.raises(tf.errors.OutOfRangeError, match=r"requested 1, current size 0.*q_Deq"):
            sess.run(q.dequeue())


@pytest.mark.parametrize(
    ("error", "make"),
    [
        (ShapeError, lambda: tf.FIFOQueue(1, tf.int32, shapes=[[None]])),
        (TreeError, lambda: tf.FIFOQueue(1, tf.int32, shapes=[[], []])),
        (TreeError, lambda: tf.FIFOQueue(1, tf.int32, names=["a", "b"])),
        (TreeError, lambda: tf.FIFOQueue(1, tf.int32).enqueue([1, 2])),
        (TreeError, lambda: tf.FIFOQueue(1, tf.int32).enqueue(tf.constant(1.0))),
        (ShapeError, lambda: tf.FIFOQueue(1, tf.int32, shapes=[[2]]).enqueue([[1, 2, 3]])),
        (ShapeError, lambda: tf.FIFOQueue(1, tf.int32).enqueue_many([1])),
        (ShapeError, lambda: tf.PaddingFIFOQueue(1, [tf.int32] * 2, [[None]])),
        (DTypeError, lambda: tf.QueueBase([tf.int32], None, None, tf.constant(1))),
        (ArgumentError, lambda: tf.train.QueueRunner(tf.FIFOQueue(1, tf.int32), [])),
    ],
)
def test_what_does_not_fit_is_refused_when_it_is_built(error, make):
    with pytest.raises(error):
        make()


def test_closing_the_session_ends_all_waits():
    full, empty = tf.FIFOQueue(1, tf.int32), tf.FIFOQueue(1, tf.int32, shapes=[[]])
    put, take, batch = full.enqueue(1), empty.dequeue(), empty.dequeue_many(2)
    sess = tf.Session()
    sess.run(put)
    threads = [waiting(lambda op=op: sess.run(op)) for op in (put, take, batch)]
    sess.close()
    for thread in threads:
        assert isinstance(outcome(thread), tf.errors.CancelledError)
        assert "operation was cancelled" in str(thread.outcome)


def test_ctrl_c_ends_a_wait_which_has_taken_nothing():
    q = tf.FIFOQueue(5, tf.int32, shapes=[[]])
    with tf.Session() as sess:
        sess.run(q.enqueue(1))
        main = threading.main_thread().ident
        threading.Timer(0.1, signal.pthread_kill, [main, signal.SIGINT]).start()
        with pytest.raises(KeyboardInterrupt):
            sess.run(q.dequeue_many(2))
        assert sess.run(q.size()) == 1
        assert sess.run(q.dequeue()) == 1


def test_a_step_of_one_thread_waits_for_that_of_another():
    q = tf.FIFOQueue(1, tf.float32, shapes=[[]])
    x = tf.placeholder(tf.float32, [])
    put, doubled = q.enqueue(x), q.dequeue() * 2
    with tf.Session() as sess:
        taking = waiting(lambda: sess.run(doubled))
        sess.run(put, {x: 3.0})
        assert outcome(taking) == 6.0
        sess.run(put, {x: 4.0})
        putting = waiting(lambda: sess.run(put, {x: 5.0}))
        assert [sess.run(doubled), sess.run(doubled)] == [8.0, 10.0]
        assert outcome(putting) is None


def test_shared_names_mean_one_queue_and_containers_keep_them_apart():
    a, b = [tf.FIFOQueue(5, tf.int32, shapes=[[]], shared_name="s") for _ in range(2)]
    with tf.container("other"):
        c = tf.FIFOQueue(5, tf.int32, shapes=[[]], shared_name="s")
    d = tf.FIFOQueue(6, tf.int32, shapes=[[]], shared_name="s")
    with tf.Session() as sess:
        sess.run(a.enqueue(7))
        assert sess.run([b.size(), c.size()]) == [1, 0]
        assert sess.run(b.dequeue()) == 7
        with pytest.raises(tf.errors.InvalidArgumentError, match="capacity 5 but requested"):
            sess.run(d.queue_ref.op)


def test_runners_fill_a_queue_and_close_it_at_the_end():
    source = tf.FIFOQueue(100, tf.int32, shapes=[[]])
    q = tf.PriorityQueue(10, tf.int32, shapes=[[]])
    n = source.dequeue()
    runner = tf.train.QueueRunner(q, [q.enqueue([tf.cast(-n, tf.int64), n])] * 4)
    tf.train.add_queue_runner(runner)
    with tf.Session() as sess:
        sess.run(source.enqueue_many([list(range(50))]))
        sess.run(source.close())
        coord = tf.train.Coordinator()
        threads = tf.train.start_queue_runners(sess, coord)
        assert runner.create_threads(sess, coord) == []  # they run already
        found = []
        with pytest.raises(tf.errors.OutOfRangeError):
            while True:
                found.append(sess.run(q.dequeue())[1])
        coord.request_stop()
        coord.join(threads, stop_grace_period_secs=10)
    assert sorted(found) == list(range(50)) and coord.joined
    assert not any(t.is_alive() for t in threads)


def test_an_error_of_a_runner_stops_all():
    q = tf.FIFOQueue(2, tf.int32, shapes=[[]])
    x = tf.placeholder(tf.int32, [])  # nobody feeds it
    good = tf.train.QueueRunner(q, [q.enqueue(1)])
    bad = tf.train.QueueRunner(q, [q.enqueue(x)])
    with tf.Session() as sess:
        coord = tf.train.Coordinator()
        threads = [t for r in (good, bad) for t in r.create_threads(sess, coord, True, True)]
        with pytest.raises(tf.errors.InvalidArgumentError, match="expected a feed"):
            coord.join(threads, stop_grace_period_secs=10)
        (alone,) = bad.create_threads(sess)
        with pytest.raises(tf.errors.OpError):
            alone.run()
        assert "expected a feed" in str(bad.exceptions_raised[0])
    assert not any(t.is_alive() for t in threads)


def test_a_variable_counts_runs_up_to_a_limit():
    v = tf.Variable(1)
    count = v.count_up_to(3)
    with tf.Session() as sess:
        sess.run(v.initializer)
        assert [sess.run(count), sess.run(count), sess.run(v)] == [1, 2, 3]
        for _ in range(2):
            with pytest.raises(tf.errors.OutOfRangeError, match="Reached limit of 3"):
                sess.run(count)
        assert sess.run(v) == 3
    with pytest.raises(ArgumentError, match="variable of integers"):
        tf.count_up_to(tf.Variable(1.0), 3)
