"""What is cut off from gradients stays so: in eager code, under `jit` and under `checkpoint`."""

from __future__ import annotations

import pytest

import weft as wf
from weft import func, nn


def plain(fun):
    return fun


@pytest.fixture(params=[plain, func.jit, func.checkpoint])
def wrap(request):
    return request.param


def test_no_gradient_flows_through_no_grad(wrap):
    def square(x):
        with wf.no_grad():
            twice = x * 2
        return (twice * x).sum()

    x = wf.tensor([1.0, 3.0], requires_grad=True)
    wrap(square)(x).backward()
    assert x.grad.tolist() == [2.0, 6.0]
    assert func.grad(wrap(square))(wf.tensor([1.0, 3.0])).tolist() == [2.0, 6.0]


def test_results_without_a_gradient_do_not_need_one(wrap):
    x = wf.tensor([1.0, 3.0], requires_grad=True)
    found = wrap(lambda x: (x.detach() * 2, x > 2, x.argmax(), x.round(), x + 1))(x)
    assert [y.requires_grad for y in found] == [False, False, False, True, True]


def test_statistics_of_batches_are_no_part_of_the_graph(wrap):
    norm = nn.BatchNorm1d(2)
    step = wrap(lambda x: norm(x).square())
    for _ in range(4):
        x = wf.tensor([[1.0, 2.0], [3.0, 5.0]], requires_grad=True)
        step(x).mean().backward()
        assert not norm.running_mean.requires_grad
    assert norm.num_batches_tracked.item() == 4


def test_no_gradient_flows_through_moved_statistics():
    norm = nn.BatchNorm1d(2)
    x = wf.tensor([[1.0, 2.0], [3.0, 5.0]], requires_grad=True)
    norm(x)
    ((norm.running_mean * 3).sum() + x.sum()).backward()
    assert x.grad.tolist() == [[1.0, 1.0], [1.0, 1.0]]
