"""Gradients through traced functions are those of eager code: what is cut off stays so, and hooks
and gradients of one's own are heard."""

from __future__ import annotations

import math

import pytest

import weft as wf
from weft import func, nn
from weft.errors import GradientError


def plain(fun):
    return fun


@pytest.fixture(params=[plain, func.jit, func.checkpoint])
def wrap(request):
    return request.param


def test_no_gradient_flows_through_no_grad(wrap):
    def square(x):
        with wf.no_grad():
            twice = x * 2
        return (twice * x).sum()

    x = wf.tensor([1.0, 3.0], requires_grad=True)
    wrap(square)(x).backward()
    assert x.grad.tolist() == [2.0, 6.0]
    assert func.grad(wrap(square))(wf.tensor([1.0, 3.0])).tolist() == [2.0, 6.0]


def test_results_without_a_gradient_do_not_need_one(wrap):
    x = wf.tensor([1.0, 3.0], requires_grad=True)
    found = wrap(lambda x: (x.detach() * 2, x > 2, x.argmax(), x.round(), x + 1))(x)
    assert [y.requires_grad for y in found] == [False, False, False, True, True]


def test_statistics_of_batches_are_no_part_of_the_graph(wrap):
    norm = nn.BatchNorm1d(2)
    step = wrap(lambda x: norm(x).square())
    for _ in range(4):
        x = wf.tensor([[1.0, 2.0], [3.0, 5.0]], requires_grad=True)
        step(x).mean().backward()
        assert not norm.running_mean.requires_grad
    assert norm.num_batches_tracked.item() == 4


def test_no_gradient_flows_through_moved_statistics():
    norm = nn.BatchNorm1d(2)
    x = wf.tensor([[1.0, 2.0], [3.0, 5.0]], requires_grad=True)
    norm(x)
    ((norm.running_mean * 3).sum() + x.sum()).backward()
    assert x.grad.tolist() == [[1.0, 1.0], [1.0, 1.0]]


class Steep(wf.autograd.Function):
    """x * w, whose gradients are ten times too steep."""

    @staticmethod
    def forward(ctx, x, w):
        ctx.save_for_backward(x, w)
        return x * w, x + 1

    @staticmethod
    def backward(ctx, g, h):
        x, w = ctx.saved_tensors
        return g * w * 10 + h, g * x * 10


def steep(x, w):
    product, more = Steep.apply(x * 1, w)
    return (product * product + more * x).sum() + w.sum()


def test_gradients_of_ones_own(wrap):
    x, w = wf.tensor([1.0, 2.0], requires_grad=True), wf.tensor([3.0, 4.0], requires_grad=True)
    wrap(steep)(x, w).backward()
    # 20 x w**2 + x + (x + 1), and 20 x**2 w + 1
    assert x.grad.tolist() == [183.0, 645.0]
    assert w.grad.tolist() == [61.0, 321.0]
    x.grad = None
    wrap(lambda x: steep(x, w.detach()))(x).backward()
    assert x.grad.tolist() == [183.0, 645.0]


def cubed(x):
    return (Steep.apply(x, wf.ones(2))[0] ** 3).sum()


def test_second_derivatives_of_ones_own(wrap):
    x = wf.tensor([1.0, 2.0])
    expected = [[600.0, 0.0], [0.0, 1200.0]]
    assert func.hessian(cubed)(x).tolist() == expected
    assert wrap(func.hessian(cubed))(x).tolist() == expected
    assert wrap(func.jacobian(func.grad(cubed)))(x).tolist() == expected


@pytest.mark.parametrize("wrap", [func.jit, func.checkpoint])
def test_second_derivatives_have_to_be_inside(wrap):
    with pytest.raises(GradientError, match="take both derivatives inside"):
        func.hessian(wrap(cubed))(wf.tensor([1.0, 2.0]))


def test_gradients_of_ones_own_of_many_examples():
    x = wf.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
    w = wf.tensor([3.0, 4.0])
    func.vmap(lambda row: steep(row, w))(x).sum().backward()
    one = func.vmap(func.grad(lambda row: steep(row, w)))(x.detach())
    assert x.grad.tolist() == one.tolist() == [[183.0, 645.0], [547.0, 1289.0]]


@pytest.mark.parametrize("of", ["result", "argument"])
def test_hooks_are_heard(wrap, of):
    def hooked(x):
        y = x * 2
        (y if of == "result" else x).register_hook(lambda g: g * 10)
        return (y * y).sum() + x.sum()

    x = wf.tensor([1.0, 2.0], requires_grad=True)
    wrap(hooked)(x * 1).backward()
    assert x.grad.tolist() == ([81.0, 161.0] if of == "result" else [90.0, 170.0])


@pytest.mark.parametrize("wrap", [func.jit, func.checkpoint])
def test_what_a_rule_may_not_use(wrap):
    outside = wf.ones(2, requires_grad=True)

    def hooked(x):
        y = x * 2
        y.register_hook(lambda g: g * outside)
        return y.sum()

    with pytest.raises(GradientError, match="pass them as arguments"):
        wrap(hooked)(wf.ones(2, requires_grad=True))

    between = wf.ones(2, requires_grad=True) * 2
    with pytest.raises(GradientError, match="pass them as arguments"):
        wrap(lambda w: steep(between, w))(wf.ones(2, requires_grad=True))


def test_a_captured_tensor_that_is_returned_as_it_is_has_its_gradient():
    x, w = wf.tensor([2.0], requires_grad=True), wf.tensor([3.0], requires_grad=True)
    seen = []
    w.register_hook(lambda g: seen.append(g.item()))

    def run(x):
        product = x * w
        product.register_hook(lambda g: g * 10)
        return product, w

    product, same = wf.func.checkpoint(run)(x)
    (product + same).backward()
    assert x.grad.item() == 30 and w.grad.item() == 21 and seen == [21]


@pytest.mark.parametrize(
    "through",
    [
        lambda g, x: func.vmap(g)(x[None])[0],
        lambda g, x: func.jit(g)(x),
        lambda g, x: func.checkpoint(g)(x),
        lambda g, x: func.map(g, x[None])[0],
        lambda g, x: func.scan(lambda c, _: (g(x), None), x, length=1)[0],
        lambda g, x: func.cond(x > 0, g, lambda x: x, x),
        lambda g, x: func.jit(lambda x: func.vmap(g)(x[None])[0])(x),
    ],
)
@pytest.mark.parametrize("inner", [func.grad, func.jacrev, func.jacfwd])
def test_gradients_inside_depend_on_outer_variables_from_outside(through, inner):
    """d/dw d/dx sin(x w) = cos(x w) - x w sin(x w), where w is captured."""

    def slope(w):
        return through(inner(lambda x: wf.sin(x * w)), x)

    x, w = wf.tensor(0.5), wf.tensor(2.0)
    expected = math.cos(1) - math.sin(1)
    assert func.grad(slope)(w).item() == pytest.approx(expected, rel=1e-5)
    assert func.jvp(slope, (w,), (w * 0 + 1,))[1].item() == pytest.approx(expected, rel=1e-5)
    leaf = w.clone().requires_grad_()
    slope(leaf).backward()
    assert leaf.grad.item() == pytest.approx(expected, rel=1e-5)
