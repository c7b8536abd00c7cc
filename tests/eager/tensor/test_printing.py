"""Tensors as text."""

import numpy as np
import pytest

import weft as wf
from weft import errors


@pytest.fixture(autouse=True)
def options():
    yield
    wf.set_printoptions(profile="default")


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (3.0, "tensor(3.)"),
        (0.1, "tensor(0.1000)"),
        (7, "tensor(7)"),
        (True, "tensor(True)"),
        ([], "tensor([])"),
        ([1, -20], "tensor([  1, -20])"),
        ([True, False], "tensor([ True, False])"),
        ([1.0, 2.0], "tensor([1., 2.])"),
        ([1.5, -2.25], "tensor([ 1.5000, -2.2500])"),
        ([[1.0, 2.0], [3.0, 4.0]], "tensor([[1., 2.],\n        [3., 4.]])"),
        ([[[1]], [[2]]], "tensor([[[1]],\n\n        [[2]]])"),
        ([1e-5, 1.0], "tensor([1.0000e-05, 1.0000e+00])"),
        ([1e9, 1.0], "tensor([1.0000e+09, 1.0000e+00])"),
        ([float("nan"), 1.0, float("inf")], "tensor([nan, 1., inf])"),
        ([float("nan"), 1.5], "tensor([   nan, 1.5000])"),
    ],
)
def test_texts(data, text):
    assert repr(wf.tensor(data)) == str(wf.tensor(data)) == text


def test_other_output():
    assert repr(wf.zeros(2, dtype=wf.float64)) == "tensor([0., 0.], dtype=float64)"
    assert repr(wf.zeros(2, 0)) == "tensor([], size=(2, 0))"
    x = wf.ones(2, requires_grad=True)
    assert repr(x) == "tensor([1., 1.], requires_grad=True)"
    assert repr(x * 2) == "tensor([2., 2.], grad_fn=<MultiplyBackward>)"
    assert repr((x * 2).grad_fn) == "<MultiplyBackward>" and x.grad_fn is None
    assert repr((x * 2).detach()) == "tensor([2., 2.])"
    text = repr(wf.zeros(12, 6, dtype=wf.int32, requires_grad=False).double().requires_grad_())
    assert text.splitlines()[-1].endswith("dtype=float64, requires_grad=True)")


def test_long_lines_are_broken():
    text = repr(wf.arange(40))
    assert max(map(len, text.splitlines())) <= 80 and text.count("\n") == 2
    lines = repr(wf.ones(3, 20)).splitlines()
    assert all(line.startswith("        ") for line in lines[1:])


def test_many_elements_are_abridged():
    assert repr(wf.arange(1001)) == "tensor([   0,    1,    2,  ...,  998,  999, 1000])"
    text = repr(wf.zeros(100, 100))
    assert text.splitlines()[3] == "        ...," and text.count("...") == 7


def test_formats():
    x = wf.tensor(0.123456, requires_grad=True)
    assert f"{x:.2f}" == "0.12" and f"{wf.tensor(3)}" == "3" and f"{wf.tensor(7):04d}" == "0007"
    assert f"{wf.tensor([1, 2])}" == "tensor([1, 2])"


def test_options():
    wf.set_printoptions(precision=2)
    assert repr(wf.tensor([1 / 3])) == "tensor([0.33])"
    with wf.printoptions(sci_mode=True):
        assert repr(wf.tensor([1 / 3])) == "tensor([3.33e-01])"
    assert repr(wf.tensor([1 / 3])) == "tensor([0.33])"
    wf.set_printoptions(profile="full")
    assert "..." not in repr(wf.zeros(2000)) and wf.get_printoptions()["precision"] == 4
    wf.set_printoptions(profile="short")
    assert repr(wf.tensor(np.pi)) == "tensor(3.14)"
    with pytest.raises(errors.ConfigError, match="expected a profile of default, short, full"):
        wf.set_printoptions(profile="tiny")


def test_printing_computes_and_changes_nothing(capsys):
    x = wf.ones(2, requires_grad=True)
    y = x * 3
    print(y)
    assert capsys.readouterr().out == "tensor([3., 3.], grad_fn=<MultiplyBackward>)\n"
    y.sum().backward()
    assert x.grad.tolist() == [3.0, 3.0]
