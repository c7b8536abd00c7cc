"""Input functions on queues: producers, batches of all kinds, readers."""

import numpy as np
import pytest

import weft.tf1 as tf
from weft.errors import ArgumentError, DTypeError, ShapeError, TreeError


@pytest.fixture(autouse=True)
def _graph():
    tf.reset_default_graph()


def drained(fetches):
    """All that a program with queues gives."""
    found = []
    with tf.train.MonitoredSession() as sess:
        while not sess.should_stop():
            found.append(sess.run(fetches))
    return found


def counted(limit):
    """The numbers below a limit, one a run."""
    return tf.train.range_input_producer(limit, 1, shuffle=False).dequeue()


def test_epochs_have_orders_of_their_own_which_follow_from_the_seed():
    def drawn(seed):
        tf.reset_default_graph()
        rows = tf.train.input_producer(np.arange(8), num_epochs=3, seed=seed).dequeue()
        return np.reshape(drained(rows), [3, 8]).tolist()

    epochs = drawn(1)
    assert all(sorted(e) == list(range(8)) for e in epochs)
    assert epochs[0] != epochs[1] != epochs[2]
    assert drawn(1) == epochs != drawn(2)


def test_a_batch_of_a_list_of_one_is_one_tensor():
    n = counted(5)
    single, pair, named = [
        tf.train.batch(x, 2, allow_smaller_final_batch=True)
        for x in ([n], [n, n * 2], {"n": n})
    ]  # fmt: skip
    assert isinstance(single, tf.Tensor) and isinstance(pair, list) and list(named) == ["n"]


def test_only_wanted_elements_are_batched():
    n = counted(12)
    evens = tf.train.maybe_batch([n], tf.equal(n % 2, 0), 3, num_threads=1)
    assert np.concatenate(drained(evens)).tolist() == [0, 2, 4, 6, 8, 10]


def test_flags_of_rows_say_which_are_batched():
    n = counted(6)
    rows = tf.stack([n, n + 100])
    kept = tf.train.maybe_batch([rows], tf.stack([n < 4, n < 2]), 2, enqueue_many=True,
                                shapes=[[]])  # fmt: skip
    assert np.concatenate(drained(kept)).tolist() == [0, 100, 1, 101, 2, 3]


def test_batches_of_several_sources():
    parts = [[counted(6), tf.constant(b"a")], [counted(4) + 100, tf.constant(b"b")]]
    numbers, texts = tf.train.batch_join(parts, 2)
    found = drained([numbers, texts])
    pairs = {(int(n), t) for f in found for n, t in zip(*f, strict=True)}
    assert pairs == {(n, b"a") for n in range(6)} | {(n + 100, b"b") for n in range(4)}


def test_drawn_batches_of_several_sources_have_each_element_once():
    parts = [{"n": counted(20)}, {"n": counted(20) + 100}]
    batch = tf.train.shuffle_batch_join(parts, 4, 50, 20, seed=3)
    found = np.concatenate([f["n"] for f in drained(batch)]).tolist()
    assert sorted(found) == [*range(20), *range(100, 120)] and found != sorted(found)


def test_seeded_draws_do_not_depend_on_the_capacity():
    def drawn(capacity):
        tf.reset_default_graph()
        return np.concatenate(drained(tf.train.shuffle_batch([counted(30)], 3, capacity, 10,
                                                             seed=5))).tolist()  # fmt: skip

    found = drawn(13)
    assert found == drawn(100) and found != sorted(found)


@pytest.mark.parametrize("kind", ["numbers", "texts"])
def test_sparse_tensors_are_batched(kind):
    n = tf.cast(counted(4), tf.int64)
    values = tf.stack([n, n * 2])
    values = values if kind == "numbers" else tf.as_string(values)
    sparse = tf.SparseTensor(tf.stack([[n], [n + 1]]), values, [n + 2])
    batch = tf.train.batch([sparse, n], 2)
    assert batch[0].dense_shape.shape.as_list() == [2]
    (first, numbers), (second, _) = drained(batch)
    expected = [0, 0, 1, 2] if kind == "numbers" else [b"0", b"0", b"1", b"2"]
    assert first.values.tolist() == expected and numbers.tolist() == [0, 1]
    assert first.indices.tolist() == [[0, 0], [0, 1], [1, 1], [1, 2]]
    assert [first.dense_shape.tolist(), second.dense_shape.tolist()] == [[2, 3], [2, 5]]


def test_rows_of_sparse_tensors_are_elements():
    sparse = tf.SparseTensor([[0, 1], [2, 0]], [1.0, 2.0], [3, 4])
    batch = tf.train.batch([tf.SparseTensor(sparse.indices, sparse.values, sparse.dense_shape)], 2,
                           enqueue_many=True)  # fmt: skip
    with tf.Session() as sess:
        coord = tf.train.Coordinator()
        threads = tf.train.start_queue_runners(sess, coord)
        found = [sess.run(batch) for _ in range(3)]
        coord.request_stop()
        coord.join(threads, stop_grace_period_secs=10)
    assert [f.values.tolist() for f in found] == [[1], [2, 1], [2]]  # rows 0 1 | 2 0 | 1 2
    assert found[0].dense_shape.tolist() == [2, 4]


@pytest.mark.parametrize(
    ("error", "text", "make"),
    [
        (ShapeError, "set_shape tells, or dynamic_pad pads",
         lambda x: tf.train.batch([tf.placeholder(tf.int32, [None])], 2)),
        (ShapeError, "cannot be a vector", lambda x: tf.train.maybe_batch([x], [True], 2)),
        (TreeError, "must have the same keys",
         lambda x: tf.train.batch_join([{"a": x}, {"b": x}], 2)),
        (DTypeError, "types to be consistent",
         lambda x: tf.train.batch_join([[x], [tf.cast(x, tf.float32)]], 2)),
        (TreeError, "at least one tensor", lambda x: tf.train.batch_join([], 2)),
        (ArgumentError, "num_epochs must be > 0", lambda x: tf.train.limit_epochs(x, 0)),
        (ShapeError, "element_shape", lambda x: tf.train.input_producer(
            tf.placeholder(tf.int32, [None, None]))),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_refused_when_it_is_built(error, text, make):
    with pytest.raises(error, match=text):
        make(tf.constant(1))


def test_names_of_files_are_matched_once(tmp_path):
    for n in range(2):
        (tmp_path / f"{n}.txt").write_text("x\n")
    names = tf.train.match_filenames_once(str(tmp_path / "*.txt"))
    key, value = tf.TextLineReader().read(tf.train.string_input_producer(names, 2, shuffle=False))
    with tf.Session() as sess:
        assert len(sess.run(names)) == 2
        (tmp_path / "2.txt").write_text("y\n")
        assert len(sess.run(names)) == 2
    assert [k for k, _ in drained([key, value])][:2] == [f"{tmp_path}/{n}.txt:1".encode()
                                                         for n in range(2)]  # fmt: skip


def test_readers_read_up_to_a_number_count_and_begin_again(tmp_path):
    (tmp_path / "a").write_text("1\r\n2\n3")
    (tmp_path / "b").write_text("4\n")
    queue = tf.FIFOQueue(9, tf.string, shapes=[[]])
    reader = tf.TextLineReader()
    lines = reader.read_up_to(queue, 2)[1]
    counts = [reader.num_records_produced(), reader.num_work_units_completed()]
    with tf.Session() as sess:
        names = [str(tmp_path / n) for n in ("a", "b", "b", "nothing")]
        sess.run(queue.enqueue_many([names]))
        assert [sess.run(lines).tolist() for _ in range(3)] == [[b"1", b"2"], [b"3"], [b"4"]]
        assert sess.run(counts) == [4, 2]
        sess.run(reader.reset())
        assert sess.run(counts) == [0, 0]
        assert sess.run(reader.read(queue)[0]) == f"{tmp_path}/b:1".encode()
        with pytest.raises(tf.errors.NotFoundError, match="nothing; No such file"):
            sess.run(lines)
    wrong = tf.FIFOQueue(9, tf.int32, shapes=[[]])
    with tf.Session() as sess, pytest.raises(tf.errors.InvalidArgumentError, match="string comp"):
        sess.run(wrong.enqueue(1))
        sess.run(reader.read(wrong))


def test_states_of_identity_readers_are_saved():
    queue = tf.FIFOQueue(9, tf.string, shapes=[[]])
    reader = tf.IdentityReader()
    state = tf.placeholder(tf.string, [])
    with tf.Session() as sess:
        sess.run(queue.enqueue_many([["x", "y"]]))
        assert sess.run(reader.read(queue)[1]) == b"x"
        saved = sess.run(reader.serialize_state())
        sess.run(reader.read(queue)[1])
        sess.run(reader.restore_state(state), {state: saved})
        assert sess.run(reader.num_records_produced()) == 1
        with pytest.raises(tf.errors.InvalidArgumentError, match="Could not parse state"):
            sess.run(reader.restore_state(state), {state: saved[1:]})
