"""Checkpoints of functions that read values, which run again in the backward pass."""

from contextlib import contextmanager, nullcontext

import numpy as np
import pytest

import weft as wf
from weft import nn
from weft.errors import GradientError, TracerError
from weft.utils.checkpoint import checkpoint

WEIGHT = wf.tensor([[3.0, 1.0], [2.0, 0.5]], requires_grad=True)


def looking(x, other=None, *, scale):
    """Reads a value; also returns its argument and what it captured."""
    y = x @ WEIGHT
    y = y.sin() * scale if y.sum() > 0 else y * other
    return {"y": nn.functional.dropout(y, 0.5), "w": WEIGHT, "number": 3, "found": y > 0}


def gradients(run, start):
    """First and second derivatives by the argument, by what follows it, and by the weight."""
    wf.manual_seed(3)
    start = wf.tensor(start, requires_grad=True)
    WEIGHT.grad = None

    def total():
        x = start * 2
        x.retain_grad()
        found = run(x, x, scale=2.0)
        assert found["number"] == 3 and not found["found"].requires_grad
        return x, (found["y"] * wf.tensor([[1.0, 2.0]])).sum() + found["w"].sum()

    x, loss = total()
    loss.backward()
    first = [x.grad, start.grad, WEIGHT.grad.clone()]
    x, loss = total()
    (g,) = wf.autograd.grad(loss, x, create_graph=True)
    second = wf.autograd.grad((g**2).sum(), [start, WEIGHT], allow_unused=True)
    return [loss, *first, g, *[g for g in second if g is not None], wf.rand(2)]


@pytest.mark.parametrize("start", [[[0.1, 0.2], [0.3, -0.1]], [[-0.1, -0.2], [-0.3, 0.1]]])
def test_derivatives_are_those_of_the_function(start):
    whole = gradients(looking, start)
    parts = gradients(lambda *args, **kwargs: checkpoint(looking, *args, **kwargs), start)
    for a, b in zip(whole, parts, strict=True):
        np.testing.assert_allclose(b.numpy(force=True), a.numpy(force=True), rtol=1e-5)


def test_arguments_may_be_changed_in_place():
    def change(x):
        if x.sum() > 0:
            x.mul_(3)
        return x * x

    start = wf.tensor([2.0], requires_grad=True)
    x = start * 1
    checkpoint(change, x).backward()
    assert start.grad.item() == 36 and x.item() == 6


def test_contexts_of_both_calls():
    seen = []

    @contextmanager
    def named(name):
        seen.append(name)
        yield
        seen.append(f"end of {name}")

    def run(x):
        seen.append("call")
        return x.exp()

    x = wf.tensor([1.0], requires_grad=True)
    y = checkpoint(run, x, use_reentrant=False, context_fn=lambda: (named("one"), named("two")))
    assert seen == ["one", "call", "end of one"]
    y.backward()
    assert seen[3:] == ["two", "call", "end of two"]
    np.testing.assert_allclose(x.grad.numpy(), np.exp([1.0]), rtol=1e-6)
    with pytest.raises(ValueError, match="context_fn and debug"):
        checkpoint(run, x, use_reentrant=True, context_fn=lambda: (nullcontext(), nullcontext()))


def test_without_gradients_nothing_is_called_again():
    calls = []

    def run(x):
        calls.append(bool(x.sum() > 0))
        return x * 2

    with wf.no_grad():
        assert not checkpoint(run, wf.ones(2, requires_grad=True)).requires_grad
    assert checkpoint(run, wf.ones(2)).tolist() == [2, 2]
    assert calls == [True, True]


def test_another_result_the_second_time_raises():
    sizes = [2, 3]

    def run(x):
        assert x.sum() > 0
        return x.expand(sizes.pop(0))

    with pytest.raises(GradientError, match=r"gave before: float32\[2\]; got float32\[3\]"):
        checkpoint(run, wf.ones(1, requires_grad=True)).sum().backward()


def test_values_of_an_outer_function_are_not_to_be_had():
    def run(x):
        return x * 2 if x > 0 else x

    with pytest.raises(TracerError):
        wf.func.vmap(lambda x: checkpoint(run, x))(wf.ones(2))


def test_precision_is_that_of_the_first_call():
    kinds = []

    def run(x):
        assert x.sum() > 0
        y = x @ x
        kinds.append(y.dtype)
        return y.float()

    x = wf.ones(2, 2, requires_grad=True)
    with wf.autocast(wf.bfloat16):
        y = checkpoint(run, x)
    y.sum().backward()
    assert kinds == [wf.bfloat16, wf.bfloat16] and x.grad.tolist() == [[4, 4], [4, 4]]


@pytest.mark.parametrize("create_graph", [False, True])
def test_arguments_and_captured_values_may_follow_from_one_another(create_graph):
    x = wf.tensor([2.0], requires_grad=True)
    square = x * x
    seen = []
    square.register_hook(lambda g: seen.append(g.item()))

    def run(x):
        return x * square if x > 0 else x

    found = wf.autograd.grad(checkpoint(run, x), (x, square), create_graph=create_graph)
    assert [g.item() for g in found] == [12, 2] and seen == [2]
    if create_graph:
        assert wf.autograd.grad(found[0], x)[0].item() == 12
