"""Queue-based pipelines: file names, readers, decoders, queues filled by threads."""

import threading

import numpy as np
import pytest

import weft.tf1 as tf
from weft.errors import ArgumentError, ShapeError
from weft.formats import image


@pytest.fixture(autouse=True)
def _graph():
    tf.reset_default_graph()
    tf.set_random_seed(1)


def drained(fetches):
    """All that a program with queues gives, and that its threads end."""
    before = set(threading.enumerate())
    found = []
    with tf.Session() as sess:
        sess.run([tf.global_variables_initializer(), tf.local_variables_initializer()])
        coord = tf.train.Coordinator()
        threads = tf.train.start_queue_runners(sess=sess, coord=coord)
        try:
            while not coord.should_stop():
                found.append(sess.run(fetches))
        except tf.errors.OutOfRangeError:
            pass  # the end of the data ends the loop
        finally:
            coord.request_stop()
        coord.join(threads)
    assert not any(t.is_alive() for t in set(threading.enumerate()) - before)
    return found


def test_rows_of_tables_are_batched(tmp_path):
    for part in range(2):
        lines = [f"{n},{n / 2}\n" for n in range(part * 5, part * 5 + 5)]
        (tmp_path / f"{part}.csv").write_text("n,x\n" + "".join(lines))
    names = [str(tmp_path / f"{part}.csv") for part in range(2)]
    queue = tf.train.string_input_producer(names, num_epochs=2, shuffle=False)
    key, value = tf.TextLineReader(skip_header_lines=1).read(queue)
    n, x = tf.decode_csv(value, [[0], [0.0]])
    numbers, doubled, keys = tf.train.batch(
        [n, x * 2, key], batch_size=8, capacity=16, allow_smaller_final_batch=True
    )
    assert numbers.shape.as_list() == [None]
    found = drained([numbers, doubled, keys])
    assert [len(f[0]) for f in found] == [8, 8, 4]
    everything = np.concatenate([f[0] for f in found])
    assert everything.tolist() == [*range(10)] * 2
    assert np.array_equal(np.concatenate([f[1] for f in found]), everything)
    assert found[0][2][0] == f"{names[0]}:2".encode()  # the header is line 1


def test_shuffled_batches_have_each_element_once():
    x = np.arange(40, dtype=np.float32)
    row, label = tf.train.slice_input_producer([x, x.astype(np.int64)], num_epochs=1, seed=3)
    batch = tf.train.shuffle_batch({"x": row, "y": label}, 5, 30, 10, num_threads=2, seed=1)
    assert batch["x"].shape.as_list() == [5]
    found = drained(batch)
    values = np.concatenate([f["x"] for f in found]).tolist()
    assert sorted(values) == x.tolist()
    assert values != x.tolist()
    assert all((f["x"] == f["y"]).all() for f in found)


def test_images_and_raw_records(tmp_path):
    pixels = np.arange(24, dtype=np.uint8).reshape(2, 4, 3)
    for n in range(3):
        (tmp_path / f"{n}.png").write_bytes(image.encode(pixels + n))
    (tmp_path / "all.bin").write_bytes((np.arange(8, dtype="<i2")).tobytes())
    queue = tf.train.string_input_producer(
        [str(tmp_path / f"{n}.png") for n in range(3)], num_epochs=1, shuffle=False
    )
    _, content = tf.WholeFileReader().read(queue)
    picture = tf.decode_png(content, channels=3)
    picture.set_shape([2, 4, 3])
    batch = tf.train.batch([tf.cast(picture, tf.float32)], 3)
    assert np.array_equal(drained(batch)[0], np.stack([pixels, pixels + 1, pixels + 2]))

    tf.get_default_graph().clear_collection("queue_runners")
    queue = tf.train.string_input_producer([str(tmp_path / "all.bin")], num_epochs=1)
    _, record = tf.FixedLengthRecordReader(record_bytes=4).read(queue)
    pair = tf.decode_raw(record, tf.int16)
    with pytest.raises(ShapeError, match="set_shape tells, or dynamic_pad pads"):
        tf.train.batch([pair], 4)
    padded = tf.train.batch([pair], 4, dynamic_pad=True)
    assert drained(padded)[0].tolist() == [[0, 1], [2, 3], [4, 5], [6, 7]]


def test_an_error_in_a_thread_is_raised_by_join(tmp_path):
    (tmp_path / "a.csv").write_text("1\nx\n")
    queue = tf.train.string_input_producer([str(tmp_path / "a.csv")], shuffle=False)
    _, line = tf.TextLineReader().read(queue)
    (n,) = tf.decode_csv(line, [[0]])
    batch = tf.train.batch([n], 4)
    with pytest.raises(ValueError, match="expected int32, got 'x'"):
        drained(batch)


def test_what_is_forgotten_is_reported():
    row = tf.train.slice_input_producer([np.arange(3)])[0]
    with pytest.raises(ArgumentError, match="expected at least one name"):
        tf.train.string_input_producer([])
    with pytest.raises(ArgumentError, match="capacity 10 must be bigger than min_after_dequeue 10"):
        tf.train.shuffle_batch([row], 5, 10, 10)


def test_a_coordinator_stops_all():
    coord = tf.train.Coordinator()
    counts = []

    def work():
        with coord.stop_on_exception():
            while not coord.should_stop():
                counts.append(1)
                if len(counts) > 50:
                    raise KeyError("enough")

    threads = [threading.Thread(target=work) for _ in range(2)]
    for thread in threads:
        thread.start()
    with pytest.raises(KeyError, match="enough"):
        coord.join(threads)
    assert coord.should_stop()
