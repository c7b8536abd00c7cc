"""Ctrl-C at any point: what was begun is done or not begun, and the next step is as any other."""

from __future__ import annotations

import numpy as np
import pytest
from interruption import interrupted_everywhere

import weft as wf
from weft import config, nn
from weft.eager import storage
from weft.eager.lazy import trace


@pytest.fixture(params=[False, True], autouse=True)
def compiled(request):
    with config.override(compile=request.param):
        yield


def test_changes_in_place_are_whole():
    first, second = (wf.zeros(5000, dtype=wf.float64) for _ in range(2))

    def step() -> None:
        first.add_(1.0)
        second.add_(first)
        wf.synchronize()

    def check() -> None:
        for x in (first, second):
            assert len(set(x.tolist())) == 1
        first.fill_(3.0)
        second.fill_(1.0)
        step()
        assert first[7].item() == 4.0
        assert second[9].item() == 5.0

    for _ in range(4):
        step()
    assert interrupted_everywhere(step, check, stride=3) > 50


def test_an_optimisers_step_changes_parameters_state_and_counts_or_nothing():
    wf.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 3), nn.ReLU(), nn.Linear(3, 2))
    parameters = list(model.parameters())
    optimizer = wf.optim.Adam(parameters, lr=0.1)
    x = wf.randn(5, 4)

    def loss():
        return model(x).square().mean()

    def update() -> None:
        optimizer.step()
        wf.synchronize()

    def moments():
        return [s[k] for s in optimizer.state.values() for k in ("exp_avg", "exp_avg_sq")]

    def now():
        steps = [np.array(s["step"]) for s in optimizer.state.values()]
        return [*[t.detach().numpy().copy() for t in (*parameters, *moments())], *steps]

    def put(values) -> None:
        with wf.no_grad():
            for tensor, value in zip((*parameters, *moments()), values, strict=False):
                tensor.copy_(wf.tensor(value))
        for state, count in zip(optimizer.state.values(), values[-len(parameters) :], strict=True):
            state["step"] = int(count)
        optimizer.zero_grad()
        loss().backward()
        wf.synchronize()

    loss().backward()
    update()
    before = now()
    put(before)
    update()
    after = now()
    put(before)

    def check() -> None:
        wf.synchronize()
        found = now()
        assert any(
            all(np.allclose(x, y, atol=1e-5) for x, y in zip(found, whole, strict=True))
            for whole in (before, after)
        )
        put(before)

    assert interrupted_everywhere(update, check, stride=29) > 10


def test_the_first_step_of_an_optimiser_begins_again():
    def begin():
        p = wf.ones(3, requires_grad=True)
        p.grad = wf.ones(3)
        return wf.optim.Adam([p], lr=0.5)

    optimizers = [begin()]

    def check() -> None:
        optimizer = optimizers[0]
        optimizer.step()
        (p,) = optimizer.param_groups[0]["params"]
        steps = optimizer.state[p]["step"]
        assert np.allclose(p.tolist(), 1 - 0.5 * steps)
        optimizers[0] = begin()

    assert interrupted_everywhere(lambda: optimizers[0].step(), check, stride=3) > 20


def test_tracing_leaves_the_thread_and_what_it_changes_as_they_were():
    count, x = wf.zeros(2), wf.ones(3)

    def function(x):
        count.add_(1.0)
        with wf.no_grad():
            return x * 2.0

    def run() -> None:
        wf.func.jit(function)(x)

    def check() -> None:
        assert trace.now.depth == 0
        before = count.tolist()[0]
        assert wf.func.jit(function)(x).tolist() == [2.0] * 3
        assert count.tolist() == [before + 1] * 2

    assert interrupted_everywhere(run, check, stride=11) > 20


def test_a_mode_that_does_not_begin_does_not_stay():
    def check() -> None:
        assert wf.is_grad_enabled()

    assert interrupted_everywhere(wf.no_grad().__enter__, check) > 2
    wf.set_grad_enabled(True)


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_memory_that_is_given_back_can_be_taken_again():
    def take() -> None:
        storage.empty((8192,), np.dtype(np.float32))  # given back at once, by a finaliser

    def check() -> None:
        assert storage._POOL.lock.acquire(timeout=1)
        storage._POOL.lock.release()

    assert interrupted_everywhere(take, check) > 5
