"""The report on a NaN names operation, line and element, in each phase of a step."""

import inspect

import numpy as np
import pytest

import weft as wf
from weft import errors, nn


def line_of(function, text):
    lines, first = inspect.getsourcelines(function)
    return first + next(i for i, line in enumerate(lines) if text in line)


def forward_step(w, opt):
    opt.zero_grad()
    y = w * 2
    loss = wf.log(y).sum()  # here
    loss.backward()
    opt.step()
    return loss


def backward_step(w, opt):
    opt.zero_grad()
    y = wf.sqrt((w * 0) ** 2)  # here
    y.sum().backward()
    opt.step()
    return w


def optimizer_step(w, opt):
    opt.zero_grad()
    (w * 3e38).sum().backward()
    w.grad.mul_(10)
    opt.step()  # here


STEPS = {"forward": forward_step, "backward": backward_step}


@pytest.mark.parametrize("phase", STEPS)
def test_the_line_is_found_and_parameters_are_put_back(phase):
    step = STEPS[phase]
    w = wf.tensor([1.0, 2.0, -3.0], requires_grad=True)
    opt = wf.optim.SGD([w], lr=0.1, momentum=0.9)
    report = wf.find_nan(step, w, opt)
    assert report and report.nan.phase == phase
    assert report.nan.source.line == line_of(step, "# here")
    assert w.tolist() == [1.0, 2.0, -3.0] and report.restored >= 1
    text = repr(report)
    assert text.startswith("find_nan: nan comes out of ") and f"in the {phase} pass" in text
    assert "test_anomaly.py:" in text and "were put back" in text
    found = step(w, opt)  # everything continues as before
    assert np.isnan(found.detach().numpy()).any()


def test_what_an_element_was_computed_from():
    w = wf.tensor([1.0, 2.0, -3.0], requires_grad=True)
    nan = wf.find_nan(forward_step, w, wf.optim.SGD([w], lr=0.1)).nan
    assert (nan.op, nan.index, nan.type) == ("log", (2,), "float32 (3,)")
    assert np.isnan(nan.value) and nan.inputs == ("input 0, float32 (3,): -6.0 there",)


def test_an_infinity_before_it_is_reported():
    w = wf.tensor([1.0, 2.0, -3.0], requires_grad=True)
    report = wf.find_nan(backward_step, w, wf.optim.SGD([w], lr=0.1))
    assert report.infinity.value == np.inf and "before that, inf comes out of" in repr(report)


def test_a_nan_in_the_optimizer():
    w = wf.tensor([1.0, np.inf], requires_grad=True)
    report = wf.find_nan(optimizer_step, w, wf.optim.SGD([w], lr=0.1))
    assert report.nan.phase == "optimizer" and "in the optimizer's update" in repr(report)
    assert report.nan.source.line == line_of(optimizer_step, "# here")


def test_a_nan_that_was_given():
    x = wf.tensor([[1.0, 2.0], [np.nan, 1.0]])
    report = wf.find_nan(lambda: (x @ x).sum())
    assert report.nan.phase == "input" and report.nan.index == (1, 0)
    assert "nan was given to matmul at [1, 0]" in repr(report)


def test_a_step_without_nan():
    w = wf.tensor([1.0], requires_grad=True)
    wf.manual_seed(3)
    report = wf.find_nan(lambda: (w * wf.rand(1)).sum().backward())
    assert not report and "no NaN in any value" in repr(report)
    wf.manual_seed(3)
    expected = wf.rand(1).tolist()
    wf.manual_seed(3)
    wf.find_nan(lambda: wf.rand(1))
    assert wf.rand(1).tolist() == expected


def test_exceptions_of_the_step():
    def failing(x):
        y = wf.log(x)
        if np.isnan(y.item()):
            raise FloatingPointError
        return {}["key"]

    assert wf.find_nan(failing, wf.tensor(-1.0)).nan.op == "log"
    with pytest.raises(KeyError):
        wf.find_nan(failing, wf.tensor(1.0))
    assert (wf.ones(1) + 1).tolist() == [2.0]


def test_anomaly_mode_names_the_forward_line():
    def loss(x):
        y = x * 0
        return wf.sqrt(y).sum() * 0  # here

    x = wf.tensor([4.0], requires_grad=True)
    loss(x).backward()
    assert np.isnan(x.grad.tolist())
    with wf.autograd.detect_anomaly(), pytest.raises(errors.GradientError) as error:
        loss(x).backward()
    text = str(error.value)
    assert text.startswith("backward: nan comes out of ") and "in the backward pass" in text
    assert f"test_anomaly.py:{line_of(loss, '# here')}" in text
    with wf.autograd.detect_anomaly():
        (x * x).sum().backward()
    wf.autograd.set_detect_anomaly(True)
    assert wf.autograd.is_anomaly_enabled()
    wf.autograd.set_detect_anomaly(False)
    loss(x).backward()


def test_a_step_that_raises_leaves_everything_as_it_was():
    layer = nn.Linear(2, 1)
    optimizer = wf.optim.Adam(layer.parameters(), 0.1)

    def step() -> None:
        layer(wf.ones(3, 2)).sum().backward()
        optimizer.step()
        raise RuntimeError("the user's")

    before = layer.weight.detach().numpy().copy()
    with pytest.raises(RuntimeError, match="the user's"):
        wf.find_nan(step)
    np.testing.assert_array_equal(layer.weight.detach().numpy(), before)
    assert layer.weight.grad is None
    assert not optimizer.state


def test_set_detect_anomaly_as_a_context():
    with wf.autograd.set_detect_anomaly(True):
        assert wf.autograd.is_anomaly_enabled()
    assert not wf.autograd.is_anomaly_enabled()
    wf.autograd.set_detect_anomaly(True)
    assert wf.autograd.is_anomaly_enabled()
    wf.autograd.set_detect_anomaly(False)


class Constant(wf.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, g):
        return wf.tensor([1.0, float("nan")])


def test_a_gradient_that_is_given_as_nan_is_found():
    x = wf.ones(2, requires_grad=True)
    y = Constant.apply(x).sum()
    found = pytest.raises(errors.GradientError, match=r"own function at \[1\]")
    with wf.autograd.detect_anomaly(), found:
        y.backward()
