"""Custom functions with a `vmap` rule, such as those written in NumPy."""

from functools import partial
from typing import ClassVar

import numpy as np
import pytest

import weft as wf
from weft import func
from weft.errors import GradientError, TreeError

vmap = partial(func.vmap, in_dims=0)


class Product(wf.autograd.Function):
    """`x * y` in NumPy; `calls` has what the rule was told."""

    calls: ClassVar[list[tuple[int, str, tuple[int | None, ...]]]] = []

    @staticmethod
    def forward(x, y):
        return wf.tensor(x.detach().numpy() * y.detach().numpy())

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)
        ctx.save_for_forward(*inputs)

    @staticmethod
    def backward(ctx, g):
        x, y = ctx.saved_tensors
        return Product.apply(g, y), Product.apply(g, x)

    @staticmethod
    def jvp(ctx, s, t):
        x, y = ctx.saved_tensors
        return Product.apply(s, y) + Product.apply(x, t)

    @staticmethod
    def vmap(info, in_dims, x, y):
        Product.calls.append((info.batch_size, info.randomness, in_dims))
        ends = [
            v.unsqueeze(-1) if d is None else v.movedim(d, -1)
            for v, d in zip((x, y), in_dims, strict=True)
        ]
        return Product.apply(*ends), -1


X = wf.arange(6.0, dtype=wf.float64).reshape(2, 3)
Y = wf.tensor([2.0, 3.0, 4.0], dtype=wf.float64)


def cube(x):
    return (Product.apply(x, Product.apply(x, x)) * x).sum()


def test_the_rule_gets_the_batch_size_and_axes():
    Product.calls.clear()
    found = vmap(lambda x: Product.apply(x, Y) + 1, in_dims=1, randomness="same")(X.mT)
    assert found.tolist() == (X * Y + 1).tolist()
    assert Product.calls == [(2, "same", (1, None))]
    assert vmap(lambda x: Product.apply(x.sin(), x), out_dims=1)(X).tolist() == (
        (X.sin() * X).mT.tolist()
    )
    assert vmap(lambda x: Product.apply(x, Y), chunk_size=1)(X).tolist() == (X * Y).tolist()
    Product.calls.clear()
    assert vmap(lambda x: Product.apply(Y, Y) + x)(X).tolist() == (Y * Y + X).tolist()
    assert Product.calls == []


def test_rules_nest():
    inner = func.vmap(Product.apply, in_dims=(0, None))
    found = func.vmap(inner, in_dims=(None, 0))(Y, X[:, 1])
    assert found.tolist() == (X[:, 1:2] * Y).tolist()
    second = vmap(vmap(func.grad(lambda x: Product.apply(x, x))))(X)
    assert second.tolist() == (2 * X).tolist()


@pytest.mark.parametrize(
    "derivative",
    [
        lambda f: lambda x: vmap(func.grad(f))(x),
        lambda f: lambda x: func.grad(lambda x: vmap(f)(x).sum())(x),
        lambda f: lambda x: vmap(func.jacfwd(f))(x),
        lambda f: lambda x: vmap(func.jacrev(f))(x),
        lambda f: lambda x: vmap(func.hessian(f))(x).sum(-1),
        lambda f: lambda x: func.hessian(lambda x: vmap(f)(x).sum())(x).sum((-1, -2)),
        lambda f: lambda x: vmap(lambda x: func.jvp(f, (x,), (Y,))[1])(x),
    ],
    ids=["inside", "outside", "forwards", "back", "second", "second_outside", "along"],
)
def test_derivatives_inside_and_outside(derivative):
    found = derivative(cube)(X)
    expected = derivative(lambda x: (x**4).sum())(X)
    np.testing.assert_allclose(found.numpy(), expected.numpy(), rtol=1e-12)


def test_gradients_from_outside():
    x, y = X.clone().requires_grad_(), Y.clone().requires_grad_()
    vmap(lambda x: Product.apply(x.exp(), y).sum())(x).sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), (X.exp() * Y).numpy())
    np.testing.assert_allclose(y.grad.numpy(), X.exp().sum(0).numpy())
    x.grad = None
    vmap(func.grad(cube))(x).sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), (12 * X**2).numpy())

    def constant(x):
        with wf.no_grad():
            factor = Product.apply(x, x)
        return (factor * x).sum()

    x.grad = None
    vmap(constant)(x).sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), (X**2).numpy())


def test_results_have_any_structure():
    class Parts(wf.autograd.Function):
        @staticmethod
        def forward(x, others):
            raise AssertionError

        @staticmethod
        def vmap(info, in_dims, x, others):
            assert in_dims == (0, [0, None])
            return (x + 1, [others[1], "text"]), (0, None)

    first, rest = func.vmap(lambda x: Parts.apply(x, [x * 2, 3]), in_dims=0, out_dims=(0, None))(X)
    assert first.tolist() == (X + 1).tolist() and rest == [3, "text"]


def test_what_a_rule_says_wrongly():
    class Wrong(wf.autograd.Function):
        @staticmethod
        def forward(x):
            return x

        @staticmethod
        def vmap(info, in_dims, x):
            return Wrong.found(x)

    for found, text in (
        (lambda x: x, "Wrong.vmap: expected two values, results and their axes"),
        (lambda x: (x, (0,)), "axes: expected one for each part"),
    ):
        Wrong.found = staticmethod(found)
        with pytest.raises(TreeError, match=text):
            vmap(Wrong.apply)(X)
    Wrong.generate_vmap_rule = True
    with pytest.raises(GradientError, match="both generate_vmap_rule=True and a static method"):
        vmap(Wrong.apply)(X)
    assert not wf.func.vmap(lambda x: x)(X).requires_grad


def test_views_of_memory_that_others_see_can_be_saved():
    x, y = wf.ones(2, 3)[0], Y.float().requires_grad_()

    class Times(wf.autograd.Function):
        @staticmethod
        def forward(ctx, x, y):
            ctx.save_for_backward(x, y)
            return wf.tensor(x.numpy() * y.detach().numpy())

        @staticmethod
        def backward(ctx, g):
            return None, g * ctx.saved_tensors[0]

    Times.apply(x, y).sum().backward()
    assert y.grad.tolist() == [1, 1, 1]
    found = Times.apply(x, y)
    x.add_(1)
    with pytest.raises(GradientError, match="changed in place after it was saved"):
        found.sum().backward()
