"""Metrics against definitions written as loops, over randomly split batches."""

import doctest
import importlib
import itertools
import math
import pkgutil

import numpy as np
import pytest

import weft as wf
from weft import metrics as m
from weft import nn
from weft.eager.record.run import program
from weft.errors import ArgumentError, OutOfRangeError, ShapeError, StateError

MODULES = [module.name for module in pkgutil.walk_packages(m.__path__, "weft.metrics.")]


@pytest.mark.parametrize("name", ["weft.metrics", *MODULES])
def test_examples(name):
    assert doctest.testmod(importlib.import_module(name)).failed == 0


# -- definitions, written out


def ranks(scores, targets, k):
    hits = 0
    for row, target in zip(scores, targets, strict=True):
        order = sorted(range(len(row)), key=lambda i: (-row[i], i))
        hits += target in order[:k]
    return hits / len(targets)


def confusion(predicted, targets, classes):
    matrix = [[0] * classes for _ in range(classes)]
    for p, t in zip(predicted, targets, strict=True):
        matrix[t][p] += 1
    return matrix


def per_class(kind, matrix, i):
    hit = matrix[i][i]
    predicted, true = sum(row[i] for row in matrix), sum(matrix[i])
    precision, recall = hit / predicted if predicted else 0, hit / true if true else 0
    if kind == "precision":
        return precision
    if kind == "recall":
        return recall
    return 2 * precision * recall / (precision + recall) if hit else 0


def averaged(kind, matrix, average):
    n = len(matrix)
    found = [per_class(kind, matrix, i) for i in range(n)]
    true = [sum(row) for row in matrix]
    occurs = [i for i in range(n) if true[i] or sum(row[i] for row in matrix)]
    if average == "macro":
        return sum(found[i] for i in occurs) / len(occurs)
    if average == "weighted":
        return sum(f * t for f, t in zip(found, true, strict=True)) / sum(true)
    if average == "micro":  # every wrong answer is both a false positive and a false negative
        return sum(matrix[i][i] for i in range(n)) / sum(true)
    return found


def area(scores, targets):
    pairs = [(p, n) for p, n in itertools.product(range(len(scores)), repeat=2)
             if targets[p] and not targets[n]]  # fmt: skip
    won = sum((scores[p] > scores[n]) + 0.5 * (scores[p] == scores[n]) for p, n in pairs)
    return won / len(pairs)


def cut(rng, *arrays):
    """The arrays in uneven pieces, an empty one among them."""
    n = len(arrays[0])
    places = sorted([0, 0, n, *rng.integers(0, n + 1, 3).tolist()])
    return [[a[i:j] for a in arrays] for i, j in itertools.pairwise(places)]


def over(metric, rng, *arrays):
    """The figure over uneven batches; so do merged parts, a saved state and a second pass say."""
    pieces = cut(rng, *arrays)
    for piece in pieces:
        metric.update(*[wf.tensor(x) for x in piece])
    found = metric.compute()
    state = metric.state_dict()
    metric.reset()
    with pytest.raises(StateError, match=r"compute: expected update\(\) before it"):
        metric.compute()
    for piece in pieces[:2]:
        metric.update(*piece)
    other = type(metric)(**{k: v for k, v in vars(metric).items() if k in options(metric)})
    for piece in pieces[2:]:
        other.update(*piece)
    np.testing.assert_array_equal(metric.merge(other).compute(), found)
    other.load_state_dict(state)
    np.testing.assert_array_equal(other.compute(), found)
    assert other.updates == metric.updates == len(pieces)
    return found


def options(metric):
    return {
        "top_k", "threshold", "ignore_index", "num_classes", "average", "squared", "n_gram",
        "smooth",
    }  # fmt: skip


@pytest.fixture
def rng():
    return np.random.default_rng(7)


@pytest.mark.parametrize("k", [1, 2, 5])
def test_accuracy(rng, k):
    scores = rng.integers(0, 4, (60, 5)).astype(np.float32)  # with many equal ones
    targets = rng.integers(0, 5, 60)
    assert over(m.Accuracy(top_k=k), rng, scores, targets) == ranks(scores, targets, k)


def test_accuracy_of_classes_pixels_and_probabilities(rng):
    targets = rng.integers(0, 3, (6, 4, 5))
    scores = rng.standard_normal((6, 3, 4, 5)).astype(np.float32)
    hits = scores.argmax(1) == targets
    assert over(m.Accuracy(), rng, scores, targets) == hits.mean()
    assert over(m.Accuracy(), rng, scores.argmax(1), targets) == hits.mean()
    assert over(m.Accuracy(ignore_index=1), rng, scores, targets) == hits[targets != 1].mean()
    p, t = rng.random(50).astype(np.float32), rng.integers(0, 2, 50)
    assert over(m.Accuracy(threshold=0.3), rng, p, t) == ((p > 0.3) == t).mean()


def test_nan_is_never_right():
    accuracy = m.Accuracy()
    accuracy.update([[math.nan, 1.0], [1.0, 0.0], [math.nan, math.nan]], [0, 0, 0])
    assert accuracy.compute() == 1 / 3


@pytest.mark.parametrize("average", ["micro", "macro", "weighted", None])
def test_precision_recall_f1_confusion(rng, average):
    targets, predicted = rng.integers(0, 3, (2, 80))  # class 3 does not occur
    matrix = confusion(predicted, targets, 4)
    assert over(m.ConfusionMatrix(4), rng, predicted, targets).tolist() == matrix
    kinds = {"precision": m.Precision, "recall": m.Recall, "f1": m.F1Score}
    for kind, metric in kinds.items():
        found = over(metric(4, average), rng, predicted, targets)
        np.testing.assert_allclose(found, averaged(kind, matrix, average), rtol=1e-14)


def test_of_class_one_alone(rng):
    targets = rng.integers(0, 2, 40)
    scores = rng.random(40).astype(np.float32)
    matrix = confusion((scores > 0.5).astype(int), targets, 2)
    for kind, metric in (("precision", m.Precision), ("recall", m.Recall), ("f1", m.F1Score)):
        found = over(metric(average="binary"), rng, scores, targets)
        assert found == pytest.approx(per_class(kind, matrix, 1), rel=1e-14)


def test_auroc(rng):
    scores, targets = rng.integers(0, 12, 70) / 4, rng.integers(0, 2, 70)
    assert over(m.AUROC(), rng, scores, targets) == area(scores, targets)
    rows, classes = rng.integers(0, 9, (70, 3)) / 8, rng.integers(0, 3, 70)
    each = [area(rows[:, i], classes == i) for i in range(3)]
    assert over(m.AUROC(None), rng, rows, classes).tolist() == each
    assert over(m.AUROC(), rng, rows, classes) == pytest.approx(np.mean(each), rel=1e-14)
    weighted = np.average(each, weights=np.bincount(classes))
    assert over(m.AUROC("weighted"), rng, rows, classes) == pytest.approx(weighted, rel=1e-14)


def test_perplexity(rng):
    logits = rng.standard_normal((9, 4, 6)).astype(np.float32)
    targets = rng.integers(0, 6, (9, 4))
    wide = logits.astype(float)
    logs = wide - np.log(np.exp(wide).sum(-1, keepdims=True))
    own = -np.take_along_axis(logs, targets[..., None], -1)[..., 0]
    assert over(m.Perplexity(), rng, logits, targets) == pytest.approx(np.exp(own.mean()), rel=1e-6)
    kept = np.exp(own[targets != 2].mean())
    assert over(m.Perplexity(2), rng, logits, targets) == pytest.approx(kept, rel=1e-6)


def test_regression_and_plain_numbers(rng):
    x, y = rng.integers(-50, 50, (2, 33, 2)).astype(np.float32)  # sums are exact
    d = (x - y).astype(float)
    assert over(m.MeanSquaredError(), rng, x, y) == (d * d).mean()
    assert over(m.MeanSquaredError(squared=False), rng, x, y) == math.sqrt((d * d).mean())
    assert over(m.MeanAbsoluteError(), rng, x, y) == abs(d).mean()
    assert over(m.Mean(), rng, x, abs(y)) == (x * abs(y)).sum(dtype=float) / abs(y).sum()
    assert over(m.Sum(), rng, x) == x.sum()
    least, most = m.Min(), m.Max()
    for row in x:
        least.update(row)
        most.update(row)
    assert (least.compute(), most.compute()) == (x.min(), x.max())


def test_bleu():
    pairs = [
        ("the cat sat on the mat", ["a cat sat on the mat", "the cat was on it"]),
        ("he read the the book", ["he read the book"]),
    ]
    whole, parts = m.BLEU(), [m.BLEU(), m.BLEU()]
    whole.update([p for p, _ in pairs], [r for _, r in pairs])
    for part, (text, references) in zip(parts, pairs, strict=True):
        part.update([text.split()], [[r.split() for r in references]])
    # words 5 of 6 and 4 of 5, pairs 5 of 5 and 3 of 4, triples 3 of 4 and 1 of 3, 2 of 3 and 0 of 2
    expected = (9 / 11 * 8 / 9 * 4 / 7 * 2 / 5) ** 0.25
    assert whole.compute() == pytest.approx(expected, rel=1e-12)
    assert parts[0].merge(parts[1]).compute() == whole.compute()
    short = m.BLEU(1)
    short.update(["the cat"], [["the cat sat on"]])
    assert short.compute() == pytest.approx(math.exp(1 - 4 / 2))
    smooth = m.BLEU(smooth=True)
    smooth.update(["a b"], [["a b"]])
    assert smooth.compute() == 1.0 and m.BLEU()(["a b"], [["a b"]]) == 0.0


# -- behavior


def test_a_call_gives_the_batch_alone_and_counts_it():
    mean = m.Mean()
    mean.update([1.0, 2.0])
    assert mean([9.0]) == 9.0 and mean.compute() == 4.0 and mean.updates == 2


def test_many_batches_are_added_up_in_between(rng):
    mean, area = m.Mean(), m.AUROC()
    values = rng.integers(0, 100, 300)
    for value in values.tolist():
        mean.update(wf.tensor(float(value)))
        area.update([float(value)], [value % 2])
    assert mean.compute() == values.mean()
    assert len(area.totals()["scores"]) == 300


def test_inside_a_training_step_it_is_one_program(monkeypatch):
    seen = []
    recurring = program.recurring
    monkeypatch.setattr(program, "recurring", lambda records: seen.append(1) or recurring(records))
    wf.manual_seed(0)
    model = nn.Linear(4, 3)
    optimizer = wf.optim.SGD(model.parameters(), lr=0.1)
    accuracy, loss_mean, area = m.Accuracy(), m.Mean(), m.AUROC()
    rng = np.random.default_rng(0)
    for _ in range(5):
        x, y = wf.tensor(rng.standard_normal((8, 4)), dtype=wf.float32), wf.tensor([0, 1, 2, 0] * 2)
        seen.clear()
        logits = model(x)
        loss = nn.functional.cross_entropy(logits, y)
        accuracy.update(logits, y)
        loss_mean.update(loss, weight=8)
        area.update(logits, y)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        float(loss)
        assert len(seen) == 1
    assert 0 <= accuracy.compute() <= 1 and accuracy.totals()["right"].dtype.kind != "f"


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: m.Accuracy().update([1, 2], [1]), ShapeError, r"Accuracy: expected predictions"),
        (lambda: m.Accuracy(top_k=3)([[1.0, 2.0]], [0]), ArgumentError, "number of classes 2"),
        (lambda: m.Accuracy()([[1.0, 2.0]], [2]), OutOfRangeError, "got 1 predictions or targets"),
        (lambda: m.ConfusionMatrix(2)([0, 5], [0, -1]), OutOfRangeError, "got 1 predictions"),
        (lambda: m.Recall(3)([0, 3], [0, 1]), OutOfRangeError, "set num_classes or ignore_index"),
        (lambda: m.F1Score(average="mean"), ArgumentError, "F1Score: expected average of"),
        (lambda: m.AUROC()([0.1, math.nan], [0, 1]), ArgumentError, "got NaN"),
        (lambda: m.AUROC()([0.1, 1.0], [0, 2]), OutOfRangeError, "from 0 to 1, got 0 to 2"),
        (lambda: m.MeanSquaredError()([1.0], [1.0, 2.0]), ShapeError, r"got \(1,\) and \(2,\)"),
        (lambda: m.BLEU()("a b", [["a b"]]), ShapeError, "a list of references"),
        (lambda: m.Mean().merge(m.Sum()), ArgumentError, "same class, got Sum"),
        (lambda: m.Mean().load_state_dict(m.Sum().state_dict() | {"totals": {"x": 1}}),
         StateError, "expected totals"),
    ],
)  # fmt: skip
def test_wrong_arguments(call, error, text):
    with pytest.raises(error, match=text):
        call()


def test_a_division_by_nothing():
    assert m.Accuracy(ignore_index=0)([[1.0, 2.0]], [0]) == 0.0
    assert math.isnan(m.Mean()([1.0], 0.0)) and math.isnan(m.AUROC()([0.5], [1]))
    assert math.isnan(m.MeanSquaredError()([], []))
