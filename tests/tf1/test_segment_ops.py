"""Negative and out-of-range segments and classes: what is dropped, and what raises."""

import numpy as np
import pytest

import weft.tf1 as tf
from weft.tf1 import errors

ROWS = np.arange(12, dtype=np.float32).reshape(4, 3)
ABSENT = [-1, -5, 4, 2**40]


def fed(session, build, *arrays):
    """The value of an operation on placeholders, whose shapes are known or not."""
    found = []
    for known in (True, False):
        shapes = [a.shape if known else [None] * a.ndim for a in arrays]
        types = [tf.as_dtype(a.dtype) for a in arrays]
        xs = [tf.placeholder(t, s) for t, s in zip(types, shapes, strict=True)]
        found.append(session.run(build(*xs), dict(zip(xs, arrays, strict=True))))
    assert np.array_equal(*found)
    return found[0]


REFUSED = {
    "gather": lambda i: tf.gather(ROWS, i),
    "gather_nd": lambda i: tf.gather_nd(ROWS, tf.expand_dims(i, -1)),
    "embedding": lambda i: tf.nn.embedding_lookup(ROWS, i),
    "scatter_nd": lambda i: tf.scatter_nd(tf.expand_dims(i, -1), ROWS[:2], [4, 3]),
    "cross_entropy": lambda i: tf.nn.sparse_softmax_cross_entropy_with_logits(
        labels=i, logits=ROWS[:2]
    ),
    "confusion_matrix": lambda i: tf.confusion_matrix(i, i, 4),
    "confusion_of_predictions": lambda i: tf.confusion_matrix(tf.zeros_like(i), i, 4),
    "invert_permutation": tf.invert_permutation,
}


@pytest.mark.parametrize("place", ABSENT)
@pytest.mark.parametrize("name", REFUSED)
def test_absent_places_raise(session, name, place):
    with pytest.raises(errors.InvalidArgumentError, match="expected"):
        fed(session, REFUSED[name], np.array([0, place], np.int64))


def test_a_number_twice_is_no_permutation(session):
    assert fed(session, tf.invert_permutation, np.array([2, 0, 1])).tolist() == [1, 2, 0]
    with pytest.raises(errors.InvalidArgumentError, match="expected every number from 0"):
        fed(session, tf.invert_permutation, np.array([1, 1, 0]))


def test_negative_segments_do_not_count(session):
    def sums(x, i):
        return tf.unsorted_segment_sum(x, i, 2)

    x = ROWS.copy()
    x[1] = np.nan
    found = fed(session, sums, x, np.array([1, -1, 0, 1], np.int32))
    assert found.tolist() == [[6, 7, 8], [9, 11, 13]]
    with pytest.raises(errors.InvalidArgumentError, match="expected 0 <= index < 2, got 2"):
        fed(session, sums, ROWS, np.array([1, 2, 0, 1]))


def test_what_is_no_class_is_not_in_the_top(session):
    targets = np.array([2, -1, 3, 0], np.int64)
    found = fed(session, lambda x, t: tf.nn.in_top_k(x, t, 2), ROWS, targets)
    assert found.tolist() == [True, False, False, False]
    hot = fed(session, lambda i: tf.one_hot(i, 3), targets)
    assert hot.tolist() == [[0, 0, 1], [0, 0, 0], [0, 0, 0], [1, 0, 0]]


def test_whole_numbers_keep_their_digits(session):
    assert session.run(tf.constant([0, 2**63 + 1], tf.uint64)).tolist() == [0, 2**63 + 1]
    assert session.run(tf.constant([2**62 + 1])).tolist() == [2**62 + 1]
    assert session.run(tf.constant([1], tf.int64) * (2**62 + 1)).tolist() == [2**62 + 1]
    for wrong, dtype in (([0, 2**63 + 1], None), ([0, 2**63 + 1], tf.int64), ([0, 2**64], None)):
        with pytest.raises(TypeError):
            tf.constant(wrong, dtype)


IDS = np.array([0, 0, 3, 3])
REDUCTIONS = {"sum": np.sum, "mean": np.mean, "prod": np.prod, "max": np.max, "min": np.min}


@pytest.mark.parametrize("name", REDUCTIONS)
def test_sorted_segments(session, name):
    found = fed(session, getattr(tf, f"segment_{name}"), ROWS, IDS)
    expected = np.full((4, 3), name == "prod", np.float32)
    for i in (0, 3):
        expected[i] = REDUCTIONS[name](ROWS[i == IDS], axis=0)
    np.testing.assert_allclose(found, expected)
    assert session.run(getattr(tf, f"segment_{name}")(ROWS, IDS)).tolist() == found.tolist()
    with pytest.raises(errors.InvalidArgumentError, match=r"expected sorted ids|expected 0 <="):
        fed(session, getattr(tf, f"segment_{name}"), ROWS, IDS[::-1] - 1)


@pytest.mark.parametrize("name", [*REDUCTIONS, "sqrt_n"])
def test_unsorted_segments(session, name):
    ids = np.array([3, 1, -1, 3])
    function = getattr(tf, f"unsorted_segment_{name}")
    found = fed(session, lambda x, i: function(x, i, 4), ROWS, ids)
    least = {"max": -np.finfo(np.float32).max, "min": np.finfo(np.float32).max, "prod": 1}
    expected = np.full((4, 3), least.get(name, 0), np.float32)
    expected[1] = ROWS[1]
    three = ROWS[[0, 3]]
    expected[3] = three.sum(0) / 2**0.5 if name == "sqrt_n" else REDUCTIONS[name](three, axis=0)
    np.testing.assert_allclose(found, expected, rtol=1e-6)


def test_no_segments(session):
    found = fed(session, tf.segment_sum, ROWS[:0], IDS[:0])
    assert found.shape == (0, 3)
