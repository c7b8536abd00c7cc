"""Candidate samplers, and the losses over sampled classes, against TensorFlow's."""

import numpy as np
import pytest

import weft.tf1 as tf
from weft.errors import ArgumentError, DTypeError, ShapeError

CLASSES, DIM, ROWS = 12, 4, 5


def wave(*shape):
    n = np.arange(int(np.prod(shape)))
    return np.sin(n * 1.3 + len(shape)).reshape(shape)


def given(true, dtype, count=6):
    labels = np.arange(ROWS * true).reshape(ROWS, true) * 5 % CLASSES
    sampled = tf.constant([0, 3, 7, 11, 2, 5][:count], tf.int64)
    expected = [tf.constant(np.abs(wave(*s)) + 0.1, dtype) for s in ((ROWS, true), (count,))]
    return labels, (sampled, *expected)


LOSSES = {"nce": tf.nn.nce_loss, "softmax": tf.nn.sampled_softmax_loss}

# The sums of the absolute values of the loss and of its gradients by weights, biases and inputs;
# written down from TensorFlow 2.21
NUMBERS = [
    ("nce", 1, "float32", False, [37.532, 18.427, 19.1242, 18.3239]),
    ("nce", 1, "float32", True, [32.2663, 16.6828, 16.8389, 17.2919]),
    ("nce", 1, "float64", False, [37.532, 18.427, 19.1242, 18.3239]),
    ("nce", 1, "float64", True, [32.2663, 16.6828, 16.8389, 17.2919]),
    ("nce", 3, "float32", False, [53.7278, 27.7464, 22.7082, 24.1262]),
    ("nce", 3, "float32", True, [43.7481, 30.7968, 18.1912, 19.3835]),
    ("nce", 3, "float64", False, [53.7278, 27.7464, 22.7082, 24.1262]),
    ("nce", 3, "float64", True, [43.7481, 30.7968, 18.1912, 19.3835]),
    ("softmax", 1, "float32", False, [11.4656, 17.4395, 8.2537, 11.8824]),
    ("softmax", 1, "float32", True, [10.7735, 15.7899, 7.70945, 12.5884]),
    ("softmax", 1, "float64", False, [11.4656, 17.4395, 8.2537, 11.8824]),
    ("softmax", 1, "float64", True, [10.7735, 15.7899, 7.70945, 12.5884]),
    ("softmax", 3, "float32", False, [14.1381, 12.5072, 5.74943, 8.07181]),
    ("softmax", 3, "float32", True, [13.3249, 12.5449, 5.41965, 8.69845]),
    ("softmax", 3, "float64", False, [14.1381, 12.5072, 5.74943, 8.07181]),
    ("softmax", 3, "float64", True, [13.3249, 12.5449, 5.41965, 8.69845]),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "true", "dtype", "remove", "sums"), NUMBERS)
def test_losses_and_row_sparse_gradients_are_tensorflows(kind, true, dtype, remove, sums, session):
    weights = tf.Variable(wave(CLASSES, DIM).astype(dtype))
    biases = tf.Variable(wave(CLASSES).astype(dtype))
    x = tf.constant(wave(ROWS, DIM).astype(dtype))
    labels, values = given(true, dtype)
    loss = LOSSES[kind](
        weights, biases, tf.constant(labels), x, 6, CLASSES, true, values,
        remove_accidental_hits=remove,
    )  # fmt: skip
    assert loss.shape.as_list() == [ROWS] and loss.dtype.name == dtype
    by = tf.gradients(loss, [weights, biases, x])
    session.run(tf.global_variables_initializer())
    found, *gradients = session.run([loss, *by])
    ids = [*labels.ravel(), 0, 3, 7, 11, 2, 5]
    for rows in gradients[:2]:
        assert isinstance(rows, tf.IndexedSlicesValue) and rows.indices.tolist() == ids
    arrays = [found, gradients[0].values, gradients[1].values, gradients[2]]
    np.testing.assert_allclose([np.abs(a).sum() for a in arrays], sums, rtol=2e-5)


def test_an_accidental_hit_counts_for_other_rows_alone(session):
    labels, values = given(1, "float32")
    x, w, b = (tf.constant(wave(*s), tf.float32) for s in ((ROWS, DIM), (CLASSES, DIM), (CLASSES,)))
    plain, less = (
        tf.nn.nce_loss(w, b, labels, x, 6, CLASSES, 1, values, remove) for remove in (False, True)
    )
    changed = session.run(tf.not_equal(plain, less))
    assert changed.tolist() == [n in (0, 3, 7, 11, 2, 5) for n in labels.ravel()]


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float64"])
def test_other_types_and_sizes_that_a_run_tells(dtype, session):
    """The default sampler's counts are float32; tables may have another type than inputs."""
    labels = tf.placeholder(tf.int32, [None, 2])
    x = tf.placeholder(dtype, [None, DIM])
    w, b = tf.Variable(tf.ones([CLASSES, DIM])), tf.Variable(tf.zeros([CLASSES]))
    for function in LOSSES.values():
        loss = function(w, b, labels, x, 4, CLASSES, num_true=2)
        by = tf.gradients(loss, [w, b])
        session.run(tf.global_variables_initializer())
        for rows in (3, 1):
            feeds = {labels: np.zeros((rows, 2)), x: np.ones((rows, DIM))}
            found, *slices = session.run([loss, *by], feeds)
            assert found.shape == (rows,) and np.isfinite(np.asarray(found, np.float32)).all()
            assert [s.values.shape[0] for s in slices] == [rows * 2 + 4] * 2
            assert slices[0].values.dtype == np.float32


def test_training_lowers_the_loss(session):
    """Every run draws other classes; the same seed draws the same in every session."""
    w, b = tf.Variable(tf.zeros([50, DIM])), tf.Variable(tf.zeros([50]))
    x, labels = tf.constant(wave(ROWS, DIM), tf.float32), tf.constant([[1], [2], [3], [4], [40]])
    loss = tf.reduce_mean(tf.nn.sampled_softmax_loss(w, b, labels, x, 8, 50, seed=3))
    step = tf.train.GradientDescentOptimizer(0.5).minimize(loss)
    session.run(tf.global_variables_initializer())
    first = [float(session.run(loss)) for _ in range(3)]
    for _ in range(200):
        session.run(step)
    assert len(set(first)) == 3 and session.run(loss) < min(first) / 3
    with tf.Session() as other:
        other.run(tf.global_variables_initializer())
        assert [float(other.run(loss)) for _ in range(3)] == first


# samplers


def chances(kind, size):
    c = np.arange(size)
    zipf = np.log((c + 2) / (c + 1)) / np.log(size + 1)
    return zipf if kind == "log_uniform" else np.full(size, 1 / size)


def drawn(kind, count, unique, size, runs, true=((0,),)):
    function = getattr(tf.nn, f"{kind}_candidate_sampler")
    made = function(tf.constant(true, tf.int64), 1, count, unique, size, seed=11)
    with tf.Session() as session:
        found = [session.run(made) for _ in range(runs)]
    return [np.stack([each[i] for each in found]) for i in range(3)]


def assert_frequencies(counts, chance):
    """Within five standard deviations."""
    runs = counts.sum()
    assert (np.abs(counts - runs * chance) <= 5 * np.sqrt(runs * chance * (1 - chance))).all()


@pytest.mark.parametrize("kind", ["log_uniform", "uniform"])
def test_distinct_classes_and_the_number_of_draws_until_there_are_enough(kind):
    """All pairs of two classes of four, and repeats, which the expected counts tell."""
    runs, p = 4000, chances(kind, 4)
    sampled, true_count, counts = drawn(kind, 2, True, 4, runs)
    pairs = np.zeros((4, 4))
    np.add.at(pairs, tuple(sampled.T), 1)
    expected = p[:, None] * p / (1 - p[:, None])
    np.fill_diagonal(expected, 0)
    assert_frequencies(pairs, expected)
    at_once = np.isclose(true_count[:, 0, 0], 2 * p[0])
    tries = np.where(at_once, 2, np.log1p(-true_count[:, 0, 0]) / np.log1p(-p[0]))
    np.testing.assert_allclose(tries, tries.round(), atol=2e-3)
    tries = tries.round()
    for n in (2, 3, 4, 5):  # n - 2 repeats of the first class
        chance = np.array([(p ** (n - 1) * (1 - p)).sum()])
        assert_frequencies_of_one((tries == n).sum(), runs, chance)
    seen = -np.expm1(tries[:, None] * np.log1p(-p[sampled]))
    seen[at_once] = 2 * p[sampled[at_once]]
    np.testing.assert_allclose(counts, seen, rtol=1e-5)


def assert_frequencies_of_one(count, runs, chance):
    assert np.abs(count - runs * chance) <= 5 * np.sqrt(runs * chance * (1 - chance))


@pytest.mark.parametrize("kind", ["log_uniform", "uniform"])
def test_classes_that_may_repeat(kind):
    size, p = 7, chances(kind, 7)
    sampled, true_count, counts = drawn(kind, 50, False, size, 200, [[0], [6]])
    assert sampled.dtype == np.int64 and counts.dtype == true_count.dtype == np.float32
    assert_frequencies(np.bincount(sampled.ravel(), minlength=size), p)
    np.testing.assert_allclose(true_count[0].ravel(), 50 * p[[0, 6]], rtol=1e-5)
    np.testing.assert_allclose(counts, 50 * p[sampled], rtol=1e-5)


def test_all_classes_and_one_class():
    sampled, _, counts = drawn("log_uniform", 300, True, 300, 2)
    assert [sorted(row) for row in sampled.tolist()] == [list(range(300))] * 2
    assert (counts > 0).all() and np.isfinite(counts).all()
    for unique in (True, False):
        found = drawn("log_uniform", 1, unique, 1, 1)
        assert [a.ravel().tolist() for a in found] == [[0], [1], [1]]


def test_many_repeats():
    """All of 400 classes: draws until then are as many as in the coupon collector's problem."""
    size, runs = 400, 300
    _, true_count, _ = drawn("uniform", size, True, size, runs)
    tries = np.log1p(-true_count.astype(np.float64).ravel()) / np.log1p(-1 / size)
    mean = size * (1 / np.arange(1, size + 1)).sum()
    assert abs(tries.mean() - mean) < 5 * size * 1.2825 / np.sqrt(runs)


def test_names_are_tensorflows():
    labels = tf.constant([[1, 2]], tf.int64)
    found = tf.random.log_uniform_candidate_sampler(labels, 2, 3, True, 9)
    assert [t.name for t in found] == [f"LogUniformCandidateSampler:{i}" for i in range(3)]
    assert [t.shape.as_list() for t in found] == [[3], [1, 2], [3]]
    assert found.sampled_candidates.op.get_attr("range_max") == 9
    assert tf.random.uniform_candidate_sampler(labels, 2, 3, True, 9, name="u")[0].name == "u:0"
    with pytest.raises(DTypeError, match="int64"):
        tf.random.uniform_candidate_sampler(tf.constant([[1]], tf.int32), 1, 3, True, 9)


@pytest.mark.parametrize(
    ("options", "error", "text"),
    [
        ({"num_sampled": 13}, ArgumentError, "range_max of distinct classes, got 13 of 12"),
        ({"num_sampled": 0}, ArgumentError, "expected num_sampled of at least 1, got 0"),
        ({"num_classes": 2.5}, ArgumentError, "expected range_max of at least 1, got 2.5"),
        ({"num_true": 2}, ShapeError, r"shape \[batch, 2\] \(num_true=2\), got \(5, 1\)"),
        ({"labels": [1, 2]}, ShapeError, r"expected true classes of shape \[batch, 1\]"),
        ({"labels": [[1.0]]}, DTypeError, "nce_loss: expected integer labels, got float32"),
        ({"inputs": [[1, 2]]}, DTypeError, "nce_loss: expected floating inputs, got int32"),
        ({"sampled_values": (1, 2)}, ArgumentError, r"sampled_values \(sampled_candidates, "),
        ({"inputs": np.ones((5, 3), np.float32)}, ShapeError, "4"),
    ],
)  # fmt: skip
def test_errors(options, error, text):
    every = {
        "weights": wave(CLASSES, DIM), "biases": wave(CLASSES), "labels": given(1, "float32")[0],
        "inputs": wave(ROWS, DIM).astype(np.float32), "num_sampled": 6, "num_classes": CLASSES,
        **options,
    }  # fmt: skip
    with pytest.raises(error, match=text):
        tf.nn.nce_loss(**every)


def test_sampled_classes_outside_are_told_in_a_run(session):
    labels, values = given(1, "float32")
    x, w, b = (tf.constant(wave(*s), tf.float32) for s in ((ROWS, DIM), (CLASSES, DIM), (CLASSES,)))
    wrong = tf.constant(labels + CLASSES)
    loss = tf.nn.nce_loss(w, b, wrong, x, 6, CLASSES, 1, values)
    with pytest.raises(tf.errors.InvalidArgumentError, match="12"):
        session.run(loss)
