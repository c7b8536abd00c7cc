"""What metrics take their inputs for: probabilities, logits, class numbers, labels."""

import numpy as np
import pytest

import weft as wf
from weft.errors import ArgumentError, OutOfRangeError, ShapeError

m = wf.metrics
RNG = np.random.default_rng(0)
LOGITS = RNG.normal(size=20).astype("f4") * 3
CLASSES = RNG.integers(0, 2, 20)
CHANCES = 1 / (1 + np.exp(-LOGITS))
LABEL_LOGITS = RNG.normal(size=(20, 3)).astype("f4") * 3
LABELS = RNG.integers(0, 2, (20, 3))
SCORES = RNG.normal(size=(20, 3)).astype("f4")
THREE = RNG.integers(0, 3, 20)


def in_batches(metric, x, y):
    for a, b in zip(np.array_split(x, 3), np.array_split(y, 3), strict=True):
        metric.update(a, b)
    return metric.compute()


def f1(said, real):
    return 2 * (said & real).sum() / (said.sum() + real.sum())


def area(scores, positive):
    pairs = scores[positive][:, None] - scores[~positive]
    return ((pairs > 0) + (pairs == 0) / 2).mean()


BINARY_F1 = f1(LOGITS > 0, CLASSES == 1)
LABEL_F1 = np.mean([f1(LABEL_LOGITS[:, i] > 0, LABELS[:, i] == 1) for i in range(3)])
POWERS = np.exp(SCORES) / np.exp(SCORES).sum(1, keepdims=True)


@pytest.mark.parametrize(
    ("metric", "predicted", "targets", "expected"),
    [
        (m.Accuracy(), LOGITS, CLASSES, ((LOGITS > 0) == CLASSES).mean()),
        (m.Accuracy(), CHANCES, CLASSES, ((LOGITS > 0) == CLASSES).mean()),
        (m.Accuracy(threshold=0.0), LOGITS, CLASSES, ((LOGITS > 0) == CLASSES).mean()),
        (m.Accuracy(), LOGITS[:, None], CLASSES, ((LOGITS > 0) == CLASSES).mean()),
        (m.Accuracy(), LABEL_LOGITS, LABELS, ((LABEL_LOGITS > 0) == LABELS).mean()),
        (m.Accuracy(), THREE[::-1].astype("f4"), THREE, (THREE[::-1] == THREE).mean()),
        (m.F1Score(), LOGITS, CLASSES, BINARY_F1),
        (m.F1Score(), np.stack([-LOGITS, LOGITS], 1), CLASSES, BINARY_F1),
        (m.F1Score(3), LABEL_LOGITS, LABELS, LABEL_F1),
        (m.F1Score(3, "micro"), LABEL_LOGITS, LABELS, f1(LABEL_LOGITS > 0, LABELS == 1)),
        (m.F1Score(2), LOGITS, CLASSES, np.mean([BINARY_F1, f1(LOGITS <= 0, CLASSES == 0)])),
        (m.F1Score(3), THREE[::-1].astype("f4"), THREE,
         np.mean([f1(THREE[::-1] == i, i == THREE) for i in range(3)])),
        (m.AUROC(), LOGITS[:, None], CLASSES, area(LOGITS, CLASSES == 1)),
        (m.AUROC(), SCORES, THREE, np.mean([area(POWERS[:, i], i == THREE) for i in range(3)])),
        (m.AUROC(), LABEL_LOGITS, LABELS,
         np.mean([area(LABEL_LOGITS[:, i], LABELS[:, i] == 1) for i in range(3)])),
    ],
)  # fmt: skip
def test_as_torchmetrics(metric, predicted, targets, expected):
    assert in_batches(metric, predicted, targets) == pytest.approx(expected, rel=1e-6)


def test_labels_of_several_processes():
    whole, parts = m.Recall(3), [m.Recall(3), m.Recall(3)]
    whole.update(LABEL_LOGITS, LABELS)
    for part, x, y in zip(parts, np.split(LABEL_LOGITS, 2), np.split(LABELS, 2), strict=True):
        part.update(x, y)
    restored = m.Recall(3)
    restored.load_state_dict(parts[0].state_dict())
    assert restored.merge(parts[1]).compute() == whole.compute()
    with pytest.raises(ArgumentError, match=r"expected labels \(N, L\) as before"):
        restored.merge(m.Recall(3)).update(THREE, THREE)


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: m.ConfusionMatrix(3)(LABEL_LOGITS, LABELS), ShapeError, "give each label alone"),
        (lambda: m.F1Score(4)(LABEL_LOGITS, LABELS), ShapeError, "give each label alone"),
        (lambda: m.F1Score(3, "binary")(LABEL_LOGITS, LABELS), ArgumentError, "another average"),
        (lambda: m.F1Score(3)(LABEL_LOGITS, LABELS + 1), OutOfRangeError, "expected classes"),
        (lambda: m.F1Score()(SCORES, THREE), OutOfRangeError, "set num_classes"),
        (lambda: m.Accuracy(top_k=2)(CHANCES, CLASSES), ShapeError, "with top_k=2"),
        (lambda: m.Accuracy(top_k="sum"), ArgumentError, "Accuracy: expected top_k as an integer"),
        (lambda: m.Accuracy(top_k=0), ArgumentError, "top_k as an integer from 1 on, got 0"),
        (lambda: m.F1Score(2.5), ArgumentError, "F1Score: expected num_classes as an integer"),
        (lambda: m.Mean()(np.ones(3), np.ones((3, 1))), ShapeError, "Mean: expected one weight"),
    ],
)
def test_what_no_metric_can_know_is_refused(call, error, text):
    with pytest.raises(error, match=text):
        call()
