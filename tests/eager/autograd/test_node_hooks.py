"""Hooks of `grad_fn` nodes, which get all gradients of a call together."""

import weakref

import pytest

import weft as wf
from weft.errors import GradientError, ShapeError


class Twice(wf.autograd.Function):
    @staticmethod
    def forward(ctx, x, factor, y):
        return x * 2, factor, y * factor

    @staticmethod
    def backward(ctx, g, _, h):
        return g * 2, None, h * 3


def leaf(number):
    return wf.tensor([number], requires_grad=True)


def items(gs):
    return tuple([None if g is None else g.item() for g in gs])


def test_hooks_before_a_node_change_what_flows_into_it():
    x = leaf(5.0)
    y = x * 3
    seen = []
    first = y.grad_fn.register_prehook(lambda gs: (gs[0] * 2,))
    y.grad_fn.register_prehook(lambda gs: seen.append(items(gs)))
    y.grad_fn.register_hook(lambda xs, ys: seen.append((items(xs), items(ys))))
    y.register_hook(lambda g: g * 10)
    y.backward(retain_graph=True)
    assert seen == [(20.0,), ((60.0, None), (20.0,))] and x.grad.item() == 60
    first.remove()
    assert wf.autograd.grad(y, x)[0].item() == 30
    assert seen[2:] == [(10.0,), ((30.0, None), (10.0,))]


def test_hooks_after_a_node_change_what_flows_out_of_it():
    a, b = leaf(2.0), leaf(3.0)
    (product := a * b).grad_fn.register_hook(lambda xs, _: (xs[0] * 10, None))
    (product * 1).backward()
    assert a.grad.item() == 30 and b.grad is None
    c = leaf(4.0)
    seen = []
    square = c * c
    square.grad_fn.register_hook(lambda xs, _: seen.append(items(xs)))
    (square + c).backward()
    assert seen == [(8.0, None)] and c.grad.item() == 9


def test_several_results_are_seen_together():
    x, y = leaf(1.0), leaf(1.0)
    first, factor, second = Twice.apply(x, 3, y)
    assert factor == 3
    seen = []
    first.grad_fn.register_prehook(lambda gs: seen.append(items(gs)))
    second.grad_fn.register_prehook(lambda gs: (gs[0], None, gs[2] * 10))
    second.grad_fn.register_hook(lambda xs, _: seen.append(items(xs)))
    (first + second * 5).backward()
    assert seen == [(1.0, None, 5.0), (2.0, None, 150.0)]
    assert (x.grad.item(), y.grad.item()) == (2, 150)
    v = wf.arange(4.0, requires_grad=True)
    parts = v.unbind()
    parts[1].grad_fn.register_prehook(lambda gs: tuple([None if g is None else g * 2 for g in gs]))
    (parts[1] + parts[3]).backward()
    assert v.grad[1].item() == 2 and v.grad[3].item() in (1, 2)  # one call may be several nodes


def test_leaf_hooks_run_around_accumulation():
    x = leaf(1.0)
    node = (x * 2).grad_fn.next_functions[0][0]
    seen = []
    node.register_prehook(lambda gs: seen.append(items(gs)) or (gs[0] * 3,))
    node.register_hook(lambda xs, gs: seen.append((xs, items(gs), x.grad.item())))
    x.register_hook(lambda g: g * 5)
    (x * 2).backward()
    assert seen == [(10.0,), ((), (30.0,), 30.0)] and x.grad.item() == 30
    assert wf.autograd.grad(x * 2, x)[0].item() == 10 and len(seen) == 2


def test_what_hooks_return_is_checked():
    y = leaf(1.0) * 2
    handle = y.grad_fn.register_prehook(lambda gs: (gs[0], gs[0]))
    with pytest.raises(GradientError, match="a hook before a node to return 1 gradients, or None"):
        y.backward(retain_graph=True)
    handle.remove()
    y.grad_fn.register_hook(lambda xs, _: (wf.ones(3), None))
    with pytest.raises(ShapeError, match="a hook of a node to return a gradient of shape"):
        y.backward()


def test_nodes_are_functions_and_remember():
    x = leaf(3.0)
    y = x * x
    assert y.grad_fn(wf.tensor([2.0]))[0].item() == 12
    assert x.exp().grad_fn(wf.ones(1)).item() == pytest.approx(20.0855, abs=1e-3)
    assert items(Twice.apply(x, 3, x)[0].grad_fn(None, None, wf.ones(1))) == (0.0, None, 3.0)
    with pytest.raises(TypeError, match="expected 1 arguments, got 2"):
        y.grad_fn(x, x)
    with pytest.raises(TypeError, match="accumulates a gradient, and gives none"):
        y.grad_fn.next_functions[0][0](x)
    y.grad_fn.metadata["note"] = 1
    assert y.grad_fn.metadata == {"note": 1}


def test_hooks_of_nodes_are_part_of_traced_functions():
    @wf.func.jit
    def function(x):
        y = x * 3
        y.grad_fn.register_prehook(lambda gs: (gs[0] * 2,))
        return y.sum()

    for _ in range(2):
        x = wf.ones(2, requires_grad=True)
        function(x).backward()
        assert x.grad.tolist() == [6.0, 6.0]


def test_hooks_before_the_node_of_an_input_asked_for():
    x = leaf(2.0)
    y = x * 3
    seen = []
    y.grad_fn.register_prehook(lambda gs: seen.append(items(gs)) or (gs[0] * 100,))
    y.register_hook(lambda g: g * 10)
    wf.autograd.grad(y * 2, y, retain_graph=True)
    assert seen == []
    (y * 2).backward(inputs=(y,))
    assert seen == [(20.0,)] and y.grad.item() == 20 and x.grad is None
    (x * 3 * 2).backward(inputs=(x,))
    assert x.grad.item() == 6


def test_each_result_of_a_traced_function_has_a_node_of_its_own():
    def both(x):
        y = x.sin()
        return y, y.exp()

    x = leaf(1.0)
    y, z = wf.func.checkpoint(both)(x)
    assert y.grad_fn != z.grad_fn and (z * 1).grad_fn.next_functions[0] == (z.grad_fn, 0)
    seen = []
    z.grad_fn.register_prehook(lambda gs: seen.append(items(gs)))
    z.grad_fn.register_hook(lambda xs, _: y.backward(retain_graph=True))
    z.backward(retain_graph=True)
    assert seen == [(1.0,)]
    cos = wf.cos(wf.tensor(1.0)).item()
    assert x.grad.item() == pytest.approx(cos + cos * z.item())
    assert z.grad_fn(wf.ones(1)).item() == pytest.approx(cos * z.item())


def test_what_a_node_remembers_is_gone_with_the_graph():
    class Remembered:
        pass

    def remember():
        x = leaf(1.0)
        y = x.sin().exp()
        thing = Remembered()
        y.grad_fn.next_functions[0][0].metadata["thing"] = thing
        return weakref.ref(thing), y

    found, y = remember()
    assert found() is not None
    del y
    assert found() is None
