"""Slices of a known size whose begins the step computes: `random_crop`, `x[i : i + n]`."""

import numpy as np
import pytest

import weft.tf1 as tf

X = np.arange(60, dtype=np.float32).reshape(5, 4, 3)

SLICES = {
    "first": lambda x, i: (x[i : i + 2], X[2:4]),
    "in the middle": lambda x, i: (x[..., i : i + 1, :], X[:, 2:3]),
    "after a new axis": lambda x, i: (x[None, 1, i : i + 1], X[None, 1, 2:3]),
    "with a number": lambda x, i: (x[:, i : i + 2, 0], X[:, 2:4, 0]),
    "slice": lambda x, i: (tf.slice(x, [i, 0, 0], [2, -1, 2]), X[2:4, :, :2]),
}


@pytest.mark.parametrize("name", SLICES)
def test_slices_from_a_computed_begin(name, session):
    i = tf.cast(tf.random_uniform([], 2.0, 2.9), tf.int32)
    x = tf.constant(X)
    y, expected = SLICES[name](x, i)
    (g,) = tf.gradients(y, [x])
    found, slope = session.run([y, g])
    np.testing.assert_array_equal(found, expected)
    assert slope.sum() == expected.size


def test_a_random_crop_is_a_block_in_steps_and_in_data(session):
    crop = tf.random_crop(tf.constant(X), [2, 2, 3], seed=3)
    rows = tf.data.Dataset.from_tensors(X).repeat(8).map(lambda x: tf.random_crop(x, [2, 2, 3]))
    found = [session.run(crop) for _ in range(8)]
    found += list(session.run(rows.batch(8).make_one_shot_iterator().get_next()))
    corners = {float(y[0, 0, 0]) for y in found}
    assert len(corners) > 2
    for y in found:
        i, j = divmod(int(y[0, 0, 0]) // 3, 4)
        np.testing.assert_array_equal(y, X[i : i + 2, j : j + 2])
