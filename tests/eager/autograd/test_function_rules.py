"""What a custom `Function` must define, and `Variable`."""

import numpy as np
import pytest

import weft as wf
import weft.numpy as wnp
from weft import errors
from weft.autograd import Function, Variable, forward_ad, functional


class Named(Function):
    @staticmethod
    def forward(ctx, x):
        return x * 3

    @staticmethod
    def vjp(ctx, g):
        return g * 3


def leaf(*numbers):
    return wf.tensor(numbers, requires_grad=True)


def test_vjp_is_another_name_of_backward():
    x = leaf(1.0, 2.0)
    Named.apply(x).sum().backward()
    assert x.grad.tolist() == [3.0, 3.0]

    class Both(Named):
        @staticmethod
        def backward(ctx, g):
            return g * 3

    with pytest.raises(errors.GradientError, match="has both backward and vjp"):
        Both.apply(x).sum().backward()


def test_what_is_missing_is_named():
    class Empty(Function):
        pass

    class Forward(Function):
        @staticmethod
        def forward(ctx, x):
            return x * 3

    with pytest.raises(NotImplementedError, match="Empty: expected a static method forward"):
        Empty.apply(leaf(1.0))
    y = Forward.apply(leaf(1.0))
    with pytest.raises(NotImplementedError, match="Forward: expected a static method backward"):
        y.backward()
    with forward_ad.dual_level(), pytest.raises(NotImplementedError, match="define jvp"):
        forward_ad.unpack_dual(Named.apply(forward_ad.make_dual(wf.ones(1), wf.ones(1))))
    with pytest.raises(errors.GradientError, match=r"call Named.apply\(...\)"):
        Named()(leaf(1.0))


class Doubled(Function):
    @staticmethod
    def forward(ctx, x, returned):
        x.mul_(2)
        ctx.mark_dirty(x)
        return x if returned else x.clone()

    @staticmethod
    def backward(ctx, g):
        return g * 2, None


def test_what_is_marked_dirty_is_returned_and_no_leaf():
    x = leaf(1.0)
    y = x.clone()
    assert Doubled.apply(y, True) is y
    y.backward()
    assert x.grad.tolist() == [2.0]
    with pytest.raises(errors.GradientError, match="what mark_dirty names among its results"):
        Doubled.apply(x.clone(), False)
    with pytest.raises(errors.GradientError, match="a leaf that requires grad was changed"):
        Doubled.apply(x, True)


def test_variables_are_tensors():
    data = wf.ones(2)
    x = Variable(data, requires_grad=True)
    assert x.requires_grad and not data.requires_grad
    assert isinstance(x, Variable) and isinstance(data, Variable) and not isinstance(1, Variable)
    data.mul_(3)
    assert x.tolist() == [3.0, 3.0]
    assert Variable(x * 2).is_leaf


@pytest.mark.parametrize("name", ["vjp", "jvp", "jacobian", "hessian", "vhp", "hvp"])
def test_derivatives_under_no_grad_can_be_differentiated(name):
    x = leaf(1.0, 2.0)
    with wf.no_grad():
        arguments = (wf.ones(()),) if name == "vjp" else (wf.ones(2),) if name[0] != "h" else ()
        arguments = (wf.ones(2),) if name == "hvp" else arguments if name != "jacobian" else ()
        found = getattr(functional, name)(lambda x: (x**3).sum(), x, *arguments, create_graph=True)
        assert not (x * 2).requires_grad
    found = found[1] if isinstance(found, tuple) else found
    (g,) = wf.autograd.grad(found.sum(), x)
    order = 3 if name in ("hessian", "vhp", "hvp") else 2
    expected = {2: 6 * np.array([1.0, 2.0]), 3: np.array([6.0, 6.0])}[order]
    np.testing.assert_allclose(g.numpy(), expected)


@pytest.mark.parametrize("name", ["vjp", "jvp", "jacobian", "hessian", "vhp", "hvp"])
def test_what_is_no_tensor_raises(name):
    function = getattr(functional, name)
    with pytest.raises(TypeError, match=f"{name}: expected inputs of tensors alone, got int"):
        function(wf.sum, (leaf(1.0), 1))
    with pytest.raises(TypeError, match=f"{name}: expected results of tensors alone, got str"):
        function(lambda x: "text", leaf(1.0), *([] if name in ("jacobian", "hessian") else [None]))
    if name not in ("jacobian", "hessian"):
        with pytest.raises(TypeError, match=f"{name}: expected v of tensors alone, got int"):
            function(wf.sum, leaf(1.0), (wf.ones(1), 2))


@pytest.mark.parametrize("name", ["vjp", "jvp", "jacobian", "hessian", "vhp", "hvp"])
def test_strict_derivatives_depend_on_the_inputs(name):
    function = getattr(functional, name)
    first = name in ("vjp", "jvp", "jacobian")
    arguments = {"jacobian": [], "hessian": [], "vjp": [wf.ones(())]}.get(name, [wf.ones(2)])
    x = wf.tensor([0.5, 2.0])

    def check(f, create_graph):
        return function(f, x, *arguments, strict=True, create_graph=create_graph)

    def linear(x):
        return (3 * x).sum()

    def quadratic(x):
        return (x * x).sum() + linear(x)

    def cubic(x):
        return (x**3).sum()

    check(linear if first else quadratic, False)
    check(quadratic if first else cubic, True)
    with pytest.raises(errors.GradientError, match="a result does not depend on an input"):
        check(lambda x: x.detach().sum(), False)
    with pytest.raises(errors.GradientError, match="of order 1 does not depend on the inputs"):
        check(linear, first)
    if not first:
        with pytest.raises(errors.GradientError, match="of order 2 does not depend on the inputs"):
            check(quadratic, True)


def test_strict_derivatives_may_be_computed_early(monkeypatch):
    original = functional._slopes

    def computed(ys, xs):
        found = original(ys, xs)
        for g in found:
            if g is not None:
                g.tolist()
        return found

    monkeypatch.setattr(functional, "_slopes", computed)
    x = wf.tensor([0.5, 2.0])
    functional.hessian(lambda x: (x * x).sum(), x, strict=True)
    with pytest.raises(errors.GradientError, match="of order 1 does not depend on the inputs"):
        functional.hessian(lambda x: (x * 3).sum(), x, strict=True)


def test_results_with_a_graph_have_one_though_the_input_needs_no_gradient():
    x = wf.tensor([0.5, 2.0])
    for found in (
        functional.jacobian(wf.exp, x, create_graph=True),
        functional.vhp(lambda x: x.exp().sum(), x, wf.ones(2), create_graph=True)[1],
    ):
        assert found.requires_grad
    assert not functional.jacobian(wf.exp, x).requires_grad


def test_results_that_are_one_tensor_stay_one():
    class Pair(wf.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            ctx.note = "kept"
            y = x * 2
            return y, y

        @staticmethod
        def backward(ctx, g, h):
            return 2 * g + 2 * h

    x = wf.tensor([1.0], requires_grad=True)
    one, other = Pair.apply(x)
    assert one is other and one.grad_fn.note == "kept"
    assert one.grad_fn.saved_tensors[0] is x
    with pytest.raises(AttributeError, match="no attribute 'saved_tensors'"):
        _ = (one * 2).grad_fn.saved_tensors
    (one + other).backward()
    assert x.grad.item() == 4


def test_a_result_without_derivative_has_no_tangent():
    class Marked(wf.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            index = x.argmax()
            return x.clone(), index

        @staticmethod
        def jvp(ctx, t):
            return t, t.sum()

    with pytest.raises(errors.GradientError, match="expected None for result 1, which is not"):
        wf.func.jvp(lambda x: Marked.apply(x)[0], (wf.ones(2),), (wf.ones(2),))


def test_the_tangent_of_a_dual_tensor_is_the_one_it_was_made_with():
    given = wf.ones(2)
    with wf.autograd.forward_ad.dual_level():
        dual = wf.autograd.forward_ad.make_dual(wf.zeros(2), given)
        assert wf.autograd.forward_ad.unpack_dual(dual).tangent is given


def test_what_has_no_gradient_raises_where_others_flow_too():
    def values(x):
        return x.sum()

    x = wf.tensor([[2.0, 1.0], [1.0, 2.0]], requires_grad=True)
    for found in (wf.unique(x), wf.unique_consecutive(x), wf.unique(x, return_counts=True)[0]):
        with pytest.raises(
            errors.UndefinedRuleError, match=r"unique.*: has no gradient; detach\(\) its"
        ):
            (found.sum() + values(x)).backward()
    with pytest.raises(NotImplementedError, match="geqrf: has no gradient"):
        (wf.geqrf(x)[0].sum() + values(x)).backward()
    values(x).backward()
    assert x.grad.tolist() == [[1.0, 1.0]] * 2
    assert not wf.unique(x.detach()).requires_grad
    assert wf.unique(x, return_inverse=True)[1].requires_grad is False
    assert wnp.unique(wnp.array([2.0, 1.0, 2.0])).tolist() == [1, 2]


def test_old_names():
    class Twice(wf.autograd.function.InplaceFunction):
        @staticmethod
        def forward(ctx, x, y):
            ctx.save_for_backward(y)
            ctx.mark_dirty(x)
            return x.add_(y), y + 2

        @staticmethod
        def backward(ctx, g, h):
            with pytest.warns(DeprecationWarning, match="use saved_tensors"):
                assert ctx.saved_variables[0].tolist() == [2.0]
            return g, g + h

    x, y = wf.ones(1), leaf(2.0)
    found, _ = Twice.apply(x, y)
    assert found is x and x.requires_grad
    found.sum().backward()
    assert y.grad.tolist() == [1.0]
