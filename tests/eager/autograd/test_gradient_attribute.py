"""`x.grad`: valid assignments, and errors for others."""

import warnings

import pytest

import weft as wf
from weft.errors import DTypeError, GradientError, ShapeError


def test_what_is_no_gradient_of_the_tensor_raises():
    x = wf.ones(2, 3, requires_grad=True)
    with pytest.raises(TypeError, match="expected a tensor or None, got int"):
        x.grad = 0
    with pytest.raises(
        ShapeError, match=r"expected shape \(2, 3\), that of the tensor, got \(3,\)"
    ):
        x.grad = wf.ones(3)
    with pytest.raises(DTypeError, match="expected float32, the type of the tensor, got int64"):
        x.grad = wf.ones(2, 3, dtype=wf.int64)
    with pytest.raises(GradientError, match="not its own gradient"):
        x.grad = x
    assert x.grad is None
    x.grad = given = wf.ones(2, 3)
    assert x.grad is given
    x.sum().backward()
    assert x.grad.tolist() == [[2.0] * 3] * 2
    del x.grad
    assert x.grad is None


def test_a_result_without_a_gradient_is_warned_of():
    x = wf.ones(1, requires_grad=True)
    y = x * 2
    with pytest.warns(UserWarning, match=r"keeps no gradient in .grad; call retain_grad\(\)"):
        assert y.grad is None
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        y.retain_grad()
        assert x.grad is None and y.grad is None and wf.ones(1).grad is None
        y.backward(retain_graph=True)
        assert y.grad.item() == 1
        z = x * 3
        z.backward(inputs=[z])
        assert z.grad.item() == 1


def test_data_of_a_tensor_that_needs_a_gradient_stays_floating():
    x = wf.ones(1, requires_grad=True)
    with pytest.raises(DTypeError, match="data: expected floating-point numbers"):
        x.data = wf.ones(1, dtype=wf.int64)
    x.data = wf.zeros(2)
    assert x.tolist() == [0, 0]


def test_classes_are_decorated_with_a_warning():
    with pytest.warns(FutureWarning, match="in its constructor only"):

        @wf.no_grad()
        class Holder:
            def __init__(self):
                self.mode = wf.is_grad_enabled()

    assert Holder().mode is False


def test_tensors_that_become_views_of_themselves_keep_their_gradient():
    x = wf.ones(2, 3, requires_grad=True)
    with wf.no_grad():
        x.t_()
        x.unsqueeze_(0)
    assert x.requires_grad and x.is_leaf and x.shape == (1, 3, 2)
    (x * 2).sum().backward()
    assert x.grad.tolist() == [[[2.0, 2.0]] * 3]
    source = wf.ones(2, 3, requires_grad=True)
    inner = source.clone()
    part = inner[:1]
    with wf.no_grad():
        inner.t_()
        part.t_()
    assert inner.requires_grad and part.requires_grad
    (inner * wf.arange(6.0).reshape(3, 2)).sum().backward(retain_graph=True)
    assert source.grad.tolist() == [[0.0, 2.0, 4.0], [1.0, 3.0, 5.0]]


def test_the_gradient_of_a_changed_view_is_of_its_own_uses():
    base = wf.ones(2, requires_grad=True).clone()
    view, other = base[:1], base[:1]
    view.retain_grad()
    other.retain_grad()
    view.mul_(2)
    (view * 3 + other * 4 + base[0] * 5).sum().backward()
    assert (view.grad.item(), other.grad.item()) == (3, 4)
