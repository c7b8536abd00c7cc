"""Checkpointed blocks give the same results and keep less memory."""

from __future__ import annotations

import numpy as np
import pytest

import weft as wf
from weft import nn
from weft.errors import WeftError
from weft.utils.checkpoint import (
    checkpoint,
    checkpoint_sequential,
    set_checkpoint_early_stop,
)


def _network() -> nn.Sequential:
    wf.manual_seed(1)
    layers = [nn.Linear(6, 6), nn.BatchNorm1d(6), nn.Dropout(0.5), nn.Tanh(), nn.Linear(6, 6)]
    return nn.Sequential(*layers)


def _trained(forward, steps=4):
    """Parameters and buffers after a few steps."""
    network = _network()
    optimizer = wf.optim.SGD(network.parameters(), lr=0.1)
    data = wf.from_numpy(np.random.default_rng(2).standard_normal((5, 6)).astype("float32"))
    for _ in range(steps):
        forward(network, data).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()
    return [v.numpy() for v in network.state_dict().values()]


@pytest.mark.parametrize("segments", [1, 2, 3, 5])
def test_segments_train_as_the_whole_does(segments):
    whole = _trained(lambda network, x: network(x))
    parts = _trained(lambda network, x: checkpoint_sequential(network, segments, x))
    for a, b in zip(whole, parts, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)


def test_functions_take_what_they_took():
    def scaled(x, other=None, *, scale):
        return {"y": x * scale if other is None else x * other}

    x = wf.tensor([1.0, 2.0], requires_grad=True)
    checkpoint(scaled, x, scale=3.0, use_reentrant=False)["y"].sum().backward()
    assert x.grad.tolist() == [3.0, 3.0]
    checkpoint(scaled, x, x, scale=3.0, use_reentrant=True)["y"].sum().backward()
    assert x.grad.tolist() == [5.0, 7.0]


def test_what_cannot_be():
    x = wf.ones(2, 6)
    with pytest.raises(WeftError, match="6 segments of 5 functions"):
        checkpoint_sequential(_network(), 6, x)
    with pytest.raises(WeftError, match="0 segments"):
        checkpoint_sequential(_network(), 0, x)
    with pytest.raises(ValueError, match="need use_reentrant=False"):
        checkpoint(wf.exp, x, use_reentrant=True, debug=True)
    with pytest.raises(WeftError, match="'default' or 'none', got 'all'"):
        checkpoint(wf.exp, x, determinism_check="all")


@pytest.mark.parametrize("early", [True, False])
def test_nested_checkpoints_have_the_gradients_of_the_whole(early):
    def inner(x, *, factor):
        return (x.sin() * factor).exp()

    def outer(x):
        return checkpoint(inner, x, factor=2.0, determinism_check="none") * x

    x = wf.tensor([0.3, -0.7], requires_grad=True)
    with set_checkpoint_early_stop(early):
        (g,) = wf.autograd.grad(checkpoint(outer, x).sum(), x, create_graph=True)
        (h,) = wf.autograd.grad(g.sum(), x)
    (g_whole,) = wf.autograd.grad((inner(x, factor=2.0) * x).sum(), x, create_graph=True)
    (h_whole,) = wf.autograd.grad(g_whole.sum(), x)
    np.testing.assert_allclose(g.numpy(force=True), g_whole.numpy(force=True), rtol=1e-6)
    np.testing.assert_allclose(h.numpy(), h_whole.numpy(), rtol=1e-5)
