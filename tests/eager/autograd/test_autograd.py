"""Backward passes: accumulation, hooks, modes, errors."""

import gc
import weakref

import numpy as np
import pytest

import weft as wf
from weft import errors


def leaf(*values):
    return wf.tensor(list(values), requires_grad=True)


# Accumulation


def test_gradients_add_up_until_they_are_taken_away():
    x = leaf(1.0, 2.0)
    for times in (1, 2):
        (x * x).sum().backward()
        assert x.grad.tolist() == [2.0 * times, 4.0 * times]
    x.grad = None
    (x * 3).sum().backward()
    assert x.grad.tolist() == [3.0, 3.0]


def test_a_gradient_given_for_several_results():
    x = leaf(1.0, 2.0)
    wf.autograd.backward([x * 2, (x * x).sum()], [wf.tensor([1.0, 10.0]), None])
    assert x.grad.tolist() == [4.0, 24.0]


def test_only_the_inputs_asked_for():
    x, y = leaf(2.0), leaf(3.0)
    z = x * y
    w = z * z
    w.backward(inputs=[x, z])
    assert x.grad.tolist() == [36.0] and z.grad.tolist() == [12.0] and y.grad is None


def test_grad_leaves_dot_grad_alone():
    x, y = leaf(2.0), leaf(3.0)
    gx, gy = wf.autograd.grad(x * y, [x, y])
    assert (gx.tolist(), gy.tolist(), x.grad) == ([3.0], [2.0], None)
    assert wf.autograd.grad(x * 2, [x, y], allow_unused=True)[1] is None


def test_higher_orders():
    x = leaf(0.5)
    y = x**4
    for expected in (4 * 0.5**3, 12 * 0.5**2, 24 * 0.5, 24.0):
        (y,) = wf.autograd.grad(y, x, create_graph=True)
        assert np.allclose(y.tolist(), expected)


def test_graphs_that_are_kept():
    x = leaf(3.0)
    y = x * x
    y.backward(retain_graph=True)
    y.backward()
    assert x.grad.tolist() == [12.0]


def test_results_do_not_keep_what_a_backward_pass_has_freed():
    x = leaf(1.0, 2.0)
    inner = x * 2
    gone = weakref.ref(inner.lazy.record) if hasattr(inner.lazy.record, "__weakref__") else None
    loss = (inner * inner).sum()
    loss.backward()
    loss.tolist()
    assert loss.lazy.record is None
    del inner
    gc.collect()
    assert gone is None or gone() is None


# Hooks


def test_a_hook_sees_and_changes_the_gradient():
    x = leaf(1.0, 2.0)
    seen = []
    y = x * 3
    first = y.register_hook(lambda g: seen.append(g.tolist()))
    y.register_hook(lambda g: g * 10)
    y.register_hook(lambda g: seen.append(g.tolist()))
    (y * 2).sum().backward(retain_graph=True)
    assert seen == [[2.0, 2.0], [20.0, 20.0]] and x.grad.tolist() == [60.0, 60.0]
    first.remove()
    (y * 1).sum().backward()
    assert seen[2:] == [[10.0, 10.0]]


def test_a_hook_sees_the_sum_of_all_uses_once():
    x = leaf(1.0)
    y = x * 2
    seen = []
    y.register_hook(lambda g: seen.append(g.item()))
    ((y * 3) + (y * y) + y).sum().backward()
    assert seen == [3 + 2 * 2 + 1] and x.grad.tolist() == [16.0]


def test_gradients_use_the_values_of_the_forward_pass():
    for silent in (lambda d: d.detach().mul_(3), wf.no_grad()(lambda d: d.mul_(3))):
        x = leaf(1.0, 2.0, 3.0)
        y = x * 1
        view = y[::2]
        silent(view)
        (y * 2).sum().backward(retain_graph=True)
        assert y.tolist() == [3.0, 2.0, 9.0] and x.grad.tolist() == [2.0, 2.0, 2.0]
        view.sum().backward()
        assert x.grad.tolist() == [3.0, 2.0, 3.0]


def test_hooks_of_leaves_outlive_changes_in_place():
    x = leaf(1.0)
    x.register_hook(lambda g: g * 5)
    with wf.no_grad():
        x.add_(1)
    (x * 2).sum().backward()
    assert x.grad.tolist() == [10.0]
    assert wf.autograd.grad((x * 2).sum(), x)[0].tolist() == [10.0]


def test_hooks_of_hooked_values_in_a_row():
    x = leaf(1.0)
    order = []
    y = x * 1
    for name in "abc":
        y.register_hook(lambda g, name=name: order.append(name) or g + 1)
        y = y * 1
    y.sum().backward()
    assert order == ["c", "b", "a"] and x.grad.tolist() == [4.0]


def test_a_hook_may_be_used_as_a_context():
    x = leaf(1.0)
    with x.register_hook(lambda g: g * 7):
        (x * 1).sum().backward()
    (x * 1).sum().backward()
    assert x.grad.tolist() == [8.0]


def test_hooks_after_accumulation():
    x = leaf(1.0)
    seen = []
    handle = x.register_post_accumulate_grad_hook(lambda t: seen.append((t is x, t.grad.item())))
    (x * 2).sum().backward()
    (x * 2).sum().backward()
    handle.remove()
    (x * 2).sum().backward()
    assert seen == [(True, 2.0), (True, 4.0)]


def test_retained_gradients():
    x = leaf(1.0, 2.0)
    y = x * x
    assert not y.retains_grad
    y.retain_grad()
    y.retain_grad()
    y.register_hook(lambda g: g * 2)
    (y * 3).sum().backward(retain_graph=True)
    assert y.retains_grad and y.grad.tolist() == [6.0, 6.0] and x.grad.tolist() == [12.0, 24.0]
    (y * 3).sum().backward()
    assert y.grad.tolist() == [12.0, 12.0]
    x.retain_grad()  # a leaf does so anyway
    assert not x.retains_grad


def test_asking_for_the_gradient_of_a_hooked_value():
    x = leaf(2.0)
    y = x * 3
    y.register_hook(lambda g: g * 10)
    gy, gx = wf.autograd.grad((y * y).sum(), [y, x])
    assert gy.tolist() == [120.0] and gx.tolist() == [360.0]


# Modes


def test_modes_nest_and_decorate():
    x = leaf(1.0)

    @wf.no_grad()
    def off():
        return wf.is_grad_enabled(), (x * 2).requires_grad

    @wf.no_grad
    def numbers():
        yield wf.is_grad_enabled()
        with wf.enable_grad():
            yield wf.is_grad_enabled()

    assert off() == (False, False)
    found = numbers()
    assert (next(found), wf.is_grad_enabled(), next(found), wf.is_grad_enabled()) == (
        False, True, True, True,
    )  # fmt: skip
    with wf.inference_mode():
        assert not wf.is_grad_enabled()
        with wf.inference_mode(False):
            assert wf.is_grad_enabled()
    with wf.set_grad_enabled(False):
        assert not wf.is_grad_enabled()
    wf.set_grad_enabled(False)
    assert not wf.is_grad_enabled()
    wf.set_grad_enabled(True)
    decorated = wf.set_grad_enabled(False)(wf.is_grad_enabled)
    assert wf.is_grad_enabled() and not decorated()


def test_generators_end_in_their_mode():
    seen = []

    @wf.no_grad()
    def numbers():
        try:
            got = yield 1
            seen.append((got, wf.is_grad_enabled()))
            yield 2
        except ValueError:
            seen.append(wf.is_grad_enabled())
            yield 3
        finally:
            seen.append(wf.is_grad_enabled())
        return 4

    found = numbers()
    assert (next(found), found.send("x"), found.throw(ValueError)) == (1, 2, 3)
    found.close()
    assert seen == [("x", False), False, False] and wf.is_grad_enabled()
    assert list(numbers()) == [1, 2]


def constant_factor(x):
    with wf.no_grad():
        y = x * 3
    return (y * x).sum()


def detached_factor(x):
    return (x.detach() * 3 * x).sum()


@pytest.mark.parametrize("function", [constant_factor, detached_factor])
def test_what_is_constant_is_so_everywhere(function):
    x = leaf(1.0, 2.0)
    for _ in range(4):  # interpreted, then compiled
        x.grad = None
        function(x).backward()
        assert x.grad.tolist() == [3.0, 6.0]
    function(x * 1).backward()
    assert x.grad.tolist() == [6.0, 12.0]
    plain = x.detach()
    for taken in (wf.func.grad(function), wf.func.jit(wf.func.grad(function))):
        assert taken(plain).tolist() == [3.0, 6.0]


def test_a_mode_ends_with_an_exception():
    with pytest.raises(ZeroDivisionError), wf.no_grad():
        1 / 0
    assert wf.is_grad_enabled()


def test_autocast():
    x, w = wf.ones(2, 2), wf.ones(2, 2, requires_grad=True)
    with wf.autocast(wf.bfloat16):
        y = x @ w
        assert y.dtype is wf.bfloat16 and wf.is_autocast_enabled()
        assert y.sum().dtype is wf.float32
        with wf.autocast(enabled=False):
            assert (x @ w).dtype is wf.float32
    y.sum().backward()
    assert w.grad.dtype is wf.float32 and not wf.is_autocast_enabled()
    with wf.autocast("cpu", dtype=wf.float16):
        assert (x @ w).dtype is wf.float16 and wf.get_autocast_dtype() is wf.float16
    with pytest.raises(errors.DTypeError, match="autocast: expected bfloat16 or float16, got f"):
        wf.autocast(wf.float32)


# Errors


def twice():
    y = leaf(1.0) * 2
    y.backward()
    y.backward()


def bad_hook():
    x = leaf(1.0, 2.0)
    x.register_hook(lambda g: g.sum())
    (x * 1).sum().backward()


@pytest.mark.parametrize("looks", [False, True])
def test_changes_in_place_are_part_of_the_graph(looks):
    x = leaf(1.0, 2.0)
    y = x * 1
    total = y * y  # of the value that y has now
    for _ in range(4):
        y.mul_(2)
        y[0] = y[0] + x[0]
        if looks:
            y.tolist()
    (total + y).sum().backward()
    assert y.tolist() == [31.0, 32.0]
    assert x.grad.tolist() == [2 + 31.0, 4 + 16.0]


def used_then_changed():
    x, constant = leaf(1.0, 2.0), wf.tensor([1.0, 2.0])
    y = x * constant
    y.tolist()
    constant.mul_(3)
    constant.tolist()
    y.sum().backward()
    x.grad.tolist()


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (
            lambda: (leaf(1.0, 2.0) * 2).backward(),
            errors.GradientError,
            "backward: expected a scalar, got a tensor of shape (2,); sum() it, or pass a gradient",
        ),
        (
            lambda: (leaf(1.0, 2.0) * 2).backward(wf.ones(3)),
            errors.ShapeError,
            "backward: expected a gradient of shape (2,), got (3,)",
        ),
        (
            lambda: wf.ones(1).backward(),
            errors.GradientError,
            "backward: the tensor requires no grad: nothing it depends on has requires_grad=True",
        ),
        (
            twice,
            errors.GradientError,
            "backward: the graph behind this value was freed by an earlier backward pass; call "
            "that one with retain_graph=True",
        ),
        (
            lambda: leaf(1.0).add_(1),
            errors.GradientError,
            "add_: a leaf that requires grad cannot be changed in place; change it inside "
            "no_grad(), or work on x.clone()",
        ),
        (
            lambda: leaf(1.0)[0:1].mul_(2),
            errors.GradientError,
            "mul_: a view of a leaf that requires grad cannot be changed in place",
        ),
        (
            lambda: wf.autograd.grad(leaf(1.0) * 1, leaf(1.0)),
            errors.GradientError,
            "grad: input 0 does not lead to the outputs; pass allow_unused=True",
        ),
        (
            lambda: wf.autograd.backward([leaf(1.0) * 1], [None, None]),
            errors.GradientError,
            "backward: expected 1 cotangents, got 2",
        ),
        (
            lambda: wf.ones(1).register_hook(print),
            errors.GradientError,
            "register_hook: expected a tensor that requires grad; call requires_grad_() on it",
        ),
        (
            lambda: (leaf(1.0) * 1).register_post_accumulate_grad_hook(print),
            errors.GradientError,
            "register_post_accumulate_grad_hook: expected a leaf, got the result of an operation",
        ),
        (
            bad_hook,
            errors.ShapeError,
            "backward: expected a hook to return a gradient of shape (2,), or None, got ()",
        ),
        (
            lambda: (leaf(1.0) * 1).requires_grad_(False),
            errors.GradientError,
            "requires_grad_: only a leaf can stop requiring grad; detach() the tensor",
        ),
        (
            lambda: wf.arange(2).requires_grad_(),
            errors.GradientError,
            "requires_grad_: expected floating elements, got int64; convert the tensor",
        ),
        (
            lambda: leaf(1.0).numpy(),
            errors.GradientError,
            "numpy: the tensor requires grad, which NumPy does not track; call detach()",
        ),
        (
            lambda: leaf(1.0).sum().backward(inputs=[]),
            errors.GradientError,
            "backward: expected inputs, got none",
        ),
        (lambda: wf.autograd.grad(leaf(1.0), []), ValueError, "grad: expected inputs, got none"),
        (used_then_changed, errors.WeftError, ""),
        (
            lambda: wf.nn.functional.cross_entropy(wf.ones(2, 5), wf.tensor([1, 7])).item(),
            errors.OutOfRangeError,
            "gather: indices[1]: expected 0 <= index < 5, got 7",
        ),
    ],
)
def test_errors_say_what_to_do(call, error, text):
    with pytest.raises(error) as found:
        call()
    assert str(found.value).startswith(text)
    assert "created at test_autograd.py:" in str(found.value)


def test_a_gradient_frees_only_what_it_went_through():
    x, w = leaf(2.0), leaf(3.0)
    shared = x * x
    (g,) = wf.autograd.grad((shared * w).sum(), [w])
    assert g.item() == 4.0
    (shared * w).sum().backward()
    assert x.grad.item() == 12.0
    with pytest.raises(errors.GradientError, match="freed by an earlier backward pass"):
        (shared * w).sum().backward()


def test_numpy_where_gradients_are_off():
    x = leaf(2.0)
    with wf.no_grad():
        assert x.numpy() == 2.0
    with pytest.raises(errors.GradientError, match="NumPy does not track"):
        x.numpy()


def test_the_graph_behind_a_tensor():
    class Twice(wf.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, g):
            return g * 2

    x = leaf(3.0)
    a, b = (x * 1).reshape(1).expand(2).unbind()
    y = Twice.apply(wf.erf(a)) + b
    assert x.grad_fn is None and y.detach().grad_fn is None
    assert y.grad_fn == y.grad_fn and y.grad_fn != a.grad_fn and hash(y.grad_fn)
    twice, _ = [node for node, _ in y.grad_fn.next_functions]
    assert type(twice).__name__ == twice.name() == "TwiceBackward"
    seen, stack = [], [y.grad_fn]
    while stack:
        node = stack.pop()
        seen.append(node.name())
        stack += [n for n, _ in node.next_functions if n is not None]
        if not node.next_functions:
            assert node.variable is x
    assert "ErfBackward" in seen and seen.count("AccumulateGrad") == 2
    with pytest.raises(AttributeError, match="only AccumulateGrad has a variable"):
        print(twice.variable)
    y.backward()
    assert y.grad_fn.name() == "AddBackward"


def test_gradients_flow_through_a_view_that_no_grad_saw_first():
    x = wf.tensor([1.0, 2.0, 3.0], requires_grad=True)
    y = x.clone()
    first, last = y[0], y[-1:]
    with wf.no_grad():
        constant = y.view(3)
    y.mul_(y)
    with wf.no_grad():
        assert first.item() == 1.0 and last.tolist() == [9.0]
    assert wf.autograd.grad(last.sum(), x, retain_graph=True)[0].tolist() == [0.0, 0.0, 6.0]
    (first * 2 + x.sum()).backward()
    assert x.grad.tolist() == [5.0, 1.0, 1.0]
    assert constant.tolist() == [1.0, 4.0, 9.0] and not constant.requires_grad
