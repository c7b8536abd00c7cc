"""Ctrl-C at any point: each update is done or not begun, and the next step is as usual."""

from __future__ import annotations

import numpy as np
import pytest
from interruption import interrupted_at, interrupted_everywhere, points_of
from patience import LIMIT

import weft as wf
from weft import config, nn
from weft.eager.record.memory import memory_pool
from weft.eager.record.pending.state import trace
from weft.eager.tensor.autograd.non_differentiable import once_differentiable
from weft.runtime.memory import recycled


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


class Plain(wf.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    @once_differentiable
    def backward(ctx, g):
        return g * 2


def test_gradients_are_recorded_after_a_function_of_ones_own():
    x, g = wf.ones(2, requires_grad=True), wf.ones(2)

    def run() -> None:
        Plain.apply(x)
        Plain.backward(None, g)

    def check() -> None:
        found, trace.now.grad_mode = trace.now.grad_mode, True
        assert found

    run()
    assert interrupted_everywhere(run, check) > 20


def test_an_optimizers_step_changes_parameters_state_and_counts_or_nothing():
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


STEPS = 4


class Loop:
    """A training loop with running statistics, from its begin."""

    def __init__(self):
        wf.manual_seed(0)
        rng = np.random.default_rng(0)
        self.model = nn.Sequential(
            nn.Linear(4, 3, bias=False), nn.BatchNorm1d(3), nn.ReLU(), nn.Linear(3, 2)
        )
        self.optimizer = wf.optim.SGD(self.model.parameters(), lr=0.1, momentum=0.9)
        self.batches = [wf.tensor(rng.standard_normal((5, 4))) for _ in range(STEPS)]
        self.model.double()

    def run(self, each=lambda: None) -> None:
        for x in self.batches:
            self.optimizer.zero_grad()
            loss = self.model(x).square().mean()
            loss.backward()
            self.optimizer.step()
            loss.item()
            each()

    def trained(self):
        """The number of steps, and what they change."""
        state = [self.optimizer.state[p] for p in self.model.parameters()]
        steps = {int(s["step"]) for s in state if s}
        assert len(steps) < 2 and (not steps or all(state))
        values = [p.tolist() for p in self.model.parameters()]
        return max(steps, default=0), values + [s["momentum_buffer"].tolist() for s in state if s]

    def seen(self):
        """The number of batches, and what they change."""
        mean, var, count = self.model[1].buffers()
        return int(count), [mean.tolist(), var.tolist()]


def test_statistics_belong_to_the_step_that_is_done_or_begun():
    loop = Loop()
    trained, seen = dict([loop.trained()]), dict([loop.seen()])

    def note() -> None:
        trained.update([loop.trained()])
        seen.update([loop.seen()])

    loop.run(note)
    count = points_of(Loop().run)
    for number in np.random.default_rng(1).integers(0, count, 10):
        loop = Loop()
        where = interrupted_at(int(number), loop.run)
        (steps, values), (batches, statistics) = loop.trained(), loop.seen()
        assert batches in (steps, steps + 1), where  # as in PyTorch: after the forward pass, or not
        for found, wanted in zip(values, trained[steps], strict=True):
            np.testing.assert_allclose(found, wanted, 1e-6, 1e-9, err_msg=where)
        for found, wanted in zip(statistics, seen[batches], strict=True):
            np.testing.assert_allclose(found, wanted, 1e-6, 1e-9, err_msg=where)
        assert wf.is_grad_enabled(), where


def test_running_statistics_change_together():
    norm, x = nn.BatchNorm1d(3), wf.randn(5, 3)
    norm(x)

    def now():
        mean, var, count = norm.buffers()
        return int(count), [mean.tolist(), var.tolist()]

    values = {k: v.clone() for k, v in norm.state_dict().items()}
    norm(x)
    after = now()
    norm.load_state_dict(values)
    start = now()

    def whole() -> None:
        count, found = now()
        np.testing.assert_allclose(found, after[1] if count == after[0] else start[1], 1e-5)
        assert count in (start[0], after[0])
        norm.load_state_dict(values)

    assert interrupted_everywhere(lambda: norm(x), whole, stride=2) > 50


def test_a_backward_pass_does_not_leave_gradients_off():
    w = wf.ones(3, requires_grad=True)

    def check() -> None:
        on = wf.is_grad_enabled()
        wf.set_grad_enabled(True)
        w.grad = None
        assert on

    def run() -> None:
        (w * 2.0).sum().backward()
        wf.autograd.grad((w * 2.0).sum(), [w])

    run()  # modules are imported
    assert interrupted_everywhere(run, check, stride=5) > 20


def test_the_first_step_of_an_optimizer_begins_again():
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
        assert trace.now.depth == 0 and wf.is_grad_enabled()
        before = count.tolist()[0]
        assert wf.func.jit(function)(x).tolist() == [2.0] * 3
        assert count.tolist() == [before + 1] * 2

    assert interrupted_everywhere(run, check, stride=11) > 20


def test_a_mode_that_does_not_begin_does_not_stay():
    def check() -> None:
        assert wf.is_grad_enabled()

    try:
        assert interrupted_everywhere(wf.no_grad().__enter__, check) > 2
    finally:
        wf.set_grad_enabled(True)


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_memory_that_is_given_back_can_be_taken_again():
    def take() -> None:
        memory_pool.empty((8192,), np.dtype(np.float32))  # given back at once, by a finaliser

    def check() -> None:
        assert recycled.POOL.lock.acquire(timeout=LIMIT)
        recycled.POOL.lock.release()

    assert interrupted_everywhere(take, check) > 5
