"""`tf.data` in graphs: iterators, fed sources, traced functions, strings."""

import gzip

import numpy as np
import pytest

import weft.tf1 as tf
from weft.errors import DTypeError
from weft.formats import image
from weft.formats.example import encode
from weft.formats.tfrecord import RecordWriter


@pytest.fixture(autouse=True)
def _graph():
    tf.reset_default_graph()
    tf.set_random_seed(1)


def drained(sess, fetches):
    found = []
    with pytest.raises(tf.errors.OutOfRangeError, match="End of sequence"):
        while True:
            found.append(sess.run(fetches))
    return found


def test_a_one_shot_iterator_trains():
    x = np.random.default_rng(0).random((40, 2), np.float32)
    dataset = tf.data.Dataset.from_tensor_slices((x, x @ [[1.0], [2.0]])).shuffle(40, seed=1)
    features, labels = dataset.repeat().batch(8).make_one_shot_iterator().get_next()
    assert features.shape.as_list() == [None, 2]
    assert features.dtype is tf.float32
    w = tf.Variable(tf.zeros([2, 1]))
    loss = tf.reduce_mean(tf.square(tf.matmul(features, w) - tf.cast(labels, tf.float32)))
    train = tf.train.GradientDescentOptimizer(0.3).minimize(loss)
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        for _ in range(300):
            sess.run(train)
        assert sess.run(loss) < 1e-6
        assert np.allclose(sess.run(w), [[1], [2]], atol=1e-2)


def test_a_run_takes_one_element_and_each_session_starts_again():
    iterator = tf.data.Dataset.range(5).make_one_shot_iterator()
    x = iterator.get_next()
    y = iterator.get_next()
    with tf.Session() as sess:
        assert sess.run([x, x + 1, x * 2]) == [0, 1, 0]
        assert sess.run([x, y]) == [1, 2]
        assert drained(sess, x) == [3, 4]
    with tf.Session() as sess:
        assert sess.run(x) == 0


def test_initializable_iterators_take_feeds():
    given = tf.placeholder(tf.float32, [None, 2])
    most = tf.placeholder(tf.int64, [])
    del most
    dataset = tf.data.Dataset.from_tensor_slices(given).map(lambda row: tf.reduce_sum(row))
    iterator = dataset.batch(2).make_initializable_iterator()
    total = iterator.get_next()
    with tf.Session() as sess:
        with pytest.raises(tf.errors.FailedPreconditionError, match="not initialized"):
            sess.run(total)
        for scale in (1, 10):
            sess.run(iterator.initializer, {given: [[1, 2], [3, 4], [5 * scale, 6]]})
            found = drained(sess, total)
            assert [f.tolist() for f in found] == [[3, 7], [5 * scale + 6]]
    with pytest.raises(tf.errors.InvalidArgumentError, match="use make_initializable_iterator"):
        dataset.make_one_shot_iterator()


def test_reinitializable_iterators_go_through_several_datasets():
    train, test = tf.data.Dataset.range(3), tf.data.Dataset.range(10, 12)
    iterator = tf.data.Iterator.from_structure(train.output_types, train.output_shapes)
    x = iterator.get_next()
    begin = [iterator.make_initializer(d) for d in (train, test)]
    with tf.Session() as sess:
        for which, expected in ((0, [0, 1, 2]), (1, [10, 11]), (0, [0, 1, 2])):
            sess.run(begin[which])
            assert drained(sess, x) == expected
    with pytest.raises(DTypeError, match=r"expected elements of \['int64'\], got \['int32'"):
        iterator.make_initializer(tf.data.Dataset.from_tensor_slices([1, 2]))


def test_feedable_iterators_follow_their_handle():
    handle = tf.placeholder(tf.string, shape=[])
    train = tf.data.Dataset.range(100).repeat().make_one_shot_iterator()
    test = tf.data.Dataset.range(50, 53).make_initializable_iterator()
    shapes = tf.data.Dataset.range(1)
    iterator = tf.data.Iterator.from_string_handle(
        handle, shapes.output_types, shapes.output_shapes
    )
    x = iterator.get_next() * 2
    with tf.Session() as sess:
        one, two = sess.run([train.string_handle(), test.string_handle()])
        assert [sess.run(x, {handle: one}) for _ in range(3)] == [0, 2, 4]
        sess.run(test.initializer)
        assert sess.run(x, feed_dict={handle: two}) == 100
        assert sess.run(x, feed_dict={handle: one}) == 6
        with pytest.raises(tf.errors.InvalidArgumentError, match="expected a feed"):
            sess.run(x)
        with pytest.raises(tf.errors.InvalidArgumentError, match="string_handle"):
            sess.run(x, {handle: "nothing"})


def test_transformations():
    dataset = tf.data.Dataset.from_tensor_slices({"a": np.arange(6), "b": np.ones((6, 2))})
    dataset = dataset.filter(lambda d: tf.greater(d["a"], 1))
    dataset = dataset.map(lambda d: {"s": d["a"] * 2, "b": tf.reduce_sum(d["b"])}, 2)
    dataset = dataset.concatenate(dataset.take(1)).prefetch(2)
    zipped = tf.data.Dataset.zip((dataset, tf.data.Dataset.range(3).repeat()))
    element, number = zipped.make_one_shot_iterator().get_next()
    with tf.Session() as sess:
        found = drained(sess, [element["s"], element["b"], number])
    assert [[float(v) for v in f] for f in found] == [
        [4, 2, 0], [6, 2, 1], [8, 2, 2], [10, 2, 0], [4, 2, 1],
    ]  # fmt: skip
    nested = tf.data.Dataset.range(1, 4).flat_map(
        lambda n: tf.data.Dataset.from_tensors(n * 10).repeat(2)
    )
    padded = tf.data.Dataset.range(1, 3).map(lambda n: tf.fill([tf.cast(n, tf.int32)], n))
    batch = padded.padded_batch(2, [None]).make_one_shot_iterator().get_next()
    x = nested.make_one_shot_iterator().get_next()
    generated = tf.data.Dataset.from_generator(lambda: iter([1, 2]), tf.float32, [])
    y = generated.make_one_shot_iterator().get_next()
    with tf.Session() as sess:
        assert drained(sess, x) == [10, 10, 20, 20, 30, 30]
        assert sess.run(batch).tolist() == [[1, 0], [2, 2]]
        assert drained(sess, y) == [1.0, 2.0]


def test_records_tables_and_images(tmp_path):
    pixels = np.arange(24, dtype=np.uint8).reshape(2, 4, 3)
    with RecordWriter(tmp_path / "a.tfrecord") as writer:
        for n in range(4):
            raw = np.full(3, n, np.uint8).tobytes()
            writer.write(encode({"raw": [raw], "n": [n], "png": [image.encode(pixels + n)]}))
    features = {
        "raw": tf.FixedLenFeature([], tf.string),
        "n": tf.FixedLenFeature([], tf.int64),
        "png": tf.FixedLenFeature([], tf.string),
    }

    def parse(serialized):
        row = tf.parse_single_example(serialized, features)
        raw = tf.reshape(tf.decode_raw(row["raw"], tf.uint8), [3])
        picture = tf.cast(tf.decode_png(row["png"], channels=3), tf.float32) / 2
        picture.set_shape([2, 4, 3])
        return raw, tf.cast(row["n"], tf.int32), picture

    records = tf.data.TFRecordDataset([str(tmp_path / "a.tfrecord")]).map(parse, 2).batch(3)
    raw, n, picture = records.make_one_shot_iterator().get_next()
    assert picture.shape.as_list() == [None, 2, 4, 3]
    with tf.Session() as sess:
        found = sess.run([raw, n, picture])
    assert found[0].tolist() == [[0] * 3, [1] * 3, [2] * 3]
    assert found[1].tolist() == [0, 1, 2]
    assert np.allclose(found[2][2], (pixels + 2) / 2)

    with gzip.open(tmp_path / "t.csv", "wt") as stream:
        stream.write("h\n1,0.5,a\n2,,b\n")
    lines = tf.data.TextLineDataset(str(tmp_path / "t.csv"), "GZIP").skip(1)
    columns = lines.map(lambda line: tuple(tf.decode_csv(line, [[0], [9.0], ["?"]])))
    i, x, text = columns.make_one_shot_iterator().get_next()
    batched = tf.data.TFRecordDataset(str(tmp_path / "a.tfrecord")).batch(4)
    records = batched.make_one_shot_iterator().get_next()
    parsed = tf.parse_example(records, {"n": tf.FixedLenFeature([], tf.int64)})
    with tf.Session() as sess:
        assert sess.run([i, x, text]) == [1, 0.5, b"a"]
        assert sess.run([i, x, text]) == [2, 9.0, b"b"]
        assert sess.run(parsed["n"]).tolist() == [0, 1, 2, 3]


def test_features_of_any_length_are_sparse(tmp_path):
    rows = [[1, 2, 3], [], [4]]
    examples = [encode({"n": row}) if row else encode({}) for row in rows]
    features = {"n": tf.VarLenFeature(tf.int64)}
    records = tf.placeholder(tf.string)
    sparse = tf.parse_example(records, features)["n"]
    alone = tf.parse_single_example(examples[0], features)["n"]
    total = tf.reduce_sum(sparse.values)
    with tf.Session() as sess:
        feed = {records: np.array(examples, object)}
        found = sess.run(sparse, feed)
        assert found.indices.tolist() == [[0, 0], [0, 1], [0, 2], [2, 0]]
        assert found.values.tolist() == [1, 2, 3, 4]
        assert found.dense_shape.tolist() == [3, 3]
        assert sess.run(total, feed) == 10
        one = sess.run(alone)
        assert one.indices.tolist() == [[0], [1], [2]]
        assert one.dense_shape.tolist() == [3]
    words = [encode({"w": [b"a", b"bc"]}), encode({})]
    sparse = tf.parse_example(words, {"w": tf.VarLenFeature(tf.string)})["w"]
    with tf.Session() as sess:
        found = sess.run(sparse)
        assert found.indices.tolist() == [[0, 0], [0, 1]]
        assert found.values.tolist() == [b"a", b"bc"]
