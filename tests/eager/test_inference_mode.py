"""Tensors that no gradient ever needs."""

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
