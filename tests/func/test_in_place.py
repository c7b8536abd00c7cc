"""In-place changes inside transformed functions equal those of a plain call."""

import numpy as np
import pytest
from hypothesis import Phase, given
from hypothesis import strategies as st
from strategies import at_most

import weft as wf
from weft import func
from weft.errors import GradientError, ShapeError, TreeError

few = at_most(6, phases=[Phase.generate])


def doubled(x, y):
    return x.mul_(2).add_(y)


@given(st.integers(0, 2), st.integers(0, 2), st.sampled_from([None, 1, 2, 5]))
@few
def test_examples_in_arguments_are_changed(axis, place, chunk):
    x = wf.arange(60.0).reshape(3, 4, 5)
    y = wf.arange(float(x.shape[axis]))
    expected = np.moveaxis(x.numpy(), axis, 0) * 2 + y.numpy()[:, None, None]
    result = func.vmap(doubled, (axis, 0), place, chunk_size=chunk)(x, y)
    np.testing.assert_array_equal(np.moveaxis(result.numpy(), place, 0), expected)
    np.testing.assert_array_equal(np.moveaxis(x.numpy(), axis, 0), expected)


def test_a_result_that_is_an_argument_is_that_tensor():
    x = wf.zeros(2, 3)
    assert func.vmap(lambda x: x.add_(1))(x) is x
    across = func.vmap(lambda x: x, out_axes=1)(x)
    x.zero_()
    assert across.shape == (3, 2) and not across.numpy().any()
    assert func.vmap(func.vmap(lambda x: x))(x) is x


def test_what_all_examples_share_changes_once():
    x, calls, total = wf.arange(3.0), wf.zeros(()), wf.zeros(2)

    def count(x, total):
        calls.add_(1)
        total.add_(calls)
        return x * calls

    assert func.vmap(count, (0, None))(x, total).tolist() == [0.0, 1.0, 2.0]
    assert calls.item() == 1.0 and total.tolist() == [1.0, 1.0]
    func.vmap(count, (0, None), chunk_size=2)(x, total)
    assert calls.item() == 3.0 and total.tolist() == [6.0, 6.0]


@pytest.mark.parametrize(
    "change", [lambda s, x: s.add_(x), lambda s, x: s.normal_(), lambda s, x: s[0].copy_(x)]
)
def test_what_all_share_cannot_differ(change):
    s = wf.zeros(2)
    for f, axes in (lambda s, x: change(s, x), (None, 0)), (lambda _, x: change(s, x), (None, 0)):
        with pytest.raises(ShapeError, match="that all examples share cannot be changed in place"):
            func.vmap(f, axes, randomness="different")(s, wf.arange(3.0))
    assert not s.numpy().any()


@pytest.mark.parametrize("wrapped", [func.jit, func.checkpoint])
def test_calls_of_traced_functions_change_arguments(wrapped):
    x, call = wf.zeros(3), wrapped(lambda x, y: x[1:].add_(y) * 2)
    for _ in range(3):
        result = call(x, wf.ones(()))
    assert x.tolist() == [0.0, 3.0, 3.0] and result.tolist() == [6.0, 6.0]


def test_arguments_of_derivatives_are_changed():
    x, t = wf.tensor([1.0, 2.0]), wf.tensor([1.0, 10.0])
    y, move = func.jvp(lambda x: x.mul_(x), (x,), (t,))
    assert y.tolist() == x.tolist() == [1.0, 4.0] and move.tolist() == [2.0, 40.0]
    assert not x.requires_grad
    slope = func.grad(lambda x: x.mul_(x).sum())(x)
    assert slope.tolist() == [2.0, 8.0] and x.tolist() == [1.0, 16.0]
    ys, moves = func.vmap(lambda x, t: func.jvp(lambda x: x.mul_(x), (x,), (t,)))(x, t)
    assert ys.tolist() == x.tolist() == [1.0, 256.0] and moves.tolist() == [2.0, 320.0]
    with pytest.raises(GradientError, match="requires grad cannot be changed in place"):
        func.grad(lambda x: x.mul_(x).sum())(wf.ones(2, requires_grad=True))


def test_a_change_of_a_tensor_from_outside_in_a_jacobian():
    x, y = wf.tensor([1.0, 2.0]), wf.zeros(2)
    for jacobian in func.jacrev, func.jacfwd:
        assert jacobian(lambda x, y: y.copy_(x))(x, y.zero_()).tolist() == [[1.0, 0.0], [0.0, 1.0]]


def test_custom_vjp_changes_nothing():
    f = func.custom_vjp(lambda x: x.mul_(2))
    f.defvjp(lambda x: (x * 2, None), lambda _, g: (g * 2,))
    with pytest.raises(GradientError, match="change no tensor in place but their own"):
        f(wf.ones(2))
    calls = wf.zeros(())
    g = func.custom_vjp(lambda x: (calls.add_(1), x * 2)[1])
    g.defvjp(lambda x: (x * 2, None), lambda _, g: (g * 2,))
    with pytest.raises(GradientError, match="change no tensor in place but their own"):
        g(wf.ones(2))
    assert calls.item() == 0.0


@pytest.mark.parametrize("name", ["vjp", "linearize"])
def test_no_grad_holds_where_it_is_said(name):
    x = wf.tensor(3.0, requires_grad=True)
    one = wf.tensor(1.0)

    def slope(pull):
        found = pull(one)
        return found[0] if name == "vjp" else found

    y, pull = getattr(func, name)(lambda x: x * x, x)
    with wf.no_grad():
        inside = slope(pull)
    assert inside.item() == 6.0 and not inside.requires_grad and y.requires_grad
    with wf.no_grad():
        y, pull = getattr(func, name)(lambda x: x * x, x)
    outside = slope(pull)
    assert not y.requires_grad
    assert wf.autograd.grad(outside, x)[0].item() == 2.0


def test_axes_by_name():
    xs = {"a": wf.ones(2, 3), "b": wf.ones(3, 2)}
    result = func.vmap(lambda d: d["a"] + d["b"], ({"b": 1, "a": 0},))(xs)
    assert result.shape == (2, 3)
    with pytest.raises(TreeError, match="expected one for each part"):
        func.vmap(lambda d: d["a"], ({"b": 1, "c": 0},))(xs)
    assert func.vmap(lambda x: x + 0, out_axes=(1,))(xs["a"]).shape == (3, 2)


def test_structures_of_tangents():
    x = wf.ones(())
    with pytest.raises(TreeError, match="same structure"):
        func.jvp(lambda x: x, (x, x), (x,))


VIEWS = [
    lambda x: x.t(),
    lambda x: x[1:, 2],
    lambda x: x[1],
    lambda x: x.unsqueeze(0),
    lambda x: wf.diagonal(x, 1),
    lambda x: x.T[::2].unsqueeze(0),
]


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize(("axis", "place"), [(0, 0), (1, 0), (2, 1), (0, -1)])
def test_a_result_that_is_a_view_of_an_argument_is_a_view(view, axis, place):
    x = wf.randn(*[3, 4][:axis], 2, *[3, 4][axis:], requires_grad=True).clone()
    rows = [view(row) for row in x.unbind(axis)]
    y = func.vmap(view, axis, place)(x)
    assert y._base is x
    np.testing.assert_array_equal(y.detach(), wf.stack(rows, place).detach())
    before = x.detach().clone()
    y.mul_(2.0)
    twice = [view(row) for row in (x.detach() / before).unbind(axis)]
    assert (wf.stack(twice) == 2).all() and (x == before).sum() == x.numel() - y.numel()
    (g,) = wf.autograd.grad(y.sum(), y)
    assert (g == 1).all()


def test_views_of_views_of_examples():
    x = wf.zeros(2, 3, 4)
    y = func.vmap(func.vmap(lambda x: x[1:], 1), 0, 1)(x)
    y.add_(1.0)
    assert y._base is x and y.shape == (4, 2, 2)
    assert x.sum((0, 2)).tolist() == [0.0, 8.0, 8.0]
    changed = func.vmap(lambda x: (x[0].add_(2.0), x[0])[1])(x)
    assert changed._base is x and x[:, 0].tolist() == changed.tolist() == [[2.0] * 4] * 2


def count_inside(a, c):
    """Changes an argument in place inside nested transformations, and reads each change."""
    once = func.vmap(lambda b: (a.add_(1), b * a)[1])(c)
    twice = func.jit(lambda b: a.mul_(2) * b)(c)
    return a, once + twice


@pytest.mark.parametrize("wrapped", [lambda f: f, func.jit, func.checkpoint])
def test_an_inner_function_changes_an_argument_of_the_outer_one(wrapped):
    a, c = wf.zeros(()), wf.arange(3.0)
    shown, found = wrapped(count_inside)(a, c)
    assert a.item() == shown.item() == 2.0
    assert found.tolist() == [0.0, 3.0, 6.0]


def test_an_inner_function_changes_an_example():
    a, c = wf.tensor([0.0, 1.0]), wf.arange(6.0).reshape(2, 3)
    shown, found = func.vmap(count_inside)(a, c)
    assert a.tolist() == shown.tolist() == [2.0, 4.0]
    assert found.tolist() == [[0.0, 3.0, 6.0], [18.0, 24.0, 30.0]]
    with pytest.raises(ShapeError, match="that all examples share cannot be changed in place"):
        func.vmap(lambda a, c: func.vmap(lambda b: a.add_(b))(c))(a, c)
    assert a.tolist() == [2.0, 4.0]
