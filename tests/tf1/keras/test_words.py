"""Texts as numbers, and data sets of words; numbers are TensorFlow's."""

import pickle
import random

import numpy as np
import pytest

import weft.tf1 as tf
from weft.errors import ArgumentError, DataError

sequence = tf.keras.preprocessing.sequence
TEXTS = np.array(["The cat, sat.", "the dog sat on THE mat!", "a dog's bone"])
WORDS = ["the", "sat", "on", "mat", "dogs", "dog", "cat", "bone", "a"]


def test_words_are_numbered_by_how_frequent_they_are(eager):
    def read(texts=TEXTS, **options):
        layer = tf.keras.layers.TextVectorization(**options)
        layer.adapt(texts)
        return layer, layer(["new cat sat"]).numpy().tolist(), layer(TEXTS).numpy().tolist()

    layer, new, rows = read()
    assert layer.get_vocabulary() == ["", "[UNK]", *WORDS]
    assert new == [[1, 8, 3]] and rows[0] == [2, 8, 3, 0, 0, 0]
    assert read(max_tokens=6, output_sequence_length=4)[2] == [
        [2, 1, 3, 0], [2, 1, 3, 4], [1, 1, 1, 0],
    ]  # fmt: skip
    assert read(output_mode="multi_hot")[1] == [[1, 0, 1, 0, 0, 0, 0, 1, 0, 0]]
    assert read(output_mode="count")[2][1] == [0, 2, 1, 1, 1, 0, 1, 0, 0, 0]
    assert read(ngrams=2)[1] == [[1, 16, 3, 1, 15]]
    plain = lambda x: tf.regex_replace(tf.strings.lower(x), "[,.!]", " ")  # noqa: E731
    texts = tf.data.Dataset.from_tensor_slices(TEXTS)
    layer = read(texts.batch(2), standardize=plain, output_sequence_length=5)[0]
    assert [len(batch) for batch in texts.batch(2).map(layer)] == [2, 1]
    assert next(iter(texts.batch(2).map(layer))).numpy().tolist()[1] == [2, 7, 3, 4, 2]
    with pytest.raises(ArgumentError, match="tf_idf"):
        tf.keras.layers.TextVectorization(output_mode="tf_idf")


def test_pairs_of_neighbors_and_of_drawn_words():
    random.seed(0)
    pairs, labels = sequence.skipgrams([1, 2, 0, 3, 4], 6, window_size=1, seed=3)
    assert pairs == [[1, 2], [1, 5], [4, 4], [3, 4], [2, 1], [2, 4], [3, 3], [4, 3]]
    assert labels == [1, 0, 0, 1, 1, 0, 0, 1]
    table = sequence.make_sampling_table(6)
    np.testing.assert_allclose(table[[0, 5]], [0.00315225, 0.01068435], rtol=1e-5)


def test_reviews_are_read_from_a_file_of_arrays_and_lists_alone(tmp_path, monkeypatch):
    monkeypatch.setenv("KERAS_HOME", str(tmp_path))
    folder = tmp_path / "datasets"
    folder.mkdir()
    imdb, reuters = tf.keras.datasets.imdb, tf.keras.datasets.reuters
    with pytest.raises(DataError, match=r"imdb\.npz"):
        imdb.load_data()
    rows = np.array([[3, 9], [4, 5, 6], [7], [8, 2, 1, 5]], object)
    labels = np.array([0, 1, 1, 0])
    np.savez(folder / "imdb.npz", x_train=rows, y_train=labels, x_test=rows[:2], y_test=labels[:2])
    np.savez(folder / "reuters.npz", x=rows, y=labels)
    (x, y), (others, _) = imdb.load_data(num_words=9)
    assert sorted(zip(map(tuple, x), y.tolist(), strict=True)) == [
        ((1, 2), 1), ((1, 2, 5, 4, 8), 0), ((1, 6, 2), 0), ((1, 7, 8, 2), 1),
    ]  # fmt: skip
    assert len(others) == 2
    (x, _), (left, _) = reuters.load_data(test_split=0.25, start_char=None, index_from=0)
    assert len(x) == 3 and len(left) == 1 and max(max(row) for row in [*x, *left]) == 8

    class Harmful:
        def __reduce__(self):
            return print, ("run",)

    harmful = np.array([Harmful()], object)
    assert pickle.dumps(harmful)
    np.savez(folder / "reuters.npz", x=harmful, y=labels)
    with pytest.raises(DataError, match=r"builtins\.print"):
        reuters.load_data()


def test_a_mean_is_over_the_steps_that_are_not_masked_in_tensorflow_2(eager):
    x = np.array([[[1.0], [2.0]], [[3.0], [-1.0]]], np.float32)
    model = tf.keras.Sequential([tf.keras.layers.Masking(-1.0, input_shape=(2, 1))])
    model.compile("sgd", "mae")
    assert model.evaluate(x, np.zeros_like(x), verbose=0) == 2
    assert (
        float(tf.keras.layers.Dense(1, kernel_initializer="ones")(x[0], training=True)[1, 0]) == 2
    )
    assert tf.constant(x).ndim == 3


def test_a_subclass_is_made_for_the_first_batch_of_a_loader(eager):
    class Sum(tf.keras.Model):
        def __init__(self):
            super().__init__()
            self.dense = tf.keras.layers.Dense(1)

        def call(self, pair):
            assert isinstance(pair, tuple)
            return self.dense(pair[0] + pair[1])

    x, y = np.ones((6, 3), np.float32), np.ones((6, 1), np.float32)
    rows = tf.data.Dataset.from_tensor_slices(((x, x), y)).batch(3)
    batches = [((x, x), y)] * 2
    for data, steps in ((rows, None), (iter(batches), 2)):
        model = Sum()
        model.compile("sgd", "mse")
        history = model.fit(data, steps_per_epoch=steps, verbose=0).history
        assert len(history["loss"]) == 1 and model.predict(rows, verbose=0).shape == (6, 1)
    with pytest.raises(ArgumentError, match="got none"):
        model = Sum()
        model.compile("sgd", "mse")
        model.fit(rows.take(0), verbose=0)
