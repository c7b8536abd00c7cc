"""Tensors of one thread, read by others."""

import sys
import threading

import numpy as np
import pytest

import weft as wf
from weft import nn


class Loop:
    """A plain training loop."""

    def __init__(self):
        wf.manual_seed(0)
        self.model = nn.Sequential(nn.Linear(12, 5), nn.BatchNorm1d(5), nn.Linear(5, 3))
        self.opt = wf.optim.SGD(self.model.parameters(), 0.1, momentum=0.9)
        self.x = wf.randn(6, 12)

    def step(self):
        loss = self.model(self.x).square().mean()
        loss.backward()
        self.opt.step()
        self.opt.zero_grad()
        return loss

    def values(self):
        return [x.numpy().copy() for x in self.model.state_dict().values()]


def in_a_thread(function):
    found = []
    thread = threading.Thread(target=lambda: found.append(function()))
    thread.start()
    thread.join()
    return found[0]


@pytest.mark.parametrize("layer, name", [(0, "weight"), (1, "running_mean"), (2, "bias")])
def test_a_read_keeps_what_pending_values_need(layer, name):
    def values(loop):
        return getattr(loop.model[layer], name).tolist()

    loop, other = Loop(), Loop()
    for _ in range(4):
        wanted = other.step().item()
        loss = loop.step()
        seen = in_a_thread(lambda: values(loop))
        np.testing.assert_allclose(loss.item(), wanted, rtol=1e-4)
        np.testing.assert_allclose(seen, values(other), rtol=1e-4, atol=1e-6)
    for value, wanted in zip(loop.values(), other.values(), strict=True):
        np.testing.assert_allclose(value, wanted, rtol=1e-3, atol=1e-5)


def test_other_threads_may_read_at_any_time():
    before = sys.getswitchinterval()
    loop, failed, stop = Loop(), [], threading.Event()

    def look() -> None:
        try:
            while not stop.is_set():
                for value in loop.model.parameters():
                    value.tolist()
        except Exception as error:
            failed.append(error)

    others = [threading.Thread(target=look) for _ in range(2)]
    try:
        sys.setswitchinterval(1e-5)
        for thread in others:
            thread.start()
        for _ in range(40):
            loop.step().item()
    finally:
        stop.set()
        sys.setswitchinterval(before)
        for thread in others:
            thread.join()
    assert not failed
