"""Random stacks of layers beside PyTorch: losses, gradients, updates, running statistics."""

import numpy as np
import pytest
import torch
from drawn_sentence import Sentences
from drawn_stack import Stack
from hypothesis import given
from hypothesis import strategies as st
from nn_case import load
from strategies import at_most

import weft as wf
from weft import config, nn

CLOSE = {"float64": 1e-7, "float32": 5e-3}
SEEDS = st.integers(0, 2**32 - 1)


def train(network, library, stack, dtype, steps):
    """Losses and gradients of some steps, the state afterwards, and the output in `eval` mode."""
    optimizer = library.optim.SGD(network.parameters(), lr=0.01, momentum=0.9)
    x, labels = library.tensor(stack.inputs), library.tensor(stack.labels)
    if x.is_floating_point():
        x = x.to(getattr(library, dtype)).requires_grad_()
    seen = {}
    for step in range(steps):
        optimizer.zero_grad()
        loss = library.nn.functional.cross_entropy(network(x), labels)
        loss.backward()
        seen[f"loss {step}"] = loss.detach()
        if step == 0:
            # Of the first step: later ones follow weights that differ in their last digits.
            if x.requires_grad:
                seen["gradient of x"] = x.grad.clone()
            for name, p in network.named_parameters():
                seen[f"gradient of {name}"] = p.grad.clone()
        optimizer.step()
    seen |= {f"{name} at the end": y.detach() for name, y in network.state_dict().items()}
    seen["eval"] = network.eval()(x).detach()
    return seen


def check(seed, layers, steps, dtype="float64", kind=Stack):
    """Beside PyTorch in float64; in float32 one step, whose errors no later one multiplies."""
    stack = kind(seed, layers)
    torch.manual_seed(seed)
    theirs, ours = stack.make(torch.nn), stack.make(nn)
    load(ours, theirs)
    want = train(theirs.double(), torch, stack, "float64", steps)
    found = train(ours.to(dtype), wf, stack, dtype, steps)
    compare(found, want, CLOSE[dtype])


def compare(found, want, close):
    assert list(found) == list(want)
    for what, y in want.items():
        a, b = found[what].numpy(), y.numpy()
        assert a.shape == b.shape, what
        scale = np.abs(b).max(initial=1e-3)
        np.testing.assert_allclose(a, b, rtol=close, atol=close * scale, err_msg=what)


@at_most(15)
@given(SEEDS, st.integers(1, 8))
def test_it_trains_as_in_pytorch(seed, layers):
    check(seed, layers, 4)


@at_most(10)
@given(SEEDS, st.integers(1, 6))
@pytest.mark.parametrize("target", ["native", "x86-64-v3"])
def test_compiled(target, seed, layers):
    with config.override(target=target, compile=True):
        check(seed, layers, 2)


@at_most(10)
@given(SEEDS, st.integers(1, 5))
def test_compiled_in_single_precision(seed, layers):
    with config.override(compile=True):
        check(seed, layers, 1, "float32")


@at_most(10)
@given(SEEDS, st.integers(1, 5))
def test_networks_over_sentences(seed, layers):
    check(seed, layers, 4, kind=Sentences)


@at_most(10)
@given(SEEDS, st.integers(1, 4))
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_networks_over_sentences_compiled(dtype, seed, layers):
    with config.override(compile=True):
        check(seed, layers, 1, dtype, Sentences)
