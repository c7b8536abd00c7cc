"""Tables in the graph: words and numbers, buckets, changes by steps."""

import numpy as np
import pytest

import weft.tf1 as tf
from weft.errors import ArgumentError, DTypeError

lookup = tf.contrib.lookup


@pytest.fixture(autouse=True)
def _graph():
    tf.reset_default_graph()


def test_words_become_numbers_and_words_again(tmp_path):
    path = tmp_path / "words.txt"
    path.write_text("brain\nsalad\nsurgery\n")
    from_list = lookup.index_table_from_tensor(["brain", "salad", "surgery"])
    from_file = lookup.index_table_from_file(str(path), num_oov_buckets=2)
    back = lookup.index_to_string_table_from_file(str(path))
    words = tf.constant([["salad", "tarkus"]])
    found = [from_list.lookup(words), from_file.lookup(words), from_file.size()]
    found.append(back.lookup(tf.constant([1, 7], tf.int64)))
    assert found[0].shape.as_list() == [1, 2]
    assert len(tf.get_collection(tf.GraphKeys.TABLE_INITIALIZERS)) == 3
    with tf.Session() as sess:
        with pytest.raises(tf.errors.FailedPreconditionError, match="Table not initialized"):
            sess.run(found[0])
        sess.run(tf.tables_initializer())
        numbers, buckets, size, texts = sess.run(found)
    assert numbers.tolist() == [[1, -1]] and size == 5
    assert buckets[0, 0] == 1 and buckets[0, 1] in (3, 4)
    assert texts.tolist() == [b"salad", b"UNK"]


def test_sparse_keys_and_integers():
    table = lookup.index_table_from_tensor([42, 7], dtype=tf.int32, num_oov_buckets=1)
    keys = tf.SparseTensor([[0, 0], [1, 2]], tf.constant([7, 5], tf.int32), [2, 3])
    found = table.lookup(keys)
    with tf.Session() as sess:
        sess.run(tf.tables_initializer())
        value = sess.run(found)
    assert value.values.tolist() == [1, 2] and value.indices.tolist() == [[0, 0], [1, 2]]


def test_a_table_that_steps_change():
    table = lookup.MutableHashTable(tf.string, tf.float32, [-1.0, -1.0])
    keys = tf.placeholder(tf.string, [None])
    found = table.lookup(keys)
    assert found.shape.as_list() == [None, 2]
    with tf.Session() as sess:
        rows = np.arange(4, dtype=np.float32).reshape(2, 2)
        sess.run(table.insert(keys, rows), {keys: ["a", "b"]})
        sess.run(table.remove(tf.constant(["a", "z"])))
        assert sess.run(found, {keys: ["b", "a"]}).tolist() == [[2, 3], [-1, -1]]
        exported = sess.run(table.export())
        assert exported[0].tolist() == [b"b"] and exported[1].tolist() == [[2, 3]]
        assert sess.run(table.size()) == 1
    with pytest.raises(ArgumentError, match="Keys must be dtype"):
        table.insert(tf.constant([1]), rows)
    with pytest.raises(ArgumentError, match="Values must be dtype"):
        table.insert(["a"], tf.constant([1]))
    with pytest.raises(DTypeError, match="Keys must be dtype"):
        table.remove(tf.constant([1]))


@pytest.mark.parametrize("version", [None, 2])
def test_tables_are_saved_with_the_variables(tmp_path, version):
    v = tf.Variable(3.0)
    words = lookup.MutableHashTable(tf.string, tf.int64, -1, name="words")
    rows = lookup.MutableDenseHashTable(tf.int64, tf.float32, [0.0, 0.0], -1, -2, name="rows")
    other = lookup.MutableHashTable(tf.int64, tf.string, "", name="other", checkpoint=False)
    saver = tf.train.Saver(write_version=version)
    changes = [words.insert(tf.constant(["a", "bcd", ""]), tf.constant([1, 2, 3], tf.int64)),
               rows.insert(tf.constant([7], tf.int64), [[1.0, 2.0]]),
               other.insert(tf.constant([1], tf.int64), ["x"])]  # fmt: skip
    with tf.Session() as sess:
        sess.run(v.initializer)
        sess.run(changes)
        path = saver.save(sess, str(tmp_path / "model"))
        sess.run(words.insert(tf.constant(["new"]), tf.constant([9], tf.int64)))
    with tf.Session() as sess:
        saver.restore(sess, path)
        assert sess.run([v, words.size(), rows.size(), other.size()]) == [3, 3, 1, 0]
        found = sess.run(words.lookup(tf.constant(["bcd", "", "new"])))
        assert found.tolist() == [2, 3, -1]
        assert sess.run(rows.lookup(tf.constant([7], tf.int64))).tolist() == [[1, 2]]
        only = tf.train.Saver([words])
        sess.run(words.remove(tf.constant(["a"])))
        path = only.save(sess, str(tmp_path / "words"))
        only.restore(sess, path)
        assert sess.run(words.size()) == 2
        with pytest.raises(tf.errors.NotFoundError, match="rows-keys"):
            tf.train.Saver([rows]).restore(sess, path)


def test_tables_of_tf_lookup():
    filled = tf.lookup.KeyValueTensorInitializer(["a", "b"], [1.5, 2.5])
    static = tf.lookup.StaticHashTable(filled, 0.0)
    dense = tf.lookup.experimental.DenseHashTable(tf.int64, tf.int64, -1, 0, -1)
    with tf.Session() as sess:
        sess.run(static.initializer)
        assert sess.run(static.lookup(tf.constant(["b", "c"]))).tolist() == [2.5, 0]
        assert sorted(sess.run(static.export())[0].tolist()) == [b"a", b"b"]
        sess.run(dense.insert(tf.constant([4], tf.int64), tf.constant([9], tf.int64)))
        assert sess.run(dense.lookup(tf.constant([4, 5], tf.int64))).tolist() == [9, -1]
        keys = tf.constant([4, 6], tf.int64)
        sess.run(dense.insert_or_assign(keys, keys + 1))
        assert sess.run(dense.lookup(keys)).tolist() == [5, 7]
        sess.run(dense.erase(keys[:1]))
        assert sess.run(dense.lookup(keys)).tolist() == [-1, 7]
    with pytest.raises(DTypeError, match="Keys must be dtype"):
        static.lookup(tf.constant([1]))


@pytest.mark.parametrize(
    ("error", "make"),
    [
        (ArgumentError, lambda: lookup.index_table_from_file("")),
        (ArgumentError, lambda: lookup.index_table_from_tensor(["a"], num_oov_buckets=-1)),
        (ArgumentError, lambda: lookup.index_table_from_tensor(None)),
        (ArgumentError, lambda: lookup.index_table_from_tensor(["a"], dtype=tf.int64)),
        (DTypeError, lambda: lookup.index_table_from_tensor([1.0], dtype=tf.float32)),
        (ArgumentError, lambda: lookup.IdTableWithHashBuckets(None, 0)),
        (ArgumentError, lambda: lookup.TextFileInitializer("f", tf.string, -1, tf.int64, -1)),
        (ArgumentError, lambda: lookup.StrongHashSpec([1])),
        (ArgumentError, lambda: tf.lookup.StaticVocabularyTable(None, 0)),
    ],
)
def test_what_does_not_fit_is_refused_when_it_is_built(error, make):
    with pytest.raises(error):
        make()
