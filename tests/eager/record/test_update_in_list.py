"""Lists of library kernels write in-place updates where the tensor lies."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

import weft as wf
from weft import errors
from weft.eager.record.run import stitch

CALLS = 5


@pytest.fixture
def updates(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[bool]]:
    """Whether each list that runs overwrites tensors."""
    found: list[bool] = []
    before = stitch._fitted

    def fitted(*given):
        made = before(*given)
        if made is not None:
            found.append(made.overwrites)
        return made

    monkeypatch.setattr(stitch, "_fitted", fitted)
    yield found


@pytest.mark.parametrize("name", ["SGD", "Adam", "AdamW", "RMSprop", "Adagrad"])
def test_optimizers_update_parameters_where_they_lie(updates, name):
    model = wf.nn.Sequential(wf.nn.Linear(3, 5), wf.nn.ReLU(), wf.nn.Linear(5, 2))
    optimizer = getattr(wf.optim, name)(model.parameters(), lr=0.1)
    places = [p.data_ptr() for p in model.parameters()]
    updates.clear()
    for n in range(2, 2 + CALLS):  # ever new sizes
        optimizer.zero_grad()
        model(wf.ones(n, 3)).square().mean().backward()
        optimizer.step()
        wf.synchronize()
    assert updates[-1]
    assert [p.data_ptr() for p in model.parameters()] == places


def test_what_fails_changes_nothing(updates):
    x, table = wf.ones(40), wf.ones(3, 2)
    wf.synchronize()
    for last in (1, 1, 5):
        x.mul_(2.0)
        x.add_(table[wf.tensor([0, last])].sum())
        if last < 3:
            wf.synchronize()
    with pytest.raises(errors.OutOfRangeError):
        x.tolist()
    assert updates[1]
    assert x.tolist() == [32.0] * 40  # the line before has not failed


def test_drawn_updates_give_what_numpy_gives(updates):
    rng = np.random.default_rng(0)
    for _ in range(60):
        n = int(rng.integers(2, 2000))
        ys = [rng.standard_normal(n, np.float32) for _ in range(3)]
        xs = [wf.tensor(y) for y in ys]
        wf.synchronize()
        kept: list[tuple[wf.Tensor, np.ndarray]] = []
        for _ in range(int(rng.integers(1, 7))):
            i, j, what = rng.integers(0, 3), rng.integers(0, 3), rng.integers(0, 6)
            if what == 0:
                xs[i].add_(xs[j])
                ys[i] = ys[i] + ys[j]
            elif what == 1:
                xs[i].mul_(0.5)
                ys[i] = ys[i] * np.float32(0.5)
            elif what == 2:
                kept.append((xs[i] - xs[j], ys[i] - ys[j]))
            elif what == 3:
                xs[i].copy_(xs[j].flip(0))
                ys[i] = ys[j][::-1].copy()
            elif what == 4:
                xs[i][1:].add_(xs[j][:-1])
                ys[i] = np.concatenate([ys[i][:1], ys[i][1:] + ys[j][:-1]])
            else:
                kept.append((xs[i].clone(), ys[i].copy()))
        for x, y in [*zip(xs, ys, strict=True), *kept]:
            np.testing.assert_array_equal(x.numpy(), y)
    assert sum(updates) > 5


def test_a_large_table_beside_large_layers_is_in_the_list(updates, monkeypatch):
    table, layer = wf.nn.Embedding(1 << 12, 257), wf.nn.Linear(257, 1 << 13)  # above `MOST_DENSE`
    optimizer = wf.optim.AdamW([*table.parameters(), *layer.parameters()], lr=0.1)
    before = table.weight.detach().numpy().copy()
    layer(table(wf.tensor([3, 5, 3]))).sum().backward()
    optimizer.step()
    optimizer.zero_grad()
    wf.synchronize()
    assert updates == [True]  # no whole program was written instead, which updates nothing in place
    change = before * np.float32(0.999) - table.weight.detach().numpy()
    assert np.allclose(np.abs(change[[3, 5]]), 0.1, atol=1e-3)
    assert not change[[2, 4, 6]].any()


def test_a_large_table_beside_small_layers_has_no_dense_gradient(updates):
    table, layer = wf.nn.Embedding(1 << 13, 257), wf.nn.Linear(257, 2)
    optimizer = wf.optim.Adam([*table.parameters(), *layer.parameters()], lr=0.1)
    layer(table(wf.tensor([3, 5, 3]))).sum().backward()
    optimizer.step()
    optimizer.zero_grad()
    wf.synchronize()
    assert updates == []  # no list, whose gradients are dense: a program that updates its rows
