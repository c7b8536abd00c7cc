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


def grouped(dataset, change):
    return elements(dataset.apply(change))


def test_what_carries_something_from_element_to_element():
    experimental, numbers = tf.data.experimental, Dataset.range(7)
    odd = lambda x: x % 2  # noqa: E731
    with tf.Graph().as_default():
        pairs = experimental.group_by_window(odd, lambda k, d: d.batch(2), window_size=2)
        assert grouped(numbers, pairs) == [[0, 2], [1, 3], [4, 6], [5]]
        rising = experimental.group_by_window(
            lambda x: x % 3, lambda k, d: d.map(lambda x: x * 10 + k).batch(3),
            window_size_func=lambda k: k + 1,
        )  # fmt: skip
        assert grouped(numbers, rising) == [[0], [30], [11, 41], [60], [22, 52]]
        ragged = numbers.skip(1).take(5).map(lambda n: tf.fill([n], n))  # sizes of int64
        padded = experimental.group_by_window(
            lambda x: tf.cast(tf.size(x) % 2, tf.int64), lambda k, d: d.padded_batch(2, [None]), 2
        )
        assert grouped(ragged, padded)[:2] == [[[1, 0, 0], [3] * 3], [[2, 2, 0, 0], [4] * 4]]
        sums = experimental.scan(np.int64(0), lambda c, x: (c + x, c * 10 + x))
        assert grouped(numbers.take(4), sums) == [0, 1, 12, 33]
        again = Dataset.from_tensor_slices([1, 2, 1, 3]).apply(experimental.unique()).repeat(2)
        assert elements(again) == [1, 2, 3] * 2
        assert grouped(numbers, experimental.take_while(lambda x: x < 3)) == [0, 1, 2]
        parts = Dataset.from_tensor_slices([1.0, 0.0, 2.0]).map(
            lambda x: tf.check_numerics(1 / x, "")
        )
        assert grouped(parts, experimental.ignore_errors()) == [1.0, 0.5]


def test_datasets_of_several_and_what_is_known_of_one():
    experimental = tf.data.experimental
    with tf.Graph().as_default(), tf.Session() as session:
        both = [Dataset.range(1), Dataset.range(10, 13)]
        which = Dataset.from_tensor_slices(np.array([0, 0, 1, 0, 1, 0]))
        assert elements(experimental.choose_from_datasets(both, which)) == [0, 10, 11]
        drawn = experimental.sample_from_datasets(both, [0.5, 0.5], seed=3)
        assert sorted(elements(drawn)) == [0, 10, 11, 12]
        assert elements(experimental.Counter(3, 2).take(3)) == [3, 5, 7]
        counts = [Dataset.range(5).batch(2), Dataset.range(2).repeat()]
        assert session.run([experimental.cardinality(d) for d in counts]) == [3, -1]
        only = experimental.get_single_element(Dataset.range(1).map(lambda x: (x, x + 1)))
        assert session.run(only) == (0, 1)
        with pytest.raises(tf.errors.InvalidArgumentError, match="of one element, got several"):
            session.run(experimental.get_single_element(both[1]))
