"""Hooks on the gradients of several tensors."""

import pytest

import weft as wf
from weft.autograd.graph import Node, register_multi_grad_hook


def leaves(count):
    return [wf.full((1,), n + 2.0, requires_grad=True) for n in range(count)]


def numbers(gradients):
    return [None if g is None else g.item() for g in gradients]


def test_the_hook_sees_what_a_pass_reaches():
    a, b, c = leaves(3)
    seen = []
    product = a * b
    handle = register_multi_grad_hook(
        [a, b, c, product], lambda gradients: seen.append(numbers(gradients))
    )
    (product * 10).backward(retain_graph=True)
    (product * 10).backward(inputs=[b], retain_graph=True)
    assert seen == [[30.0, 20.0, None, 10.0], [None, 20.0, None, 10.0]]
    assert wf.autograd.grad(product, [a], retain_graph=True)[0].item() == 3.0
    assert seen[2:] == [[3.0, None, None, 1.0]]
    (c.detach().requires_grad_() * 2).backward()
    handle.remove()
    product.backward()
    assert len(seen) == 3


def test_the_hook_runs_when_the_pass_has_ended():
    a, b = leaves(2)
    order = []
    register_multi_grad_hook([a, b], lambda _: order.append(("together", a.grad.item())))
    b.register_post_accumulate_grad_hook(lambda _: order.append("accumulated"))
    (a * b).backward()
    assert order == ["accumulated", ("together", 3.0)]


def test_the_first_gradient_is_enough_where_that_is_wanted():
    a, b = leaves(2)
    seen = []
    with register_multi_grad_hook([a, b], lambda g: seen.append(g.item()), mode="any"):
        (a * b).backward()
        (a * 2).backward()
    (a * 2).backward()
    assert len(seen) == 2 and seen[0] in (2.0, 3.0) and seen[1] == 2.0
    with pytest.raises(ValueError, match="expected mode 'all' or 'any', got 'some'"):
        register_multi_grad_hook([a, b], seen.append, mode="some")


def test_a_pass_inside_a_hook_is_another_one():
    a, b = leaves(2)
    seen = []
    register_multi_grad_hook([a, b], lambda gradients: seen.append(numbers(gradients)))
    y = a * 2
    product = b * 5
    y.register_hook(lambda g: product.backward())
    y.backward()
    assert seen == [[None, 5.0], [2.0, None]]


def test_a_pass_that_fails_calls_nothing():
    a, b = leaves(2)
    seen = []
    register_multi_grad_hook([a, b], seen.append)

    def fail(g):
        raise KeyError("the user's")

    b.register_hook(fail)
    with pytest.raises(KeyError, match="the user's"):
        (a * b).backward()
    assert not seen
    wf.func.grad(lambda x: (x * 2).sum())(a)
    assert not seen


def test_results_know_their_number():
    x = wf.ones(4, requires_grad=True)
    values, places = wf.sort(x)
    assert isinstance(values.grad_fn, Node)
    assert (x.output_nr, values.output_nr, places.output_nr) == (0, 0, 0)

    class Both(wf.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2, x * 3

        @staticmethod
        def backward(ctx, g, h):
            return g * 2 + h * 3

    assert [y.output_nr for y in Both.apply(x)] == [0, 1]


@pytest.mark.parametrize("kept", [False, True])
def test_gradients_that_were_known_before_a_hook_looked_are_not_lost(kept):
    x, y = wf.tensor([2.0], requires_grad=True), wf.tensor([3.0], requires_grad=True)
    a, b = x * 1, y * 1
    b.retain_grad()
    seen = []
    a.register_hook(lambda g: seen.append(g.tolist()[0]))
    if kept:
        b.register_hook(seen.append)
    loss = (a * b).sum()
    for factor in (1, 2):
        (loss * factor).backward(retain_graph=True)
    assert x.grad.item() == 9 and y.grad.item() == 6 and b.grad.item() == 6
    assert [float(g) for g in seen] == ([2, 3, 4, 6] if kept else [3, 6])
