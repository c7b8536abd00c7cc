"""Mixtures of experts against a loop over tokens; dropped tokens, losses, errors."""

import math

import numpy as np
import pytest

import weft as wf
from weft import nn
from weft.errors import ArgumentError, ShapeError

TOKENS, FEATURES, EXPERTS = 23, 5, 4


def make(top_k, factor, activation="relu"):
    wf.manual_seed(1)
    layer = nn.MixtureOfExperts(FEATURES, 7, EXPERTS, top_k, factor, activation=activation)
    return layer, wf.randn(TOKENS, FEATURES)


def expected(layer, x):
    """The output and how many choices were dropped: first choices of all tokens come first."""
    arrays = {n: p.detach().numpy().astype(np.float64) for n, p in layer.named_parameters()}
    x = x.numpy().astype(np.float64)
    scores = x @ arrays["router.weight"].T
    chances = np.exp(scores - scores.max(1, keepdims=True))
    chances /= chances.sum(1, keepdims=True)
    choices = np.argsort(-chances, axis=1, kind="stable")[:, : layer.top_k]
    gates = np.take_along_axis(chances, choices, 1)
    if layer.top_k > 1:
        gates /= gates.sum(1, keepdims=True)
    room, dropped = [layer.capacity(len(x))] * EXPERTS, 0
    y = np.zeros_like(x)
    for choice in range(layer.top_k):
        for token, e in enumerate(choices[:, choice]):
            if not room[e]:
                dropped += 1
                continue
            room[e] -= 1
            hidden = np.maximum(x[token] @ arrays["weight1"][e] + arrays["bias1"][e], 0)
            made = hidden @ arrays["weight2"][e] + arrays["bias2"][e]
            y[token] += gates[token, choice] * made[0]
    shares = np.bincount(choices.ravel(), minlength=EXPERTS) / choices.size
    return y, dropped, EXPERTS * (shares * chances.mean(0)).sum(), scores


@pytest.mark.parametrize("top_k", [1, 2])
@pytest.mark.parametrize("factor", [0.3, 1.0, 4.0])
def test_each_token_gets_what_its_experts_make_of_it(top_k, factor):
    layer, x = make(top_k, factor)
    found = layer(x)
    y, dropped, balance, scores = expected(layer, x)
    np.testing.assert_allclose(found.output.detach(), y, rtol=1e-5, atol=1e-6)
    assert found.dropped.item() == dropped
    assert (dropped == 0) == (factor == 4.0)
    np.testing.assert_allclose(found.balance_loss.item(), balance, rtol=1e-5)
    z = np.square(np.log(np.exp(scores).sum(1))).mean()
    np.testing.assert_allclose(found.z_loss.item(), z, rtol=1e-5)


@pytest.mark.parametrize("top_k", [1, 2])
def test_gradients(top_k):
    layer, x = make(top_k, 0.7, "gelu")
    layer = layer.double()
    names, weights = zip(*layer.named_parameters(), strict=True)

    def run(x, *weights):
        found = wf.func.functional_call(layer, dict(zip(names, weights, strict=True)), (x,))
        return found.output, found.balance_loss, found.z_loss

    inputs = [v.detach().double().requires_grad_() for v in (x, *weights)]
    assert wf.autograd.gradcheck(run, tuple(inputs), fast_mode=True)


def test_capacity_outside_of_training():
    layer, x = make(1, 0.3)
    assert layer.capacity(TOKENS) == math.ceil(0.3 * TOKENS / EXPERTS)
    layer.eval()
    assert layer.capacity(TOKENS) == math.ceil(2.0 * TOKENS / EXPERTS)
    y = layer(x.reshape(1, TOKENS, FEATURES)).output
    np.testing.assert_allclose(y[0].detach(), expected(layer, x)[0], rtol=1e-5, atol=1e-6)


def test_balance_loss_spreads_choices():
    layer, x = make(1, 4.0)
    layer.router.weight.data[0] += 3 * x.mean(0)
    before = layer(x).balance_loss.item()
    optimizer = wf.optim.SGD(layer.router.parameters(), lr=0.5)
    for _ in range(30):
        layer(x).balance_loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    assert layer(x).balance_loss.item() < min(before, 1.1)


def test_the_same_bits_on_any_number_of_threads():
    layer, x = make(2, 1.0)
    found = []
    for threads in (1, 2, 4):
        with wf.config.override(threads=threads):
            for _ in range(4):  # the last runs are compiled
                layer.zero_grad()
                y = layer(x).output
                y.square().sum().backward()
                bits = [
                    v.detach().numpy().tobytes() for v in (y, *[p.grad for p in layer.parameters()])
                ]
            found.append(bits)
    assert found[0] == found[1] == found[2]


def test_what_does_not_fit_raises():
    with pytest.raises(ArgumentError, match="expected 1 <= top_k <= num_experts"):
        nn.MixtureOfExperts(4, 8, 2, top_k=3)
    with pytest.raises(ArgumentError, match="activation: expected relu, gelu, silu, got 'tanh'"):
        nn.MixtureOfExperts(4, 8, 2, activation="tanh")(wf.ones(3, 4))
    with pytest.raises(ShapeError, match=r"expected shape \(..., 4\), got \(3, 5\)"):
        nn.MixtureOfExperts(4, 8, 2)(wf.ones(3, 5))
    assert nn.MixtureOfExperts(4, 8, 2)(wf.ones(0, 4)).output.shape == (0, 4)
