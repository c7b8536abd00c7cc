"""Lagged tables: sparse updates equal updates of whole tables."""

import copy

import numpy as np
import pytest

import weft as wf
import weft.nn.functional as F
from weft import optim
from weft.eager.record.listing import listing
from weft.eager.tensor import lookup
from weft.ops.indexing.lagged_table import NEVER, PERIOD

ROWS, WIDTH = 300, 12
OPTIMIZERS = {
    "adam": lambda ps: optim.Adam(ps, lr=0.01),
    "amsgrad": lambda ps: optim.Adam(ps, lr=0.01, amsgrad=True, maximize=True),
    "decay": lambda ps: optim.Adam(ps, lr=0.01, weight_decay=0.1),
    "adamw": lambda ps: optim.AdamW(ps, lr=0.01),
    "momentum": lambda ps: optim.SGD(ps, lr=0.1, momentum=0.9),
    "nesterov": lambda ps: optim.SGD(ps, lr=0.1, momentum=0.8, nesterov=True, weight_decay=0.01),
    "dampening": lambda ps: optim.SGD(ps, lr=0.1, momentum=0.9, dampening=0.5),
    "adagrad": lambda ps: optim.Adagrad(ps, lr=0.1),
    "rmsprop": lambda ps: optim.RMSprop(ps, lr=0.01, momentum=0.9, centered=True),
    "adadelta": lambda ps: optim.Adadelta(ps),
    "adamax": lambda ps: optim.Adamax(ps, lr=0.01),
    "nadam": lambda ps: optim.NAdam(ps, lr=0.01),
    "radam": lambda ps: optim.RAdam(ps, lr=0.01),
    "rprop": lambda ps: optim.Rprop(ps, lr=0.01),
    "lion": lambda ps: optim.Lion(ps, lr=0.01),
}


@pytest.fixture(autouse=True)
def small_tables_lag(monkeypatch):
    monkeypatch.setattr(lookup, "LARGE", 1)
    monkeypatch.setattr(listing, "MOST_DENSE", 1)


class Run:
    """A table and a matrix, trained by lookups of drawn rows."""

    def __init__(self, make, lags, seed=0):
        rng = np.random.default_rng(seed)
        self.table = wf.tensor(rng.normal(size=(ROWS, WIDTH)).astype(np.float32))
        self.table.requires_grad_()
        self.matrix = wf.tensor(rng.normal(size=(WIDTH, 3)).astype(np.float32)).requires_grad_()
        self.opt = make([self.table, self.matrix])
        self.opt.may_lag = lags
        self.rng = np.random.default_rng(seed + 1)

    def step(self, count=20, rows=ROWS // 2):
        indices = wf.tensor(self.rng.integers(0, rows, count))
        target = wf.tensor(self.rng.normal(size=(count, 3)).astype(np.float32))
        self.opt.zero_grad()
        loss = ((F.embedding(indices, self.table) @ self.matrix - target) ** 2).mean()
        loss.backward()
        self.opt.step()
        return float(loss.detach())

    @property
    def all(self):
        state = self.opt.state[self.table]
        return [self.table.detach().numpy(), *[v.numpy() for v in state.values() if v is not None
                and not isinstance(v, (int, float))]]  # fmt: skip

    @property
    def lags(self):
        return self.table in self.opt._lagged


def agree(a, b):
    for x, y in zip(a.all, b.all, strict=True):
        np.testing.assert_allclose(x, y, rtol=2e-5, atol=2e-6)


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_values_are_those_of_whole_updates(name):
    lagging, whole = (Run(OPTIMIZERS[name], lags) for lags in (True, False))
    for step in range(9):
        found, expected = lagging.step(), whole.step()
        assert found == pytest.approx(expected, rel=1e-5)
        if step in (0, 5, 6):
            agree(lagging, whole)
    agree(lagging, whole)
    assert lagging.lags and not whole.lags


def test_rows_wait_for_longer_than_a_period():
    lagging, whole = (Run(OPTIMIZERS["adam"], lags) for lags in (True, False))
    for run in (lagging, whole):
        run.step(count=90)
        for _ in range(PERIOD + 20):
            run.step(count=3, rows=2)
    seen = lagging.opt._lagged[lagging.table]._last.numpy()
    assert (seen == NEVER).sum() > ROWS // 2  # never looked up
    assert seen[seen != NEVER].min() >= 20
    agree(lagging, whole)


def test_a_change_by_the_user_counts():
    lagging, whole = (Run(OPTIMIZERS["adam"], lags) for lags in (True, False))
    for run in (lagging, whole):
        for step in range(12):
            run.step()
            if step == 4:
                with wf.no_grad():
                    run.table.mul_(0.5)
            if step == 7:
                run.opt.load_state_dict(copy.deepcopy(run.opt.state_dict()))
            if step == 9:
                run.opt.state[run.table] = {
                    k: v.clone() if isinstance(v, wf.Tensor) else v
                    for k, v in run.opt.state[run.table].items()
                }
    agree(lagging, whole)


def test_learning_rates_of_missed_steps_count():
    lagging, whole = (Run(OPTIMIZERS["adam"], lags) for lags in (True, False))
    for run in (lagging, whole):
        for step in range(10):
            run.opt.param_groups[0]["lr"] = 0.1 / (1 + step)
            run.step(count=10)
    agree(lagging, whole)


def test_gradients_can_be_looked_at_and_added_up():
    lagging, whole = (Run(OPTIMIZERS["adam"], lags) for lags in (True, False))
    for run in (lagging, whole):
        for _ in range(4):
            run.step()
            np.testing.assert_array_equal(run.table.grad.numpy()[ROWS // 2 :], 0)
    np.testing.assert_allclose(lagging.table.grad.numpy(), whole.table.grad.numpy(), rtol=1e-5)


def test_other_uses_of_the_table_take_the_whole_update():
    run = Run(OPTIMIZERS["adam"], True)
    for _ in range(3):
        run.opt.zero_grad()
        loss = (F.embedding(wf.tensor([1, 5]), run.table) @ run.table.T).sum()
        loss.backward()
        run.opt.step()
    assert not run.lags


def test_a_loss_that_is_looked_at_before_the_step_changes_nothing():
    lagging, whole = (Run(OPTIMIZERS["adam"], lags) for lags in (True, False))
    for run in (lagging, whole):
        for step in range(6):
            indices = wf.tensor(run.rng.integers(0, ROWS, 20))
            for _ in range(1 + step % 2):
                loss = (F.embedding(indices, run.table) @ run.matrix).square().mean()
                loss.backward()
                assert float(loss.detach()) > 0
            run.opt.step()
            if step % 3:
                run.opt.zero_grad()
    agree(lagging, whole)
    assert lagging.lags
