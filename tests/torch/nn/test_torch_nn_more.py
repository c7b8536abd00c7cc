"""Adaptive softmax and the gradients of convolutions beside PyTorch's."""

import numpy as np
import pytest

import weft as wf
from weft import nn
from weft.errors import ShapeError

torch = pytest.importorskip("torch")
__import__("torch.nn.grad")


@pytest.mark.parametrize("bias", [False, True])
def test_adaptive_softmax(bias):
    ours = nn.AdaptiveLogSoftmaxWithLoss(16, 20, [5, 10, 15], div_value=2.0, head_bias=bias)
    theirs = torch.nn.AdaptiveLogSoftmaxWithLoss(16, 20, [5, 10, 15], 2.0, bias)
    theirs.load_state_dict({k: torch.tensor(v.numpy()) for k, v in ours.state_dict().items()})
    rng = np.random.default_rng(0)
    x, t = rng.standard_normal((12, 16)).astype(np.float32), rng.integers(0, 20, 12)
    found = []
    for lib, layer in ((wf, ours), (torch, theirs)):
        given = lib.tensor(x, requires_grad=True)
        result = layer(given, lib.tensor(t))
        result.loss.backward()
        found.append([result.output, result.loss, given.grad, layer.log_prob(given)])
        found[-1] += [p.grad for p in layer.parameters()]
        found[-1].append(layer(given[0], lib.tensor(t)[0]).output)
        found[-1].append(layer.predict(given))
    for actual, expected in zip(*found, strict=True):
        np.testing.assert_allclose(
            actual.detach().numpy(), expected.detach().numpy(), rtol=1e-4, atol=1e-6
        )
    assert repr(ours) == repr(theirs)


@pytest.mark.parametrize("cutoffs", [[], [0, 5], [5, 5], [7, 5], [5, 20], [2.5]])
def test_wrong_cutoffs(cutoffs):
    with pytest.raises(ValueError, match="cutoffs that ascend"):
        nn.AdaptiveLogSoftmaxWithLoss(16, 20, cutoffs)


def test_wrong_targets():
    layer = nn.AdaptiveLogSoftmaxWithLoss(4, 6, [2])
    with pytest.raises(ValueError, match="from 0 to 5, got 0 to 6"):
        layer(wf.ones(2, 4), wf.tensor([0, 6]))
    with pytest.raises(ShapeError, match="expected inputs"):
        layer(wf.ones(3, 4), wf.tensor([0, 1]))


@pytest.mark.parametrize("spatial", [1, 2, 3])
@pytest.mark.parametrize("options", [(1, 0, 1, 1), (2, 1, 1, 2), (3, 2, 2, 1)])
def test_gradients_of_convolutions(spatial, options):
    rng = np.random.default_rng(spatial)
    image, window = (8, 7, 9)[:spatial], (3, 2, 3)[:spatial]
    x = rng.standard_normal((2, 4, *image)).astype(np.float32)
    w = rng.standard_normal((6, 4 // options[-1], *window)).astype(np.float32)
    y = getattr(torch.nn.functional, f"conv{spatial}d")(
        torch.tensor(x), torch.tensor(w), None, *options
    )
    g = rng.standard_normal(tuple(y.shape)).astype(np.float32)
    for name, args in (("input", (x.shape, w, g)), ("weight", (x, w.shape, g))):
        actual, expected = [
            getattr(lib.nn.grad, f"conv{spatial}d_{name}")(
                *[lib.tensor(a) if isinstance(a, np.ndarray) else a for a in args], *options
            ).numpy()
            for lib in (wf, torch)
        ]
        np.testing.assert_allclose(actual, expected, rtol=1e-3, atol=1e-4)


def test_a_gradient_of_a_convolution_has_gradients():
    w = wf.tensor([[[1.0, 2.0]]], requires_grad=True)
    with wf.no_grad():
        assert not nn.grad.conv1d_input((1, 1, 3), w.detach(), wf.ones(1, 1, 2)).requires_grad
    (nn.grad.conv1d_input((1, 1, 3), w, wf.ones(1, 1, 2)) ** 2).sum().backward()
    assert w.grad.tolist() == [[[8, 10]]]


@pytest.mark.parametrize("separate", [False, True])
@pytest.mark.parametrize("extra", [False, True])
@pytest.mark.parametrize("mask", ["none", "causal", "numbers", "padding"])
def test_attention_with_every_weight_an_argument(separate, extra, mask):
    rng = np.random.default_rng(0)

    def drawn(*shape):
        return rng.standard_normal(shape).astype(np.float32)

    q, k, v = drawn(4, 2, 6), drawn(5, 2, 6), drawn(5, 2, 6)
    packed, parts = drawn(18, 6), [drawn(6, 6) for _ in range(3)]
    bias, more, out = drawn(18), [drawn(1, 1, 6) if extra else None for _ in range(2)], drawn(6, 6)
    masks = {
        "none": (None, None), "causal": (np.triu(np.ones((4, 5), bool), 2), None),
        "numbers": (drawn(6, 4, 5), None), "padding": (None, drawn(2, 5) > 1),
    }[mask]  # fmt: skip
    found = []
    for lib in (wf, torch):
        given = [None if x is None else lib.tensor(x) for x in (bias, *more)]
        attn, padding = [None if x is None else lib.tensor(x) for x in masks]
        y, weights = lib.nn.functional.multi_head_attention_forward(
            lib.tensor(q), lib.tensor(k), lib.tensor(v), 6, 3,
            None if separate else lib.tensor(packed), *given, extra, 0.5, lib.tensor(out), None,
            training=False, key_padding_mask=padding, attn_mask=attn,
            use_separate_proj_weight=separate,
            **{f"{n}_proj_weight": lib.tensor(w) for n, w in zip("qkv", parts, strict=True)},
            average_attn_weights=extra,
        )  # fmt: skip
        found.append((y.numpy(), weights.numpy()))
    for actual, expected in zip(*found, strict=True):
        np.testing.assert_allclose(actual, expected, rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize("name", ["softshrink", "threshold", "hardshrink", "relu6", "elu"])
def test_nan_goes_through_activations(name):
    given = (0.5, -3.0) if name == "threshold" else ()
    x = [float("nan"), 1.0, 0.5, -2.0]
    found, expected = (
        getattr(m.nn.functional, name)(m.tensor(x), *given).tolist() for m in (wf, torch)
    )
    np.testing.assert_allclose(found, expected, rtol=1e-6)
    assert np.isnan(found[0])


def test_an_empty_batch_has_no_statistics():
    for m in (wf, torch):
        layer = m.nn.BatchNorm2d(3)
        x = m.ones(0, 3, 2, 2, requires_grad=True)
        layer(x).sum().backward()
        assert tuple(x.grad.shape) == (0, 3, 2, 2)
        assert layer.weight.grad.tolist() == layer.bias.grad.tolist() == [0, 0, 0]
        assert layer.running_mean.tolist() == [0, 0, 0]
        assert layer.running_var.tolist() == [1, 1, 1]
        assert layer.num_batches_tracked.item() == 1


def test_classes_may_be_bytes():
    logits = np.random.default_rng(0).standard_normal((2, 3)).astype(np.float32)
    for name in ("nll_loss", "cross_entropy"):
        found, expected = (
            getattr(m.nn.functional, name)(m.tensor(logits), m.tensor([1, 2], dtype=m.uint8)).item()
            for m in (wf, torch)
        )
        assert found == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("p", [0.0, 0.5, -2.0, float("inf")])
def test_gradients_of_zeros_have_a_norm(p):
    def clipped(m):
        each = [m.nn.Parameter(m.ones(2)) for _ in range(3)]
        for parameter, g in zip(each, ([0.0, 0.0], [0.0, 3.0], [2.0, 5.0]), strict=True):
            parameter.grad = m.tensor(g)
        total = m.nn.utils.clip_grad_norm_(each, 1.0, p)
        return [total.item(), *[x for q in each for x in q.grad.tolist()]]

    np.testing.assert_allclose(clipped(wf), clipped(torch), rtol=1e-5)


def test_indices_without_a_class_raise():
    for m in (wf, torch):
        for indices in ([-1, 1], [5, 1]):
            with pytest.raises(RuntimeError):
                m.nn.functional.one_hot(m.tensor(indices), 3).tolist()


@pytest.mark.filterwarnings("ignore:Complex modules are a new feature")  # of PyTorch
def test_complex_numbers_where_they_are_not_meant():
    for m in (wf, torch):
        x = m.tensor([[1 + 1j, 2], [3, 4j]])
        with pytest.raises(RuntimeError):
            m.nn.functional.mse_loss(x, x)
        with pytest.raises(RuntimeError):
            m.nn.functional.pdist(x)
        layer = m.nn.Linear(2, 2)
        weight = layer.weight.tolist()
        layer.to(m.complex64)
        assert layer.weight.dtype == layer.bias.dtype == m.complex64
        assert layer.weight.tolist() == weight
        assert layer(x).dtype == m.complex64


def test_modules_refuse_arguments_that_they_do_not_have():
    for m in (wf, torch):
        for make in (m.nn.Sigmoid, m.nn.Tanh, m.nn.Module):
            with pytest.raises(TypeError):
                make(nonsense=1)
            with pytest.raises(TypeError):
                make(1)


@pytest.mark.parametrize(
    ("labels", "steps", "counts"),
    [
        ((2, 2), [6, 5], [2, 2]),
        ((2, 2), [5, -1], [2, 2]),
        ((2, 2), [5, 5], [3, 2]),
        ((2, 2), [5, 5], [-1, 2]),
        ((2, 2), [5.0, 5.0], [2, 2]),
        ((4,), [5, 5], [3, 2]),
        ((4,), [5, 5], [-1, 2]),
    ],
)
def test_lengths_of_sequences_lie_within_them(labels, steps, counts):
    for m in (wf, torch):
        scores = m.zeros(5, 2, 3).log_softmax(2)
        target = m.ones(labels, dtype=m.int64)
        with pytest.raises(RuntimeError):
            m.nn.functional.ctc_loss(scores, target, m.tensor(steps), m.tensor(counts))


def test_attention_that_cannot_be():
    x, w = wf.ones(2, 1, 6), wf.ones(18, 6)
    rest = (w, None, None, None, False, 0.0, wf.ones(6, 6), None)
    forward = nn.functional.multi_head_attention_forward
    with pytest.raises(ShapeError, match="width 8"):
        forward(x, x, x, 8, 2, *rest)
    with pytest.raises(ShapeError, match="and 4 heads"):
        forward(x, x, x, 6, 4, *rest)
    with pytest.raises(ValueError, match="is_causal needs"):
        forward(x, x, x, 6, 2, *rest, is_causal=True)
