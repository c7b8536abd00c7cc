"""Activations, dense layers and normalization against PyTorch's, over random sizes and options."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import at_most

torch = pytest.importorskip("torch")

from nn_case import Cases, Draw, check, lead  # noqa: E402

CASES = Cases()


# Activations: name -> options to draw
ACTIVATIONS = {
    "ReLU": {}, "ReLU6": {}, "SELU": {}, "SiLU": {}, "Mish": {}, "Hardswish": {},
    "Hardsigmoid": {}, "Sigmoid": {}, "Tanh": {}, "LogSigmoid": {}, "Softsign": {},
    "Tanhshrink": {}, "GELU": {"approximate": ("none", "tanh")}, "LeakyReLU": {
        "negative_slope": (0.01, 0.3)}, "ELU": {"alpha": (1.0, 0.5)},
    "CELU": {"alpha": (1.0, 2.0)}, "Hardtanh": {"min_val": (-1.0, -2.0), "max_val": (1.0, 0.5)},
    "Threshold": {"threshold": (0.1,), "value": (3.0,)}, "Softplus": {"beta": (1.0, 2.0)},
    "Hardshrink": {"lambd": (0.5, 1.0)}, "Softshrink": {"lambd": (0.5, 1.0)},
    "Softmax": {"dim": (-1, 0)}, "LogSoftmax": {"dim": (-1, 0)}, "Softmin": {"dim": (-1, 0)},
    "Identity": {},
}  # fmt: skip


@pytest.mark.parametrize("name", ACTIVATIONS)
@at_most(2)
@given(seed=st.integers(0, 10**6))
def test_activation(name, seed):
    d = Draw(seed)
    options = {k: d.pick(*v) for k, v in ACTIVATIONS[name].items()}
    x = d.normal(d.size(), *lead(d)) * 3
    ours = check(lambda nn: getattr(nn, name)(**options), [x])
    assert repr(ours) == repr(getattr(torch.nn, name)(**options))


# Layers


@CASES.add
def linear(d):
    i, o, bias = d.size(), d.size(), d.flag()
    return lambda nn: nn.Linear(i, o, bias), [d.normal(*lead(d), i)]


@CASES.add
def bilinear(d):
    a, b, o, bias, rows = d.size(), d.size(), d.size(), d.flag(), lead(d) or (2,)
    make = lambda nn: nn.Bilinear(a, b, o, bias)  # noqa: E731
    return make, [d.normal(*rows, a), d.normal(*rows, b)]


@CASES.add
def prelu(d):
    c = d.size()
    many = d.pick(1, c)
    return lambda nn: nn.PReLU(many), [d.normal(d.size(), c, *lead(d))]


@CASES.add
def glu(d):
    return lambda nn: nn.GLU(), [d.normal(*lead(d), 2 * d.size())]


@CASES.add
def rrelu_in_eval(d):
    return lambda nn: nn.RReLU().eval(), [d.normal(3, d.size())]


@CASES.add
def softmax2d(d):
    return lambda nn: nn.Softmax2d(), [d.normal(2, d.size(), 3, d.size())]


@CASES.add
def dropout_in_eval(d):
    return lambda nn: nn.Dropout(0.5).eval(), [d.normal(3, d.size())]


@CASES.add
def embedding(d):
    rows, width = d.size(), d.size()
    padding = d.pick(None, 0, -1)
    return lambda nn: nn.Embedding(rows, width, padding), [d.ints(rows, *lead(d))]


@CASES.add
def embedding_bag(d):
    rows, width, mode = d.size(2), d.size(), d.pick("sum", "mean", "max")
    padding = d.pick(None, 0)
    make = lambda nn: nn.EmbeddingBag(rows, width, mode=mode, padding_idx=padding)  # noqa: E731
    return make, [d.ints(rows, d.size(), d.size())]


@CASES.add
def embedding_bag_with_offsets(d):
    rows, width, mode, count = d.size(2), d.size(), d.pick("sum", "mean", "max"), d.size(2, 12)
    last = d.flag()
    cuts = np.sort(d.ints(count + 1, d.size(1, 4)))
    offsets = np.concatenate([[0], cuts, [count] if last else []]).astype(np.int64)
    padding = d.pick(None, 1)

    def make(nn):
        return nn.EmbeddingBag(
            rows, width, mode=mode, include_last_offset=last, padding_idx=padding
        )

    return make, [d.ints(rows, count), offsets]


@CASES.add
def weighted_embedding_bag(d):
    rows, width, shape = d.size(), d.size(), (d.size(), d.size())
    make = lambda nn: nn.EmbeddingBag(rows, width, mode="sum")  # noqa: E731
    return make, [d.ints(rows, *shape), None, d.normal(*shape)]


@CASES.add
def embedding_with_limits(d):
    rows, width = d.size(), d.size(2)
    power, often = d.pick(1.0, 2.0, 3.0, math.inf), d.flag()
    options = {"max_norm": d.pick(0.5, 1.5), "norm_type": power, "scale_grad_by_freq": often}
    return lambda nn: nn.Embedding(rows, width, **options), [d.ints(rows, *lead(d))]


@CASES.add
def embedding_bag_with_limits(d):
    rows, width, mode = d.size(2), d.size(), d.pick("sum", "mean")
    options = {"mode": mode, "max_norm": d.pick(None, 1.0), "scale_grad_by_freq": d.flag()}
    if d.flag():
        return lambda nn: nn.EmbeddingBag(rows, width, **options), [d.ints(rows, 4), np.array([0])]
    return lambda nn: nn.EmbeddingBag(rows, width, **options), [d.ints(rows, d.size(), d.size())]


@CASES.add
def flatten(d):
    return lambda nn: nn.Flatten(), [d.normal(2, *lead(d), 3)]


@CASES.add
def unflatten(d):
    return lambda nn: nn.Unflatten(1, (2, 3)), [d.normal(d.size(), 6, *lead(d))]


@CASES.add
def cosine_similarity(d):
    shape = (d.size(), d.size(2), d.size())  # of one number, the gradient is rounding errors
    return lambda nn: nn.CosineSimilarity(dim=d.pick(1, 1)), [d.normal(*shape), d.normal(*shape)]


@CASES.add
def pairwise_distance(d):
    p, keep, shape = d.pick(1.0, 2.0, 3.0), d.flag(), (d.size(), d.size())
    make = lambda nn: nn.PairwiseDistance(p, keepdim=keep)  # noqa: E731
    return make, [d.normal(*shape), d.normal(*shape)]


# Normalization


def batch_norm(spatial):
    def found(d):
        c, momentum = d.size(), d.pick(0.1, None, 0.3)
        options = {"momentum": momentum, "affine": d.flag(), "track_running_stats": d.flag()}
        training = d.flag()
        make = lambda nn: getattr(nn, f"BatchNorm{max(spatial, 1)}d")(  # noqa: E731
            c, **options
        ).train(training)
        return make, [d.normal(d.size(2, 4), c, *[d.size(2, 4) for _ in range(spatial)]) * 2 + 1]

    CASES[f"batch_norm{spatial}d"] = found


def instance_norm(spatial):
    def found(d):
        c, training = d.size(), d.flag()
        options = {"affine": d.flag(), "track_running_stats": d.flag()}
        make = lambda nn: getattr(nn, f"InstanceNorm{spatial}d")(c, **options).train(  # noqa: E731
            training
        )
        return make, [d.normal(d.size(1, 3), c, *[d.size(2, 4) for _ in range(spatial)]) * 2 + 1]

    CASES[f"instance_norm{spatial}d"] = found


for _spatial in (1, 2, 3):
    batch_norm(_spatial)
    instance_norm(_spatial)
batch_norm(0)


@CASES.add
def layer_norm(d):
    shape = d.pick((d.size(2),), (d.size(2), d.size()))
    options = {"elementwise_affine": d.flag(), "bias": d.flag(), "eps": d.pick(1e-5, 1e-3)}
    return lambda nn: nn.LayerNorm(shape, **options), [d.normal(*lead(d), *shape) + 1]


@CASES.add
def rms_norm(d):
    shape = d.pick((d.size(2),), (d.size(2), d.size()))
    options = {"elementwise_affine": d.flag(), "eps": d.pick(None, 1e-3)}
    return lambda nn: nn.RMSNorm(shape, **options), [d.normal(*lead(d), *shape)]


@CASES.add
def group_norm(d):
    groups = d.size(1, 3)
    c, affine = groups * d.size(1, 3), d.flag()
    make = lambda nn: nn.GroupNorm(groups, c, affine=affine)  # noqa: E731
    return make, [d.normal(2, c, d.size(2), *lead(d))]


@CASES.add
def local_response_norm(d):
    size = d.size(1, 4)
    make = lambda nn: nn.LocalResponseNorm(size, alpha=0.5, k=2.0)  # noqa: E731
    return make, [d.normal(2, d.size(), d.size(), d.size())]


@pytest.mark.parametrize("name", CASES)
@at_most(3)
@given(seed=st.integers(0, 10**6))
def test_layer(name, seed):
    check(*CASES[name](Draw(seed)))
