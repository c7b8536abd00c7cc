"""CTC against sums over all paths: losses, gradients, decoders; sparse tensors."""

import itertools

import numpy as np
import pytest

import weft.tf1 as tf
from weft.tf1.nn.beam_search import log_softmax

RNG = np.random.default_rng(0)


def read(path, blank):
    """The labels of a path: repeated ones merged, then blanks left out."""
    return tuple([k for k, _ in itertools.groupby(path) if k != blank])


def chances(logits):
    """The probability of each sequence of labels, by all paths."""
    steps, classes = logits.shape
    p = np.exp(log_softmax(logits))
    found = {}
    for path in itertools.product(range(classes), repeat=steps):
        key = read(path, classes - 1)
        found[key] = found.get(key, 0) + np.prod(p[range(steps), path])
    return found


def sparse(rows):
    indices = [[b, i] for b, row in enumerate(rows) for i in range(len(row))]
    values = [v for row in rows for v in row]
    shape = [len(rows), max([len(row) for row in rows])]
    return tf.SparseTensorValue(np.array(indices).reshape(-1, 2), values, shape)


@pytest.fixture(autouse=True)
def graph():
    with tf.Graph().as_default() as made:
        yield made


ROWS = [[0, 1], [1, 1], [], [0]]
COUNTS = [4, 5, 3, 1]


def losses(logits, rows, counts, **options):
    labels = tf.sparse_placeholder(tf.int32)
    x = tf.placeholder(tf.float64, [None, None, logits.shape[2]])
    n = tf.placeholder(tf.int32, [None])
    loss = tf.nn.ctc_loss(labels, x, n, **options)
    (slope,) = tf.gradients(tf.reduce_sum(loss * [1.0, 2.0, 3.0, 4.0][: len(rows)]), [x])
    with tf.Session() as sess:
        return sess.run([loss, slope], {labels: sparse(rows), x: logits, n: counts})


def test_losses_are_those_of_all_paths():
    logits = RNG.standard_normal((5, 4, 3))
    found, slope = losses(logits, ROWS, COUNTS)
    expected = [
        -np.log(chances(logits[:n, b])[tuple(row)])
        for b, (row, n) in enumerate(zip(ROWS, COUNTS, strict=True))
    ]
    np.testing.assert_allclose(found, expected, rtol=1e-9)
    assert not slope[1:, 3].any() and not slope[3:, 2].any()
    eps, weights = 1e-6, np.array([1.0, 2.0, 3.0, 4.0])
    for place in [(0, 0, 0), (1, 1, 2), (4, 1, 1), (2, 2, 0), (0, 3, 2)]:
        moved = logits.copy()
        moved[place] += eps
        up = losses(moved, ROWS, COUNTS)[0] @ weights
        moved[place] -= 2 * eps
        down = losses(moved, ROWS, COUNTS)[0] @ weights
        np.testing.assert_allclose(slope[place], (up - down) / (2 * eps), rtol=1e-6, atol=1e-8)


def test_what_is_too_short_and_batches_first():
    logits = RNG.standard_normal((2, 2, 3))
    with pytest.raises(tf.errors.InvalidArgumentError, match="as many steps as there are labels"):
        losses(logits, [[1, 1], [0]], [2, 2])
    found, slope = losses(
        logits, [[1, 1], [0]], [2, 2], ignore_longer_outputs_than_inputs=True, time_major=False
    )
    assert found[0] == 0 and not slope[0].any()
    np.testing.assert_allclose(found[1], -np.log(chances(logits[1])[(0,)]))
    collapsed, _ = losses(logits, [[1, 1], [0]], [2, 2], preprocess_collapse_repeated=True)
    np.testing.assert_allclose(collapsed[0], -np.log(chances(logits[:, 0])[(1,)]))
    with pytest.raises(tf.errors.InvalidArgumentError, match="labels below classes"):
        losses(logits, [[2], [0]], [2, 2])
    with pytest.raises(tf.errors.InvalidArgumentError, match="expected lengths up to those"):
        losses(logits, [[1], [0]], [2, 3])
    with pytest.raises(ValueError, match="expected labels to be a SparseTensor"):
        tf.nn.ctc_loss(tf.constant([1]), tf.constant(logits), [2, 2])
    with pytest.raises(ValueError, match="expected ctc_merge_repeated=True"):
        losses(logits, [[1], [0]], [2, 2], ctc_merge_repeated=False)


def test_the_loss_of_version_2_takes_dense_labels_and_any_blank():
    logits = RNG.standard_normal((5, 2, 4))
    rows, steps = np.array([[1, 2, 2], [3, 0, 9]]), [5, 4]

    def of(moved, row, n):
        """The loss of labels if the blank is moved to the end."""
        return -np.log(chances(moved[:n])[tuple(row)])

    first = np.roll(logits, -1, 2)  # the blank, class 0, is last
    expected = [of(first[:, 0], [0, 1, 1], 5), of(first[:, 1], [2], 4)]
    sparse_rows = tf.SparseTensor([[0, 0], [0, 1], [0, 2], [1, 0]], [1, 2, 2, 3], [2, 3])
    with tf.Session() as session:
        for labels, lengths in ((rows, [3, 1]), (sparse_rows, None)):
            loss = tf.nn.ctc_loss_v2(labels, tf.constant(logits), lengths, steps, blank_index=0)
            np.testing.assert_allclose(session.run(loss), expected, rtol=1e-9)
        turned = tf.constant(logits.transpose(1, 0, 2))
        options = {"logits_time_major": False, "blank_index": -1}
        last = tf.nn.ctc_loss_v2(np.array([[1, 2], [0, 0]]), turned, [2, 2], [5, 2], **options)
        found = session.run(last)
        np.testing.assert_allclose(found, [of(logits[:, 0], [1, 2], 5), 707.0], rtol=1e-9)
        chance = tf.nn.softmax(turned)
        keras = tf.keras.backend.ctc_batch_cost(
            np.array([[1, 2], [0, 0]]), chance, np.array([[5], [5]]), np.array([[2], [1]])
        )
        expected = [[of(logits[:, 0], [1, 2], 5)], [of(logits[:, 1], [0], 5)]]
        np.testing.assert_allclose(session.run(keras), expected, rtol=1e-5)
        (best,), _ = tf.keras.backend.ctc_decode(chance, [5, 5])
        path = [list(read(row.argmax(1), 3)) for row in logits.transpose(1, 0, 2)]
        assert session.run(best).tolist() == [row + [-1] * (5 - len(row)) for row in path]
    with pytest.raises(ValueError, match="expected a blank_index with labels that are sparse"):
        tf.nn.ctc_loss_v2(sparse_rows, tf.constant(logits), None, steps)


def test_the_greedy_decoder_reads_the_likeliest_classes():
    path = np.array([[0, 0, 2, 0, 1], [2, 2, 2, 2, 2]]).T
    logits = np.eye(3)[path] * 5.0
    for merge, first in [(True, [0, 0, 1]), (False, [0, 0, 0, 1])]:
        (decoded,), score = tf.nn.ctc_greedy_decoder(tf.constant(logits), [5, 2], merge)
        with tf.Session() as sess:
            found, total = sess.run([decoded, score])
        assert found.values.tolist() == first and found.dense_shape.tolist() == [2, len(first)]
        assert found.indices.tolist() == [[0, i] for i in range(len(first))]
        assert total.tolist() == [[-25.0], [-10.0]]


@pytest.mark.parametrize("merge", [True, False])
def test_the_search_finds_the_likeliest_labels(merge):
    logits = RNG.standard_normal((5, 3, 3)) * 2
    counts = [5, 4, 0]
    decoded, scores = tf.nn.ctc_beam_search_decoder(
        tf.constant(logits), counts, beam_width=40, top_paths=2, merge_repeated=merge
    )
    with tf.Session() as sess:
        found, logs = sess.run([decoded, scores])
    for b, count in enumerate(counts):
        best = sorted(chances(logits[:count, b]).items(), key=lambda item: -item[1])[:2]
        for place, (path, chance) in enumerate(best):
            rows = found[place].indices[:, 0] == b
            shown = [k for k, _ in itertools.groupby(path)] if merge else list(path)
            assert found[place].values[rows].tolist() == shown
            np.testing.assert_allclose(logs[b, place], np.log(chance), rtol=1e-9)
    assert logs[2, 1] == -np.inf
    with pytest.raises(ValueError, match="expected top_paths between 1 and beam_width 2, got 3"):
        tf.nn.ctc_beam_search_decoder(tf.constant(logits), counts, beam_width=2, top_paths=3)


def test_a_narrow_search_agrees_where_one_path_is_far_ahead():
    path = np.array([1, 2, 0, 0, 2, 0])
    logits = (np.eye(3)[path] * 20.0)[:, None]
    (decoded,), _ = tf.nn.ctc_beam_search_decoder_v2(tf.constant(logits), [6], beam_width=2)
    with tf.Session() as sess:
        assert sess.run(decoded).values.tolist() == [1, 0, 0]


def test_sparse_tensors_are_fed_and_fetched():
    x = tf.sparse_placeholder(tf.float32, [None, 3])
    total = tf.reduce_sum(x.values)
    given = tf.SparseTensorValue([[0, 1], [1, 2]], [2.0, 3.0], [2, 3])
    with tf.Session() as sess:
        for _ in range(2):
            found, value = sess.run([x, total], {x: given})
            assert value == 5 and found.indices.tolist() == [[0, 1], [1, 2]]
        with pytest.raises(ValueError, match="feed_dict: expected"):
            sess.run(total, {x: 3})
