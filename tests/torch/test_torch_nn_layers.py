"""Every layer against PyTorch's, over drawn sizes and options."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

torch = pytest.importorskip("torch")

from nn_case import Draw, check  # noqa: E402

CASES = {}


def case(function):
    CASES[function.__name__.strip("_")] = function
    return function


def lead(d):
    """Leading dimensions."""
    return tuple(d.size(1, 4) for _ in range(d.size(0, 3)))


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
@settings(max_examples=2, deadline=None)
@given(seed=st.integers(0, 10**6))
def test_activation(name, seed):
    d = Draw(seed)
    options = {k: d.pick(*v) for k, v in ACTIVATIONS[name].items()}
    x = d.normal(d.size(), *lead(d)) * 3
    ours = check(lambda nn: getattr(nn, name)(**options), [x])
    assert repr(ours) == repr(getattr(torch.nn, name)(**options))


# Layers


@case
def linear(d):
    i, o, bias = d.size(), d.size(), d.flag()
    return lambda nn: nn.Linear(i, o, bias), [d.normal(*lead(d), i)]


@case
def bilinear(d):
    a, b, o, bias, rows = d.size(), d.size(), d.size(), d.flag(), lead(d) or (2,)
    make = lambda nn: nn.Bilinear(a, b, o, bias)  # noqa: E731
    return make, [d.normal(*rows, a), d.normal(*rows, b)]


@case
def prelu(d):
    c = d.size()
    many = d.pick(1, c)
    return lambda nn: nn.PReLU(many), [d.normal(d.size(), c, *lead(d))]


@case
def glu(d):
    return lambda nn: nn.GLU(), [d.normal(*lead(d), 2 * d.size())]


@case
def rrelu_in_eval(d):
    return lambda nn: nn.RReLU().eval(), [d.normal(3, d.size())]


@case
def softmax2d(d):
    return lambda nn: nn.Softmax2d(), [d.normal(2, d.size(), 3, d.size())]


@case
def dropout_in_eval(d):
    return lambda nn: nn.Dropout(0.5).eval(), [d.normal(3, d.size())]


@case
def embedding(d):
    rows, width = d.size(), d.size()
    padding = d.pick(None, 0, -1)
    return lambda nn: nn.Embedding(rows, width, padding), [d.ints(rows, *lead(d))]


@case
def embedding_bag(d):
    rows, width, mode = d.size(2), d.size(), d.pick("sum", "mean", "max")
    padding = d.pick(None, 0)
    make = lambda nn: nn.EmbeddingBag(rows, width, mode=mode, padding_idx=padding)  # noqa: E731
    return make, [d.ints(rows, d.size(), d.size())]


@case
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


@case
def weighted_embedding_bag(d):
    rows, width, shape = d.size(), d.size(), (d.size(), d.size())
    make = lambda nn: nn.EmbeddingBag(rows, width, mode="sum")  # noqa: E731
    return make, [d.ints(rows, *shape), None, d.normal(*shape)]


@case
def flatten(d):
    return lambda nn: nn.Flatten(), [d.normal(2, *lead(d), 3)]


@case
def unflatten(d):
    return lambda nn: nn.Unflatten(1, (2, 3)), [d.normal(d.size(), 6, *lead(d))]


@case
def cosine_similarity(d):
    shape = (d.size(), d.size(2), d.size())  # of one number, the gradient is rounding errors
    return lambda nn: nn.CosineSimilarity(dim=d.pick(1, 1)), [d.normal(*shape), d.normal(*shape)]


@case
def pairwise_distance(d):
    p, keep, shape = d.pick(1.0, 2.0, 3.0), d.flag(), (d.size(), d.size())
    make = lambda nn: nn.PairwiseDistance(p, keepdim=keep)  # noqa: E731
    return make, [d.normal(*shape), d.normal(*shape)]


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


@case
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


@case
def cross_entropy_of_probabilities(d):
    _, x, _ = labels(d, lead(d))
    how, smooth = d.pick(*REDUCTIONS), d.pick(0.0, 0.1)
    p = d.uniform(*x.shape)
    make = lambda nn: nn.CrossEntropyLoss(reduction=how, label_smoothing=smooth)  # noqa: E731
    return make, [x, p / p.sum(1, keepdims=True)]


@case
def cross_entropy_of_one_row(d):
    _, x, y = labels(d)
    return lambda nn: nn.CrossEntropyLoss(), [x[0], np.asarray(y[0])]


@case
def nll(d):
    _, x, y = labels(d, lead(d))
    how, ignored = d.pick(*REDUCTIONS), d.pick(-100, 0)
    y.reshape(-1)[:1] = 1
    return lambda nn: nn.NLLLoss(reduction=how, ignore_index=ignored), [x, y]


@case
def bce(d):
    shape, how = (d.size(), d.size()), d.pick(*REDUCTIONS)
    x = d.uniform(*shape, low=0.05, high=0.95)
    return lambda nn: nn.BCELoss(reduction=how), [x, d.uniform(*shape)]


@case
def bce_with_logits(d):
    shape, how, weighted = (d.size(), d.size()), d.pick(*REDUCTIONS), d.flag()
    w = d.uniform(shape[1], low=0.5)

    def make(nn):
        weight = None
        if weighted:
            weight = torch.from_numpy(w) if nn is torch.nn else __import__("weft").tensor(w)
        return nn.BCEWithLogitsLoss(reduction=how, pos_weight=weight)

    return make, [d.normal(*shape) * 3, d.uniform(*shape)]


@case
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


@case
def triplet(d):
    shape, how, swap, p = (d.size(), d.size()), d.pick(*REDUCTIONS), d.flag(), d.pick(1.0, 2.0)
    make = lambda nn: nn.TripletMarginLoss(reduction=how, swap=swap, p=p)  # noqa: E731
    return make, [d.normal(*shape) for _ in range(3)]


@case
def poisson(d):
    shape, how, log, full = (d.size(),), d.pick(*REDUCTIONS), d.flag(), d.flag()
    x = d.normal(*shape) if log else d.uniform(*shape, low=0.1)
    make = lambda nn: nn.PoissonNLLLoss(log_input=log, full=full, reduction=how)  # noqa: E731
    return make, [x, d.uniform(*shape, high=5)]


@case
def gaussian(d):
    shape, how, full = (d.size(), d.size()), d.pick(*REDUCTIONS), d.flag()
    var = d.uniform(*(d.pick(shape, (shape[0], 1))), low=0.0)
    make = lambda nn: nn.GaussianNLLLoss(full=full, reduction=how)  # noqa: E731
    return make, [d.normal(*shape), d.normal(*shape), var]


@case
def multi_label_soft_margin(d):
    shape, how = (d.size(), d.size()), d.pick(*REDUCTIONS)
    y = d.ints(2, *shape).astype(np.float32)
    return lambda nn: nn.MultiLabelSoftMarginLoss(reduction=how), [d.normal(*shape), y]


@case
def multi_margin(d):
    _, x, y = labels(d)
    how, p = d.pick(*REDUCTIONS), d.pick(1, 2)
    return lambda nn: nn.MultiMarginLoss(p=p, reduction=how), [x, y]


@case
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


# Images


def image(d, spatial, channels, low=4, high=9):
    lead_dims = (d.size(1, 3), channels) if d.flag() else (channels,)
    return d.normal(*lead_dims, *[d.size(low, high) for _ in range(spatial)])


def per_axis(d, spatial, low, high):
    return d.pick(d.size(low, high), tuple(d.size(low, high) for _ in range(spatial)))


def convolution(spatial):
    def found(d):
        groups, i, o = d.pick(1, 1, 2, 3), d.size(1, 3), d.size(1, 3)
        i, o = i * groups, o * groups
        if d.flag():
            groups, o = i, 2 * i  # depthwise
        options = {
            "kernel_size": per_axis(d, spatial, 1, 3), "stride": per_axis(d, spatial, 1, 2),
            "padding": per_axis(d, spatial, 0, 2), "dilation": per_axis(d, spatial, 1, 2),
            "groups": groups, "bias": d.flag(),
        }  # fmt: skip
        if d.flag():
            options |= {"padding": d.pick("same", "valid"), "stride": 1}
        options["padding_mode"] = d.pick("zeros", "zeros", "reflect", "replicate", "circular")
        if options["padding_mode"] == "replicate" and d.flag():
            options["padding_mode"] = "zeros"
        make = lambda nn: getattr(nn, f"Conv{spatial}d")(i, o, **options)  # noqa: E731
        return make, [image(d, spatial, i, 5, 8)]

    CASES[f"conv{spatial}d"] = found


def transposed_convolution(spatial):
    def found(d):
        groups = d.pick(1, 1, 2)
        i, o = d.size(1, 3) * groups, d.size(1, 3) * groups
        stride = d.size(1, 3)
        options = {
            "kernel_size": per_axis(d, spatial, 2, 3), "stride": stride,
            "padding": per_axis(d, spatial, 0, 1), "dilation": d.size(1, 2), "groups": groups,
            "output_padding": d.size(0, stride - 1), "bias": d.flag(),
        }  # fmt: skip
        make = lambda nn: getattr(nn, f"ConvTranspose{spatial}d")(i, o, **options)  # noqa: E731
        return make, [image(d, spatial, i, 3, 5)]

    CASES[f"conv_transpose{spatial}d"] = found


def pooling(spatial):
    def maximum(d):
        window = d.size(2, 3)
        options = {
            "stride": d.pick(None, 1, 2), "padding": d.size(0, 1), "dilation": d.size(1, 2),
            "return_indices": d.flag(), "ceil_mode": d.flag(),
        }  # fmt: skip
        make = lambda nn: getattr(nn, f"MaxPool{spatial}d")(window, **options)  # noqa: E731
        return make, [image(d, spatial, 2, 6, 9)]

    def average(d):
        window = d.size(2, 3)
        options = {
            "stride": d.pick(None, 1, 2), "padding": d.size(0, 1), "ceil_mode": d.flag(),
            "count_include_pad": d.flag(),
        }  # fmt: skip
        if spatial > 1 and d.flag():
            options["divisor_override"] = 3
        make = lambda nn: getattr(nn, f"AvgPool{spatial}d")(window, **options)  # noqa: E731
        return make, [image(d, spatial, 2)]

    def norm(d):
        window, p, stride, ceil = d.size(2, 3), d.pick(1.0, 2.0, 3.0), d.pick(None, 2), d.flag()
        x = np.abs(image(d, spatial, 2)) + 0.1
        make = lambda nn: getattr(nn, f"LPPool{spatial}d")(p, window, stride, ceil)  # noqa: E731
        return make, [x]

    def adaptive_mean(d):
        size = d.pick(1, tuple(d.size(1, 4) for _ in range(spatial)))
        make = lambda nn: getattr(nn, f"AdaptiveAvgPool{spatial}d")(size)  # noqa: E731
        return make, [image(d, spatial, 2)]

    def adaptive_max(d):
        size, indices = d.pick(1, tuple(d.size(1, 4) for _ in range(spatial))), d.flag()
        make = lambda nn: getattr(nn, f"AdaptiveMaxPool{spatial}d")(size, indices)  # noqa: E731
        return make, [image(d, spatial, 2)]

    def unpool(d):
        window, x = 2, d.normal(2, 3, *[2 * d.size(1, 3) for _ in range(spatial)])
        pool = getattr(torch.nn.functional, f"max_pool{spatial}d")
        y, at = pool(torch.from_numpy(x), window, return_indices=True)
        return lambda nn: getattr(nn, f"MaxUnpool{spatial}d")(window), [y.numpy(), at.numpy()]

    CASES[f"max_pool{spatial}d"] = maximum
    CASES[f"avg_pool{spatial}d"] = average
    CASES[f"lp_pool{spatial}d"] = norm
    CASES[f"adaptive_avg_pool{spatial}d"] = adaptive_mean
    CASES[f"adaptive_max_pool{spatial}d"] = adaptive_max
    CASES[f"max_unpool{spatial}d"] = unpool


for _spatial in (1, 2, 3):
    convolution(_spatial)
    transposed_convolution(_spatial)
    pooling(_spatial)


def pads(name, spatial, most):
    def found(d):
        size = d.pick(d.size(0, most), tuple(d.size(0, most) for _ in range(2 * spatial)))
        extra = (2.5,) if name == "ConstantPad" else ()
        make = lambda nn: getattr(nn, f"{name}{spatial}d")(size, *extra)  # noqa: E731
        return make, [image(d, spatial, 2)]

    CASES[f"{name}{spatial}d"] = found


for _name in ("ConstantPad", "ZeroPad", "ReflectionPad", "ReplicationPad", "CircularPad"):
    for _spatial in (1, 2, 3):
        pads(_name, _spatial, 3)


@case
def negative_pad(d):
    x = d.normal(2, 6, 7)
    sizes = tuple(int(n) for n in d.rng.integers(-2, 3, 4))
    return lambda nn: lambda x: nn.functional.pad(x, sizes, value=1.5), [x]


@case
def upsample(d):
    mode, spatial = d.pick(
        ("nearest", 1), ("nearest", 2), ("nearest-exact", 2), ("linear", 1), ("bilinear", 2),
        ("bicubic", 2), ("trilinear", 3), ("area", 2),
    )  # fmt: skip
    options = {"mode": mode}
    if "linear" in mode or mode == "bicubic":
        options["align_corners"] = d.flag()
    if d.flag() and mode != "area":
        options["scale_factor"] = d.pick(2, 1.5)
    else:
        options["size"] = tuple(d.size(2, 9) for _ in range(spatial))
    return lambda nn: nn.Upsample(**options), [d.normal(2, 3, *[d.size(3, 6)] * spatial)]


@case
def pixel_shuffle(d):
    r, c = d.size(1, 3), d.size(1, 3)
    lead_dims = d.pick((), (2,), (2, 3))
    return lambda nn: nn.PixelShuffle(r), [d.normal(*lead_dims, c * r * r, d.size(), d.size())]


@case
def pixel_unshuffle(d):
    r, c = d.size(1, 3), d.size(1, 3)
    x = d.normal(*d.pick((), (2,)), c, r * d.size(), r * d.size())
    return lambda nn: nn.PixelUnshuffle(r), [x]


@case
def channel_shuffle(d):
    groups = d.size(1, 3)
    return lambda nn: nn.ChannelShuffle(groups), [d.normal(2, groups * d.size(), 3, 4)]


@case
def unfold(d):
    options = {"dilation": d.size(1, 2), "padding": d.size(0, 2), "stride": d.size(1, 2)}
    kernel = (d.size(1, 3), d.size(1, 3))
    return lambda nn: nn.Unfold(kernel, **options), [d.normal(2, 3, d.size(5, 8), d.size(5, 8))]


@case
def fold(d):
    options = {"dilation": d.size(1, 2), "padding": d.size(0, 2), "stride": d.size(1, 2)}
    kernel, size = (d.size(1, 3), d.size(1, 3)), (d.size(5, 8), d.size(5, 8))
    x = torch.nn.functional.unfold(torch.from_numpy(d.normal(2, 2, *size)), kernel, **options)
    return lambda nn: nn.Fold(size, kernel, **options), [x.numpy()]


# Normalisation


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


@case
def layer_norm(d):
    shape = d.pick((d.size(2),), (d.size(2), d.size()))
    options = {"elementwise_affine": d.flag(), "bias": d.flag(), "eps": d.pick(1e-5, 1e-3)}
    return lambda nn: nn.LayerNorm(shape, **options), [d.normal(*lead(d), *shape) + 1]


@case
def rms_norm(d):
    shape = d.pick((d.size(2),), (d.size(2), d.size()))
    options = {"elementwise_affine": d.flag(), "eps": d.pick(None, 1e-3)}
    return lambda nn: nn.RMSNorm(shape, **options), [d.normal(*lead(d), *shape)]


@case
def group_norm(d):
    groups = d.size(1, 3)
    c, affine = groups * d.size(1, 3), d.flag()
    make = lambda nn: nn.GroupNorm(groups, c, affine=affine)  # noqa: E731
    return make, [d.normal(2, c, d.size(2), *lead(d))]


@case
def local_response_norm(d):
    size = d.size(1, 4)
    make = lambda nn: nn.LocalResponseNorm(size, alpha=0.5, k=2.0)  # noqa: E731
    return make, [d.normal(2, d.size(), d.size(), d.size())]


# Attention


@case
def scaled_dot_product(d):
    n, heads, rows, keys, width = d.size(1, 3), 2, d.size(), d.size(), d.size(1, 4)
    options = {"scale": d.pick(None, 0.3)}
    q, k = d.normal(n, heads, rows, width), d.normal(n, heads, keys, width)
    extra = []
    if d.flag():
        options["is_causal"] = True
    elif d.flag():
        extra = [d.normal(rows, keys)]
    elif d.flag():
        mask = d.rng.random((n, 1, rows, keys)) < 0.7
        mask[..., 0] = True
        extra = [mask]

    def make(nn):
        f = nn.functional.scaled_dot_product_attention
        return lambda q, k, v, *mask: f(q, k, v, *mask, **options)

    return make, [q, k, d.normal(n, heads, keys, d.size()), *extra]


@case
def grouped_queries(d):
    q, kv = d.normal(2, 6, 3, 4), [d.normal(2, d.pick(1, 2, 3), 5, 4)] * 2

    def make(nn):
        attend = nn.functional.scaled_dot_product_attention
        return lambda q, k, v: attend(q, k, v, enable_gqa=True)

    return make, [q, *kv]


def hidden_keys(d, n, keys):
    mask = d.rng.random((n, keys)) < 0.4
    mask[:, 0] = False
    return mask


@case
def multi_head_attention(d):
    heads, n, rows, keys = d.size(1, 3), d.size(1, 3), d.size(), d.size()
    width = heads * d.size(1, 3)
    kdim, vdim = d.pick((None, None), (3, None), (2, 4))
    batch_first = d.flag()
    options = {
        "bias": d.flag(), "add_bias_kv": d.flag(), "add_zero_attn": d.flag(), "kdim": kdim,
        "vdim": vdim, "batch_first": batch_first,
    }  # fmt: skip
    call = {"average_attn_weights": d.flag(), "need_weights": d.flag()}
    if d.flag():
        call["attn_mask"] = d.pick(d.normal(rows, keys), d.normal(n * heads, rows, keys))
    if d.flag():
        call["key_padding_mask"] = hidden_keys(d, n, keys)
        if "attn_mask" in call:
            mask = call["key_padding_mask"]
            call["key_padding_mask"] = np.where(mask, np.float32(-1e3), np.float32(0))

    def shaped(length, size):
        shape = (n, length, size) if batch_first else (length, n, size)
        return d.normal(*shape)

    q, k, v = shaped(rows, width), shaped(keys, kdim or width), shaped(keys, vdim or width)
    return lambda nn: nn.MultiheadAttention(width, heads, **options), [q, k, v], call


class Twice:
    """Calls an attention with one tensor in several places."""

    def __new__(cls, nn, places, width, **options):
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.attention = nn.MultiheadAttention(width, 2, **options)

            def forward(self, x, y=None):
                y = x if y is None else y
                return self.attention(x, y, y, need_weights=False)[0]

        return Net()


@case
def self_attention(d):
    width, batch_first = 2 * d.size(1, 3), d.flag()
    x = d.normal(*d.pick((3,), (2, 3)), width)
    make = lambda nn: Twice(nn, 1, width, batch_first=batch_first)  # noqa: E731
    return make, [x]


@case
def cross_attention(d):
    width = 2 * d.size(1, 3)
    make = lambda nn: Twice(nn, 2, width, kdim=d.pick(width, width))  # noqa: E731
    return make, [d.normal(3, 2, width), d.normal(4, 2, width)]


def layer_options(d):
    return {
        "dim_feedforward": d.size(2, 5), "dropout": 0.0, "activation": d.pick("relu", "gelu"),
        "batch_first": d.flag(), "norm_first": d.flag(), "bias": d.flag(),
    }  # fmt: skip


@case
def transformer_encoder_layer(d):
    width, options, rows = 2 * d.size(2, 3), layer_options(d), d.size(2, 4)
    call = {"src_mask": np.triu(np.full((rows, rows), -np.inf, np.float32), 1)}
    shape = (2, rows, width) if options["batch_first"] else (rows, 2, width)
    make = lambda nn: nn.TransformerEncoderLayer(width, 2, **options)  # noqa: E731
    return make, [d.normal(*shape)], d.pick({}, call, call | {"is_causal": True})


@case
def transformer_decoder_layer(d):
    width, options = 2 * d.size(2, 3), layer_options(d)
    make = lambda nn: nn.TransformerDecoderLayer(width, 2, **options)  # noqa: E731
    return make, [d.normal(3, 3, width), d.normal(3, 3, width)]


@case
def transformer(d):
    width, options = 4, layer_options(d)
    sizes = {"num_encoder_layers": d.size(1, 2), "num_decoder_layers": d.size(1, 2)}
    mask = np.triu(np.full((3, 3), -np.inf, np.float32), 1)
    make = lambda nn: nn.Transformer(width, 2, **sizes, **options)  # noqa: E731
    return make, [d.normal(3, 3, width), d.normal(3, 3, width)], {"tgt_mask": mask}


# Recurrence


def recurrent(name, states, **extra):
    def found(d):
        i, h, n, length = d.size(), d.size(2), d.size(1, 3), d.size(1, 5)
        options = {
            "num_layers": d.size(1, 2), "bias": d.flag(), "batch_first": d.flag(),
            "bidirectional": d.flag(),
        }  # fmt: skip
        options |= {k: d.pick(*v) for k, v in extra.items()}
        layers = options["num_layers"] * (1 + options["bidirectional"])
        single = d.flag()
        shape = (n, length, i) if options["batch_first"] else (length, n, i)
        inputs = [d.normal(*((length, i) if single else shape))]
        out = options.get("proj_size") or h
        given = [d.normal(layers, *(() if single else (n,)), w) for w in (out, h)[:states]]
        if d.flag():
            inputs.append(given[0] if states == 1 else tuple(given))
        return lambda nn: getattr(nn, name)(i, h, **options), inputs

    CASES[name] = found


recurrent("RNN", 1, nonlinearity=("tanh", "relu"))
recurrent("GRU", 1)
recurrent("LSTM", 2, proj_size=(0, 0, 1))


def cell(name, states, **extra):
    def found(d):
        i, h, n, bias = d.size(), d.size(), d.size(), d.flag()
        options = {k: d.pick(*v) for k, v in extra.items()}
        lead_dims = d.pick((), (n,))
        inputs = [d.normal(*lead_dims, i)]
        given = [d.normal(*lead_dims, h) for _ in range(states)]
        if d.flag():
            inputs.append(given[0] if states == 1 else tuple(given))
        return lambda nn: getattr(nn, name)(i, h, bias, **options), inputs

    CASES[name] = found


cell("RNNCell", 1, nonlinearity=("tanh", "relu"))
cell("GRUCell", 1)
cell("LSTMCell", 2)


@pytest.mark.filterwarnings("ignore:enable_nested_tensor", "ignore:LSTM with projections")
@pytest.mark.parametrize("name", CASES)
@settings(max_examples=3, deadline=None)
@given(seed=st.integers(0, 10**6))
def test_layer(name, seed):
    check(*CASES[name](Draw(seed)))
