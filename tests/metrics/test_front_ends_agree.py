"""Metrics of `weft.metrics`, `tf.metrics` and `tf.keras.metrics` of the same data are the same."""

import re

import numpy as np
import pytest

import weft.tf1 as tf
from weft import metrics

SIZES = (1, 2, 300)


def drawn(seed):
    draw = np.random.default_rng(seed)
    return [(draw.random(n) < 0.4, draw.random(n).astype(np.float32)) for n in SIZES]


def of_weft(name, batches, **options):
    metric = getattr(metrics, name)(**options)
    for y, p in batches:
        metric.update(p, y.astype(np.int64))
    return metric.compute()


def of_tf(make, batches):
    with tf.Graph().as_default(), tf.Session() as session:
        y, p = tf.placeholder(tf.bool, [None]), tf.placeholder(tf.float32, [None])
        value, update = make(y, p)
        session.run(tf.local_variables_initializer())
        for labels, scores in batches:
            session.run(update, {y: labels, p: scores})
        return session.run(value)


def of_keras(name, batches):
    def make(y, p):
        metric = getattr(tf.keras.metrics, name)()
        update = metric.update_state(y, p)
        return metric.result(), update

    return of_tf(make, batches)


@pytest.mark.parametrize("seed", range(3))
def test_shares_and_counts(seed) -> None:
    batches = drawn(seed)
    matrix = of_weft("ConfusionMatrix", batches, num_classes=2)
    for title, count in (
        ("TrueNegatives", matrix[0, 0]), ("FalsePositives", matrix[0, 1]),
        ("FalseNegatives", matrix[1, 0]), ("TruePositives", matrix[1, 1]),
        ("Precision", of_weft("Precision", batches)), ("Recall", of_weft("Recall", batches)),
    ):  # fmt: skip
        name = re.sub("(?<=[a-z])(?=[A-Z])", "_", title).lower()
        figure = of_tf(lambda y, p, name=name: getattr(tf.metrics, name)(y, p > 0.5), batches)
        assert figure == of_keras(title, batches) == np.float32(count)


@pytest.mark.parametrize("seed", range(3))
def test_areas(seed) -> None:
    batches = drawn(seed)
    exact = of_weft("AUROC", batches)
    assert of_tf(tf.metrics.auc, batches) == pytest.approx(exact, abs=0.01)
    assert of_keras("AUC", batches) == pytest.approx(exact, abs=0.01)
