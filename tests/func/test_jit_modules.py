"""A `jit` function follows its modules between training and evaluation mode."""

from __future__ import annotations

import pytest

import weft as wf
from weft import func, nn


@pytest.mark.parametrize("of", ["module", "function", "nested"])
def test_modes_are_followed(of):
    traced = list[str]()
    net = nn.Sequential(nn.Identity(), nn.Dropout(1.0))

    def run(x):
        traced.append(of)
        return net(x) + 1

    inner = func.jit(run)
    ways = {"module": func.jit(net), "function": inner, "nested": func.jit(lambda x: inner(x))}
    more = 0.0 if of == "module" else 1.0
    for _ in range(3):
        for mode, expected in ((net.train, 0.0), (net.eval, 2.0)):
            mode()
            assert ways[of](wf.full((3,), 2.0)).tolist() == [expected + more] * 3
    assert len(traced) == (0 if of == "module" else 2)


def test_one_module_of_several():
    first, second = nn.Dropout(1.0), nn.Dropout(1.0)
    both = func.jit(lambda x: (first(x), second(x)))
    x = wf.ones(2)
    assert [y.tolist() for y in both(x)] == [[0.0, 0.0], [0.0, 0.0]]
    second.eval()
    assert [y.tolist() for y in both(x)] == [[0.0, 0.0], [1.0, 1.0]]
    first.training = False
    assert [y.tolist() for y in both(x)] == [[1.0, 1.0], [1.0, 1.0]]


def test_a_mode_that_is_computed():
    class Following(nn.Module):
        leader = nn.Dropout(1.0)

        @property
        def training(self):
            return self.leader.training

        @training.setter
        def training(self, mode):
            pass

        def forward(self, x):
            return x * 2 if self.training else x

    net = Following()
    run, x = func.jit(net), wf.ones(2)
    for mode, expected in ((True, 2.0), (False, 1.0), (True, 2.0)):
        net.leader.training = mode
        for _ in range(2):
            assert run(x).tolist() == [expected] * 2
