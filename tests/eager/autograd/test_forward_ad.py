"""Forward mode on tensors: dual numbers and custom functions."""

import numpy as np
import pytest

import weft as wf
from weft import func
from weft.autograd import forward_ad as fwad
from weft.errors import GradientError, ShapeError
from weft.func.gradient import make_jvp


class Sine(wf.autograd.Function):
    """The results are sin(x) y and y itself; the slopes are twice the right ones, to tell them."""

    @staticmethod
    def forward(x, y):
        return x.sin() * y, y

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)
        ctx.save_for_forward(inputs[0] * 2, *inputs)

    @staticmethod
    def backward(ctx, g, h):
        x, y = ctx.saved_tensors
        return 2 * g * x.cos() * y, 2 * g * x.sin() + 2 * h

    @staticmethod
    def jvp(ctx, s, t):
        _, x, y = ctx.saved_tensors
        return 2 * s * x.cos() * y + 2 * t * x.sin(), t * 2


def expression(x, y):
    a, b = Sine.apply(x * y, y)
    c, _ = Sine.apply(a, b)
    return c * b * y


def scalar(value):
    return wf.tensor(value, dtype=wf.float64)


def test_functions_move_as_they_say():
    x, y, s, t = scalar(0.7), scalar(1.3), scalar(0.9), scalar(-0.4)
    move = func.jvp(expression, (x, y), (s, t))[1]
    slopes = func.grad(expression, (0, 1))(x, y)
    assert move.item() == pytest.approx((slopes[0] * s + slopes[1] * t).item())
    assert func.jacfwd(expression, (0, 1))(x, y)[0].item() == pytest.approx(slopes[0].item())


def test_functions_move_to_second_order():
    def both(x):
        return Sine.apply(x, x * x)[0]

    def slope(x):
        return make_jvp(both)(x)(scalar(1.0))[1]

    x = scalar(0.7)
    second = make_jvp(slope)(x)(scalar(1.0))[1].item()
    assert second == pytest.approx(func.grad(slope)(x).item())
    assert second == pytest.approx(func.grad(func.grad(both))(x).item())


def test_a_function_must_say_how_it_moves():
    class Double(wf.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, g):
            return g * 2

    x = wf.ones(2)
    with pytest.raises(GradientError, match=r"Double.jvp: .* define jvp\(ctx, \*tangents\)"):
        func.jvp(Double.apply, (x,), (x,))
    assert func.jvp(lambda x: Double.apply(x.detach()) * x, (x,), (x,))[1].tolist() == [2.0, 2.0]
    Double.jvp = staticmethod(lambda ctx, t: (t, t))
    with pytest.raises(GradientError, match="expected 1 tangents"):
        func.jvp(Double.apply, (x,), (x,))
    Double.jvp = staticmethod(lambda ctx, t: t.sum())
    with pytest.raises(
        ShapeError, match=r"a tangent of shape \(2,\), that of the result, got \(\)"
    ):
        func.jvp(Double.apply, (x,), (x,))


def test_a_backward_in_numpy_is_not_differentiated():
    class Cube(wf.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.slope = wf.tensor(3 * x.detach().numpy() ** 2)
            return wf.tensor(x.detach().numpy() ** 3)

        @staticmethod
        @wf.autograd.function.once_differentiable
        def backward(ctx, g):
            return wf.tensor(g.numpy(force=True) * ctx.slope.numpy())

    x = wf.tensor(2.0, requires_grad=True)
    g = wf.tensor(1.0, requires_grad=True)
    Cube.apply(x).backward(g)
    assert x.grad.item() == 12.0
    (slope,) = wf.autograd.grad(Cube.apply(x), x, g, create_graph=True)
    assert slope.item() == 12.0
    with pytest.raises(GradientError, match="once_differentiable"):
        slope.backward()


def test_dual_tensors():
    x, t, w = scalar(0.7), scalar(2.0), wf.tensor(3.0, dtype=wf.float64, requires_grad=True)
    with fwad.dual_level():
        dual = fwad.make_dual(x, t)
        assert fwad.unpack_dual(dual).tangent.item() == 2.0
        primal, tangent = fwad.unpack_dual(w * dual.sin().add_(dual))
        assert fwad.unpack_dual(wf.exp(x)).tangent is None
        assert fwad.unpack_dual(w * 2).tangent is None
        y, move = fwad.unpack_dual(Sine.apply(dual, x)[0])
    assert primal.item() == pytest.approx((3 * (x.sin() + x)).item())
    assert tangent.item() == pytest.approx((6 * (x.cos() + 1)).item())
    assert not y.requires_grad and move.item() == pytest.approx((4 * x.cos() * x).item())
    (slope,) = wf.autograd.grad(tangent, w)
    assert slope.item() == pytest.approx((2 * (x.cos() + 1)).item())
    assert fwad.unpack_dual(dual).tangent is None


def test_levels_of_dual_tensors():
    x = scalar(2.0)
    with wf.no_grad(), fwad.dual_level() as outer:
        a = fwad.make_dual(x, scalar(1.0))
        with fwad.dual_level():
            b = fwad.make_dual(a, a * 5)
            inner = fwad.unpack_dual(b**3).tangent
        assert inner.item() == 3 * 4 * 10
        assert fwad.unpack_dual(inner, level=outer).tangent.item() == pytest.approx(45 * 4)
    level = fwad.enter_dual_level()
    fwad.exit_dual_level(level=level)
    for call in (lambda: fwad.make_dual(x, x), fwad.exit_dual_level):
        with pytest.raises(GradientError, match=r"expected a dual_level\(\)"):
            call()
    with fwad.dual_level():
        with pytest.raises(ShapeError, match="expected a tangent of shape"):
            fwad.make_dual(x, wf.ones(2))
        for pair in ((wf.tensor(1), wf.tensor(1)), (wf.tensor(1.0), wf.tensor(1))):
            with pytest.raises(ValueError, match=r"expected a floating or complex .*got int64"):
                fwad.make_dual(*pair)


def test_rows_of_a_jacobian_one_by_one():
    class Same(wf.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 1

        @staticmethod
        def backward(ctx, g):
            assert g.numpy(force=True).sum() == 1.0
            return g * 3

    x = wf.ones(2, 2)
    assert func.jacrev(Same.apply, chunk_size=1)(x).reshape(4, 4).tolist() == (
        (wf.eye(4) * 3).tolist()
    )
    for chunk in 1, None:
        assert func.jacrev(lambda x: x[:0], chunk_size=chunk)(x).shape == (0, 2, 2, 2)


def test_what_was_drawn_outside_is_no_draw():
    y, x = wf.randn(2), wf.ones(3)
    found = func.jacfwd(lambda x: (y, x * y.sum()), randomness="error")(x)
    assert not found[0].numpy().any() and found[0].shape == (2, 3)
    np.testing.assert_allclose(found[1].numpy(), np.eye(3) * y.sum().item(), rtol=1e-6)


def test_functions_move_when_they_are_called():
    calls = []

    class Product(wf.autograd.Function):
        @staticmethod
        def forward(ctx, x, y):
            assert not x.requires_grad
            ctx.save_for_forward(x, y)
            return x * y, x.clone()

        @staticmethod
        def jvp(ctx, s, t):
            x, y = ctx.saved_tensors
            calls.append(t)
            return s * y + x * t, None

    class Unsaid(Product):
        jvp = None

    y = scalar(5.0)
    with fwad.dual_level():
        x = fwad.make_dual(scalar(2.0), scalar(1.0))
        found, same = Product.apply(x, y)
        assert len(calls) == 1 and calls[0].item() == 0
        for _ in range(2):
            assert fwad.unpack_dual(found).tangent.item() == 5
        again, _ = Product.apply(found, x)
        assert fwad.unpack_dual(again * same).tangent.item() == 2 * (5 * 2 + 10 * 1)
        assert len(calls) == 2 and not found.requires_grad
        Product.apply(y, y)
        assert len(calls) == 2
        with pytest.raises(NotImplementedError, match=r"define jvp\(ctx, \*tangents\)"):
            Unsaid.apply(x, y)
        Unsaid.apply(y, y)


def test_a_function_in_place_moves_the_tangent_that_it_is_given():
    class Doubled(wf.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.mark_dirty(x)
            return x.mul_(2)

        @staticmethod
        def jvp(ctx, t):
            return t.mul_(2)

    tangent = wf.ones(2)
    with fwad.dual_level():
        x = fwad.make_dual(wf.ones(2), tangent)
        assert Doubled.apply(x) is x and x.tolist() == [2.0, 2.0]
        assert fwad.unpack_dual(x).tangent is tangent and tangent.tolist() == [2.0, 2.0]


def test_parts_of_a_dual_tensor_do_not_move():
    w = wf.tensor(3.0, requires_grad=True)
    with fwad.dual_level():
        x = fwad.make_dual(wf.tensor(2.0), wf.tensor(1.0))
        primal, tangent = fwad.unpack_dual(w * x * x)
        assert primal.requires_grad and tangent.requires_grad
        assert fwad.unpack_dual(primal * 3).tangent is None
        assert fwad.unpack_dual(tangent * 3).tangent is None
        assert fwad.unpack_dual(primal * x).tangent.item() == 12
        assert fwad.unpack_dual(tangent * x).tangent.item() == 12
        (slope,) = wf.autograd.grad(primal * tangent, w, retain_graph=True)
        assert slope.item() == 4 * 12 + 12 * 4
        for pair in ((x, wf.tensor(1.0)), (wf.tensor(1.0), x * 2)):
            with pytest.raises(GradientError, match="that does not move at this level"):
                fwad.make_dual(*pair)
        assert fwad.unpack_dual(fwad.make_dual(primal, tangent) * 2).tangent.item() == 24


def test_what_only_moves_needs_no_gradient():
    w = wf.tensor(3.0, requires_grad=True)
    with fwad.dual_level():
        x = fwad.make_dual(wf.tensor(2.0), wf.tensor(1.0))
        y = x * x
        assert not x.requires_grad and not y.requires_grad and y.is_leaf and y.grad_fn is None
        assert (w * y).requires_grad and fwad.make_dual(w, wf.tensor(1.0)).requires_grad
        assert not (w * y).is_leaf and (w * y).grad_fn is not None
        assert repr(y) == "tensor(4., tangent=4.0)" and repr(fwad.unpack_dual(y)[0]) == "tensor(4.)"
        z = w * y
        z.backward()
        assert repr(z).endswith(", tangent=?)")
        with pytest.raises(NotImplementedError, match="by its last argument only"):
            wf.special.zeta(x, x)


def test_what_tangents_are_computed_from_may_change():
    other = wf.ones(2) * 1
    tangent = wf.ones(2) * 1
    with fwad.dual_level():
        x = fwad.make_dual(wf.ones(2), tangent * 3)
        y = x * other
        y.tolist()
        tangent.zero_()
        other.add_(1)
        other.tolist()
        assert fwad.unpack_dual(y).tangent.tolist() == [3.0, 3.0]
        z = wf.zeros(2).detach()
        z.add_(y)
        assert fwad.unpack_dual(z).tangent.tolist() == [3.0, 3.0]
        seen = other.numpy()
        other.add_(1)
        assert other.tolist() == seen.tolist() == [3.0, 3.0]
