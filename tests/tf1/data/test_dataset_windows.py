"""Windows of datasets, and reductions, in a session and eagerly."""

import numpy as np
import pytest

import weft.tf1 as tf

Dataset = tf.data.Dataset


def elements(dataset):
    return [np.asarray(x).tolist() for x in dataset.as_numpy_iterator()]


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ((3,), [[0, 1, 2], [3, 4, 5], [6]]),
        ((3, 2), [[0, 1, 2], [2, 3, 4], [4, 5, 6], [6]]),
        ((3, 1, 1, True), [[0, 1, 2], [1, 2, 3], [2, 3, 4], [3, 4, 5], [4, 5, 6]]),
        ((2, 4, 2), [[0, 2], [4, 6]]),
    ],
)
def test_windows(arguments, expected):
    with tf.Graph().as_default():
        windows = Dataset.range(7).window(*arguments)
        assert elements(windows.flat_map(lambda w: w.batch(9))) == expected
        sums = windows.take(2).map(lambda w: w.reduce(np.int64(0), lambda a, b: a + b))
        assert elements(sums) == [sum(rows) for rows in expected[:2]]


def test_windows_of_tuples_are_tuples_of_datasets():
    with tf.Graph().as_default():
        pairs = Dataset.zip((Dataset.range(4), Dataset.range(10, 14))).window(2)
        joined = pairs.flat_map(lambda a, b: Dataset.zip((a, b)))
        assert elements(joined) == [[0, 10], [1, 11], [2, 12], [3, 13]]


def test_a_reduction_keeps_the_structure_of_its_state_and_takes_feeds():
    with tf.Graph().as_default(), tf.Session() as session:
        count, factor = tf.placeholder(tf.int64, []), tf.constant(2.0)
        last = Dataset.range(count).reduce((0.0, 1.0), lambda s, x: (s[0] + 1.0, s[1] * factor))
        assert session.run(last, {count: 3}) == (3.0, 8.0)


def test_bad_sizes_are_refused():
    with tf.Graph().as_default(), pytest.raises(tf.errors.InvalidArgumentError, match="at least 1"):
        elements(Dataset.range(3).window(0).flat_map(lambda w: w.batch(1)))
