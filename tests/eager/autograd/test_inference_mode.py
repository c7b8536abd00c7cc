"""`inference_mode`: tensors that never require gradients."""

import pytest

import weft as wf
from weft.errors import GradientError


def test_what_is_made_inside_is_known():
    before = wf.ones(2, requires_grad=True)
    with wf.inference_mode():
        assert wf.is_inference_mode_enabled() and not wf.is_grad_enabled()
        made, result = wf.ones(3), before * 2
        assert made.is_inference() and wf.is_inference(result) and not result.requires_grad
        assert made.view(3, 1).is_inference() and wf.nn.Linear(2, 2).weight.is_inference()
        assert not before[:1].is_inference() and not before.is_inference()
        with wf.inference_mode(False):
            assert wf.is_grad_enabled() and not wf.is_inference_mode_enabled()
            assert not wf.ones(1).is_inference()
    assert not wf.is_inference_mode_enabled() and wf.is_grad_enabled()
    assert made[:1].is_inference() and made.detach().is_inference()
    assert not (made * 2).is_inference() and not made.clone().is_inference()


def test_they_stay_as_they_are_outside():
    with wf.inference_mode():
        x = wf.zeros(2)
        x.add_(1)
        x[0] = 3
    for change in (lambda: x.add_(1), lambda: x[:1].mul_(2), lambda: x.fill_(0)):
        with pytest.raises(GradientError, match=r"tensor of inference_mode\(\) cannot be changed"):
            change()
    with pytest.raises(GradientError, match="cannot be changed"), wf.no_grad():
        x[0] = 1
    with pytest.raises(GradientError, match="has no gradient outside; clone"):
        x.requires_grad_()
    assert not x.requires_grad_(False).requires_grad
    assert x.tolist() == [3, 1] and x.clone().add_(1).tolist() == [4, 2]


def test_functions_and_generators_have_the_mode():
    @wf.inference_mode
    def plain():
        return wf.ones(1).is_inference()

    @wf.inference_mode()
    def several():
        yield wf.is_inference_mode_enabled()
        yield wf.ones(1).is_inference()

    assert plain() and list(several()) == [True, True]
    assert not wf.is_inference_mode_enabled()
    with wf.no_grad(), wf.inference_mode(False):
        assert wf.is_grad_enabled()


def test_nothing_is_recorded_inside_whatever_else_is_said():
    x = wf.ones(2, requires_grad=True)

    @wf.set_grad_enabled(True)
    def doubled():
        return x * 2

    with wf.inference_mode():
        with wf.enable_grad():
            assert not wf.is_grad_enabled() and not (x * 2).requires_grad
            with wf.inference_mode(False):
                assert (x * 2).requires_grad
        with wf.set_grad_enabled(True):
            assert not (x * 2).requires_grad and (x * 2).is_inference()
        assert not doubled().requires_grad
        assert wf.func.grad(lambda y: (y * y).sum())(x).tolist() == [2, 2]
    assert wf.is_grad_enabled() and doubled().requires_grad


def test_results_are_not_written_to_them_outside():
    x = wf.ones(2, requires_grad=True)
    with wf.inference_mode():
        out = wf.zeros(2)
        y = wf.ones(2, requires_grad=True).resize_(1)
    assert y.requires_grad and y.is_inference() and y.tolist() == [1]
    with pytest.raises(GradientError, match="out"):
        wf.mul(x, x, out=out)
    with pytest.raises(GradientError, match="cannot be changed"):
        wf.mul(x.detach(), x.detach(), out=out)
    for change in ("t_", "squeeze_"):
        with pytest.raises(GradientError, match=f"{change}: a tensor of inference_mode"):
            getattr(out, change)()


@pytest.mark.parametrize("mode", [wf.no_grad, wf.inference_mode])
def test_views_made_without_gradients_are_not_changed_with_them(mode):
    x = wf.ones(2, 3, requires_grad=True)
    y, constant = x * 1, wf.ones(2, 3)
    with mode():
        view, other = y[0], constant[0]
        view.mul_(3)
    for change in (lambda: view.mul_(2), lambda: view[1:].zero_(), lambda: view.unsqueeze_(0)):
        with pytest.raises(GradientError, match="a view that was made under no_grad"):
            change()
    with mode():
        view.add_(1)
    assert other.add_(1).tolist() == [2, 2, 2] and y.detach()[0].mul_(2).tolist() == [8, 8, 8]
    y.sum().backward()
    assert x.grad.tolist() == [[1, 1, 1]] * 2


def test_a_leaf_is_not_turned_in_place():
    x = wf.ones(2, 3, requires_grad=True)
    for change in (x.t_, x[0].unsqueeze_):
        with pytest.raises(GradientError, match=r"_: a.* leaf that requires grad cannot be"):
            change(*([0] if change != x.t_ else []))
    with wf.no_grad():
        x.t_()
    assert x.shape == (3, 2) and x.requires_grad and x.is_leaf


def test_what_is_detached_in_place_is_a_constant_and_its_views_are_not():
    x = wf.ones(2, 3, requires_grad=True)
    y = x * 2
    seen, part = y[0], x[0]
    y.detach_()
    assert not y.requires_grad and y.is_leaf and seen.requires_grad
    seen.sum().backward()
    assert x.grad.tolist() == [[2, 2, 2], [0, 0, 0]]
    x.detach_()
    assert not x.requires_grad and part.requires_grad and part._base is x
    assert x.mul_(2).tolist() == [[2, 2, 2]] * 2


def test_attributes_that_are_listed_are_there():
    x = wf.ones(2, dtype=wf.complex64)
    assert all(hasattr(x, name) for name in dir(x) if name not in ("H", "T", "mT", "mH"))
    assert "inferred" not in dir(x) and "shape" in dir(x)
