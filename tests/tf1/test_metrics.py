"""`tf.metrics`: values over batches, against numbers that TensorFlow gives."""

# ruff: noqa: B905
import numpy as np
import pytest

import weft.tf1 as tf
from weft.errors import ArgumentError, ShapeError

random = np.random.default_rng(1)
BATCHES = [
    {
        "y": random.integers(0, 2, 6),
        "p": random.random(6).astype(np.float32),
        "w": random.random(6).astype(np.float32),
        "c": random.integers(0, 4, 6),
        "d": random.integers(0, 4, 6),
    }
    for _ in range(3)
]

# A metric, its value after one batch, what the third update gives and the value after it, and how
# many variables it has; written down from TensorFlow 2.21
METRICS = [
    ("accuracy(c,d)", [[0.0], [0.333333], [0.333333]], 2),
    ("accuracy(c,d,w)", [[0.0], [0.391991], [0.391991]], 2),
    ("mean(p)", [[0.578384], [0.584983], [0.584983]], 2),
    ("mean(p,w)", [[0.456511], [0.559553], [0.559553]], 2),
    ("mean(p,2.0)", [[0.578384], [0.584983], [0.584983]], 2),
    (
        "mean_tensor(p)",
        [
            [0.948649, 0.311831, 0.423326, 0.827703, 0.409199, 0.549594],
            [0.806601, 0.515837, 0.572528, 0.417505, 0.463159, 0.734269],
            [0.806601, 0.515837, 0.572528, 0.417505, 0.463159, 0.734269],
        ],
        2,
    ),
    (
        "mean_tensor(p,w)",
        [
            [0.948649, 0.311831, 0.423326, 0.827703, 0.409199, 0.549594],
            [0.693943, 0.392878, 0.595451, 0.397829, 0.329031, 0.790429],
            [0.693943, 0.392878, 0.595451, 0.397829, 0.329031, 0.790429],
        ],
        2,
    ),
    ("percentage_below(p,0.4)", [[0.166667], [0.222222], [0.222222]], 2),
    ("mean_absolute_error(f,p,w)", [[0.511241], [0.403688], [0.403688]], 2),
    ("mean_relative_error(f,p,p+0.5)", [[0.538425], [0.440155], [0.440155]], 2),
    ("mean_squared_error(f,p)", [[0.367541], [0.300303], [0.300303]], 2),
    ("root_mean_squared_error(f,p,w)", [[0.538255], [0.469981], [0.469981]], 2),
    (
        "mean_cosine_distance(tf.reshape(p,[2,3]),tf.reshape(w,[2,3]),1)",
        [[0.374449], [0.140885], [0.140885]],
        2,
    ),
    ("true_positives(y,b)", [[1.0], [5.0], [5.0]], 1),
    ("false_positives(y,b,w)", [[0.330754], [2.45483], [2.45483]], 1),
    ("true_negatives(y,b)", [[1.0], [4.0], [4.0]], 1),
    ("false_negatives(y,b,w)", [[1.29166], [1.29166], [1.29166]], 1),
    ("precision(y,b)", [[0.333333], [0.416667], [0.416667]], 2),
    ("precision(y,b,w)", [[0.499226], [0.557774], [0.557774]], 2),
    ("recall(y,b)", [[0.333333], [0.714286], [0.714286]], 2),
    ("recall(y,b,w)", [[0.203364], [0.705632], [0.705632]], 2),
    ("true_positives_at_thresholds(y,p,[.2,.7])", [[3.0, 1.0], [7.0, 3.0], [7.0, 3.0]], 1),
    (
        "false_negatives_at_thresholds(y,p,[.2,.7],w)",
        [[0.0, 1.29166], [0.0, 2.3385], [0.0, 2.3385]],
        1,
    ),
    (
        "precision_at_thresholds(y,p,[.2,.7])",
        [[0.5, 0.5], [0.4375, 0.428571], [0.4375, 0.428571]],
        2,
    ),
    ("recall_at_thresholds(y,p,[.2,.7],w)", [[1.0, 0.203364], [1.0, 0.467056], [1.0, 0.467056]], 2),
    ("auc(y,p)", [[0.333333], [0.603896], [0.603896]], 4),
    ("auc(y,p,w)", [[0.432171], [0.741383], [0.741383]], 4),
    ("auc(y,p,curve='PR')", [[0.372222], [0.518001], [0.518001]], 4),
    (
        "auc(y,p,w,curve='PR',summation_method='careful_interpolation')",
        [[0.61295], [0.732481], [0.732481]],
        4,
    ),
    ("auc(y,p,summation_method='minoring')", [[0.333333], [0.597403], [0.597403]], 4),
    (
        "auc(y,p,num_thresholds=20,summation_method='majoring')",
        [[0.333333], [0.61039], [0.61039]],
        4,
    ),
    ("sensitivity_at_specificity(y,p,0.6)", [[0.333333], [0.571429], [0.571429]], 4),
    ("specificity_at_sensitivity(y,p,0.6,w)", [[0.704468], [0.846392], [0.846392]], 4),
    (
        "mean_iou(c,d,4)",
        [
            [0.0],
            [1.0, 1.0, 0.0, 1.0, 2.0, 1.0, 1.0, 3.0, 0.0, 1.0, 2.0, 0.0, 1.0, 1.0, 1.0, 2.0],
            [0.222222],
        ],
        1,
    ),
    (
        "mean_iou(c,d,4,w)",
        [
            [0.0],
            [
                0.115866,
                0.329732,
                0.0,
                0.0275591,
                1.54194,
                0.516069,
                0.855227,
                1.30205,
                0.0,
                0.62349,
                1.56378,
                0.0,
                0.191324,
                0.191616,
                0.538143,
                1.41537,
            ],
            [0.242899],
        ],
        1,
    ),
    ("accuracy(tf.reshape(c,[6,1]),d)", [[0.0], [0.333333], [0.333333]], 2),
    ("mean(tf.reshape(p,[2,3]),[[.5],[2.]])", [[0.588653], [0.55698], [0.55698]], 2),
    (
        "auc(tf.reshape(y,[2,3]),tf.reshape(p,[2,3]),[[.5],[2.]],name='a')",
        [[0.666667], [0.817888], [0.817888]],
        4,
    ),
]


def test_accuracy_of_classes_is_kept_in_counts():
    """Of which TensorFlow has two vectors, and here is one matrix."""
    with tf.Graph().as_default(), tf.Session() as session:
        c, d, w = (tf.placeholder(t, [6]) for t in (tf.int64, tf.int64, tf.float32))
        value, update = tf.metrics.mean_per_class_accuracy(c, d, 5, w)
        session.run(tf.local_variables_initializer())
        for batch in BATCHES:
            found = session.run(update, {c: batch["c"], d: batch["d"], w: batch["w"]})
        np.testing.assert_allclose(found, [0.244878, 0.122428, 0.714946, 0.605777, 0], rtol=1e-5)
        np.testing.assert_allclose(session.run(value), 0.337606, rtol=1e-5)


@pytest.mark.parametrize("call, wanted, size", METRICS, ids=[m[0] for m in METRICS])
def test_metrics_give_tensorflows_numbers(call, wanted, size):
    with tf.Graph().as_default(), tf.Session() as session:
        kinds = {"y": tf.int64, "p": tf.float32, "w": tf.float32, "c": tf.int64, "d": tf.int64}
        given = {name: tf.placeholder(kind, [6]) for name, kind in kinds.items()}
        names = {"tf": tf, "b": tf.cast(given["p"] > 0.5, tf.int64)}
        names["f"] = tf.cast(given["y"], tf.float32)
        value, update = eval(f"tf.metrics.{call}", {**names, **given})
        assert len(tf.get_collection(tf.GraphKeys.METRIC_VARIABLES)) == size
        assert tf.local_variables() == tf.get_collection(tf.GraphKeys.METRIC_VARIABLES)
        session.run(tf.local_variables_initializer())
        found = []
        for batch in BATCHES:
            found.append(session.run(update, {given[k]: v for k, v in batch.items()}))
            found.append(session.run(value))
        for got, right in zip((found[1], *found[4:]), wanted):
            np.testing.assert_allclose(np.ravel(got), right, rtol=1e-5)
        session.run(tf.local_variables_initializer())
        assert not np.any(session.run(value)) or "auc" in call or "distance" in call


def test_collections_and_refusals():
    with tf.Graph().as_default():
        x = tf.placeholder(tf.float32, [None, 3])
        value, update = tf.metrics.mean(
            x, metrics_collections=["m"], updates_collections="u", name="here"
        )
        assert tf.get_collection("m") == [value] and tf.get_collection("u") == [update]
        assert value.name == "here/value:0" and update.name == "here/update_op:0"
        with pytest.raises(ShapeError, match="weights that broadcast"):
            tf.metrics.mean(x, tf.zeros([4, 3, 2]))
        with pytest.raises(ShapeError, match="one shape"):
            tf.metrics.accuracy(tf.zeros([2, 3]), tf.zeros([2, 4]))
        with pytest.raises(ShapeError, match="a known shape"):
            tf.metrics.mean_tensor(x)
        for options in ({"curve": "X"}, {"summation_method": "careful_interpolation"}):
            with pytest.raises(ArgumentError, match=r"auc: expected a? ?"):
                tf.metrics.auc(x, x, **options)
        with pytest.raises(ArgumentError, match="from 0 to 1"):
            tf.metrics.sensitivity_at_specificity(x, x, 2.0)
