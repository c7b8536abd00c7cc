"""torchmetrics' names: modules, collections, and values that torchmetrics 1.9 computes."""

import sys
from unittest import mock

import numpy as np
import pytest

import weft as wf
from weft import torchmetrics as tm
from weft.errors import ArgumentError, OutOfRangeError, StateError
from weft.ops.metric.text import rouge_lsum
from weft.torchmetrics import classification as kinds
from weft.torchmetrics import functional as F
from weft.torchmetrics.made import snake
from weft.torchmetrics.metric import check_same_shape

R = np.random.default_rng(0)
P, T = R.random((12, 3)).astype("f4"), R.integers(0, 3, 12)
S, H = R.random(12).astype("f4"), R.integers(0, 2, 12)
L = R.integers(0, 2, (12, 3))

# By torchmetrics 1.9.0, of the arrays above in two batches: arguments, and what it gives for
# binary data (S, H), classes (P, T) and labels (P, L).
VALUES = {
    "Accuracy": (
        {},
        [0.583333],
        [0.5],
        [0.5],
    ),
    "Precision": (
        {"average": "macro"},
        [0.666667],
        [0.5],
        [0.541667],
    ),
    "Recall": (
        {"average": "macro"},
        [0.571429],
        [0.55],
        [0.666667],
    ),
    "F1Score": (
        {"average": "weighted"},
        [0.615385],
        [0.462963],
        [0.555455],
    ),
    "FBetaScore": (
        {"beta": 0.5},
        [0.645161],
        [0.5],
        [0.555556],
    ),
    "Specificity": (
        {"average": "macro"},
        [0.6],
        [0.751984],
        [0.291667],
    ),
    "HammingDistance": (
        {},
        [0.416667],
        [0.5],
        [0.5],
    ),
    "StatScores": (
        {"average": None},
        [4.0, 2.0, 3.0, 3.0, 7.0],
        [3.0, 3.0, 6.0, 0.0, 3.0, 2.0, 2.0, 5.0, 3.0, 5.0, 1.0, 1.0, 7.0, 3.0, 4.0],
        [5.0, 3.0, 1.0, 3.0, 8.0, 4.0, 3.0, 5.0, 0.0, 4.0, 3.0, 4.0, 0.0, 5.0, 8.0],
    ),
    "JaccardIndex": (
        {},
        [0.444444],
        [0.328571],
        [0.425325],
    ),
    "ConfusionMatrix": (
        {"normalize": "true"},
        [0.6, 0.4, 0.428571, 0.571429],
        [1.0, 0.0, 0.0, 0.4, 0.4, 0.2, 0.25, 0.5, 0.25],
        [0.25, 0.75, 0.375, 0.625, 0.625, 0.375, 0.0, 1.0, 0.0, 1.0, 0.625, 0.375],
    ),
    "MatthewsCorrCoef": (
        {},
        [0.169031],
        [0.28587],
        [-0.025482],
    ),
    "AUROC": (
        {},
        [0.571429],
        [0.587831],
        [0.489583],
    ),
    "AveragePrecision": (
        {"average": "weighted"},
        [0.647712],
        [0.476371],
        [0.628876],
    ),
}
NUMBERS = {
    "MeanSquaredError": ({"squared": False}, [0.495278]),
    "MeanAbsoluteError": ({}, [0.409666]),
    "MeanAbsolutePercentageError": ({}, [1.172234]),
    "R2Score": ({"multioutput": "raw_values"}, [-1.264341, -2.043641, -1.973984]),
    "ExplainedVariance": ({}, [-1.640913]),
    "PearsonCorrCoef": ({"num_outputs": 3}, [-0.080461, -0.438354, -0.442555]),
    "SpearmanCorrCoef": ({"num_outputs": 3}, [-0.342657, -0.412587, -0.384615]),
    "ConcordanceCorrCoef": ({"num_outputs": 3}, [-0.07682, -0.407199, -0.425233]),
    "CosineSimilarity": ({"reduction": "mean"}, [0.755928]),
    "KLDivergence": ({}, [0.469287]),
    "PeakSignalNoiseRatio": ({"data_range": 1.0}, [6.103015]),
}

TASKS = (
    {"task": "binary"},
    {"task": "multiclass", "num_classes": 3},
    {"task": "multilabel", "num_labels": 3},
)


def in_two_batches(metric, preds, target):
    preds, target = wf.tensor(preds), wf.tensor(target)
    first = metric(preds[:8], target[:8])
    metric.update(preds[8:], target[8:])
    alone = metric.clone()
    alone.reset()
    alone.update(preds[:8], target[:8])
    np.testing.assert_array_equal(first.numpy(), alone.compute().numpy())
    return metric.compute().numpy().ravel()


@pytest.mark.parametrize("name", VALUES)
def test_classification(name):
    options, *values = VALUES[name]
    for task, batch, expected in zip(TASKS, ((S, H), (P, T), (P, L)), values, strict=True):
        metric = getattr(tm, name)(**task, **options)
        assert isinstance(metric, getattr(kinds, f"{task['task'].capitalize()}{name}"))
        np.testing.assert_allclose(in_two_batches(metric, *batch), expected, atol=2e-6)
        told = {k: v for k, v in task.items() if k != "task"}
        function = getattr(F, f"{task['task']}_{snake(name)}")
        tensors = [wf.tensor(x) for x in batch]
        options = {"average": "micro", **options} if name in ("Accuracy", "FBetaScore") else options
        known = {k: v for k, v in options.items() if k != "average" or told}
        if name not in ("HammingDistance",):
            found = function(*tensors, **told, **known)
            np.testing.assert_allclose(found.numpy().ravel(), expected, atol=2e-6)


@pytest.mark.parametrize("name", NUMBERS)
def test_regression(name):
    options, expected = NUMBERS[name]
    metric = getattr(tm, name)(**options)
    batch = P, P[::-1].copy() + np.float32(0.1)
    np.testing.assert_allclose(in_two_batches(metric, *batch), expected, rtol=1e-5)
    found = getattr(F, snake(name))(*map(wf.tensor, batch), **options)
    np.testing.assert_allclose(found.numpy().ravel(), expected, rtol=1e-5)


def test_noise_of_each_row():
    batch = P, P[::-1].copy() + np.float32(0.1)
    x, y = [a.astype(np.float64).clip(0.2, 0.8) for a in batch]
    rows = 10 * np.log2(0.6**2 / ((x - y) ** 2).mean(1))
    for reduction, expected in (("none", rows), ("sum", rows.sum()), (None, rows)):
        options = {"data_range": (0.2, 0.8), "base": 2.0, "reduction": reduction, "dim": 1}
        found = in_two_batches(tm.PeakSignalNoiseRatio(**options), *batch)
        np.testing.assert_allclose(found, expected, rtol=1e-5)


class Hits(tm.Metric):
    """A metric of a user's."""

    def __init__(self):
        super().__init__()
        self.add_state("hits", wf.tensor(0), dist_reduce_fx="sum", persistent=True)
        self.add_state("seen", [], dist_reduce_fx="cat")

    def update(self, preds, target):
        self.hits += (preds.argmax(1) == target).sum()
        self.seen.append(target)

    def compute(self):
        return self.hits.float() / len(wf.cat(self.seen))


def test_a_collection_of_a_users_and_other_metrics_is_logged():
    class Module(wf.train.LightningModule):
        def __init__(self):
            super().__init__()
            self.metrics = tm.MetricCollection({"hits": Hits()}, prefix="val/").clone()
            self.metrics.add_metrics(tm.Accuracy(task="multiclass", num_classes=3))
            self.mean = tm.MeanMetric()

        def validation_step(self, batch, batch_idx):
            preds, target = batch
            self.metrics.update(preds, target)
            self.mean.update(preds.sum(), weight=len(target))
            self.log_dict(self.metrics, on_epoch=True)
            self.log("mean", self.mean)

    batches = [(wf.tensor(P[:8]), wf.tensor(T[:8])), (wf.tensor(P[8:]), wf.tensor(T[8:]))]
    module = Module()
    assert list(module.state_dict()) == ["metrics.hits.hits"]
    trainer = wf.train.Trainer(logger=False, enable_progress_bar=False)
    for _ in range(2):  # states are reset after each pass
        (found,) = trainer.validate(module, batches)
        right = float((P.argmax(1) == T).mean())
        sums = float(P[:8].sum()), float(P[8:].sum())
        mean = (8 * sums[0] + 4 * sums[1]) / 12
        assert found == {
            "val/hits": pytest.approx(right), "val/MulticlassAccuracy": pytest.approx(right),
            "mean": pytest.approx(mean),
        }  # fmt: skip
    two = [Hits(), Hits()]
    for metric, batch in zip(two, batches, strict=True):
        metric.update(*batch)
    whole = two[0].of_ranks([m.metric_state for m in two])
    assert whole.compute().item() == pytest.approx(right)


def test_wrappers_and_aggregates():
    each = tm.ClasswiseWrapper(
        tm.Recall(task="multiclass", num_classes=2, average=None), labels=["cat", "dog"]
    )
    found = each(wf.tensor([0, 1, 1]), wf.tensor([0, 0, 1]))
    assert {k: v.item() for k, v in found.items()} == {
        "multiclassrecall_cat": 0.5, "multiclassrecall_dog": 1.0,
    }  # fmt: skip
    with pytest.warns(UserWarning, match="NaN is left out"):
        assert tm.MaxMetric()(wf.tensor([1.0, float("nan")])).item() == 1.0
    assert tm.SumMetric(nan_strategy=5.0)(wf.tensor([1.0, float("nan")])).item() == 6.0
    curve = tm.ROC(task="binary")(wf.tensor([0.1, 0.4, 0.8]), wf.tensor([0, 1, 1]))
    assert [x.tolist() for x in curve[:2]] == [[0, 0, 0, 1], [0, 0.5, 1, 1]]


def test_plots(monkeypatch):
    pyplot = mock.Mock()  # Matplotlib, which need not be installed
    pyplot.subplots.side_effect = lambda: (mock.Mock(), mock.Mock())
    monkeypatch.setitem(sys.modules, "matplotlib", mock.Mock(pyplot=pyplot))
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", pyplot)
    matrix = tm.ConfusionMatrix(task="multiclass", num_classes=3)
    matrix.update(wf.tensor(P), wf.tensor(T))
    _, axes = matrix.plot(labels=["a", "b", "c"])
    texts = [call.args[2] for call in axes.text.call_args_list]
    assert texts == [str(n) for n in matrix.compute().flatten().tolist()]
    assert axes.set_xticks.call_args.kwargs["labels"] == ["a", "b", "c"]
    mean = tm.MeanMetric()
    _, axes = mean.plot([mean(wf.tensor(1.0)), mean(wf.tensor(3.0))])
    assert axes.plot.call_args.args[0].tolist() == [1.0, 3.0]
    figure, again = mean.plot(ax=axes)
    assert again is axes and figure is axes.get_figure() and axes.plot.call_args.args == (0, 2.0)


class Distance(tm.Metric):
    """A metric that is a loss."""

    def __init__(self):
        super().__init__()
        self.add_state("total", wf.tensor(0.0), dist_reduce_fx="sum")

    def update(self, x, y):
        check_same_shape(x, y)
        self.total = self.total + ((x - y) ** 2).sum().to(self.device, self.dtype)

    def compute(self):
        return self.total


def test_the_value_of_a_batch_has_gradients_and_states_have_none():
    metric, x = Distance(), wf.tensor([1.0, 2.0], requires_grad=True)
    for _ in range(2):
        metric(x, wf.zeros(2)).backward()
    assert x.grad.tolist() == [4.0, 8.0]
    assert metric.compute().item() == 10.0 and not metric.total.requires_grad
    with pytest.raises(RuntimeError, match=r"same shape, but got \(2,\) and \(3,\)"):
        metric.update(x, wf.zeros(3))
    metric.set_dtype(wf.float64).update(x, wf.zeros(2))
    assert metric.total.dtype is wf.float64


def blurred(x, windows):
    """Windowed means by NumPy, one window at a time."""
    rows, columns = (len(w) for w in windows)
    weights = np.outer(*windows)
    high, wide = x.shape[-2] - rows + 1, x.shape[-1] - columns + 1
    return np.array([[(x[..., i : i + rows, j : j + columns] * weights).sum((-1, -2))
                      for j in range(wide)] for i in range(high)])  # fmt: skip


def test_ssim_is_its_definition_and_a_loss():
    g = np.random.default_rng(0)
    x, y = g.random((2, 2, 3, 13, 12))
    metric = tm.image.StructuralSimilarityIndexMeasure(sigma=(0.8, 0.6), data_range=1.0)
    shape = [np.exp(-((np.arange(-n, n + 1) / s) ** 2) / 2) for n, s in ((3, 0.8), (2, 0.6))]
    windows = [w / w.sum() for w in shape]
    p, q = (np.pad(v, ((0, 0), (0, 0), (3, 3), (2, 2)), mode="reflect") for v in (x, y))
    mp, mq, pp, qq, pq = (blurred(v, windows) for v in (p, q, p * p, q * q, p * q))
    found = (2 * mp * mq + 1e-4) * (2 * (pq - mp * mq) + 9e-4)
    found /= (mp**2 + mq**2 + 1e-4) * (pp - mp**2 + qq - mq**2 + 9e-4)
    images = wf.tensor(x.astype("float32"), requires_grad=True), wf.tensor(y.astype("float32"))
    value = metric(*images)
    assert value.item() == pytest.approx(found.mean(), abs=1e-5)
    value.backward()
    assert images[0].grad.abs().sum().item() > 0
    many = tm.image.MultiScaleStructuralSimilarityIndexMeasure
    scales = many(sigma=0.6, data_range=1.0, betas=(0.3, 0.7), normalize="simple")
    assert 0 < scales(*images).item() < 1 and scales(images[1], images[1]).item() == 1


def test_overlap_of_masks():
    x, y = wf.tensor([[[0, 1, 1], [2, 2, 0]]]), wf.tensor([[[0, 1, 2], [2, 2, 2]]])
    kinds_of = tm.segmentation
    each = kinds_of.MeanIoU(4, per_class=True, input_format="index")(x, y)
    assert each.tolist() == pytest.approx([0.5, 0.5, 0.5, -1.0])
    scores = wf.nn.functional.one_hot(x, 4).movedim(-1, 1).float()
    for average, expected in (
        ("macro", 2 / 3), ("micro", 2 / 3), ("weighted", 2 / 3), ("none", [2 / 3] * 3 + [np.nan]),
    ):  # fmt: skip
        dice = kinds_of.DiceScore(4, average=average, input_format="mixed")(scores, y)
        np.testing.assert_allclose(dice.numpy(), expected, rtol=1e-6)
    least = kinds_of.DiceScore(4, include_background=False, input_format="index")
    least.update(x, y)
    assert least.compute().item() == pytest.approx(2 / 3)


def test_errors_of_texts():
    said, true = ["a cat sat", "on"], ["the cat sat down", "on"]
    assert tm.WordErrorRate()(said, true).item() == pytest.approx(2 / 5)
    assert tm.MatchErrorRate()(said, true).item() == pytest.approx(2 / 5)
    assert F.char_error_rate("kitten", "sitting").item() == pytest.approx(3 / 7)


def test_a_prediction_that_is_no_class_is_wrong():
    p, t = wf.tensor([11, 3, 2, 900]), wf.tensor([1, 3, 2, 4])
    assert tm.Accuracy(task="multiclass", num_classes=10)(p, t).item() == 0.5
    counts = tm.StatScores(task="multiclass", num_classes=10, average="micro")(p, t)
    assert counts.tolist() == [2, 2, 34, 2, 4]  # torchmetrics'


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: tm.image.StructuralSimilarityIndexMeasure(kernel_size=4), ArgumentError, "odd"),
        (lambda: tm.segmentation.MeanIoU(input_format="index"), ArgumentError, "num_classes"),
        (lambda: tm.Accuracy(task="many"), ArgumentError, "expected task of"),
        (lambda: tm.Accuracy(task="multiclass"), ArgumentError, "expected .'num_classes'.*none"),
        (lambda: tm.F1Score(task="binary", colour=1), ArgumentError, "unknown arguments"),
        (lambda: kinds.BinaryAccuracy(multidim_average="samplewise"), ArgumentError, "'global'"),
        (lambda: tm.AUROC(task="binary").compute(), StateError, "expected update"),
        (lambda: tm.functional.accuracy(wf.tensor([3]), wf.tensor([1]), "multiclass",
                                        num_classes=2, average="macro"),
         OutOfRangeError, "expected classes from 0 to 1"),
        (lambda: tm.MetricCollection([Hits(), Hits()]), ArgumentError, "of different names"),
        (lambda: Hits().add_state("x", 3), ArgumentError, "expected a tensor or an empty list"),
    ],
)  # fmt: skip
def test_errors(call, error, text):
    with pytest.raises(error, match=text):
        call()


def test_documents_are_scored_by_query():
    preds = wf.tensor([0.2, 0.3, 0.5, 0.1, 0.3, 0.5, 0.2, 0.9, 0.8])
    target = wf.tensor([0, 0, 1, 0, 1, 0, 1, 0, 0])
    query = wf.tensor([0, 0, 0, 1, 1, 1, 1, 2, 2])  # the third one has nothing relevant
    expected = {
        tm.RetrievalMAP(): (1 + (1 / 2 + 2 / 3) / 2) / 3, tm.RetrievalMRR(): (1 + 1 / 2) / 3,
        tm.RetrievalPrecision(top_k=2): (1 / 2 + 1 / 2) / 3, tm.RetrievalRPrecision(): 1.5 / 3,
        tm.RetrievalRecall("skip", top_k=2): 3 / 4, tm.RetrievalHitRate(top_k=1): 1 / 3,
        tm.RetrievalFallOut(top_k=1): (0 + 1 / 2 + 1 / 2) / 3, tm.RetrievalAUROC(): 1.5 / 3,
        tm.RetrievalMRR("pos", aggregation="median"): 1.0,
        tm.RetrievalPrecision(top_k=4, adaptive_k=True): (1 / 3 + 2 / 4) / 3,
    }  # fmt: skip
    for metric, value in expected.items():
        metric.update(preds[:4], target[:4], query[:4])
        metric.update(preds[4:], target[4:], indexes=query[4:])
        assert metric.compute().item() == pytest.approx(value), metric
    gain = tm.functional.retrieval_normalized_dcg  # an example of torchmetrics
    found = gain(wf.tensor([0.1, 0.2, 0.3, 4.0, 70.0]), wf.tensor([10, 0, 0, 1, 5]))
    assert found.item() == pytest.approx(0.6957, abs=1e-4)
    with pytest.raises(ArgumentError, match="relevant documents of each query"):
        tm.RetrievalMAP("error")(preds, target, query)
    with pytest.raises(ArgumentError, match="relevances 0 and 1"):
        tm.RetrievalMAP()(preds, 2 * target, query)


def test_summaries_share_words_with_true_ones():
    said, true = ["My name is John"], [["Is your name John", "a b"]]
    score = tm.ROUGEScore(rouge_keys=("rouge1", "rouge2", "rougeL"))  # an example of torchmetrics
    found = {k: round(v.item(), 4) for k, v in score(said, true).items()}
    assert found["rouge1_fmeasure"] == 0.75 and found["rougeL_recall"] == 0.5
    assert found["rouge2_precision"] == 0.0
    mean = tm.functional.rouge_score(said, true, "avg", rouge_keys="rouge1")
    assert mean["rouge1_fmeasure"].item() == pytest.approx(0.375)
    a, b = [["a", "b", "c"], ["d"]], [["a", "c"], ["d", "b"]]
    assert rouge_lsum(a, b) == (1.0, 1.0, 1.0)
    words = tm.WordInfoLost()(["this is the end"], ["this is an end now"])
    assert words.item() == pytest.approx(1 - 3 / 4 * 3 / 5)
