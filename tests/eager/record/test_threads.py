"""Tensors of one thread, read by others."""

import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext

import numpy as np
import pytest

import weft as wf
from weft import config, nn
from weft.eager.record.memory import old_value


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


def together(work, count=4):
    """Run `work(number)` in threads that often take turns; what they raised."""
    failed = []

    def run(number):
        try:
            work(number)
        except Exception as error:
            failed.append(error)

    before = sys.getswitchinterval()
    threads = [threading.Thread(target=run, args=(i,)) for i in range(count)]
    try:
        sys.setswitchinterval(1e-5)
        for thread in threads:
            thread.start()
    finally:
        for thread in threads:
            thread.join()
        sys.setswitchinterval(before)
    assert not failed, failed[0]


class Worker:
    """A thread that does one thing after another, when told."""

    def __init__(self):
        self.pool = ThreadPoolExecutor(1)

    def __call__(self, function):
        return self.pool.submit(function).result(60)


FORWARD = pytest.mark.parametrize("forward", ["outside", "read outside", "inside", "without"])


def loss_of(p, forward, lock):
    """A loss, computed outside or inside of the lock that it returns."""
    if forward == "inside":
        return lock, lambda: (p * 2).sum()
    loss = (p * 2).sum()
    if forward == "read outside":
        loss.item()
    return nullcontext() if forward == "without" else lock, lambda: loss


@FORWARD
def test_threads_lose_no_gradient(forward):
    for _ in range(3):
        p, lock = nn.Parameter(wf.ones(4)), threading.Lock()

        def work(_, p=p, lock=lock):
            for _ in range(20):
                held, loss = loss_of(p, forward, lock)
                with held:
                    loss().backward()

        together(work)
        assert p.grad.tolist() == [160.0] * 4


OPTIMIZERS = [
    lambda p: wf.optim.SGD(p, lr=0.1, momentum=0.9),
    lambda p: wf.optim.Adam(p, lr=0.1),
    lambda p: wf.optim.ASGD(p, lr=0.1),
]


@FORWARD
@pytest.mark.parametrize("make", OPTIMIZERS)
def test_threads_that_train_the_same_parameter_lose_no_step(make, forward):
    def step(p, optimizer, lock):
        held, loss = loss_of(p, forward, lock)
        with held:
            optimizer.zero_grad()
            loss().backward()
            optimizer.step()

    p, lock = nn.Parameter(wf.ones(4)), threading.Lock()
    optimizer = make([p])
    together(lambda _: [step(p, optimizer, lock) for _ in range(6)])
    if forward == "without":  # steps may be lost, as in PyTorch, but nothing fails
        assert (p < 1.0).all()
        return
    alone = nn.Parameter(wf.ones(4))
    optimizer = make([alone])
    for _ in range(24):
        step(alone, optimizer, lock)
    np.testing.assert_allclose(p.tolist(), alone.tolist(), 1e-5)


def stepped(p):
    p.grad = wf.ones_like(p)
    wf.optim.SGD([p], lr=1.0).step()


def changed(p):
    with wf.no_grad():
        p.add_(1.0).mul_(-1.0)


def overwritten(p):
    with wf.no_grad():
        p[:] = wf.zeros(3)


def changed_by_view(p):
    with wf.no_grad():
        p[1:].copy_(wf.zeros(2))


def changed_by_numpy(p):
    array = p.detach().numpy()
    array += 1.0
    with wf.no_grad():
        p.add_(1.0)
    assert array.tolist() == p.tolist()


CHANGES = [stepped, changed, overwritten, changed_by_view, changed_by_numpy]


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("change", CHANGES)
def test_what_another_thread_has_recorded_reads_the_values_of_its_line(change, compiled):
    with config.override(compile=compiled):
        there, p = Worker(), nn.Parameter(wf.tensor([1.0, 2.0, 3.0]))
        wf.synchronize()
        known = there(lambda: (p * 2).sum())
        there(known.item)
        recorded = there(lambda: [p * 2, p.detach() + 1, p[1:] * 3, (p * p).sum()])
        change(p)
        after = p.tolist()
        assert there(lambda: [x.tolist() for x in recorded]) == [[2, 4, 6], [2, 3, 4], [6, 9], 14]
        for loss, gradient in ((recorded[3], [2, 4, 6]), (known, [2, 2, 2])):
            p.grad = None
            there(loss.backward)
            assert p.grad.tolist() == gradient
        assert there(p.tolist) == after


def test_so_does_what_an_ended_thread_has_recorded():
    p = nn.Parameter(wf.ones(3))
    wf.synchronize()
    loss = in_a_thread(lambda: (p * 2).sum())
    stepped(p)
    assert p.tolist() == [0.0] * 3
    assert loss.item() == 6.0
    assert (p * 2).sum().item() == 0.0


def test_running_statistics_are_those_of_all_batches():
    norm, alone, lock = nn.BatchNorm1d(3), nn.BatchNorm1d(3), threading.Lock()
    x = wf.randn(5, 3)

    def work(_):
        for _ in range(10):
            with lock:
                norm(x)

    together(work)
    for _ in range(40):
        alone(x)
    for found, wanted in zip(norm.buffers(), alone.buffers(), strict=True):
        np.testing.assert_allclose(found.tolist(), wanted.tolist(), 1e-5)


DISJOINT = {
    "items": lambda x, i: x.__setitem__(i, i + 1.0),
    "views": lambda x, i: x[i : i + 1].add_(i + 1.0),
    "index_add_": lambda x, i: x.index_add_(0, wf.tensor([i]), wf.tensor([i + 1.0])),
    "scatter_": lambda x, i: x.scatter_(0, wf.tensor([i]), i + 1.0),
    "masks": lambda x, i: x.__setitem__(wf.arange(40) == i, i + 1.0),
    "a lock": lambda x, i: x.add_((wf.arange(40) == i) * (i + 1.0)),
}


@pytest.mark.parametrize("name", DISJOINT)
def test_threads_may_change_different_elements(name):
    x = wf.zeros(40)
    together(lambda i: [DISJOINT[name](x, j) for j in range(i, 40, 4)])
    assert x.tolist() == [i + 1.0 for i in range(40)]


@pytest.mark.parametrize("make", OPTIMIZERS[:2])
def test_nothing_is_copied_beside_a_thread_that_reads_nothing(make, monkeypatch):
    there, copies = Worker(), []
    there(lambda: (wf.ones(2) + 1).tolist())
    before = old_value.copied
    monkeypatch.setattr(old_value, "copied", lambda *x: copies.append(x) or before(*x))
    loop = Loop()
    loop.opt = make(loop.model.parameters())
    for i in range(6):
        loop.step()
        if i % 2:
            loop.values()
    assert not copies
    loss = there(lambda: loop.model[0](loop.x))
    loop.step().item()
    assert len(copies) == 2  # weight and bias of one layer
    del loss
