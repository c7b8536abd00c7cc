"""In-place random functions: the distributions, and errors."""

import math

import numpy as np
import pytest

import weft as wf

COUNT = 4000


def share_below(x, limit):
    return float((x.double() < limit).double().mean())


@pytest.mark.parametrize("dtype", [wf.float32, wf.float64, wf.bfloat16])
def test_quartiles(dtype):
    wf.manual_seed(0)
    x = wf.zeros(COUNT, dtype=dtype)
    assert share_below(x.cauchy_(1.0, 2.0), 1.0) == pytest.approx(0.5, abs=0.05)
    assert share_below(x, 3.0) == pytest.approx(0.75, abs=0.05)
    assert share_below(x.log_normal_(0.5, 2.0), math.exp(0.5)) == pytest.approx(0.5, abs=0.05)
    assert share_below(x.exponential_(2.0), math.log(2) / 2) == pytest.approx(0.5, abs=0.05)
    assert x.dtype is dtype


@pytest.mark.parametrize("dtype", [wf.float32, wf.int64, wf.uint8])
def test_geometric(dtype):
    wf.manual_seed(0)
    x = wf.zeros(COUNT, dtype=dtype).geometric_(0.5).numpy()
    assert x.min() == 1
    for trials in (1, 2, 3):
        assert np.mean(x == trials) == pytest.approx(0.5**trials, abs=0.05)


def test_random_takes_one_bound_or_two():
    wf.manual_seed(0)
    assert set(wf.zeros(100).random_(3).tolist()) == {0.0, 1.0, 2.0}
    assert set(wf.zeros(100).random_(3, 5).tolist()) == {3.0, 4.0}


@pytest.mark.parametrize(
    "fill",
    [
        lambda x: x.exponential_(-0.5),
        lambda x: x.cauchy_(0.0, 0.0),
        lambda x: x.log_normal_(0.0, -1.0),
        lambda x: x.geometric_(1.0),
        lambda x: x.normal_(0.0, -1.0),
        lambda x: x.uniform_(1.0, 0.0),
        lambda x: x.bernoulli_(2.0),
        lambda x: x.random_(5, 5),
        lambda x: x.to(wf.int64).cauchy_(),
    ],
)
def test_errors(fill):
    with pytest.raises(RuntimeError):
        fill(wf.zeros(3))


@pytest.mark.parametrize("change", [
    lambda x: x.normal_(), lambda x: x.bernoulli_(), lambda x: x.random_(2), lambda x: x.uniform_(),
    lambda x: x.exponential_(), lambda x: x.lt_(2.0), lambda x: x.eq_(x.detach()),
])  # fmt: skip
def test_what_is_drawn_or_compared_in_place_has_no_gradient_from_what_was_there(change):
    w = wf.ones(3, requires_grad=True)
    whole, part = w * 2, w * 3
    change(whole)
    change(part[1:])
    (whole + part).sum().backward()
    assert w.grad.tolist() == [3, 0, 0]
