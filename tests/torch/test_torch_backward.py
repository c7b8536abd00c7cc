"""Backward passes against PyTorch's: retained graphs, hooks, accumulation."""

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import weft as wf  # noqa: E402
from weft.errors import ShapeError  # noqa: E402

BOTH = pytest.mark.parametrize("m", [wf, torch])


@pytest.mark.filterwarnings("ignore:Using backward")
@BOTH
def test_an_accumulated_gradient_that_is_recorded_is_another_tensor(m):
    for create_graph in (False, True):
        x = m.ones(3, requires_grad=True)
        y = x * x
        y.backward(m.ones(3), retain_graph=True)
        before = x.grad
        y.backward(m.ones(3), create_graph=create_graph)
        assert (x.grad is before) is not create_graph
        assert x.grad.tolist() == [4.0] * 3
        assert before.tolist() == [2.0 if create_graph else 4.0] * 3


@BOTH
def test_a_kept_gradient_is_that_of_the_value_after_changes_in_place(m):
    x = m.tensor([1.0, 3.0], requires_grad=True)
    y = x.clone()
    y.retain_grad()
    y.mul_(2)
    y.mul_(3)
    assert y.retains_grad
    (y * 5).sum().backward()
    assert y.grad.tolist() == [5.0, 5.0]
    assert x.grad.tolist() == [30.0, 30.0]


@BOTH
def test_only_what_leads_to_the_inputs_is_called(m):
    called = []

    class Told(m.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 1

        @staticmethod
        def backward(ctx, g):
            called.append("function")
            return g

    x, z = (m.ones(2, requires_grad=True) for _ in range(2))
    y = Told.apply(x * 2)
    y.register_hook(lambda g: called.append("hook"))
    (g,) = m.autograd.grad((y + z).sum(), z, retain_graph=True)
    assert g.tolist() == [1.0, 1.0] and called == []
    (g,) = m.autograd.grad((y + z).sum(), y, retain_graph=True)
    assert g.tolist() == [1.0, 1.0] and called == ["hook"]
    assert m.autograd.grad(y.sum(), z, allow_unused=True) == (None,)
    m.autograd.grad(y.sum(), x)
    assert called == ["hook", "hook", "function"]


@BOTH
def test_batches_of_gradients(m):
    x, z = m.ones(2, requires_grad=True), m.ones(2, requires_grad=True)
    y = x**3
    found = m.autograd.grad(
        (y, y.sum()), (x, z), (m.eye(2), m.tensor([0.0, 1.0])), create_graph=True,
        allow_unused=True, is_grads_batched=True,
    )  # fmt: skip
    assert found[1] is None
    assert found[0].tolist() == [[3.0, 0.0], [3.0, 6.0]]
    (second,) = m.autograd.grad(found[0].sum(), x)
    assert second.tolist() == [12.0, 12.0]
    with pytest.raises(RuntimeError):
        m.autograd.grad(x.sum(), x, m.ones(2, 1), is_grads_batched=True)


def test_errors_of_gradients():
    x = wf.ones(2, requires_grad=True)
    with pytest.raises(ValueError, match="grad: expected allow_unused to be left out or True"):
        wf.autograd.grad(x.sum(), x, allow_unused=False, materialize_grads=True)
    text = r"grad: is_grads_batched: expected a gradient of shape \(batch, \*\(2,\)\), got \(2, 3\)"
    with pytest.raises(ShapeError, match=text):
        wf.autograd.grad(x * 1, x, wf.ones(2, 3), is_grads_batched=True)


def test_parts_that_follow_one_another_are_changed_in_place_by_compiled_code():
    rng = np.random.default_rng(0)
    root, factor = rng.normal(size=(4, 4)), rng.normal(size=(2, 2))
    for _ in range(4):
        found = []
        for m in (wf, torch):
            a, b = m.tensor(root, requires_grad=True), m.tensor(factor, requires_grad=True)
            x = a.clone()
            x.narrow(1, 2, 2).narrow(0, 1, 2).mul_(b)
            x.narrow(1, 0, 2).narrow(0, 1, 2).mul_(b)
            found.append(m.autograd.grad(x, b, m.ones(4, 4, dtype=m.float64)))
        np.testing.assert_allclose(found[0][0].numpy(), found[1][0].numpy(), rtol=1e-12)
