"""Second-order gradients: their dependencies, and what hooks get."""

import pytest

import weft as wf
from weft import nn
from weft.autograd import grad
from weft.errors import GradientError


def leaf(*numbers):
    return wf.tensor(list(numbers), requires_grad=True)


def test_a_gradient_need_not_depend_on_what_it_was_taken_by():
    x, a = leaf(2.0), leaf(5.0)
    (d,) = grad(x * a, x, create_graph=True)
    assert grad(d, x, create_graph=True, allow_unused=True) == (None,)
    with pytest.raises(GradientError, match="does not lead to"):
        grad(d, x, create_graph=True)
    assert grad(d, a, create_graph=True)[0].item() == 1
    (zeros,) = grad(d, x, create_graph=True, materialize_grads=True)
    assert zeros.item() == 0 and zeros.requires_grad
    assert grad(zeros, x, materialize_grads=True)[0].item() == 0
    d.backward()
    assert x.grad is None and a.grad.item() == 1


def test_comparisons_count_as_dependence():
    x, weight, bias, last = leaf(2.0), leaf(3.0), leaf(1.0), leaf(1.0)
    (d,) = grad(wf.relu(x * weight + bias) + last, x, create_graph=True)
    found = grad(d, (weight, bias, last), allow_unused=True)
    assert found[0].item() == 1 and found[1].item() == 0 and found[2] is None


@pytest.mark.parametrize("again", [False, True])
def test_dependence_through_functions_of_the_users_own(again):
    class Cube(wf.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x**3

        @staticmethod
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            return g * 3 * x * x

    x, y = leaf(2.0), leaf(7.0)
    f = Cube.apply(Cube.apply(x)) + y if again else Cube.apply(x) + y
    (d,) = grad(f, x, create_graph=True)
    second, none = grad(d, (x, y), create_graph=True, allow_unused=True)
    assert none is None
    assert second.item() == (72 * 2**7 if again else 12)
    assert grad(second, x)[0].item() == (72 * 7 * 2**6 if again else 6)


def test_what_forward_returns_as_it_was_given_is_saved_as_an_argument():
    class Nan(wf.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x

        @staticmethod
        def backward(ctx, g):
            return g + float("nan")

    class Same(wf.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x

        @staticmethod
        def backward(ctx, g):
            return Nan.apply(ctx.saved_tensors[0])

    x = leaf(3.0)
    (d,) = grad(Same.apply(x), x, wf.ones(1), create_graph=True)
    assert d.item() == 3
    d.backward()
    assert x.grad.isnan()


def test_hooks_of_what_a_gradient_was_taken_of_are_not_called_again():
    calls = []
    x, y = leaf(1.0, 2.0), wf.zeros(2)
    loss = nn.MSELoss()
    loss.register_full_backward_hook(lambda *_: calls.append("module"))
    middle = x * 1
    found = loss(middle, y)
    found.register_hook(lambda g: calls.append("loss"))
    (d,) = grad(found, middle, create_graph=True)
    assert calls == ["loss", "module"]
    assert grad(d.sum(), x)[0].tolist() == [1, 1]
    assert calls == ["loss", "module"]


@pytest.mark.parametrize("watched", ["nothing", "inside", "argument"])
def test_hooks_cut_no_way_off(watched):
    x, weight = leaf(0.5), leaf(2.0)
    argument = x * 1
    product = argument * weight
    seen = []
    for name, value in (("inside", product), ("argument", argument)):
        if watched == name:
            value.register_hook(lambda g: seen.append(g.item()))
    (d,) = grad(product.sin() + weight, argument, create_graph=True)
    first = len(seen)
    by_x, by_weight = grad(d, (x, weight))
    u = wf.tensor(1.0)
    assert by_x.item() == pytest.approx(-4 * u.sin().item())
    assert by_weight.item() == pytest.approx(u.cos().item() - u.sin().item())
    assert (first, len(seen)) == ((0, 0) if watched == "nothing" else (1, 2))


@pytest.mark.parametrize("factor", [1, 2])
@pytest.mark.parametrize("by", [["y"], ["z", "y"]])
def test_a_gradient_behind_a_hook_depends_on_what_came_before_it(factor, by):
    a, b = leaf(0.5), leaf(0.7)
    y = b * 0.5
    z = a * y * 1
    z.register_hook(lambda g: g * factor)
    values = {"y": y, "z": z * 1}
    z = values["z"]
    gs = grad(2 * z + 1.5 * z * z, [values[name] for name in by], create_graph=True)
    # By y it is factor * a * (2 + 3 a y), by z 2 + 3 a y.
    assert gs[-1].item() == pytest.approx(factor * 0.5 * 2.525)
    by_a, by_b = grad(sum(gs), (a, b))  # what goes through z meets the hook again
    through = factor * (3 * (factor * 0.5 + ("z" in by)))
    assert by_a.item() == pytest.approx(factor * 2.525 + through * 0.35)
    assert by_b.item() == pytest.approx(through * 0.5 * 0.5)
