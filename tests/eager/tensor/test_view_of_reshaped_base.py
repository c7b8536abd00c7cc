"""Views keep their elements when the base's shape changes in place."""

import numpy as np
import pytest

import weft as wf
from weft.errors import GradientError, ShapeError


def matrix():
    return wf.arange(6.0).view(2, 3).clone()


TURNS = {
    "t": lambda x: x.t_(),
    "transpose": lambda x: x.transpose_(0, 1),
    "unsqueeze": lambda x: x.unsqueeze_(1),
    "twice": lambda x: x.unsqueeze_(0).transpose_(0, 2),
    "same_size": lambda x: x.resize_(3, 2),
}
VIEWS = {
    "row": lambda x: x[1],
    "rows": lambda x: x[1:],
    "column": lambda x: x[:, 1],
    "flat": lambda x: x.view(-1),
    "detached": lambda x: x.detach(),
    "of_view": lambda x: x[:, 1:][1],
    "turned": lambda x: x.mT,
}


@pytest.mark.parametrize("turn", TURNS.values(), ids=TURNS)
@pytest.mark.parametrize("take", VIEWS.values(), ids=VIEWS)
def test_a_view_stays_where_it_was(turn, take):
    x, plain = matrix(), matrix()
    view, expected = take(x), take(plain)
    turn(x)
    assert view.tolist() == expected.tolist() and view.shape == expected.shape
    x.add_(1)
    plain.add_(1)
    assert view.tolist() == expected.tolist()
    view.mul_(10)
    expected.mul_(10)
    assert sorted(x.reshape(-1).tolist()) == sorted(plain.reshape(-1).tolist())
    assert x.tolist() == turn(plain).tolist()
    assert view.stride() == expected.stride()


def test_a_view_of_a_view_that_is_turned():
    base = matrix()
    middle = base[:, 1:]
    last = middle[1]
    middle.t_()
    assert middle.tolist() == [[1, 4], [2, 5]] and last.tolist() == [4, 5]
    middle.add_(1)
    assert last.tolist() == [5, 6] and base.tolist() == [[0, 2, 3], [3, 5, 6]]
    last.zero_()
    assert base.tolist() == [[0, 2, 3], [3, 0, 0]] and middle.tolist() == [[2, 0], [3, 0]]


def test_gradients_flow_as_they_did():
    w = wf.ones(2, 3, requires_grad=True)
    x = w * 1
    row = x[1]
    x.t_()
    row.mul_(2)
    ((row * wf.tensor([1.0, 2.0, 3.0])).sum() + x.sum()).backward()
    np.testing.assert_array_equal(w.grad.numpy(), [[1, 1, 1], [4, 6, 8]])


def test_what_is_no_more_is_not_shown():
    x = wf.arange(6.0)
    view = x[1:3]
    x.resize_(2, 2)
    for look in (view.tolist, lambda: view.zero_(), lambda: view + 1):
        with pytest.raises(ShapeError, match=r"whose size resize_\(\) has changed"):
            look()
    assert x[1:].tolist() == [[2, 3]]


def test_what_was_saved_may_be_detached_in_place_and_not_turned():
    class Square(wf.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            return 2 * x * g

    w = wf.ones(2, 3, requires_grad=True)
    x = w * 3
    found = Square.apply(x)
    x.detach_()
    (slope,) = wf.autograd.grad(found.sum(), w, create_graph=True)
    assert slope.tolist() == [[18] * 3] * 2
    slope.sum().backward()
    assert w.grad.tolist() == [[18] * 3] * 2
    x = w * 3
    found = Square.apply(x)
    x.t_()
    with pytest.raises(GradientError, match="changed in place after it was saved"):
        found.sum().backward()


def test_what_is_written_to_a_detached_tensor_has_its_gradient():
    w = wf.ones(3, requires_grad=True)
    x = wf.zeros(3)
    whole, part, changed = x.detach(), wf.zeros(3).detach(), (w * 1).detach()
    whole.add_(w * 2)
    part[1:].copy_(w[1:] * 3)
    changed.mul_(w)
    assert whole.requires_grad and part.requires_grad and changed.requires_grad
    assert x.tolist() == [2, 2, 2] and not x.requires_grad
    (whole.sum() + part.sum() + changed.sum()).backward()
    assert w.grad.tolist() == [3, 6, 6]
    w.grad = None
    whole = x.detach()
    whole.add_(w)
    view = whole[1:]
    assert whole.tolist() == [3, 3, 3]
    x.mul_(10)
    assert whole.tolist() == [30, 30, 30] and whole.requires_grad and view.requires_grad
    w.detach().add_(w.detach())
    assert w.is_leaf and w.tolist() == [2, 2, 2]
