"""Losses against PyTorch's, over random sizes and options."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import at_most

torch = pytest.importorskip("torch")

from nn_case import Cases, Draw, check, lead  # noqa: E402

import weft as wf  # noqa: E402

CASES = Cases()


# Losses

REDUCTIONS = ("none", "mean", "sum")


def regression(name, **options):
    def found(d):
        shape = (d.size(), *lead(d))
        chosen = {k: d.pick(*v) for k, v in options.items()}
        how = d.pick(*REDUCTIONS)
        make = lambda nn: getattr(nn, name)(reduction=how, **chosen)  # noqa: E731
        return make, [d.normal(*shape) * 2, d.normal(*shape)]

    CASES[name] = found


regression("MSELoss")
regression("L1Loss")
regression("SmoothL1Loss", beta=(1.0, 0.3, 0.0))
regression("HuberLoss", delta=(1.0, 0.4))


def labels(d, extra=()):
    classes = d.size(2)
    rows = (d.size(), *extra)
    x = d.normal(rows[0], classes, *extra)
    return classes, x, d.ints(classes, *rows)


@CASES.add
def cross_entropy(d):
    classes, x, y = labels(d, lead(d))
    how, smooth, weighted = d.pick(*REDUCTIONS), d.pick(0.0, 0.1), d.flag()
    w = d.uniform(classes, low=0.5)
    if d.flag():
        y.reshape(-1)[:1] = -100
        y.reshape(-1)[-1:] = 0

    def make(nn):
        weight = None
        if weighted:
            weight = torch.from_numpy(w) if nn is torch.nn else __import__("weft").tensor(w)
        return nn.CrossEntropyLoss(weight, reduction=how, label_smoothing=smooth)

    return make, [x, y]


@CASES.add
def cross_entropy_of_probabilities(d):
    _, x, _ = labels(d, lead(d))
    how, smooth = d.pick(*REDUCTIONS), d.pick(0.0, 0.1)
    p = d.uniform(*x.shape)
    make = lambda nn: nn.CrossEntropyLoss(reduction=how, label_smoothing=smooth)  # noqa: E731
    return make, [x, p / p.sum(1, keepdims=True)]


@CASES.add
def cross_entropy_of_one_row(d):
    _, x, y = labels(d)
    return lambda nn: nn.CrossEntropyLoss(), [x[0], np.asarray(y[0])]


@CASES.add
def nll(d):
    _, x, y = labels(d, lead(d))
    how, ignored = d.pick(*REDUCTIONS), d.pick(-100, 0)
    y.reshape(-1)[:1] = 1
    return lambda nn: nn.NLLLoss(reduction=how, ignore_index=ignored), [x, y]


@CASES.add
def bce(d):
    shape, how = (d.size(), d.size()), d.pick(*REDUCTIONS)
    x = d.uniform(*shape, low=0.05, high=0.95)
    return lambda nn: nn.BCELoss(reduction=how), [x, d.uniform(*shape)]


@CASES.add
def bce_with_logits(d):
    shape, how, weighted = (d.size(), d.size()), d.pick(*REDUCTIONS), d.flag()
    w = d.uniform(shape[1], low=0.5)

    def make(nn):
        weight = None
        if weighted:
            weight = torch.from_numpy(w) if nn is torch.nn else __import__("weft").tensor(w)
        return nn.BCEWithLogitsLoss(reduction=how, pos_weight=weight)

    return make, [d.normal(*shape) * 3, d.uniform(*shape)]


@CASES.add
def kl_div(d):
    shape, how = (d.size(), d.size()), d.pick("none", "sum", "batchmean")
    log = d.flag()
    target = d.normal(*shape) if log else d.uniform(*shape, low=0.1)
    return lambda nn: nn.KLDivLoss(reduction=how, log_target=log), [d.normal(*shape), target]


def with_signs(name, count=1, **options):
    def found(d):
        rows, width = d.size(), d.size()
        chosen = {k: d.pick(*v) for k, v in options.items()}
        how = d.pick(*REDUCTIONS)
        shape = (rows, width) if name == "CosineEmbeddingLoss" else (rows,)
        make = lambda nn: getattr(nn, name)(reduction=how, **chosen)  # noqa: E731
        target = d.signs(rows).astype(np.float64)  # no gradient
        return make, [*[d.normal(*shape) for _ in range(count)], target.astype(np.int64)]

    CASES[name] = found


with_signs("HingeEmbeddingLoss", margin=(1.0, 0.5))
with_signs("MarginRankingLoss", 2, margin=(0.0, 0.5))
with_signs("CosineEmbeddingLoss", 2, margin=(0.0, 0.2))
with_signs("SoftMarginLoss")


@CASES.add
def triplet(d):
    shape, how, swap, p = (d.size(), d.size()), d.pick(*REDUCTIONS), d.flag(), d.pick(1.0, 2.0)
    make = lambda nn: nn.TripletMarginLoss(reduction=how, swap=swap, p=p)  # noqa: E731
    return make, [d.normal(*shape) for _ in range(3)]


@CASES.add
def poisson(d):
    shape, how, log, full = (d.size(),), d.pick(*REDUCTIONS), d.flag(), d.flag()
    x = d.normal(*shape) if log else d.uniform(*shape, low=0.1)
    make = lambda nn: nn.PoissonNLLLoss(log_input=log, full=full, reduction=how)  # noqa: E731
    return make, [x, d.uniform(*shape, high=5)]


@CASES.add
def gaussian(d):
    shape, how, full = (d.size(), d.size()), d.pick(*REDUCTIONS), d.flag()
    var = d.uniform(*(d.pick(shape, (shape[0], 1))), low=0.0)
    make = lambda nn: nn.GaussianNLLLoss(full=full, reduction=how)  # noqa: E731
    return make, [d.normal(*shape), d.normal(*shape), var]


@CASES.add
def multi_label_soft_margin(d):
    shape, how = (d.size(), d.size()), d.pick(*REDUCTIONS)
    y = d.ints(2, *shape).astype(np.float32)
    return lambda nn: nn.MultiLabelSoftMarginLoss(reduction=how), [d.normal(*shape), y]


@CASES.add
def multi_margin(d):
    _, x, y = labels(d)
    how, p = d.pick(*REDUCTIONS), d.pick(1, 2)
    return lambda nn: nn.MultiMarginLoss(p=p, reduction=how), [x, y]


@CASES.add
def multi_label_margin(d):
    shape, how = (d.size(), d.size()), d.pick(*REDUCTIONS)
    shape = shape if d.flag() else shape[1:]
    y = d.ints(shape[-1] + 1, *shape) - 1
    return lambda nn: nn.MultiLabelMarginLoss(reduction=how), [d.normal(*shape), y]


@CASES.add
def ctc(d):
    steps, n, classes, size = d.size(5, 8), d.size(1, 3), d.size(2, 5), d.size(1, 4)
    targets, single = d.rng.integers(1, classes, (n, size)), d.flag()
    inputs, counts = d.rng.integers(3, steps + 1, n), d.rng.integers(0, size + 1, n)
    how = d.pick(*REDUCTIONS)
    if not single and d.flag():
        targets = np.concatenate([t[:c] for t, c in zip(targets, counts, strict=True)])
    if single:
        targets, inputs, counts = targets[0], inputs[0], size
    x = d.normal(steps, *(() if single else (n,)), classes)

    def make(nn):
        loss = nn.CTCLoss(reduction=how, zero_infinity=True)
        return lambda x, *rest: loss(nn.functional.log_softmax(x, -1), *rest)

    return make, [x, targets, np.asarray(inputs), np.asarray(counts)]


@pytest.mark.parametrize("name", CASES)
@at_most(3)
@given(seed=st.integers(0, 10**6))
def test_loss(name, seed):
    check(*CASES[name](Draw(seed)))


@pytest.mark.parametrize(
    "name",
    [
        "binary_cross_entropy",
        "binary_cross_entropy_with_logits",
        "pos_weight",
        "mse_loss",
        "huber_loss",
        "cross_entropy",
    ],
)
def test_weights_do_not_pair_each_weight_with_each_loss(name):
    rng = np.random.default_rng(0)
    shapes = [(), (1,), (4,), (4, 1), (1, 3), (4, 3)]
    for i, (own, other) in enumerate(itertools.product([(4,), (4, 1), (4, 3)], shapes)):
        x, y, w = [rng.random(s, np.float32) for s in (own, own, other)]
        how = REDUCTIONS[i % len(REDUCTIONS)]
        found = [_weighted_loss(lib, name, x, y, w, how) for lib in (torch, wf)]
        assert (found[0] is None) is (found[1] is None), (own, other)
        if found[0] is not None:
            np.testing.assert_allclose(found[1], found[0], rtol=1e-5, atol=1e-7)


def _weighted_loss(lib, name, x, y, w, reduction):
    """The loss; `None` if it is refused."""
    key = "pos_weight" if name == "pos_weight" else "weight"
    function = "binary_cross_entropy_with_logits" if name == "pos_weight" else name
    options = {key: lib.tensor(w), "reduction": reduction}
    try:
        loss = getattr(lib.nn.functional, function)(lib.tensor(x), lib.tensor(y), **options)
    except (RuntimeError, ValueError):
        return None
    return loss.numpy()
