"""Custom functions with their own gradients, and `gradcheck` of them."""

import numpy as np
import pytest

import weft as wf
from weft import errors


def leaf(*values):
    return wf.tensor(list(values), requires_grad=True)


# Functions of the user


class Exp(wf.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        y = x.exp()
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx, g):
        (y,) = ctx.saved_tensors
        return g * y


class Scaled(wf.autograd.Function):
    """x * y * factor, and the integers of x; with a wrong gradient, so that it shows."""

    @staticmethod
    def forward(x, y, factor):
        return x * y * factor, x.long()

    @staticmethod
    def setup_context(ctx, inputs, output):
        x, y, ctx.factor = inputs
        ctx.save_for_backward(x, y)
        ctx.seen = output[1].dtype

    @staticmethod
    def backward(ctx, g, ignored):
        _, y = ctx.saved_tensors
        assert not ignored.any() and ctx.seen is wf.int64
        assert ctx.needs_input_grad == (True, False, False)
        return g * y * 1000, None, None


def test_a_function_with_a_gradient_of_its_own():
    x = leaf(0.5, 1.0)
    y = Exp.apply(x)
    assert repr(y.grad_fn) == "<ExpBackward>" and not y.is_leaf
    (y * 2).sum().backward()
    assert np.allclose(x.grad.tolist(), 2 * np.exp([0.5, 1.0]))


def test_its_own_gradient_is_taken():
    x = leaf(2.0)
    y, whole = Scaled.apply(x * 1, wf.tensor([3.0]), 2)
    assert y.tolist() == [12.0] and whole.tolist() == [2] and not whole.requires_grad
    y.sum().backward()
    assert x.grad.tolist() == [3000.0]


def test_functions_of_functions_to_the_second_order():
    x = leaf(0.3)
    y = Exp.apply(Exp.apply(x))
    (g,) = wf.autograd.grad(y, x, create_graph=True)
    (h,) = wf.autograd.grad(g, x)
    e = np.exp(0.3)
    assert np.allclose(g.tolist(), np.exp(e) * e)
    assert np.allclose(h.tolist(), np.exp(e) * e * (1 + e))
    double = wf.tensor([0.3, 0.1], dtype=wf.double, requires_grad=True)
    assert wf.autograd.gradcheck(Exp.apply, double)
    assert wf.autograd.gradgradcheck(Exp.apply, double)


def test_without_gradients_a_function_just_runs():
    assert not Exp.apply(wf.ones(1)).requires_grad
    with wf.no_grad():
        assert not Exp.apply(leaf(1.0)).requires_grad


class Clamp(wf.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.mark_dirty(x)
        return x.add_(1)

    @staticmethod
    def backward(ctx, g):
        return g * 7


def test_a_function_that_changes_its_argument():
    x = leaf(1.0)
    y = x * 2
    z = Clamp.apply(y)
    assert z is y and y.tolist() == [3.0]
    (y * 1).sum().backward()
    assert x.grad.tolist() == [14.0]


class Two(wf.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.set_materialize_grads(False)
        constant = x * 0
        ctx.mark_non_differentiable(constant)
        return x * 2, x * 3, constant

    @staticmethod
    def backward(ctx, a, b, c):
        assert a is None and c is None
        return b * 3


class Ranked(wf.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        rank, constant = x.argsort(), x * 0
        ctx.mark_non_differentiable(rank, constant)
        return rank, constant, x * 2

    @staticmethod
    def backward(ctx, a, b, c):
        assert a.dtype == wf.int64 and a.shape == b.shape
        return a + b + c * 2


def test_gradients_of_constant_results_are_zeros():
    x = leaf(2.0, 1.0)
    rank, constant, twice = Ranked.apply(x)
    assert not rank.requires_grad and not constant.requires_grad
    twice.sum().backward()
    assert x.grad.tolist() == [2.0, 2.0]


def test_results_that_nothing_reaches():
    x = leaf(1.0)
    y = Two.apply(x)
    assert [t.requires_grad for t in y] == [True, True, False]
    y[1].sum().backward()
    assert x.grad.tolist() == [3.0]


class Wrong(wf.autograd.Function):
    @staticmethod
    def forward(ctx, x, how):
        ctx.how = how
        ctx.save_for_backward(x)
        return x * 1

    @staticmethod
    def backward(ctx, g):
        return {"count": g, "shape": (g.sum(), None)}[ctx.how]


def test_functions_with_wrong_gradients_are_reported():
    with pytest.raises(errors.GradientError, match=r"Wrong.backward: expected 2 gradients, .* 1"):
        Wrong.apply(leaf(1.0), "count").sum().backward()
    with pytest.raises(
        errors.ShapeError, match=r"Wrong.backward: expected a gradient of shape \(2"
    ):
        Wrong.apply(leaf(1.0, 2.0), "shape").sum().backward()


class Product(wf.autograd.Function):
    @staticmethod
    def forward(ctx, x, y):
        ctx.save_for_backward(x, y)
        return x * y

    @staticmethod
    def backward(ctx, g):
        x, y = ctx.saved_tensors
        return g * y, g * x


def test_gradients_of_what_was_repeated_are_summed():
    x, y = leaf(1.0, 2.0), wf.full((3, 2), 5.0, requires_grad=True)
    Product.apply(x, y).sum().backward()
    assert x.grad.tolist() == [15, 15] and y.grad.tolist() == [[1, 2]] * 3
    one = wf.ones(1, 2, requires_grad=True)
    Product.apply(one, y).sum().backward()
    assert one.grad.tolist() == [[15, 15]]


def test_saved_tensors_are_as_they_were():
    x = leaf(1.0) * 1
    y = Exp.apply(x)
    y2 = Wrong.apply(x, "shape")
    x.add_(1)
    y.sum().backward()  # saved its result only
    with pytest.raises(errors.GradientError, match="saved_tensors: one was changed in place"):
        y2.lazy.call.context.saved_tensors


def test_saved_tensors_are_let_go():
    y = Exp.apply(leaf(1.0))
    call = y.lazy.call
    y.sum().backward()
    with pytest.raises(
        errors.GradientError, match=r"saved_tensors: they were freed .* retain_graph"
    ):
        call.context.saved_tensors


# Checks


def test_gradcheck_finds_a_wrong_gradient():
    x = wf.tensor([1.0, 2.0], dtype=wf.double, requires_grad=True)
    assert wf.autograd.gradcheck(lambda x: (x * x, x.sum()), x)

    def wrong(x):
        return Scaled.apply(x, wf.ones(2, dtype=wf.double), 1)[0]

    with pytest.raises(errors.MismatchError, match=r"of output 0 by input 0 differs, .* got 1000"):
        wf.autograd.gradcheck(wrong, x)
    assert not wf.autograd.gradcheck(wrong, x, raise_exception=False)
    with pytest.warns(UserWarning, match="gradcheck: expected input 0 of float64"):
        assert not wf.autograd.gradcheck(wf.exp, leaf(1.0), raise_exception=False)
    with pytest.raises(errors.GradientError, match="expected an input with requires_grad=True"):
        wf.autograd.gradcheck(wf.exp, wf.ones(1))


def test_truth_values_count_as_numbers():
    x, y = wf.tensor([True, False]), wf.tensor([True, True])
    assert x.sign().dtype is wf.bool and x.sign().tolist() == [True, False]
    assert wf.square(x).dtype is wf.int64 and wf.square(x).tolist() == [1, 0]
    assert wf.outer(x, y).tolist() == [[True, True], [False, False]]
    assert wf.kron(y, x).dtype is wf.bool


def test_activations_of_integers():
    x = wf.tensor([-3, 2, 9])
    assert wf.nn.functional.relu6(x).tolist() == [0, 2, 6]
    assert wf.nn.functional.softsign(x).tolist() == pytest.approx([-0.75, 2 / 3, 0.9])
    assert wf.nn.functional.tanhshrink(x).dtype is wf.float32


def test_parts_and_repetitions_by_method():
    x = wf.tensor([[1, 2], [3, 4]])
    assert [p.tolist() for p in x.hsplit(2)] == [[[1], [3]], [[2], [4]]]
    assert [p.tolist() for p in x.vsplit(2)] == [[[1, 2]], [[3, 4]]]
    assert x.repeat_interleave(wf.tensor([1, 2]), dim=0, output_size=3).shape == (3, 2)
    assert wf.tensor([2.0]).polygamma(1).item() == pytest.approx(0.6449341)
